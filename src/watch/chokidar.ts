/**
 * The chokidar backend: right for every platform, and for polling.
 *
 * chokidar's own view of the tree lags behind the events (it lists, waits and throttles), so nothing
 * here rests on it: its `raw` and `all` events only invalidate, and what they name is inspected at a
 * barrier. Of chokidar only the public interface is used.
 *
 * @module dsh-live-workspace/watch/chokidar
 */
import { basename, isAbsolute, join } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { BackendOptions, BarrierOutcome, WatchBackend } from './contract.ts'
import { CookieFence } from './cookie.ts'
import { type Disk, diskFor } from './disk.ts'
import { concernsAll, faultOf, ROOT_LOST } from './faults.ts'
import { Inspector } from './inspector.ts'

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
  readonly #inspector: Inspector
  readonly #disk: Disk
  #inspection: Promise<void> = Promise.resolve()
  #rootInode: number | undefined
  #lastEventAt = 0
  #ready = false
  #partial = false
  readonly #ending = new AbortController()
  #closed = false

  constructor(options: BackendOptions, kind: BarrierKind) {
    this.#options = options
    this.name = options.polling ? 'polling' : 'chokidar'
    this.#fence = kind === 'cookie' ? options.detached(() => new CookieFence()) : undefined
    this.#disk = diskFor(options.root)
    this.#inspector = new Inspector({
      disk: this.#disk,
      ignored: options.ignored,
      detached: options.detached,
      guards: this.#fence !== undefined,
      onRaw: (event, name, details) => this.#onRaw(event, name, details),
      onInvalid: (path, existed) => this.#invalidate(path, existed),
      onError: (error) => this.#onError(error),
    })
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
      this.#rootInode = this.#inspector.tree.inodeOf(options.root)
      options.sink.ready()
    })
  }

  get watchedDirectories(): number {
    return this.#inspector.tree.directoryCount
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
    // A huge new directory is read to its end, but nobody waits for that longer than for anything else.
    const waited = new AbortController()
    const enough = AbortSignal.any([signal, this.#ending.signal, waited.signal])
    const late = pause(Math.max(0, deadline - performance.now()), enough).then(() => false)
    const complete = await Promise.race([inspection, late])
    waited.abort()
    if (!complete || !ready || this.#partial || this.#closed) return 'unclean'
    return this.#fence ? 'clean' : 'best-effort'
  }

  refresh(): void {
    // Every rule is asked anew at each event, and nothing is left out for want of watches.
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#ending.abort()
    this.#inspector.close()
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
    const known = this.#inspector.tree.hasFile(path)
    // Content of a known file: nothing to look at before the boundary stats it.
    if (!known || event !== 'change') this.#inspector.name(path)
    if (!this.#inspector.tree.hasDirectory(path)) this.#invalidate(path, known)
  }

  #onEvent(event: string, path: string, ino: number | undefined): void {
    if (this.#closed || this.#options.ignored(path)) return
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
        else if (!this.#isEcho(!this.#inspector.tree.hasFile(path))) this.#touch(path, 'rename')
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

  async #inspect(deadline: number, signal: AbortSignal, startedAt: number): Promise<boolean> {
    try {
      if (!(await this.#rootIsTheSame())) return false
      const giveUp = () => this.#closed || signal.aborted || performance.now() > deadline
      return await this.#inspector.inspect(startedAt, giveUp)
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
