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
  /** Time in ms of its latest invalidation, by the process's monotonic clock. */
  readonly at: number
  /** Times in ms of its invalidations behind the reader's cursor: of many, the first and the latest. */
  readonly times: readonly number[]
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

/** Events in a row for one path before which it was there, or was not. */
interface Run {
  existed: boolean | undefined
  lastSeq: number
}

/** When an event came. */
interface Moment {
  readonly seq: number
  readonly at: number
}

interface Entry {
  /** In the order of the events; never empty. */
  readonly runs: Run[]
  at: number
  /** The first event, and the latest ones in their order. */
  readonly first: Moment
  readonly moments: Moment[]
}

/** Paths that were dropped at one event. */
interface Drop {
  readonly seq: number
  readonly count: number
  /** Their latest events; given up for an old drop. */
  seqs: readonly number[] | undefined
}

/** A path that comes and goes is remembered by its first and its latest runs. */
const MAX_RUNS = 32
/** Events of a path whose times are kept. */
const MAX_MOMENTS = 8
/** Drops that are remembered event by event; older ones by their number. */
const EXACT_DROPS = 4

const lastSeqOf = ({ runs }: Entry): number => runs.at(-1)?.lastSeq ?? 0

/** Where some were dropped, the first event of all stands for them. */
const timesOf = ({ first, moments }: Entry, cursor: number): number[] => {
  const behind = moments.filter(({ seq }) => seq > cursor)
  const complete = behind.length < moments.length || moments[0]?.seq === first.seq
  return (complete ? behind : [first, ...behind]).map(({ at }) => at)
}

/** Path → latest event, bounded in the number of paths. */
export class Journal {
  readonly #maxPaths: number
  readonly #entries = new Map<string, Entry>()
  #head: number
  /** The latest event after which everything is dirty. */
  #everythingSeq = 0
  readonly #drops: Drop[] = []

  /**
   * @param maxPaths - paths kept; one more drops them all and marks the whole root dirty.
   * @param head - number to count on from, so that numbers of an earlier journal stay lower.
   */
  constructor(maxPaths: number, head = 0) {
    this.#maxPaths = maxPaths
    this.#head = head
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
   * @param at - time in ms by the process's monotonic clock.
   */
  note(path: string, existed: boolean | undefined, at = 0): void {
    const seq = ++this.#head
    const entry = this.#entries.get(path)
    if (entry) {
      // Re-inserted, so that the map stays in the order of the latest events.
      this.#entries.delete(path)
      this.#entries.set(path, entry)
      entry.at = at
      entry.moments.push({ seq, at })
      if (entry.moments.length > MAX_MOMENTS) entry.moments.shift()
      const latest = entry.runs.at(-1)
      if (latest && latest.existed === existed) latest.lastSeq = seq
      else entry.runs.push({ existed, lastSeq: seq })
      if (entry.runs.length > MAX_RUNS) entry.runs.splice(1, 1)
      return
    }
    if (this.#entries.size >= this.#maxPaths) {
      this.#drop(seq)
      return
    }
    const moment = { seq, at }
    this.#entries.set(path, { runs: [{ existed, lastSeq: seq }], at, first: moment, moments: [moment] })
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
        const first = entry.runs.find((run) => run.lastSeq > cursor)
        if (!first) continue
        const { existed } = first
        paths.push({ path, seq: lastSeqOf(entry), existed, at: entry.at, times: timesOf(entry, cursor) })
      }
    }
    let dropped = 0
    for (const drop of this.#drops) dropped += droppedSince(drop, cursor)
    return { head: this.#head, paths, everything: this.#everythingSeq > cursor, dropped }
  }

  /**
   * Forget what every reader has passed.
   * @param lowestCursor - the lowest cursor of all readers.
   */
  trim(lowestCursor: number): void {
    while ((this.#drops[0]?.seq ?? Infinity) <= lowestCursor) this.#drops.shift()
    for (const [path, entry] of this.#entries) {
      // Entries stand in the order of their latest event.
      if (lastSeqOf(entry) > lowestCursor) return
      this.#entries.delete(path)
    }
  }

  #drop(seq: number): void {
    const seqs = [...Array.from(this.#entries.values(), lastSeqOf), seq]
    this.#entries.clear()
    this.#everythingSeq = seq
    this.#drops.push({ seq, count: seqs.length, seqs })
    const old = this.#drops.at(-1 - EXACT_DROPS)
    if (old) old.seqs = undefined
  }
}

const droppedSince = ({ seq, count, seqs }: Drop, cursor: number): number => {
  if (seq <= cursor) return 0
  // For an old drop only bounds are known: no more than the events since the cursor.
  return seqs ? seqs.filter((dropped) => dropped > cursor).length : Math.min(count, seq - cursor)
}
