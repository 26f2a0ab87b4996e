/**
 * Watches of single directories that the tree watcher does not reach: outside the root, or ignored.
 *
 * Each one is not recursive and reports only the names asked for; a home directory is never listed. A
 * path whose directory is not there yet is followed by the nearest one around it that is.
 *
 * @module dsh-live-workspace/watch/outside
 */
import { type FSWatcher, statSync, watch } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CookieFence } from './cookie.ts'

/** What is to be followed. Absolute real paths. */
export interface FollowRequest {
  readonly directories: readonly string[]
  /** Names that matter in those directories. */
  readonly names: readonly string[]
  readonly files: readonly string[]
}

interface Watched {
  readonly watcher: FSWatcher
  /** Name in the directory → paths that an event of it is about. */
  readonly reports: Map<string, Set<string>>
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Follows names in directories of one root's surroundings. */
export class OutsideWatches {
  readonly #detached: <T>(make: () => T) => T
  readonly #onChange: (path: string) => void
  readonly #watched = new Map<string, Watched>()
  readonly #followed = new Set<string>()
  /** Made when it is needed: a tree watcher of this thread has one of its own. */
  #fence: CookieFence | undefined
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
    let [added, complete] = [false, true]
    const want = (path: string) => {
      if (this.#followed.has(path) || covered(path)) return
      if (this.#follow(path)) added = true
      else complete = false
    }
    for (const directory of directories) for (const name of names) want(join(directory, name))
    for (const file of files) want(file)
    return { added, complete }
  }

  /**
   * Wait until every event from before this call was reported, where the tree watcher has another queue.
   * @param limitMs - longest wait in ms.
   * @returns whether they were. Never rejects.
   */
  async pass(limitMs: number, signal: AbortSignal): Promise<boolean> {
    if (this.#closed || this.#watched.size === 0) return true
    try {
      this.#fence ??= this.#detached(() => new CookieFence())
      return await this.#fence.pass(limitMs, signal)
    } catch {
      // No room for a cookie: nobody can say whether they were.
      return false
    }
  }

  close(): void {
    this.#closed = true
    this.#fence?.close()
    for (const { watcher } of this.#watched.values()) watcher.close()
    this.#watched.clear()
    this.#followed.clear()
  }

  #follow(path: string): boolean {
    if (this.#closed) return false
    try {
      let [directory, name] = [dirname(path), basename(path)]
      while (!isDirectory(directory) && directory !== dirname(directory)) {
        ;[directory, name] = [dirname(directory), basename(directory)]
      }
      const { reports } = this.#watched.get(directory) ?? this.#watch(directory)
      reports.set(name, (reports.get(name) ?? new Set()).add(path))
      this.#followed.add(path)
      return true
    } catch {
      // No handle to be had: whoever asked looks for itself, and asks again.
      return false
    }
  }

  #watch(directory: string): Watched {
    const reports = new Map<string, Set<string>>()
    const watcher = this.#detached(() =>
      watch(directory, { persistent: false }, (_event, name) => {
        const paths = name === null ? undefined : reports.get(name)
        if (name !== null && paths) this.#report(directory, name, paths)
        // Its own name, or none: the directory itself was moved or removed.
        else if (name === null || name === basename(directory)) this.#drop(directory)
      }),
    )
    watcher.on('error', () => this.#drop(directory))
    const watched = { watcher, reports }
    this.#watched.set(directory, watched)
    return watched
  }

  #report(directory: string, name: string, paths: ReadonlySet<string>): void {
    for (const path of paths) {
      // What was waited for from afar is to be followed from near by now.
      if (join(directory, name) !== path) this.#followed.delete(path)
      this.#onChange(path)
    }
  }

  #drop(directory: string): void {
    const watched = this.#watched.get(directory)
    this.#watched.delete(directory)
    watched?.watcher.close()
    for (const path of [...(watched?.reports.values() ?? [])].flatMap((paths) => [...paths])) {
      this.#followed.delete(path)
      this.#onChange(path)
    }
  }
}
