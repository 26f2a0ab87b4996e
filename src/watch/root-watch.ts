/**
 * The watcher of one root: its backend, its journal, its coverage, and its restarts.
 *
 * @module dsh-live-workspace/watch/root-watch
 */
import { basename, dirname } from 'node:path'
import type { WatchConfig } from '../config.ts'
import { Burst, suspiciousBurst } from './burst.ts'
import type { BackendFactory, BarrierOutcome, WatchBackend, WatchFault, WatchSink } from './contract.ts'
import { type Coverage, nextCoverage } from './coverage.ts'
import { faultOf, ignoreFileFault, ROOT_LOST, SILENT } from './faults.ts'
import { Gaps } from './gaps.ts'
import { Ground } from './ground.ts'
import { type DirtyPath, Journal, type JournalSlice } from './journal.ts'
import { unlessLate } from './late.ts'
import { directoryCap, userLimit } from './limits.ts'
import { type FollowRequest, OutsideWatches } from './outside.ts'
import { Preferences } from './preferences.ts'
import type { ProbeResult, ProbeSystem } from './probe.ts'
import { type PastFault, Recovery } from './recovery.ts'
import { NATIVE } from './platform.ts'
import { isWithin } from './root.ts'
import type { Identity } from './root-identity.ts'
import { type RulesInForce, Silence } from './silence.ts'
import type { Uncovered } from './uncovered.ts'

/** What the registry needs from its surroundings. */
export interface RegistryOptions {
  readonly config: WatchConfig
  readonly backend: BackendFactory
  /** Absolute paths of the harness's own files, which are nobody's news. */
  readonly ownPaths?: readonly string[]
  /** Runs a callback outside any agent's async context. */
  readonly detached: <T>(make: () => T) => T
  /** Called once per fault, with its remedy. */
  readonly report: (root: string, fault: WatchFault) => void
  /** Stands in for the system at the start-up probe. */
  readonly probeSystem?: ProbeSystem
}

/** How a root is followed, for the status. */
export interface WatchStatus {
  /** What the start-up probe has shown; `undefined` before it. */
  readonly probe: ProbeResult | undefined
  /** Files compared because no event comes from them. */
  readonly comparedFiles: number
  /** Whether the latest comparison reached every file that is not watched. */
  readonly comparisonComplete: boolean
  /** Faults so far, the oldest first. */
  readonly faults: readonly PastFault[]
}

/** One root that at least one session follows. */
export class RootWatch {
  readonly root: string
  readonly #options: RegistryOptions
  readonly #othersWatch: () => number
  readonly #journal: Journal
  readonly #cursors = new Map<object, number>()
  readonly #preferences: Preferences
  readonly #outside: OutsideWatches
  readonly #silence: Silence
  readonly #ground: Ground
  readonly #recovery: Recovery
  readonly #gaps: Gaps
  readonly #burst: Burst
  readonly #ending = new AbortController()
  readonly #reportedIgnoreFiles = new Set<string>()
  /** The ignore rules are known. */
  readonly #prepared: Promise<void>
  #coverage: Coverage
  #backend: WatchBackend | undefined
  #closing: Promise<void> = Promise.resolve()
  #restart: NodeJS.Timeout | undefined
  #generation = 0
  #refreshing = false

  /**
   * @param after - the closing of an earlier watcher of this root: limits must not count two.
   * @param othersWatch - number of directories that other roots of the process watch.
   */
  constructor(
    root: string,
    options: RegistryOptions,
    local: boolean,
    after: Promise<void> | undefined,
    othersWatch: () => number = () => 0,
  ) {
    this.root = root
    this.#options = options
    this.#othersWatch = othersWatch
    const { config, ownPaths = [] } = options
    // Microseconds: more than there will be events, so that a later journal's numbers are higher.
    this.#journal = new Journal(config.maxJournalPaths, Math.floor(performance.now() * 1_000))
    this.#silence = new Silence({ ...config, root, ownPaths })
    this.#ground = new Ground({
      ...options,
      root,
      signal: this.#ending.signal,
      probeSystem: options.probeSystem,
    })
    this.#preferences = new Preferences(root)
    this.#recovery = new Recovery(config)
    this.#gaps = new Gaps({
      root,
      config,
      silent: (path, isDirectory) => this.#silence.silent(path, isDirectory),
      onChange: (path, existed) => this.#note(path, existed),
      onMove: () => {
        this.#generation += 1
      },
      report: (fault) => options.report(root, fault),
    })
    this.#burst = new Burst(suspiciousBurst(), () => this.#noteAll())
    this.#prepared = local ? this.#openSilence() : Promise.resolve()
    this.#outside = new OutsideWatches(options.detached, (path) => this.#note(path, undefined))
    this.#coverage = config.backend === 'off' ? { kind: 'off' } : { kind: 'starting' }
    if (!local) this.#coverage = { kind: 'remote' }
    if (this.#coverage.kind !== 'starting') return
    if (!after) this.#start()
    else {
      this.#closing = after
      this.#startAfterClosing()
    }
  }

  get coverage(): Coverage {
    return this.#coverage
  }

  get backend(): WatchBackend | undefined {
    return this.#backend
  }

  get uncovered(): Uncovered {
    return this.#gaps.list
  }

  /** Grows whenever {@link covers} may answer otherwise than before. */
  get generation(): number {
    return this.#generation
  }

  get status(): WatchStatus {
    return {
      probe: this.#ground.probed,
      comparedFiles: this.#gaps.comparedFiles,
      comparisonComplete: this.#gaps.comparisonComplete,
      faults: this.#recovery.history,
    }
  }

  get readers(): number {
    return this.#cursors.size
  }

  join(reader: object): void {
    this.#cursors.set(reader, this.#journal.head)
  }

  read(reader: object): JournalSlice {
    const cursor = this.#cursors.get(reader)
    // A reader that has left must not hold the journal any more.
    if (cursor === undefined) return this.#journal.since(this.#journal.head)
    const slice = this.#journal.since(cursor)
    this.#cursors.set(reader, slice.head)
    this.#journal.trim(Math.min(...this.#cursors.values()))
    return slice
  }

  /** What a reader would get, without taking it. */
  peek(reader: object): readonly DirtyPath[] {
    return this.#journal.since(this.#cursors.get(reader) ?? this.#journal.head).paths
  }

  leave(reader: object): void {
    this.#cursors.delete(reader)
    this.#preferences.leave(reader)
  }

  covers(path: string): boolean {
    if (!isWithin(this.root, path) || this.#silence.unwatched(path)) return false
    const directory = dirname(path)
    if (directory !== this.root && this.#silence.prunes(directory)) return false
    return !this.#gaps.has(path)
  }

  get rules(): RulesInForce {
    return this.#silence.inForce
  }

  ignores(path: string, isDirectory: boolean): boolean {
    return this.#silence.silent(path, isDirectory)
  }

  follow(reader: object, request: FollowRequest): { added: boolean; complete: boolean } {
    this.#preferDirectories(reader, [...request.directories, ...request.files.map((file) => dirname(file))])
    return this.#outside.follow(request, (path) => this.covers(path))
  }

  /** A session uses a file: its directory is watched before others. */
  prefer(reader: object, path: string): void {
    this.#preferDirectories(reader, [dirname(path)])
  }

  async barrier(limitMs: number, signal: AbortSignal, thorough: boolean): Promise<BarrierOutcome> {
    const backend = this.#backend
    if (!backend) return 'unclean'
    const startedAt = Date.now()
    const comparing = this.#gaps.compare(limitMs, signal, thorough)
    const identity = this.#ground.check()
    // The tree watcher's events have another queue than those of single directories.
    const outside = backend.name === NATIVE ? this.#outside.pass(limitMs, signal) : true
    const passed = await backend.barrier(limitMs, signal)
    const outcome = (await outside) ? passed : 'unclean'
    const found: Identity =
      typeof identity === 'string' ? identity : await unlessLate(identity, limitMs, signal, 'unknown')
    await comparing
    if (this.#backend !== backend) return 'unclean'
    if (found === 'other') {
      this.#fail(ROOT_LOST)
      return 'unclean'
    }
    this.#reportIgnoreFiles()
    if (outcome === 'clean') this.#gaps.looked(startedAt)
    return found === 'same' ? outcome : 'unclean'
  }

  async close(): Promise<void> {
    this.#ending.abort()
    clearTimeout(this.#restart)
    this.#outside.close()
    this.#stop()
    await Promise.all([this.#closing, this.#gaps.close()])
  }

  get #closed(): boolean {
    return this.#ending.signal.aborted
  }

  #note(path: string, existed: boolean | undefined): void {
    if (this.#closed) return
    if (this.#silence.noticed(path)) this.#rulesChanged()
    // It tells where a repository begins, and nothing else.
    if (basename(path) === '.git') return
    this.#journal.note(path, existed, performance.now())
  }

  #noteAll(): void {
    this.#silence.forget()
    this.#rulesChanged()
    this.#journal.noteAll()
  }

  /** Rules of git are read beside the first scan. */
  async #openSilence(): Promise<void> {
    await this.#silence.open()
    if (this.#closed) return
    // The backend waits for them; only what is covered may be another.
    this.#generation += 1
    this.#outside.follow({ directories: [], names: [], files: this.#silence.sources }, (path) =>
      this.covers(path),
    )
  }

  #rulesChanged(): void {
    this.#generation += 1
    this.#refresh()
  }

  #preferDirectories(reader: object, directories: readonly string[]): void {
    const news = this.#preferences.add(reader, directories)
    // What is watched already needs no place before others.
    if (news.some((directory) => this.#coverage.kind === 'starting' || this.#gaps.has(directory))) {
      this.#refresh()
    }
  }

  /** Several changes in a row are one to the backend. */
  #refresh(): void {
    if (this.#refreshing) return
    this.#refreshing = true
    queueMicrotask(() => {
      this.#refreshing = false
      this.#backend?.refresh()
    })
  }

  #reportIgnoreFiles(): void {
    const { refused } = this.#silence
    if (refused.size === 0) return
    for (const [path, why] of refused) {
      if (this.#reportedIgnoreFiles.has(path)) continue
      this.#reportedIgnoreFiles.add(path)
      this.#options.report(this.root, ignoreFileFault(`${path}: ${why}`))
    }
  }

  #start(): void {
    this.#coverage = nextCoverage(this.#coverage, { kind: 'started' })
    const fault = this.#ground.enter()
    if (fault) this.#fail(fault)
    // A tree that reported nothing is not scanned again before it reports something.
    else if (this.#ground.probed?.kind === 'silent') void this.#startIfHeard()
    else this.#startBackend()
  }

  async #startIfHeard(): Promise<void> {
    const { kind } = await this.#ground.probe()
    if (this.#closed) return
    if (kind === 'silent') this.#fail(SILENT)
    else this.#startBackend()
  }

  #startBackend(): void {
    const { config, detached } = this.#options
    this.#gaps.clear()
    // A sink of its own for each backend: a closed one must not speak for its successor.
    let current: WatchBackend | undefined
    let failed = false
    const mine = () => !this.#closed && (current === undefined || current === this.#backend)
    const fault = (reason: WatchFault) => {
      if (!mine() || failed) return
      failed = true
      this.#fail(reason)
    }
    const settle = (result: ProbeResult) => {
      if (!mine() || failed) return
      if (result.kind === 'silent') fault(SILENT)
      else this.#becomeLive()
    }
    const sink: WatchSink = {
      invalidate: (path, existed) => {
        if (!mine()) return
        this.#note(path, existed)
        // Another thread has its own queue, and looks after that itself.
        if (this.#backend?.name !== NATIVE) this.#burst.count()
      },
      invalidateAll: () => {
        if (mine()) this.#noteAll()
      },
      ready: () => {
        if (!mine() || failed) return
        const result = this.#ground.probe()
        if (result instanceof Promise) void result.then(settle)
        else settle(result)
      },
      uncovered: (reason, directory) => {
        if (mine()) this.#gaps.add(reason, directory, this.#coverage.kind === 'live')
      },
      fault,
    }
    try {
      current = detached(() =>
        this.#options.backend({
          root: this.root,
          sink,
          ignored: (path, isDirectory) =>
            isDirectory ? this.#silence.prunes(path) : this.#silence.unwatched(path),
          prepared: this.#prepared,
          rules: () => this.#silence.rules,
          sliceMs: config.scanSliceMs,
          debounceMs: config.debounceMs,
          polling: config.backend === 'polling',
          pollIntervalMs: config.pollIntervalMs,
          maxDirectories: this.#share(),
          first: () => this.#preferences.all,
          detached,
        }),
      )
      this.#backend = current
      // It failed while it was being made, when it could not be stopped yet.
      if (failed) this.#stop()
    } catch (error) {
      this.#fail(faultOf(error))
    }
  }

  #share(): number {
    const { maxWatchedDirectories, watchLimitPercent } = this.#options.config
    return Math.max(
      1,
      directoryCap(maxWatchedDirectories, watchLimitPercent, userLimit()) - this.#othersWatch(),
    )
  }

  #becomeLive(): void {
    // What happened while nobody listened is found by looking at everything again.
    if (this.#coverage.kind === 'degraded') this.#noteAll()
    this.#recovery.succeeded(performance.now())
    this.#coverage = nextCoverage(this.#coverage, { kind: 'ready' })
  }

  #startAfterClosing(): void {
    void this.#closing.then(() => {
      if (!this.#closed && !this.#backend) this.#start()
    })
  }

  #stop(): void {
    const backend = this.#backend
    this.#backend = undefined
    if (!backend) return
    this.#closing = this.#closing
      .then(() => backend.close())
      .catch((error: unknown) => this.#options.report(this.root, faultOf(error)))
  }

  #fail(fault: WatchFault): void {
    const told = this.#coverage.kind === 'degraded' && this.#coverage.fault.code === fault.code
    this.#coverage = nextCoverage(this.#coverage, { kind: 'fault', fault })
    if (!told) this.#options.report(this.root, fault)
    this.#stop()
    clearTimeout(this.#restart)
    const delay = this.#recovery.failed(fault, performance.now())
    this.#restart = this.#options.detached(() => setTimeout(() => this.#startAfterClosing(), delay))
    this.#restart.unref()
  }
}
