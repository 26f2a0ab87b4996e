/**
 * What one root has to tell to the other thread: coalesced, in batches, and never more than a bound.
 *
 * @module dsh-live-workspace/watch/native/outbox
 */
import type { WatchSink } from '../contract.ts'
import type { Report } from './messages.ts'

/** Paths in one message: the other thread does not stand still for it. */
const BATCH_PATHS = 200
/** Batches under way; while the other thread is busy, further events of a path cost nothing. */
const MAX_UNDER_WAY = 2
/** Paths that wait; beyond them everything counts as changed. */
const MAX_WAITING_PATHS = 100_000
/** Time in ms in which events of one path become one. */
const DELAY_MS = 5

/** The sink of an engine in another thread. */
export class Outbox implements WatchSink {
  readonly #post: (report: Report) => void
  readonly #watched: () => number
  /** Path → whether it was there before the first of its events that wait: that is what counts. */
  readonly #waiting = new Map<string, boolean | undefined>()
  #underWay = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * @param post - sends one message.
   * @param watched - number of directories watched now.
   */
  constructor(post: (report: Report) => void, watched: () => number) {
    this.#post = post
    this.#watched = watched
  }

  invalidate(path: string, existed: boolean | undefined): void {
    if (this.#waiting.has(path)) return
    if (this.#waiting.size >= MAX_WAITING_PATHS) {
      this.#waiting.clear()
      this.invalidateAll()
    }
    this.#waiting.set(path, existed)
    this.#timer ??= setTimeout(() => this.#send(MAX_UNDER_WAY), DELAY_MS).unref()
  }

  invalidateAll(): void {
    this.#post({ kind: 'everything' })
  }

  ready(): void {
    this.flush()
    this.#post({ kind: 'ready', directories: this.#watched() })
  }

  uncovered(...[fault, directory]: Parameters<WatchSink['uncovered']>): void {
    this.#post({ kind: 'uncovered', fault, directory })
  }

  fault(...[fault]: Parameters<WatchSink['fault']>): void {
    this.flush()
    this.#post({ kind: 'fault', fault })
  }

  /** Send everything now. */
  flush(): void {
    this.#send(Infinity)
  }

  /** A batch has been passed on at the other end. */
  taken(): void {
    this.#underWay -= 1
    if (this.#timer === undefined) this.#send(MAX_UNDER_WAY)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#waiting.clear()
  }

  #send(maxUnderWay: number): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#waiting.size > 0 && this.#underWay < maxUnderWay) {
      const paths: string[] = []
      const existed: (boolean | undefined)[] = []
      for (const [path, before] of this.#waiting) {
        if (paths.length >= BATCH_PATHS) break
        paths.push(path)
        existed.push(before)
        this.#waiting.delete(path)
      }
      this.#underWay += 1
      this.#post({ kind: 'told', paths, existed })
    }
  }
}
