/**
 * The chokidar backend: right for every platform, and for polling.
 *
 * chokidar's own view of the tree lags behind the events (it lists, waits and throttles), so nothing
 * here rests on it. Each `raw` and `all` event only invalidates; at a barrier every directory that an
 * event named is subscribed to by a handle of our own and then listed to its full depth. Subscribing
 * first means that a file is either in the listing or behind it in the queue.
 *
 * @module dsh-live-workspace/watch/chokidar
 */
import { type Dirent, type FSWatcher as NodeWatcher, watch as watchNode } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import pLimit from 'p-limit'
import { codeOf } from '../errors.ts'
import type { BackendOptions, BarrierOutcome, WatchBackend } from './contract.ts'
import { CookieFence } from './cookie.ts'
import { concernsAll, faultOf, ROOT_LOST } from './faults.ts'
import { KnownTree } from './known-tree.ts'

/** How much older than the last barrier a changed entry may look: coarse clocks, tick by tick. */
const CLOCK_GRAIN_MS = 50
/** From so many names of one directory on, listing it is cheaper than asking for each. */
const NAMES_WORTH_A_LISTING = 4
/** Concurrent `lstat` calls; libuv runs four at a time. */
const LSTAT_CONCURRENCY = 8

/** Where the barrier comes from: an exact fence, or a wait for silence. */
export type BarrierKind = 'cookie' | 'debounce'

/** The exact fence needs one ordered event queue, which only Linux has. */
export const defaultBarrierKind = (options: BackendOptions): BarrierKind =>
  process.platform === 'linux' && !options.polling ? 'cookie' : 'debounce'

class ChokidarBackend implements WatchBackend {
  readonly name: string
  readonly #options: BackendOptions
  readonly #watcher: FSWatcher
  readonly #fence: CookieFence | undefined
  readonly #tree = new KnownTree()
  /** Handles of our own on directories that appeared or were replaced after the start. */
  readonly #guards = new Map<string, NodeWatcher>()
  /** Paths that events named since the last barrier and that may be directories. */
  readonly #named = new Set<string>()
  readonly #limit = pLimit(LSTAT_CONCURRENCY)
  #inspection: Promise<void> = Promise.resolve()
  #rootInode: number | undefined
  #inspectedAt = Date.now()
  #lastEventAt = 0
  #ready = false
  #partial = false
  readonly #ending = new AbortController()
  #closed = false

  constructor(options: BackendOptions, kind: BarrierKind) {
    this.#options = options
    this.name = options.polling ? 'polling' : 'chokidar'
    this.#fence = kind === 'cookie' ? options.detached(() => new CookieFence()) : undefined
    this.#watcher = options.detached(() =>
      watch(options.root, {
        persistent: false,
        // The first scan fills the tree of known names; its events invalidate nothing.
        ignoreInitial: false,
        followSymlinks: false,
        atomic: false,
        alwaysStat: true,
        usePolling: options.polling,
        interval: options.pollIntervalMs,
        ignored: (path) => options.ignored(path),
      }),
    )
    this.#watcher.on('raw', (event, path, details) => this.#onRaw(event, path, details))
    this.#watcher.on('all', (event, path, stats) => this.#onEvent(event, path, stats?.ino))
    this.#watcher.on('error', (error) => this.#onError(error))
    this.#watcher.once('ready', () => {
      this.#ready = true
      this.#rootInode = this.#tree.inodeOf(options.root)
      options.sink.ready()
    })
  }

  get watchedDirectories(): number {
    return this.#tree.directoryCount
  }

  async barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome> {
    const deadline = performance.now() + limitMs
    const startedAt = Date.now()
    if (this.#closed) return 'unclean'
    const ready = this.#ready
    const passed = this.#fence ? await this.#fence.pass(limitMs, signal) : await this.#quiet(deadline, signal)
    if (!passed || this.#closed) return 'unclean'
    // One after the other: a second barrier must not overtake what the first has taken out.
    const inspection = this.#inspection.then(() => this.#inspect(deadline, signal, startedAt))
    this.#inspection = inspection.then(() => undefined)
    const complete = await inspection
    if (!complete || !ready || this.#partial || this.#closed) return 'unclean'
    return this.#fence ? 'clean' : 'best-effort'
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#ending.abort()
    for (const guard of this.#guards.values()) guard.close()
    this.#guards.clear()
    this.#fence?.close()
    await this.#inspection
    await this.#watcher.close()
  }

  #onRaw(event: string, name: string | null, details: unknown): void {
    if (this.#closed) return
    this.#lastEventAt = performance.now()
    const parent = watchedPathOf(details)
    if (parent === undefined) {
      if (name && isAbsolute(name)) this.#touch(name, event)
      return
    }
    // A handle names its own directory when that is moved or removed; a child may bear the same name.
    if (!name || name === basename(parent)) this.#touch(parent, 'rename')
    if (name) this.#touch(join(parent, name), event)
  }

  #touch(path: string, event: string): void {
    if (this.#options.ignored(path)) return
    const known = this.#tree.hasFile(path)
    // Content of a known file: nothing to look at before the boundary stats it.
    if (!known || event !== 'change') this.#named.add(path)
    if (!this.#tree.hasDirectory(path)) this.#invalidate(path, known)
  }

  #onEvent(event: string, path: string, ino: number | undefined): void {
    if (this.#closed || this.#options.ignored(path)) return
    this.#lastEventAt = performance.now()
    switch (event) {
      case 'addDir':
        if (!this.#ready) this.#tree.addDirectory(path, ino ?? 0)
        else if (!this.#tree.hasDirectory(path)) this.#named.add(path)
        return
      case 'unlinkDir':
        if (this.#ready) this.#named.add(path)
        return
      case 'add':
        if (!this.#ready) this.#tree.addFile(path)
        else if (!this.#isEcho(!this.#tree.hasFile(path))) this.#touch(path, 'rename')
        return
      case 'unlink':
        if (this.#ready && !this.#isEcho(this.#tree.hasFile(path))) this.#touch(path, 'rename')
        return
      default:
        if (this.#ready && !this.#isEcho(false)) this.#touch(path, 'change')
    }
  }

  /**
   * With an exact barrier the library's own words come after the raw events that caused them, often
   * much later; they count only where they tell something new.
   */
  #isEcho(tellsSomethingNew: boolean): boolean {
    return this.#fence !== undefined && !tellsSomethingNew
  }

  #invalidate(path: string, existed: boolean): void {
    // While the first scan runs, a name that is not known yet says nothing.
    this.#options.sink.invalidate(path, existed || this.#ready ? existed : undefined)
  }

  #onError(error: unknown): void {
    if (this.#closed) return
    const fault = faultOf(error)
    if (concernsAll(fault)) {
      this.#options.sink.fault(fault)
      return
    }
    // One path that cannot be followed: the rest is, but no barrier is complete any more.
    this.#partial = true
    this.#options.sink.uncovered(fault)
  }

  /** Silence for `debounceMs`: all that can be had where events have no order. */
  async #quiet(deadline: number, signal: AbortSignal): Promise<boolean> {
    const startedAt = performance.now()
    const ending = AbortSignal.any([signal, this.#ending.signal])
    while (!ending.aborted) {
      const now = performance.now()
      const left = Math.max(startedAt, this.#lastEventAt) + this.#options.debounceMs - now
      if (left <= 0 || now >= deadline) return true
      await pause(Math.min(left, deadline - now), ending)
    }
    return false
  }

  /** Look at everything that was named. @returns whether nothing is left to look at. Never rejects. */
  async #inspect(deadline: number, signal: AbortSignal, startedAt: number): Promise<boolean> {
    try {
      return await this.#inspectNamed(deadline, signal, startedAt)
    } catch (error) {
      this.#onError(error)
      return false
    }
  }

  async #inspectNamed(deadline: number, signal: AbortSignal, startedAt: number): Promise<boolean> {
    if (!(await this.#rootIsTheSame())) return false
    while (this.#named.size > 0) {
      if (this.#closed || signal.aborted || performance.now() > deadline) return false
      const byParent = Map.groupBy(this.#named, dirname)
      this.#named.clear()
      await Promise.all([...byParent].map(([parent, paths]) => this.#lookIn(parent, paths)))
    }
    this.#inspectedAt = startedAt
    return true
  }

  async #rootIsTheSame(): Promise<boolean> {
    if (!this.#ready) return true
    const { root, sink } = this.#options
    const info = await lstat(root).catch(() => undefined)
    if (info?.isDirectory() && info.ino === this.#rootInode) return true
    if (!this.#closed) sink.fault(ROOT_LOST)
    return false
  }

  /** Many names of one directory are looked up in one listing of it. */
  async #lookIn(parent: string, paths: readonly string[]): Promise<void> {
    const listing = paths.length < NAMES_WORTH_A_LISTING ? undefined : await this.#limit(() => listOf(parent))
    for (const path of paths) {
      const entry = listing?.get(basename(path))
      // Only a directory needs a closer look; whatever the listing does not hold is gone.
      if (listing && !entry?.isDirectory()) this.#settle(path, entry !== undefined)
      else await this.#limit(() => this.#look(path))
    }
  }

  #settle(path: string, present: boolean): void {
    if (this.#tree.hasDirectory(path)) {
      this.#forget(path)
      // What was known as a directory was not noted when it was named.
      if (present) this.#invalidate(path, false)
    }
    if (present) this.#tree.addFile(path)
    else this.#tree.removeFile(path)
  }

  async #look(path: string): Promise<void> {
    if (this.#closed) return
    let info
    try {
      info = await lstat(path)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') this.#onError(error)
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
    const replaced = this.#tree.inodeOf(directory) !== ino
    if (!this.#guard(directory)) return
    this.#tree.addDirectory(directory, ino)
    let entries
    try {
      entries = await readdir(directory, { withFileTypes: true })
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') this.#named.add(directory)
      else this.#onError(error)
      return
    }
    const files = new Set<string>()
    const directories = new Set<string>()
    for (const entry of entries) (entry.isDirectory() ? directories : files).add(entry.name)
    for (const name of this.#tree.directoriesIn(directory)) {
      if (!directories.has(name)) this.#forget(join(directory, name))
    }
    for (const name of this.#tree.filesIn(directory)) {
      if (files.has(name)) continue
      this.#tree.removeFile(join(directory, name))
      this.#invalidate(join(directory, name), true)
    }
    for (const name of files) await this.#list(join(directory, name), replaced)
    for (const name of directories) {
      const path = join(directory, name)
      const info = await lstat(path).catch(() => undefined)
      if (info?.isDirectory()) await this.#adopt(path, info.ino)
      else this.#named.add(path)
    }
  }

  async #list(path: string, replaced: boolean): Promise<void> {
    if (this.#options.ignored(path)) return
    const known = this.#tree.hasFile(path)
    this.#tree.addFile(path)
    if (!known || replaced) {
      this.#invalidate(path, known)
      return
    }
    // The same directory as before, only named: entries that look older are as they were.
    const info = await lstat(path).catch(() => undefined)
    if (!info || info.ctimeMs >= this.#inspectedAt - CLOCK_GRAIN_MS) this.#invalidate(path, true)
  }

  #forget(directory: string): void {
    const gone = this.#tree.removeDirectory(directory)
    for (const path of gone.files) this.#invalidate(path, true)
    for (const path of gone.directories) {
      this.#guards.get(path)?.close()
      this.#guards.delete(path)
    }
  }

  /** A handle of our own, made before the directory is listed; an older one is on a dead inode. */
  #guard(directory: string): boolean {
    if (!this.#fence || this.#closed) return !this.#closed
    try {
      const guard = this.#options.detached(() =>
        watchNode(directory, { persistent: false }, (event, name) =>
          this.#onRaw(event, name, { watchedPath: directory }),
        ),
      )
      guard.on('error', (error) => this.#onError(error))
      this.#guards.get(directory)?.close()
      this.#guards.set(directory, guard)
      return true
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') this.#named.add(directory)
      else this.#onError(error)
      return false
    }
  }
}

const listOf = async (directory: string): Promise<Map<string, Dirent> | undefined> => {
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    return new Map(entries.map((entry) => [entry.name, entry]))
  } catch {
    // Gone or not readable: each name is asked for by itself, which tells which.
    return undefined
  }
}

const watchedPathOf = (details: unknown): string | undefined => {
  if (typeof details !== 'object' || details === null || !('watchedPath' in details)) return undefined
  return typeof details.watchedPath === 'string' ? details.watchedPath : undefined
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })

/**
 * Start watching a root with chokidar.
 * @param kind - what ends the wait at a boundary; by default what the platform can do best.
 * @throws when the temporary directory of the exact barrier cannot be made or watched.
 */
export const chokidarBackend = (
  options: BackendOptions,
  kind: BarrierKind = defaultBarrierKind(options),
): WatchBackend => new ChokidarBackend(options, kind)
