/**
 * The watcher of one root: its backend, its journal, its coverage, and its restarts.
 *
 * @module dsh-live-workspace/watch/root-watch
 */
import { dirname } from 'node:path'
import type { WatchConfig } from '../config.ts'
import { Burst, suspiciousBurst } from './burst.ts'
import { Comparison } from './comparison.ts'
import type { BackendFactory, BarrierOutcome, WatchBackend, WatchFault, WatchSink } from './contract.ts'
import { type Coverage, nextCoverage } from './coverage.ts'
import { diskFor } from './disk.ts'
import { faultOf, ignoreFileFault, ROOT_LOST, SILENT, unreportedOn } from './faults.ts'
import { Journal, type JournalSlice } from './journal.ts'
import { directoryCap, userLimit } from './limits.ts'
import { filesystemOf, matchesType } from './mounts.ts'
import { type FollowRequest, OutsideWatches } from './outside.ts'
import { probe, type ProbeResult, type ProbeSystem } from './probe.ts'
import { type PastFault, Recovery } from './recovery.ts'
import { isWithin } from './root.ts'
import { type Identity, RootIdentity } from './root-identity.ts'
import { Silence } from './silence.ts'
import { type Uncovered, UncoveredParts } from './uncovered.ts'

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
  /** Directories of used and instruction files, by reader. */
  readonly #preferred = new Map<object, Set<string>>()
  readonly #outside: OutsideWatches
  readonly #silence: Silence
  readonly #identity: RootIdentity
  readonly #recovery: Recovery
  readonly #parts: UncoveredParts
  readonly #comparison: Comparison
  readonly #burst: Burst
  readonly #ending = new AbortController()
  readonly #reportedParts = new Set<WatchFault['code']>()
  readonly #reportedIgnoreFiles = new Set<string>()
  #coverage: Coverage
  #backend: WatchBackend | undefined
  #closing: Promise<void> = Promise.resolve()
  #restart: NodeJS.Timeout | undefined
  #probed: ProbeResult | undefined
  #generation = 0
  #refreshing = false
  /** Time of the day in ms from which on changes have not been looked at. */
  #lookedAt: number | undefined

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
    this.#identity = new RootIdentity(root)
    this.#recovery = new Recovery(config)
    this.#parts = new UncoveredParts(root, config.maxUncoveredParts)
    this.#comparison = new Comparison({
      disk: diskFor(root),
      silent: (path, isDirectory) => this.#silence.silent(path, isDirectory),
      onChange: (path, existed) => this.#note(path, existed),
      onGone: (part) => this.#partsChanged(() => this.#parts.remove(part)),
      maxFiles: config.maxComparedFiles,
      sliceMs: config.scanSliceMs,
    })
    this.#burst = new Burst(suspiciousBurst(), () => this.#noteAll())
    this.#outside = new OutsideWatches(options.detached, (path) => this.#note(path, undefined))
    if (local) void this.#openSilence()
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
    return this.#parts.list
  }

  /** Grows whenever {@link covers} may answer otherwise than before. */
  get generation(): number {
    return this.#generation
  }

  get status(): WatchStatus {
    return {
      probe: this.#probed,
      comparedFiles: this.#comparison.size,
      comparisonComplete: this.#comparison.complete,
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

  leave(reader: object): void {
    this.#cursors.delete(reader)
    this.#preferred.delete(reader)
  }

  covers(path: string): boolean {
    return isWithin(this.root, path) && !this.#silence.unwatched(path) && !this.#parts.has(path)
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
    const comparing = this.#compare(limitMs, signal, thorough)
    const identity = this.#identity.check()
    const outcome = await backend.barrier(limitMs, signal)
    const found: Identity =
      typeof identity === 'string' ? identity : await unlessLate(identity, limitMs, signal, 'unknown')
    await comparing
    if (this.#backend !== backend) return 'unclean'
    if (found === 'other') {
      this.#fail(ROOT_LOST)
      return 'unclean'
    }
    this.#reportIgnoreFiles()
    if (outcome === 'clean') this.#lookedAt = startedAt
    return found === 'same' ? outcome : 'unclean'
  }

  async close(): Promise<void> {
    this.#ending.abort()
    clearTimeout(this.#restart)
    this.#outside.close()
    this.#stop()
    await Promise.all([this.#closing, this.#comparison.close()])
  }

  get #closed(): boolean {
    return this.#ending.signal.aborted
  }

  #note(path: string, existed: boolean | undefined): void {
    if (this.#closed) return
    if (this.#silence.noticed(path)) this.#rulesChanged()
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
    this.#rulesChanged()
    this.#outside.follow({ directories: [], names: [], files: this.#silence.sources }, (path) =>
      this.covers(path),
    )
  }

  #rulesChanged(): void {
    this.#generation += 1
    this.#refresh()
  }

  #preferDirectories(reader: object, directories: readonly string[]): void {
    const known = this.#preferred.get(reader) ?? new Set()
    this.#preferred.set(reader, known)
    let news = false
    for (const directory of directories) {
      if (known.has(directory) || !isWithin(this.root, directory)) continue
      known.add(directory)
      // What is watched already needs no place before others.
      news ||= this.#coverage.kind === 'starting' || this.#parts.has(directory)
    }
    if (news) this.#refresh()
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

  async #compare(limitMs: number, signal: AbortSignal, thorough: boolean): Promise<void> {
    if (this.#parts.isWhole) return
    const wait = Math.min(limitMs, this.#options.config.compareWaitMs)
    await unlessLate(this.#comparison.run(thorough), wait, signal, false)
  }

  #partsChanged(change: () => void): void {
    change()
    this.#generation += 1
    const { directories, unknown } = this.#parts.list
    // A part that was watched until now: what changed since the last look is news at the first one.
    const newSince = this.#coverage.kind === 'live' ? this.#lookedAt : undefined
    this.#comparison.setParts(unknown ? [this.root] : directories, newSince)
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
    const { config } = this.#options
    this.#coverage = nextCoverage(this.#coverage, { kind: 'started' })
    // Asked first, because it is the one question that never hangs.
    const type = config.backend === 'polling' ? undefined : filesystemOf(this.root)
    if (type !== undefined && matchesType(type, config.silentFilesystems)) this.#fail(unreportedOn(type))
    else if (!this.#identity.record()) this.#fail(ROOT_LOST)
    // A tree that reported nothing is not scanned again before it reports something.
    else if (this.#probed?.kind === 'silent') void this.#startIfHeard()
    else this.#startBackend()
  }

  async #startIfHeard(): Promise<void> {
    const result = await this.#probe()
    if (this.#closed) return
    this.#probed = result
    if (result.kind === 'silent') this.#fail(SILENT)
    else this.#startBackend()
  }

  #startBackend(): void {
    const { config, detached } = this.#options
    this.#partsChanged(() => this.#parts.clear())
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
      this.#probed = result
      if (result.kind === 'silent') fault(SILENT)
      else this.#becomeLive()
    }
    const sink: WatchSink = {
      invalidate: (path, existed) => {
        if (!mine()) return
        this.#note(path, existed)
        this.#burst.count()
      },
      invalidateAll: () => {
        if (mine()) this.#noteAll()
      },
      ready: () => {
        if (!mine() || failed) return
        const result = this.#probe()
        if (result instanceof Promise) void result.then(settle)
        else settle(result)
      },
      uncovered: (reason, directory) => {
        if (mine()) this.#uncover(reason, directory)
      },
      fault,
    }
    try {
      current = detached(() =>
        this.#options.backend({
          root: this.root,
          sink,
          ignored: (path) => this.#silence.unwatched(path),
          debounceMs: config.debounceMs,
          polling: config.backend === 'polling',
          pollIntervalMs: config.pollIntervalMs,
          maxDirectories: this.#share(),
          first: () => [...new Set([...this.#preferred.values()].flatMap((directories) => [...directories]))],
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

  #probe(): ProbeResult | Promise<ProbeResult> {
    const { config, detached, probeSystem } = this.#options
    if (!config.probeEvents || config.backend === 'polling') {
      return { kind: 'skipped', reason: 'it is switched off' }
    }
    const once = () =>
      detached(() => probe(this.root, config.probeTimeoutMs, this.#ending.signal, probeSystem))
    const first = once()
    return first instanceof Promise
      ? first.then((result) => (result.kind === 'silent' ? once() : result))
      : first
  }

  #becomeLive(): void {
    // What happened while nobody listened is found by looking at everything again.
    if (this.#coverage.kind === 'degraded') this.#noteAll()
    this.#recovery.succeeded(performance.now())
    this.#coverage = nextCoverage(this.#coverage, { kind: 'ready' })
  }

  #uncover(fault: WatchFault, directory: string | undefined): void {
    if (!this.#parts.add(fault, directory)) return
    this.#partsChanged(() => undefined)
    // One line for each cause: every further part stands in the status.
    if (this.#reportedParts.has(fault.code)) return
    this.#reportedParts.add(fault.code)
    this.#options.report(this.root, fault)
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

/** @returns `late` when there is no answer in time. */
const unlessLate = async <T>(
  answer: Promise<T>,
  limitMs: number,
  signal: AbortSignal,
  late: T,
): Promise<T> => {
  const gaveUp = Promise.withResolvers<T>()
  const giveUp = () => gaveUp.resolve(late)
  const timer = setTimeout(giveUp, limitMs)
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([answer, gaveUp.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}
