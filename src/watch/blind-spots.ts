/**
 * Directories that cannot be watched, told in few words.
 *
 * @module dsh-live-workspace/watch/blind-spots
 */
import { dirname, sep } from 'node:path'
import type { WatchFault, WatchSink } from './contract.ts'

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

  /** Of too many, those that share a directory, the largest families first, give way to it. */
  #widen(): void {
    while (this.#waiting.size + this.#told.size > MAX_NAMED && !this.#waiting.has(this.#root)) {
      const families = new Map<string, number>()
      for (const path of [...this.#told, ...this.#waiting.keys()]) {
        families.set(dirname(path), (families.get(dirname(path)) ?? 0) + 1)
      }
      const largest = Math.max(...families.values())
      // Where none shares anything, the deepest climb.
      const deepest = Math.max(...Array.from(families.keys(), depthOf))
      const parents = new Set<string>()
      for (const [parent, size] of families) {
        if (largest > 1 ? size > largest / 2 : depthOf(parent) === deepest) parents.add(parent)
      }
      this.#replace(parents)
    }
  }

  #replace(parents: ReadonlySet<string>): void {
    for (const path of this.#told) if (holderOf(parents, path)) this.#told.delete(path)
    for (const [path, fault] of this.#waiting) {
      const parent = holderOf(parents, path)
      if (parent === undefined) continue
      this.#waiting.delete(path)
      this.#waiting.set(parent, fault)
    }
    const [fault] = this.#waiting.values()
    for (const parent of parents) if (fault && !this.#waiting.has(parent)) this.#waiting.set(parent, fault)
  }
}

const depthOf = (path: string): number => path.split(sep).length

/** @returns the directory among some that a path lies in. */
const holderOf = (directories: ReadonlySet<string>, path: string): string | undefined => {
  for (let directory = dirname(path), child = path; directory !== child;) {
    if (directories.has(directory)) return directory
    ;[child, directory] = [directory, dirname(directory)]
  }
  return undefined
}
