/**
 * The parts of a root that are not watched: which they are, and what changes in them.
 *
 * @module dsh-live-workspace/watch/gaps
 */
import type { WatchConfig } from '../config.ts'
import { Comparison } from './comparison.ts'
import type { WatchFault } from './contract.ts'
import { diskFor } from './disk.ts'
import { unlessLate } from './late.ts'
import { type Uncovered, UncoveredParts } from './uncovered.ts'

/** What gaps need of their root. */
export interface GapsOptions {
  /** Real path of the root. */
  readonly root: string
  readonly config: Pick<
    WatchConfig,
    'maxUncoveredParts' | 'maxComparedFiles' | 'compareWaitMs' | 'scanSliceMs'
  >
  /** Whether a path is nobody's news. */
  readonly silent: (path: string, isDirectory: boolean) => boolean
  readonly onChange: (path: string, existed: boolean) => void
  /** Other parts than before are not watched. */
  readonly onMove: () => void
  /** Called once for each cause. */
  readonly report: (fault: WatchFault) => void
}

/** Keeps account of one root. */
export class Gaps {
  readonly #options: GapsOptions
  readonly #parts: UncoveredParts
  readonly #comparison: Comparison
  readonly #reported = new Set<WatchFault['code']>()
  /** Time of the day in ms from which on changes have not been looked at. */
  #lookedAt: number | undefined

  constructor(options: GapsOptions) {
    const { root, config, silent, onChange } = options
    this.#options = options
    this.#parts = new UncoveredParts(root, config.maxUncoveredParts)
    this.#comparison = new Comparison({
      disk: diskFor(root),
      silent,
      onChange,
      onGone: (part) => {
        this.#parts.remove(part)
        this.#moved(undefined)
      },
      maxFiles: config.maxComparedFiles,
      sliceMs: config.scanSliceMs,
    })
  }

  get list(): Uncovered {
    return this.#parts.list
  }

  get comparedFiles(): number {
    return this.#comparison.size
  }

  get comparisonComplete(): boolean {
    return this.#comparison.complete
  }

  /** Whether no event of a path is to be expected. */
  has(path: string): boolean {
    return this.#parts.has(path)
  }

  /**
   * A part is not watched.
   * @param directory - absolute path; without one the part is not known.
   * @param live - whether it was watched until now.
   */
  add(fault: WatchFault, directory: string | undefined, live: boolean): void {
    if (!this.#parts.add(fault, directory)) return
    // What changed there since the last look is news at the first one.
    this.#moved(live ? this.#lookedAt : undefined)
    // One line for each cause: every further part stands in the status.
    if (this.#reported.has(fault.code)) return
    this.#reported.add(fault.code)
    this.#options.report(fault)
  }

  /** Another watcher begins, which will say for itself what it leaves out. */
  clear(): void {
    if (this.#parts.isWhole) return
    this.#parts.clear()
    this.#moved(undefined)
  }

  /** Every event from before this time of the day, in ms, has come. */
  looked(at: number): void {
    this.#lookedAt = at
  }

  /**
   * Compare, for at most a part of the wait; what is found later counts for the next boundary.
   * @param thorough - see `Comparison.run`. Never rejects.
   */
  async compare(limitMs: number, signal: AbortSignal, thorough: boolean): Promise<void> {
    if (this.#parts.isWhole) return
    const wait = Math.min(limitMs, this.#options.config.compareWaitMs)
    await unlessLate(this.#comparison.run(thorough), wait, signal, false)
  }

  async close(): Promise<void> {
    await this.#comparison.close()
  }

  #moved(newSince: number | undefined): void {
    const { directories, unknown } = this.#parts.list
    this.#comparison.setParts(unknown ? [this.#options.root] : directories, newSince)
    this.#options.onMove()
  }
}
