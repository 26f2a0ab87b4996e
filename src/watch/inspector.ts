/**
 * Looks at the paths that events named: which of them are directories now, and what they hold.
 *
 * A directory that an event named is subscribed to by a handle of our own and then listed to its full
 * depth: the library learns of it later than we do. Subscribing first means that a file is either in
 * the listing or behind it in the queue.
 *
 * @module dsh-live-workspace/watch/inspector
 */
import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { codeOf } from '../errors.ts'
import { KnownTree } from './known-tree.ts'
import type { Disk } from './disk.ts'

/** How much older than the last inspection a changed entry may look: coarse clocks, tick by tick. */
const CLOCK_GRAIN_MS = 50
/** Time in ms after which an inspection lets the event loop turn. */
const SLICE_MS = 8

/** What an inspector needs from the backend that it works for. */
export interface InspectorOptions {
  readonly ignored: (path: string) => boolean
  /** How entries are asked for. */
  readonly disk: Disk
  readonly detached: <T>(make: () => T) => T
  /** Whether directories get handles of our own. */
  readonly guards: boolean
  /** An event of such a handle. */
  readonly onRaw: (event: string, name: string | null, details: { readonly watchedPath: string }) => void
  readonly onInvalid: (path: string, existed: boolean) => void
  readonly onError: (error: unknown) => void
}

/** Keeps the tree of known names true to what it sees. */
export class Inspector {
  readonly tree = new KnownTree()
  readonly #options: InspectorOptions
  /** Handles of our own on directories that appeared or were replaced after the start. */
  readonly #guards = new Map<string, FSWatcher>()
  /** Paths that events named since the last inspection and that may be directories. */
  readonly #named = new Set<string>()
  #sliceStartedAt = 0
  #inspectedAt = Date.now()
  #closed = false

  constructor(options: InspectorOptions) {
    this.#options = options
  }

  /** A path is to be looked at. */
  name(path: string): void {
    this.#named.add(path)
  }

  close(): void {
    this.#closed = true
    for (const guard of this.#guards.values()) guard.close()
    this.#guards.clear()
  }

  /**
   * Look at everything that was named before the call and meanwhile.
   * @param startedAt - time of the day in ms from which on changes are new to the next inspection.
   * @param giveUp - asked between two rounds.
   * @returns whether nothing is left to look at.
   */
  async inspect(startedAt: number, giveUp: () => boolean): Promise<boolean> {
    this.#sliceStartedAt = performance.now()
    while (this.#named.size > 0) {
      if (this.#closed || giveUp()) return false
      const batch = [...this.#named]
      this.#named.clear()
      for (const path of batch) {
        await this.#look(path)
        await this.#breathe()
      }
    }
    this.#inspectedAt = startedAt
    return true
  }

  /** Nothing of ours holds the event loop for long, however much there is to look at. */
  async #breathe(): Promise<void> {
    if (performance.now() - this.#sliceStartedAt < SLICE_MS) return
    await nextTurn()
    this.#sliceStartedAt = performance.now()
  }

  #settle(path: string, present: boolean): void {
    if (this.tree.hasDirectory(path)) {
      this.#forget(path)
      // What was known as a directory was not noted when it was named.
      if (present) this.#options.onInvalid(path, false)
    }
    if (present) this.tree.addFile(path)
    else this.tree.removeFile(path)
  }

  async #look(path: string): Promise<void> {
    if (this.#closed) return
    let info
    try {
      info = await this.#options.disk.entry(path)
    } catch (error) {
      this.#options.onError(error)
    }
    if (info?.isDirectory()) {
      await this.#adopt(path, info.ino)
      return
    }
    this.#settle(path, info !== undefined)
  }

  /** Subscribe to a directory that an event named, then list it. */
  async #adopt(directory: string, ino: number): Promise<void> {
    if (this.#closed || this.#options.ignored(directory)) return
    const replaced = this.tree.inodeOf(directory) !== ino
    if (!this.#guard(directory)) return
    this.tree.addDirectory(directory, ino)
    let entries
    try {
      entries = await this.#options.disk.list(directory)
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') this.#named.add(directory)
      else this.#options.onError(error)
      return
    }
    const files = new Set<string>()
    const directories = new Set<string>()
    for (const entry of entries) (entry.isDirectory() ? directories : files).add(entry.name)
    for (const name of this.tree.directoriesIn(directory)) {
      if (!directories.has(name)) this.#forget(join(directory, name))
    }
    for (const name of this.tree.filesIn(directory)) {
      if (files.has(name)) continue
      this.tree.removeFile(join(directory, name))
      this.#options.onInvalid(join(directory, name), true)
    }
    await this.#breathe()
    for (const name of files) await this.#list(join(directory, name), replaced)
    for (const name of directories) {
      const path = join(directory, name)
      const info = await this.#options.disk.entry(path).catch(() => undefined)
      if (info?.isDirectory()) await this.#adopt(path, info.ino)
      else this.#named.add(path)
    }
  }

  async #list(path: string, replaced: boolean): Promise<void> {
    if (this.#options.ignored(path)) return
    const known = this.tree.hasFile(path)
    this.tree.addFile(path)
    if (!known || replaced) {
      this.#options.onInvalid(path, known)
      return
    }
    // The same directory as before, only named: entries that look older are as they were.
    const info = await this.#options.disk.entry(path).catch(() => undefined)
    await this.#breathe()
    if (!info || info.ctimeMs >= this.#inspectedAt - CLOCK_GRAIN_MS) this.#options.onInvalid(path, true)
  }

  #forget(directory: string): void {
    const gone = this.tree.removeDirectory(directory)
    for (const path of gone.files) this.#options.onInvalid(path, true)
    for (const path of gone.directories) {
      this.#guards.get(path)?.close()
      this.#guards.delete(path)
    }
  }

  /** A handle of our own, made before the directory is listed; an older one is on a dead inode. */
  #guard(directory: string): boolean {
    if (!this.#options.guards || this.#closed) return !this.#closed
    try {
      const guard = this.#options.detached(() =>
        watch(directory, { persistent: false }, (event, name) =>
          this.#options.onRaw(event, name, { watchedPath: directory }),
        ),
      )
      guard.on('error', (error) => this.#options.onError(error))
      this.#guards.get(directory)?.close()
      this.#guards.set(directory, guard)
      return true
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') this.#named.add(directory)
      else this.#options.onError(error)
      return false
    }
  }
}
