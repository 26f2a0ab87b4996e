/**
 * Notices that the kernel's event queue may have run over, which nobody says.
 *
 * libuv reads the queue until it is empty, all in one go, and drops the record of the overflow. A queue
 * that was full must show as many events between two turns of the loop.
 *
 * @module dsh-live-workspace/watch/native/burst
 */
import { readFileSync } from 'node:fs'

/** Some records have no handle any more, so that fewer events than that mean a full queue. */
const SHARE_OF_QUEUE = 1 / 4
const USUAL_QUEUE = 16_384

const queueLength = (): number => {
  try {
    return Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8')) || USUAL_QUEUE
  } catch {
    return USUAL_QUEUE
  }
}

/** Counts the events of one event loop. */
export class BurstDetector {
  readonly #threshold: number
  readonly #listeners = new Set<() => void>()
  #count = 0

  /** @param threshold - events between two turns of the loop that are too many. */
  constructor(threshold = Math.ceil(queueLength() * SHARE_OF_QUEUE)) {
    this.#threshold = threshold
  }

  /** An event came. */
  count(): void {
    if (this.#count++ === 0) {
      setImmediate(() => {
        this.#count = 0
      }).unref()
    }
    if (this.#count === this.#threshold) for (const listener of [...this.#listeners]) listener()
  }

  /** @returns a function that takes the listener away again. */
  onBurst(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

let shared: BurstDetector | undefined

/** The detector of this thread: all of its watches share one queue. */
export const burstsOfThisThread = (): BurstDetector => (shared ??= new BurstDetector())
