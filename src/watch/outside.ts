/**
 * Watches of single directories that the tree watcher does not reach: outside the root, or ignored.
 *
 * Each one is not recursive and reports only the names asked for; a home directory is never listed.
 *
 * @module dsh-live-workspace/watch/outside
 */
import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** What is to be followed. Absolute real paths. */
export interface FollowRequest {
  readonly directories: readonly string[]
  /** Names that matter in those directories. */
  readonly names: readonly string[]
  readonly files: readonly string[]
}

interface Watched {
  readonly watcher: FSWatcher
  readonly names: Set<string>
}

/** Follows names in directories of one root's surroundings. */
export class OutsideWatches {
  readonly #detached: <T>(make: () => T) => T
  readonly #onChange: (path: string) => void
  readonly #watched = new Map<string, Watched>()
  #closed = false

  constructor(detached: <T>(make: () => T) => T, onChange: (path: string) => void) {
    this.#detached = detached
    this.#onChange = onChange
  }

  /**
   * Follow what is asked for, besides what is followed already.
   * @param covered - whether the tree watcher reports a path.
   * @returns `added`: something is followed only from now on, so it is to be looked at once more;
   *   `complete`: everything asked for is followed.
   */
  follow(
    { directories, names, files }: FollowRequest,
    covered: (path: string) => boolean,
  ): { added: boolean; complete: boolean } {
    const wanted = new Map<string, Set<string>>()
    const want = (path: string) => {
      if (covered(path)) return
      const directory = dirname(path)
      wanted.set(directory, (wanted.get(directory) ?? new Set()).add(basename(path)))
    }
    for (const directory of directories) for (const name of names) want(join(directory, name))
    for (const file of files) want(file)
    let [added, complete] = [false, true]
    for (const [directory, wantedNames] of wanted) {
      const known = this.#watched.get(directory)
      if (known) {
        for (const name of wantedNames) {
          if (known.names.has(name)) continue
          known.names.add(name)
          added = true
        }
      } else if (this.#watch(directory, wantedNames)) added = true
      else complete = false
    }
    return { added, complete }
  }

  close(): void {
    this.#closed = true
    for (const { watcher } of this.#watched.values()) watcher.close()
    this.#watched.clear()
  }

  #watch(directory: string, names: Set<string>): boolean {
    if (this.#closed) return false
    try {
      const watcher = this.#detached(() =>
        watch(directory, { persistent: false }, (_event, name) => {
          if (name !== null && names.has(name)) this.#onChange(join(directory, name))
          // Its own name, or none: the directory itself was moved or removed.
          else if (name === null || name === basename(directory)) this.#drop(directory, names)
        }),
      )
      watcher.on('error', () => this.#drop(directory, names))
      this.#watched.set(directory, { watcher, names })
      return true
    } catch {
      // Not there, or no handle to be had: whoever asked looks for itself, and asks again.
      return false
    }
  }

  #drop(directory: string, names: ReadonlySet<string>): void {
    this.#watched.get(directory)?.watcher.close()
    this.#watched.delete(directory)
    for (const name of names) this.#onChange(join(directory, name))
  }
}
