/**
 * Which directories of a root a backend watches: what is ignored, what comes first, and how many.
 *
 * @module dsh-live-workspace/watch/scope
 */
import { basename, dirname } from 'node:path'
import type { BackendOptions } from './contract.ts'
import { isWithin } from './root.ts'

/** The entry that makes a directory the root of a repository, and whose coming and going changes rules. */
const REPOSITORY = '.git'

type ScopeOptions = Pick<BackendOptions, 'root' | 'ignored' | 'first' | 'maxDirectories'>

/** What is to be watched now. */
export class WatchScope {
  readonly root: string
  readonly maxDirectories: number
  readonly #options: ScopeOptions
  /** Directories whose files count whatever is ignored. */
  #holders: ReadonlySet<string> = new Set()
  /** The same and their ancestors below the root, those before what is in them. */
  #first: ReadonlySet<string> = new Set()

  constructor(options: ScopeOptions) {
    this.root = options.root
    this.maxDirectories = options.maxDirectories
    this.#options = options
    this.refresh()
  }

  /** Directories that come first, each after the one that it is in. */
  get first(): ReadonlySet<string> {
    return this.#first
  }

  /** Ask once more which directories come first. */
  refresh(): void {
    const holders = this.#options.first().filter((path) => path !== this.root && isWithin(this.root, path))
    const first = new Set<string>()
    for (const holder of holders) {
      const way: string[] = []
      for (let path = holder; path !== this.root && !first.has(path); path = dirname(path)) way.push(path)
      for (const path of way.toReversed()) first.add(path)
    }
    this.#holders = new Set(holders)
    this.#first = first
  }

  /** Whether a directory in a watched one is ignored. */
  prunes(directory: string): boolean {
    return directory !== this.root && !this.#first.has(directory) && this.#options.ignored(directory, true)
  }

  /** Whether an entry of a watched directory that is no directory, or may be none, is not reported. */
  silences(path: string): boolean {
    return this.#options.ignored(path, false) && !this.#holders.has(dirname(path)) && !this.#first.has(path)
  }

  /** Whether rules depend on an entry that is otherwise silent. */
  isMarker(path: string): boolean {
    return basename(path) === REPOSITORY
  }

  /** @param watched - directories that are watched already. */
  admits(directory: string, watched: number): boolean {
    return watched < this.maxDirectories || directory === this.root || this.#first.has(directory)
  }
}
