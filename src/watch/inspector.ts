/**
 * Looks at the paths that events named: which of them are directories now, and what they hold.
 *
 * A directory that an event named is subscribed to by a handle of our own and then listed to its full
 * depth. Subscribing first means that a file is either in the listing or behind it in the queue.
 * Ignored directories get neither.
 *
 * @module dsh-live-workspace/watch/inspector
 */
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { codeOf } from '../errors.ts'
import { BlindSpots } from './blind-spots.ts'
import type { WatchSink } from './contract.ts'
import type { Disk } from './disk.ts'
import { faultOf, overLimit } from './faults.ts'
import { Handles, type Subscribe } from './handles.ts'
import { Freshness } from './freshness.ts'
import { KnownTree } from './known-tree.ts'
import { isWithin } from './root.ts'
import type { WatchScope } from './scope.ts'

/** Default time in ms after which an inspection lets the event loop turn. */
const SLICE_MS = 8
/** Times that a directory is tried that is there but cannot be found. */
const MAX_TRIES = 5

/** What an inspector needs from the backend that it works for. */
export interface InspectorOptions {
  readonly scope: WatchScope
  /** How entries are asked for. */
  readonly disk: Disk
  readonly detached: <T>(make: () => T) => T
  /** Whether directories get handles of our own. */
  readonly guards: boolean
  readonly sliceMs?: number | undefined
  readonly subscribe?: Subscribe | undefined
  readonly sink: Pick<WatchSink, 'uncovered'>
  /** An event of such a handle. */
  readonly onRaw: (event: string, name: string | null, details: { readonly watchedPath: string }) => void
  readonly onInvalid: (path: string, existed: boolean | undefined) => void
  readonly onError: (error: unknown) => void
  /** Whether the root is still the directory that was scanned; asked before an event makes it be listed. */
  readonly rootStands: () => Promise<boolean>
  /** A directory that was watched is ignored from now on. */
  readonly onLost?: (directory: string) => void
  /** A directory that was ignored is not any more. */
  readonly onGained?: (directory: string) => void
}

/**
 * Why a directory is listed: the first scan, which is no news; an event; or because it is ignored no
 * longer, when only what changed lately is news, and nobody knows whether it was there before.
 */
type Occasion = 'scan' | 'event' | 'gained'

/** Keeps the tree of known names true to what it sees. */
export class Inspector {
  readonly tree = new KnownTree()
  readonly scope: WatchScope
  readonly #options: InspectorOptions
  readonly #sliceMs: number
  readonly #blindSpots: BlindSpots
  readonly #handles: Handles
  /** Paths that events named since the last inspection and that may be directories. */
  readonly #named = new Set<string>()
  /** Ignored directories in watched ones. */
  readonly #pruned = new Set<string>()
  readonly #tries = new Map<string, number>()
  #refreshing = false
  #sliceStartedAt = 0
  readonly #freshness = new Freshness()
  #closed = false

  constructor(options: InspectorOptions) {
    this.#options = options
    this.scope = options.scope
    this.#sliceMs = options.sliceMs ?? SLICE_MS
    this.#handles = new Handles({
      ...options,
      onFailed: (directory, error) => this.#failed(directory, error),
    })
    this.#blindSpots = new BlindSpots(options.scope.root)
  }

  /** Number of handles of our own. */
  get guardCount(): number {
    return this.#handles.size
  }

  /** Whether nothing waits to be looked at. */
  get idle(): boolean {
    return this.#named.size === 0 && !this.#refreshing
  }

  /** Whether a part of the tree is not watched and nobody knows which. */
  get blind(): boolean {
    return this.#blindSpots.everywhere
  }

  /** A path is to be looked at. */
  name(path: string): void {
    this.#named.add(path)
  }

  /** The ignore rules or the directories that come first changed; the next inspection acts on it. */
  refresh(): void {
    this.#refreshing = true
  }

  /** An ignored directory that somebody else has met. */
  prune(directory: string): void {
    this.#pruned.add(directory)
  }

  /** A part of the tree is not watched. */
  leave(directory: string, error: unknown): void {
    this.#blindSpots.add(directory, faultOf(error))
  }

  /** One directory too many. */
  leaveOverLimit(directory: string): void {
    const systems = this.#handles.isFull ? faultOf({ code: 'ENOSPC' }) : undefined
    this.#blindSpots.add(directory, systems ?? overLimit(this.scope.maxDirectories))
  }

  /** Tell what cannot be watched. */
  tellBlindSpots(): void {
    this.#blindSpots.tell(this.#options.sink)
  }

  close(): void {
    this.#closed = true
    this.#handles.close()
  }

  /**
   * Everything from before a moment has been looked at.
   * @param wall - time of the day in ms from which on changes are new to the next inspection.
   * @param monotonic - the same moment by the process's monotonic clock.
   */
  settled(wall: number, monotonic: number): void {
    this.#freshness.settled(wall, monotonic)
  }

  /**
   * Subscribe to the root and list it to its full depth; none of it is news.
   * @returns whether the root is a directory.
   */
  async scan(): Promise<boolean> {
    const { root } = this.scope
    const info = await this.#options.disk.entry(root)
    if (!info?.isDirectory()) return false
    this.#sliceStartedAt = performance.now()
    // It goes by the newest rules anyway.
    this.#refreshing = false
    this.scope.refresh()
    // Before the others can use up what the system gives.
    for (const directory of this.scope.first) if (await this.#isDirectory(directory)) this.#guard(directory)
    await this.#adopt(root, info.ino, 'scan')
    this.tellBlindSpots()
    return true
  }

  /**
   * Look at everything that was named before the call and meanwhile.
   * @param giveUp - asked between two rounds.
   * @returns whether nothing is left to look at.
   */
  async inspect(giveUp: () => boolean): Promise<boolean> {
    this.#sliceStartedAt = performance.now()
    while (!this.idle) {
      if (this.#closed || giveUp()) return false
      const batch = [...this.#named]
      this.#named.clear()
      for (const path of batch) {
        await this.#look(path, 'event')
        await this.#breathe()
      }
      if (!this.#refreshing) continue
      this.#refreshing = false
      await this.#followRules()
    }
    this.#tries.clear()
    this.tellBlindSpots()
    return true
  }

  /** Nothing of ours holds the event loop for long, however much there is to look at. */
  async #breathe(): Promise<void> {
    if (performance.now() - this.#sliceStartedAt < this.#sliceMs) return
    await nextTurn()
    this.#sliceStartedAt = performance.now()
  }

  async #followRules(): Promise<void> {
    this.scope.refresh()
    const pending = [this.scope.root]
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      for (const name of [...this.tree.directoriesIn(directory)]) {
        const path = join(directory, name)
        if (this.scope.prunes(path)) this.#lose(path)
        else pending.push(path)
        await this.#breathe()
      }
    }
    for (const path of [...this.#pruned, ...this.scope.first]) {
      if (this.#closed) return
      if (this.tree.hasDirectory(path)) this.#pruned.delete(path)
      else if (!this.scope.prunes(path) && this.tree.hasDirectory(join(path, '..'))) await this.#gain(path)
      await this.#breathe()
    }
  }

  #lose(directory: string): void {
    this.#release(directory)
    this.#pruned.add(directory)
    this.#options.onLost?.(directory)
  }

  async #gain(path: string): Promise<void> {
    this.#pruned.delete(path)
    if (!(await this.#isDirectory(path))) return
    this.#options.onGained?.(path)
    await this.#look(path, 'gained')
  }

  async #isDirectory(path: string): Promise<boolean> {
    return (await this.#entry(path))?.isDirectory() ?? false
  }

  async #entry(path: string): Promise<Stats | undefined> {
    return this.#options.disk.entry(path).catch(() => undefined)
  }

  #settle(path: string, present: boolean): void {
    if (!present) this.#pruned.delete(path)
    if (this.tree.hasDirectory(path)) {
      this.#forget(path)
      // What was known as a directory was not noted when it was named.
      if (present) this.#options.onInvalid(path, false)
    }
    if (present) this.tree.addFile(path)
    else this.tree.removeFile(path)
  }

  async #look(path: string, occasion: Occasion): Promise<void> {
    if (this.#closed || (path === this.scope.root && !(await this.#options.rootStands()))) return
    let info
    try {
      info = await this.#options.disk.entry(path)
    } catch (error) {
      this.leave(path, error)
    }
    if (info?.isDirectory()) {
      await this.#adopt(path, info.ino, occasion)
      return
    }
    this.#settle(path, info !== undefined)
  }

  /** Subscribe to a directory, then list it. */
  async #adopt(directory: string, ino: number, occasion: Occasion): Promise<void> {
    if (this.#closed) return
    if (this.scope.prunes(directory)) {
      this.#pruned.add(directory)
      return
    }
    const replaced = this.tree.inodeOf(directory) !== ino
    if (!this.#guard(directory)) return
    this.tree.addDirectory(directory, ino)
    let entries
    try {
      entries = await this.#options.disk.list(directory)
    } catch (error) {
      this.#failed(directory, error)
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
    for (const name of files) await this.#list(join(directory, name), replaced, occasion)
    for (const name of directories) {
      const path = join(directory, name)
      const info = await this.#entry(path)
      if (info?.isDirectory()) await this.#adopt(path, info.ino, occasion)
      else this.#named.add(path)
    }
  }

  async #list(path: string, replaced: boolean, occasion: Occasion): Promise<void> {
    if (this.scope.silences(path)) return
    const known = this.tree.hasFile(path)
    this.tree.addFile(path)
    if (occasion === 'scan') return
    if (occasion === 'event' && (!known || replaced)) {
      this.#options.onInvalid(path, known)
      return
    }
    // Otherwise entries that look older than the last inspection are as they were.
    const info = await this.#entry(path)
    await this.#breathe()
    if (!info || info.ctimeMs >= this.#freshness.newFrom)
      this.#options.onInvalid(path, known ? true : undefined)
  }

  #forget(directory: string): void {
    for (const path of this.#release(directory)) this.#options.onInvalid(path, true)
  }

  /** @returns the files that were known there. */
  #release(directory: string): readonly string[] {
    const gone = this.tree.removeDirectory(directory)
    for (const path of gone.directories) this.#handles.release(path)
    for (const path of this.#pruned) if (isWithin(directory, path)) this.#pruned.delete(path)
    return gone.files
  }

  /** A handle of our own, made before the directory is listed. */
  #guard(directory: string): boolean {
    if (!this.#options.guards || this.#closed) return !this.#closed
    // Not all of the library's watches are handles of ours, and not all handles are listed yet.
    const watched = Math.max(this.#handles.size, this.tree.directoryCount)
    const isNew = !this.#handles.has(directory) && !this.tree.hasDirectory(directory)
    if (isNew && !this.scope.admits(directory, this.#handles.isFull ? Infinity : watched)) {
      this.leaveOverLimit(directory)
      return false
    }
    try {
      this.#handles.renew(directory)
      return true
    } catch (error) {
      this.#failed(directory, error)
      return false
    }
  }

  #failed(directory: string, error: unknown): void {
    if (this.#closed) return
    const tries = (this.#tries.get(directory) ?? 0) + 1
    this.#tries.set(directory, tries)
    const code = codeOf(error)
    if ((code === 'ENOENT' || code === 'ENOTDIR') && tries < MAX_TRIES) this.#named.add(directory)
    // Without an instance there is no further watch at all, nor is there anything without the root.
    else if (directory === this.scope.root || code === 'EMFILE' || code === 'ENFILE')
      this.#options.onError(error)
    else this.leave(directory, error)
  }
}
