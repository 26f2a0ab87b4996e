/**
 * Directories that cannot be watched, told in few words.
 *
 * @module dsh-live-workspace/watch/blind-spots
 */
import { dirname } from 'node:path'
import type { WatchFault, WatchSink } from './contract.ts'
import { isWithin } from './root.ts'

/** Directories named at most; more of them are told as the directories that they are in. */
const MAX_NAMED = 64

/** Collects what is not watched below a root. */
export class BlindSpots {
  readonly #root: string
  readonly #told = new Set<string>()
  #waiting = new Map<string, WatchFault>()
  #everywhere = false

  constructor(root: string) {
    this.#root = root
  }

  /** Whether a part is not watched of which nobody was told where it is. */
  get everywhere(): boolean {
    return this.#everywhere
  }

  has(directory: string): boolean {
    return this.#waiting.has(directory) || this.#told.has(directory)
  }

  /** A directory, and so everything below it, is not watched. */
  add(directory: string, fault: WatchFault): void {
    if (!this.#everywhere && !this.has(directory)) this.#waiting.set(directory, fault)
  }

  /** Tell what was added since the last call. */
  tell(sink: Pick<WatchSink, 'uncovered'>): void {
    if (this.#waiting.size === 0) return
    this.#widen()
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [directory, fault] of waiting) {
      if (this.#everywhere) return
      if (directory === this.#root) {
        this.#everywhere = true
        sink.uncovered(fault)
      } else {
        this.#told.add(directory)
        sink.uncovered(fault, directory)
      }
    }
  }

  /** Of too many, the deepest give way to the directories that they are in. */
  #widen(): void {
    while (this.#waiting.size + this.#told.size > MAX_NAMED) {
      const all = [...this.#told, ...this.#waiting.keys()]
      const deepest = Math.max(...all.map((path) => path.length - path.replaceAll('/', '').length))
      const parents = new Set(
        all
          .filter((path) => path.length - path.replaceAll('/', '').length === deepest)
          .map((path) => dirname(path)),
      )
      const fault = [...this.#waiting.values()][0]
      if (!fault) return
      for (const parent of parents) {
        const within = (path: string) => isWithin(parent, path)
        const known = [...this.#waiting].find(([path]) => within(path))?.[1]
        for (const path of [...this.#waiting.keys()].filter(within)) this.#waiting.delete(path)
        for (const path of [...this.#told].filter(within)) this.#told.delete(path)
        this.#waiting.set(parent, known ?? fault)
      }
      if (this.#waiting.has(this.#root)) return
    }
  }
}
