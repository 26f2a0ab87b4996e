/**
 * The engine of the native backend: a watch of our own on each directory, for Linux.
 *
 * All watches of one event loop share one queue of the kernel, in order. Events are looked at as they
 * come, so that a barrier only has to wait for the queue and for what is being looked at. The engine
 * works on any thread; the backend runs it in one of its own, so that nothing else delays it.
 *
 * @module dsh-live-workspace/watch/native/engine
 */
import { basename, join } from 'node:path'
import type { BackendOptions, BarrierOutcome, WatchBackend, WatchFault } from '../contract.ts'
import { CookieFence } from '../cookie.ts'
import { type Disk, diskFor } from '../disk.ts'
import { faultOf, ROOT_LOST } from '../faults.ts'
import type { Subscribe } from '../handles.ts'
import { Inspector } from '../inspector.ts'
import { NATIVE } from '../platform.ts'
import { WatchScope } from '../scope.ts'
import { type BurstDetector, burstsOfThisThread } from './burst.ts'

/** Parts that tests replace. */
export interface EngineParts {
  readonly subscribe?: Subscribe
  readonly bursts?: BurstDetector
}

/** What a barrier found out, before its caller takes it for the end of an interval. */
export interface Examination {
  readonly outcome: BarrierOutcome
  /** From the time of the barrier on changes are new, where only their time tells. */
  readonly settle: () => void
}

/** An engine whose caller may find out only later that a barrier has left something open. */
export interface NativeWatch extends WatchBackend {
  examine(limitMs: number, signal: AbortSignal): Promise<Examination>
}

const UNCLEAN: Examination = { outcome: 'unclean', settle: () => undefined }

class NativeEngine implements NativeWatch {
  readonly name = NATIVE
  readonly #options: BackendOptions
  readonly #fence: CookieFence
  readonly #inspector: Inspector
  readonly #disk: Disk
  readonly #bursts: BurstDetector
  readonly #ignoreBursts: () => void
  /** Changes with each loss of events. */
  #epoch = 0
  #working: Promise<void> | undefined
  #rootIdentity: string | undefined
  #ready = false
  #failed = false
  #closed = false

  constructor(options: BackendOptions, parts: EngineParts) {
    this.#options = options
    this.#disk = diskFor(options.root)
    this.#bursts = parts.bursts ?? burstsOfThisThread()
    this.#fence = options.detached(
      () =>
        new CookieFence(
          () => this.#bursts.count(),
          () => this.#lost(),
        ),
    )
    this.#ignoreBursts = this.#bursts.onBurst(() => this.#lost())
    this.#inspector = new Inspector({
      scope: new WatchScope(options),
      disk: this.#disk,
      detached: options.detached,
      guards: true,
      sliceMs: options.sliceMs,
      subscribe: parts.subscribe,
      sink: options.sink,
      onRaw: (event, name, { watchedPath }) => this.#onRaw(event, name, watchedPath),
      onInvalid: (path, existed) => this.#invalidate(path, existed),
      onError: (error) => this.#fail(faultOf(error)),
      rootStands: () => this.#rootIsTheSame(),
    })
    this.#working = this.#start().finally(() => {
      this.#working = undefined
      this.#wake()
    })
  }

  get watchedDirectories(): number {
    return this.#inspector.guardCount
  }

  refresh(): void {
    this.#inspector.refresh()
    this.#wake()
  }

  async barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome> {
    const { outcome, settle } = await this.examine(limitMs, signal)
    settle()
    return outcome
  }

  async examine(limitMs: number, signal: AbortSignal): Promise<Examination> {
    const wall = Date.now()
    const monotonic = performance.now()
    const epoch = this.#epoch
    const ready = this.#ready
    if (this.#closed) return UNCLEAN
    const passed = await this.#fence.pass(limitMs, signal)
    if (!passed || !ready || !(await this.#rootIsTheSame())) return UNCLEAN
    this.#wake()
    if (this.#working && !(await this.#idle(limitMs - (performance.now() - monotonic), signal)))
      return UNCLEAN
    if (this.#closed || this.#failed || epoch !== this.#epoch || this.#inspector.blind) return UNCLEAN
    return { outcome: 'clean', settle: () => this.#inspector.settled(wall, monotonic) }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#ignoreBursts()
    this.#inspector.close()
    this.#fence.close()
    await this.#working
  }

  async #start(): Promise<void> {
    try {
      // Also without it: the caller has to have what it made before the first word comes.
      await this.#options.prepared
      if (this.#closed) return
      this.#rootIdentity = await this.#identifyRoot()
      const found = await this.#inspector.scan()
      if (this.#closed) return
      if (!found || (await this.#identifyRoot()) !== this.#rootIdentity) {
        this.#fail(ROOT_LOST)
        return
      }
      if (this.#failed) return
      this.#ready = true
      this.#options.sink.ready()
    } catch (error) {
      this.#fail(faultOf(error))
    }
  }

  /** Look at what was named, if nobody does already. */
  #wake(): void {
    if (this.#working || this.#closed || this.#failed || this.#inspector.idle) return
    this.#working = this.#inspect().finally(() => {
      this.#working = undefined
      this.#wake()
    })
  }

  async #inspect(): Promise<void> {
    try {
      // Events that came together are looked at together.
      await Promise.resolve()
      await this.#inspector.inspect(() => this.#closed || this.#failed)
    } catch (error) {
      this.#fail(faultOf(error))
    }
  }

  /** @returns whether everything that was named has been looked at in time. */
  #idle(limitMs: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (idle: boolean) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        resolve(idle)
      }
      const giveUp = () => settle(false)
      const timer = setTimeout(giveUp, Math.max(0, limitMs))
      signal.addEventListener('abort', giveUp, { once: true })
      const look = (): void => {
        if (this.#working) void this.#working.then(look)
        else settle(true)
      }
      look()
    })
  }

  #onRaw(event: string, name: string | null, directory: string): void {
    if (this.#closed || this.#failed) return
    this.#bursts.count()
    // A handle names its own directory when that is moved or removed; a child may bear the same name, but
    // the content of a file is never what happens to a directory.
    const isOwn = name === basename(directory) && event !== 'change'
    if (name === null || isOwn) this.#touch(directory, 'rename')
    if (name !== null) this.#touch(join(directory, name), event)
    this.#wake()
  }

  #touch(path: string, event: string): void {
    const { scope, tree } = this.#inspector
    if (scope.silences(path)) {
      if (scope.isMarker(path)) this.#invalidate(path, undefined)
      return
    }
    const known = tree.hasFile(path)
    // Content of a known file: nothing to look at before the boundary stats it.
    if (!known || event !== 'change') this.#inspector.name(path)
    if (!tree.hasDirectory(path)) this.#invalidate(path, known)
  }

  #invalidate(path: string, existed: boolean | undefined): void {
    if (this.#closed) return
    // While the first scan runs, a name that is not known yet says nothing.
    this.#options.sink.invalidate(path, existed || this.#ready ? existed : undefined)
  }

  /** Events were lost: directories may be there that nobody watches. */
  #lost(): void {
    if (this.#closed || this.#failed) return
    this.#epoch += 1
    this.#fence.giveUp()
    this.#options.sink.invalidateAll()
    this.#inspector.name(this.#options.root)
    this.#wake()
  }

  #fail(fault: WatchFault): void {
    if (this.#closed || this.#failed) return
    this.#failed = true
    this.#options.sink.fault(fault)
  }

  async #identifyRoot(): Promise<string | undefined> {
    const info = await this.#disk.entry(this.#options.root).catch(() => undefined)
    return info?.isDirectory() ? `${info.dev} ${info.ino}` : undefined
  }

  async #rootIsTheSame(): Promise<boolean> {
    if ((await this.#identifyRoot()) === this.#rootIdentity) return true
    this.#fail(ROOT_LOST)
    return false
  }
}

/**
 * Watch a root on this thread.
 * @throws when the temporary directory of the exact barrier cannot be made or watched.
 */
export const nativeEngine = (options: BackendOptions, parts: EngineParts = {}): NativeWatch =>
  new NativeEngine(options, parts)
