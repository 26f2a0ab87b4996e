/**
 * What a continued session still has to be told of the files that it had seen. Pure.
 *
 * @module dsh-live-workspace/manifest/recall
 */
import type { Remembered } from './format.ts'

/** How a file that was taken up stands: not checked yet, as it was seen, or not. */
export type Standing = 'waiting' | 'same' | 'moved'

/** Where a recall comes from. */
export type Origin = 'resumed' | 'continued'

/** The remembered files of one session, until all of them are told. */
export class Recall {
  readonly origin: Origin
  /** Settles when it is known what is remembered. Never rejects. */
  ready: Promise<void> = Promise.resolve()
  /** Whether that is known. */
  loaded = false
  /** A message has spoken of some of the files, or of all as unchecked. */
  partlyTold = false
  /** Files are being checked beside the model's work. */
  underWay = false
  /** Files of which it is not known what the session saw. */
  unknown: readonly string[] = []
  /** Files whose other state the session had been told before. */
  readonly toldBefore = new Set<string>()
  readonly #standing = new Map<string, Standing>()
  #queue: Remembered[] = []
  #isProven: (entry: Remembered) => boolean = () => true
  #inMessage: readonly string[] = []

  constructor(origin: Origin) {
    this.origin = origin
  }

  /**
   * What is remembered, the latest used first.
   * @param unknown - paths of which nothing is remembered.
   * @param isProven - whether the log holds exactly the events that an entry names.
   */
  load(
    entries: readonly Remembered[],
    unknown: readonly string[],
    isProven: (entry: Remembered) => boolean,
  ): void {
    this.#queue = [...entries]
    this.unknown = unknown
    this.#isProven = isProven
    this.loaded = true
  }

  /** Files that were not taken up yet. */
  get queue(): readonly Remembered[] {
    return this.#queue
  }

  /** Take up the next ones; of those that the log does not bear out nothing is known. */
  take(most: number): Remembered[] {
    const taken = this.#queue.splice(0, most)
    const proven = taken.filter((entry) => this.#isProven(entry))
    if (proven.length < taken.length) {
      const lost = taken.filter((entry) => !proven.includes(entry))
      this.unknown = [...this.unknown, ...lost.map(({ path }) => path)]
    }
    return proven
  }

  /** Files that were taken up and not told yet. */
  get standing(): ReadonlyMap<string, Standing> {
    return this.#standing
  }

  keys(standing: Standing): string[] {
    return [...this.#standing].filter(([, value]) => value === standing).map(([key]) => key)
  }

  stand(key: string, standing: Standing): void {
    this.#standing.set(key, standing)
  }

  /** The session has seen it anew, or was told of it in another way. */
  forget(key: string): void {
    this.#standing.delete(key)
    this.toldBefore.delete(key)
  }

  /** Files of which nobody can say yet whether they are as they were. */
  get unchecked(): number {
    return this.#queue.length + this.keys('waiting').length
  }

  /** Whether there is something to check. */
  get isOpen(): boolean {
    return this.loaded && this.unchecked > 0
  }

  /** A message speaks of these files. */
  compose(keys: readonly string[]): void {
    this.#inMessage = keys
  }

  /**
   * That message is in the log.
   * @returns whether nothing is left to tell.
   */
  settle(): boolean {
    for (const key of this.#inMessage) this.forget(key)
    this.#inMessage = []
    this.partlyTold = true
    this.unknown = []
    return this.loaded && this.#queue.length === 0 && this.#standing.size === 0
  }
}
