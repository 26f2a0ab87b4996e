/**
 * The chokidar backend: right for every platform, and for polling.
 *
 * chokidar's own view of the tree lags behind the events (it lists, waits and throttles), so nothing
 * here rests on it: its `raw` and `all` events only invalidate, and what they name is inspected at a
 * barrier. Of chokidar only the public interface is used.
 *
 * @module dsh-live-workspace/watch/chokidar
 */
import type { Stats } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { BackendOptions, BarrierOutcome, WatchBackend } from './contract.ts'
import { CookieFence } from './cookie.ts'
import { type Disk, diskFor } from './disk.ts'
import { concernsAll, faultOf, ROOT_LOST } from './faults.ts'
import { Inspector } from './inspector.ts'
import { WatchScope } from './scope.ts'

/** Where the barrier comes from: an exact fence, or a wait for silence. */
export type BarrierKind = 'cookie' | 'debounce'

/** The exact fence needs one ordered event queue, which only Linux has. */
export const defaultBarrierKind = (options: BackendOptions): BarrierKind =>
  process.platform === 'linux' && !options.polling ? 'cookie' : 'debounce'

/** One moment by both clocks. */
interface Moment {
  readonly wall: number
  readonly monotonic: number
}

class ChokidarBackend implements WatchBackend {
  readonly name: string
  readonly #options: BackendOptions
  #watcher: FSWatcher | undefined
  readonly #fence: CookieFence | undefined
  readonly #inspector: Inspector
  readonly #disk: Disk
  #inspection: Promise<void> = Promise.resolve()
  #rootInode: number | undefined
  #lastEventAt = 0
  #ready = false
  readonly #ending = new AbortController()
  #closed = false

  constructor(options: BackendOptions, kind: BarrierKind) {
    this.#options = options
    this.name = options.polling ? 'polling' : 'chokidar'
    this.#fence = kind === 'cookie' ? options.detached(() => new CookieFence()) : undefined
    this.#disk = diskFor(options.root)
    this.#inspector = new Inspector({
      scope: new WatchScope(options),
      disk: this.#disk,
      detached: options.detached,
      guards: this.#fence !== undefined,
      sliceMs: options.sliceMs,
      sink: options.sink,
      onRaw: (event, name, details) => this.#onRaw(event, name, details),
      onInvalid: (path, existed) => this.#invalidate(path, existed),
      onError: (error) => this.#onError(error),
      rootStands: () => this.#rootIsTheSame(),
      onLost: (directory) => this.#watcher?.unwatch(directory),
      // Where the directories that the inspector adopts get no handle from it.
      onGained: (directory) => {
        if (!this.#fence) this.#watcher?.add(directory)
      },
    })
    if (!options.prepared) this.#start()
    else void options.prepared.then(() => this.#start()).catch((error: unknown) => this.#onError(error))
  }

  #start(): void {
    if (this.#closed) return
    const options = this.#options
    const watcher = options.detached(() =>
      watch(options.root, {
        persistent: false,
        // The first scan fills the tree of known names; its events invalidate nothing.
        ignoreInitial: false,
        followSymlinks: false,
        atomic: false,
        alwaysStat: true,
        usePolling: options.polling,
        interval: options.pollIntervalMs,
        ignored: (path, stats) => this.#skips(path, stats),
      }),
    )
    this.#watcher = watcher
    watcher.on('raw', (event, path, details) => this.#onRaw(event, path, details))
    watcher.on('all', (event, path, stats) => this.#onEvent(event, path, stats?.ino))
    watcher.on('error', (error) => this.#onError(error))
    watcher.once('ready', () => {
      this.#ready = true
      this.#rootInode = this.#inspector.tree.inodeOf(options.root)
      this.#inspector.tellBlindSpots()
      options.sink.ready()
    })
  }

  get watchedDirectories(): number {
    return this.#inspector.tree.directoryCount
  }

  refresh(): void {
    this.#inspector.refresh()
  }

  async barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome> {
    const startedAt = { wall: Date.now(), monotonic: performance.now() }
    const deadline = startedAt.monotonic + limitMs
    if (this.#closed) return 'unclean'
    const ready = this.#ready
    const passed = this.#fence ? await this.#fence.pass(limitMs, signal) : await this.#quiet(deadline, signal)
    if (!passed || this.#closed) return 'unclean'
    // One after the other: a second barrier must not overtake what the first has taken out.
    const inspection = this.#inspection.then(() => this.#inspect(deadline, signal, startedAt))
    this.#inspection = inspection.then(() => undefined)
    // A huge new directory is read to its end, but nobody waits for that longer than for anything else.
    const waited = new AbortController()
    const enough = AbortSignal.any([signal, this.#ending.signal, waited.signal])
    const late = pause(Math.max(0, deadline - performance.now()), enough).then(() => false)
    const complete = await Promise.race([inspection, late])
    waited.abort()
    if (!complete || !ready || this.#inspector.blind || this.#closed) return 'unclean'
    return this.#fence ? 'clean' : 'best-effort'
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#ending.abort()
    this.#inspector.close()
    this.#fence?.close()
    await this.#inspection
    await this.#watcher?.close()
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

  /** What the library leaves out. It asks with what it knows of an entry, and may ask once more. */
  #skips(path: string, stats: Stats | undefined): boolean {
    const { scope, tree } = this.#inspector
    const known = tree.hasDirectory(path)
    if (!known && !stats?.isDirectory()) return scope.silences(path)
    if (scope.prunes(path)) {
      this.#inspector.prune(path)
      return true
    }
    if (known) return false
    if (!scope.admits(path, tree.directoryCount)) {
      this.#inspector.leaveOverLimit(path)
      return true
    }
    // Counted when it is let in: the library's own word comes later.
    if (!this.#ready) tree.addDirectory(path, stats?.ino ?? 0)
    return false
  }

  #touch(path: string, event: string): void {
    const { scope } = this.#inspector
    if (scope.silences(path)) {
      if (scope.isMarker(path)) this.#invalidate(path, undefined)
      return
    }
    const known = this.#inspector.tree.hasFile(path)
    // Content of a known file: nothing to look at before the boundary stats it.
    if (!known || event !== 'change') this.#inspector.name(path)
    if (!this.#inspector.tree.hasDirectory(path)) this.#invalidate(path, known)
  }

  #onEvent(event: string, path: string, ino: number | undefined): void {
    if (this.#closed || this.#inspector.scope.silences(path)) return
    this.#lastEventAt = performance.now()
    switch (event) {
      case 'addDir':
        if (!this.#ready) this.#inspector.tree.addDirectory(path, ino ?? 0)
        else if (!this.#inspector.tree.hasDirectory(path)) this.#inspector.name(path)
        return
      case 'unlinkDir':
        if (this.#ready) this.#inspector.name(path)
        return
      case 'add':
        if (!this.#ready) this.#inspector.tree.addFile(path)
        // What is known already was told when it was listed.
        else if (!this.#inspector.tree.hasFile(path)) this.#touch(path, 'rename')
        return
      case 'unlink':
        if (this.#ready && !this.#isEcho(this.#inspector.tree.hasFile(path))) this.#touch(path, 'rename')
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

  #invalidate(path: string, existed: boolean | undefined): void {
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
    const path = typeof error === 'object' && error !== null && 'path' in error ? error.path : undefined
    // One path that cannot be followed: the rest is.
    this.#inspector.leave(typeof path === 'string' ? path : this.#options.root, error)
    this.#inspector.tellBlindSpots()
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

  async #inspect(deadline: number, signal: AbortSignal, startedAt: Moment): Promise<boolean> {
    try {
      if (!(await this.#rootIsTheSame())) return false
      const giveUp = () => this.#closed || signal.aborted || performance.now() > deadline
      const complete = await this.#inspector.inspect(giveUp)
      if (complete) this.#inspector.settled(startedAt.wall, startedAt.monotonic)
      return complete
    } catch (error) {
      this.#onError(error)
      return false
    }
  }

  async #rootIsTheSame(): Promise<boolean> {
    if (!this.#ready) return true
    const { root, sink } = this.#options
    const info = await this.#disk.entry(root).catch(() => undefined)
    if (info?.isDirectory() && info.ino === this.#rootInode) return true
    if (!this.#closed) sink.fault(ROOT_LOST)
    return false
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
