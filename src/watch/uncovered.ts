/**
 * The parts of a root that no event comes from. Pure.
 *
 * @module dsh-live-workspace/watch/uncovered
 */
import { dirname } from 'node:path'
import type { WatchFault } from './contract.ts'
import { isWithin } from './root.ts'

/** What is not watched, for the status and for those who ask why. */
export interface Uncovered {
  /** Absolute directories, none below another. */
  readonly directories: readonly string[]
  /** Some further part, and nobody knows which. */
  readonly unknown: boolean
  /** The latest reason; `undefined` while everything is watched. */
  readonly fault: WatchFault | undefined
}

/** Everything is watched. */
export const WHOLE: Uncovered = { directories: [], unknown: false, fault: undefined }

/** Subtrees of one root. */
export class UncoveredParts {
  readonly #root: string
  readonly #most: number
  #directories = new Set<string>()
  #unknown = false
  #fault: WatchFault | undefined
  #list: Uncovered | undefined

  /** @param most - directories kept; more of them are replaced by the ones around them. */
  constructor(root: string, most: number) {
    this.#root = root
    this.#most = most
  }

  /** Whether everything is watched. */
  get isWhole(): boolean {
    return this.#directories.size === 0 && !this.#unknown
  }

  get list(): Uncovered {
    this.#list ??= { directories: [...this.#directories], unknown: this.#unknown, fault: this.#fault }
    return this.#list
  }

  /**
   * A part is not watched.
   * @param directory - absolute path; without one the part is not known.
   * @returns whether that is new.
   */
  add(fault: WatchFault, directory: string | undefined): boolean {
    this.#fault = fault
    this.#list = undefined
    if (directory === undefined || !isWithin(this.#root, directory)) {
      const news = !this.#unknown
      this.#unknown = true
      return news
    }
    if (this.#partOf(directory) !== undefined) return false
    for (const known of this.#directories) if (isWithin(directory, known)) this.#directories.delete(known)
    this.#directories.add(directory)
    while (this.#directories.size > this.#most) this.#coarsen()
    return true
  }

  /** A part is not there any more. */
  remove(directory: string): void {
    if (!this.#directories.delete(directory)) return
    this.#list = undefined
    if (this.isWhole) this.#fault = undefined
  }

  clear(): void {
    this.#directories.clear()
    this.#unknown = false
    this.#fault = undefined
    this.#list = undefined
  }

  /** Whether no event of a path is to be expected. @param path - absolute, within the root. */
  has(path: string): boolean {
    return this.#unknown || this.#partOf(path) !== undefined
  }

  #partOf(path: string): string | undefined {
    if (this.#directories.size === 0) return undefined
    for (let at = path; isWithin(this.#root, at); at = dirname(at)) {
      if (this.#directories.has(at)) return at
      if (at === dirname(at)) break
    }
    return undefined
  }

  /** Too many to keep: the deepest ones are taken together, which says too much but never too little. */
  #coarsen(): void {
    const depth = (path: string) => path.split('/').length
    const deepest = Math.max(...Array.from(this.#directories, depth))
    const coarser = new Set<string>()
    for (const path of this.#directories) {
      coarser.add(path !== this.#root && depth(path) === deepest ? dirname(path) : path)
    }
    this.#directories = new Set([...coarser].filter((path) => !hasAncestor(coarser, path)))
  }
}

const hasAncestor = (paths: ReadonlySet<string>, path: string): boolean => {
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) if (paths.has(at)) return true
  return paths.has(dirname(path)) && path !== dirname(path)
}
