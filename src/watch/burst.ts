/**
 * Suspects that the system's event queue has overflowed: it does so without a word.
 *
 * The queue is emptied in one go, so a full one shows as that many events within one turn of the loop.
 *
 * @module dsh-live-workspace/watch/burst
 */
import { readFileSync } from 'node:fs'

const LIMIT_FILE = '/proc/sys/fs/inotify/max_queued_events'
/** The kernel's default (inotify(7)). */
const DEFAULT_LIMIT = 16_384
/** Not every record of the queue becomes an event: a quarter of a full queue is enough for doubt. */
const SHARE = 0.25

/** Events in one turn of the loop after which some may be missing. */
export const suspiciousBurst = (): number => {
  try {
    const limit = Number(readFileSync(LIMIT_FILE, 'utf8').trim())
    return Number.isInteger(limit) && limit > 0 ? Math.ceil(limit * SHARE) : DEFAULT_LIMIT * SHARE
  } catch {
    // Another system, or hidden.
    return DEFAULT_LIMIT * SHARE
  }
}

/** Counts events between two turns of the loop. */
export class Burst {
  readonly #limit: number
  readonly #onSuspicion: () => void
  #count = 0
  #turn: NodeJS.Immediate | undefined

  constructor(limit: number, onSuspicion: () => void) {
    this.#limit = limit
    this.#onSuspicion = onSuspicion
  }

  /** An event has come. */
  count(): void {
    this.#count += 1
    if (this.#count === this.#limit) this.#onSuspicion()
    if (this.#turn) return
    this.#turn = setImmediate(() => {
      this.#turn = undefined
      this.#count = 0
    })
    this.#turn.unref()
  }
}
