/**
 * The dirty journal of one root: which paths were invalidated, numbered in the order of arrival.
 *
 * A session keeps a cursor, not a copy, so that an event costs the same whatever the number of
 * sessions. Pure: no I/O, no clock.
 *
 * @module dsh-live-workspace/watch/journal
 */

/** One invalidated path, as a reader sees it. */
export interface DirtyPath {
  /** Absolute path. */
  readonly path: string
  /** Number of its latest invalidation; grows by one with each event of the root. */
  readonly seq: number
  /**
   * Whether the path was there before the reader's cursor; `undefined` when nobody knows.
   * It tells a new file from a changed one, and a removed file from one that nobody ever saw.
   */
  readonly existed: boolean | undefined
}

/** What a reader gets for its cursor. */
export interface JournalSlice {
  /** The cursor to continue from. */
  readonly head: number
  readonly paths: readonly DirtyPath[]
  /** Everything of the root is to be looked at again: events were missed, or paths dropped. */
  readonly everything: boolean
  /** Changed paths whose names were dropped since the cursor. */
  readonly dropped: number
}

interface Entry {
  seq: number
  existed: boolean | undefined
  /** The latest event before which the path was known to be missing. */
  appearedSeq: number
}

/** Path → latest event, bounded in the number of paths. */
export class Journal {
  readonly #maxPaths: number
  readonly #entries = new Map<string, Entry>()
  #head = 0
  /** The latest event after which everything is dirty. */
  #everythingSeq = 0
  /** Event number → paths dropped at it. */
  readonly #drops = new Map<number, number>()

  /** @param maxPaths - paths kept; one more drops them all and marks the whole root dirty. */
  constructor(maxPaths: number) {
    this.#maxPaths = maxPaths
  }

  /** Number of the latest event. */
  get head(): number {
    return this.#head
  }

  /** Number of paths kept. */
  get size(): number {
    return this.#entries.size
  }

  /**
   * Record an invalidation.
   * @param path - absolute path.
   * @param existed - whether the path was there before; `undefined` when not known.
   */
  note(path: string, existed: boolean | undefined): void {
    const seq = ++this.#head
    const entry = this.#entries.get(path)
    if (entry) {
      // Re-inserted, so that the map stays in the order of the latest events.
      this.#entries.delete(path)
      entry.seq = seq
      if (existed === false) entry.appearedSeq = seq
      this.#entries.set(path, entry)
      return
    }
    if (this.#entries.size >= this.#maxPaths) {
      this.#everythingSeq = seq
      this.#drops.set(seq, this.#entries.size + 1)
      this.#entries.clear()
      return
    }
    this.#entries.set(path, { seq, existed, appearedSeq: existed === false ? seq : 0 })
  }

  /** Mark the whole root dirty: events were missed. */
  noteAll(): void {
    this.#everythingSeq = ++this.#head
  }

  /**
   * Everything after a cursor.
   * @param cursor - the `head` of an earlier slice, or the journal's head at the time of joining.
   */
  since(cursor: number): JournalSlice {
    const paths: DirtyPath[] = []
    if (cursor < this.#head) {
      for (const [path, entry] of this.#entries) {
        if (entry.seq <= cursor) continue
        const existed = entry.appearedSeq > cursor ? false : entry.appearedSeq > 0 ? true : entry.existed
        paths.push({ path, seq: entry.seq, existed })
      }
    }
    let dropped = 0
    for (const [seq, count] of this.#drops) if (seq > cursor) dropped += count
    return { head: this.#head, paths, everything: this.#everythingSeq > cursor, dropped }
  }

  /**
   * Forget what every reader has passed.
   * @param lowestCursor - the lowest cursor of all readers.
   */
  trim(lowestCursor: number): void {
    for (const seq of this.#drops.keys()) if (seq <= lowestCursor) this.#drops.delete(seq)
    for (const [path, entry] of this.#entries) {
      // Entries stand in the order of their latest event.
      if (entry.seq > lowestCursor) return
      this.#entries.delete(path)
    }
  }
}
