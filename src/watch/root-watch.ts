/**
 * The watcher of one root: its backend, its journal, its coverage, and its restarts.
 *
 * @module dsh-live-workspace/watch/root-watch
 */
import { statSync } from 'node:fs'
import type { WatchConfig } from '../config.ts'
import type { BackendFactory, BarrierOutcome, WatchBackend, WatchFault, WatchSink } from './contract.ts'
import { type Coverage, nextCoverage, restartDelay } from './coverage.ts'
import { faultOf, ROOT_LOST } from './faults.ts'
import { type DirtyPath, Journal, type JournalSlice } from './journal.ts'
import { type FollowRequest, OutsideWatches } from './outside.ts'
import { isWithin } from './root.ts'
import { Silence, type SilenceRules } from './silence.ts'

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
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** One root that at least one session follows. */
export class RootWatch {
  readonly root: string
  readonly #options: RegistryOptions
  readonly #journal: Journal
  readonly #cursors = new Map<object, number>()
  readonly #outside: OutsideWatches
  readonly #silence: Silence
  #coverage: Coverage
  #backend: WatchBackend | undefined
  #closing: Promise<void> = Promise.resolve()
  #restart: NodeJS.Timeout | undefined
  #attempts = 0
  #closed = false

  /** @param after - the closing of an earlier watcher of this root: limits must not count two. */
  constructor(root: string, options: RegistryOptions, local: boolean, after: Promise<void> | undefined) {
    this.root = root
    this.#options = options
    // Microseconds: more than there will be events, so that a later journal's numbers are higher.
    this.#journal = new Journal(options.config.maxJournalPaths, Math.floor(performance.now() * 1_000))
    const { config, ownPaths = [] } = options
    this.#silence = new Silence({ ...config, root, ownPaths })
    if (local) void this.#openSilence()
    this.#outside = new OutsideWatches(options.detached, (path) => this.#note(path, undefined))
    this.#coverage = options.config.backend === 'off' ? { kind: 'off' } : { kind: 'starting' }
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
  }

  covers(path: string): boolean {
    return isWithin(this.root, path) && !this.#silence.unwatched(path)
  }

  get rules(): SilenceRules {
    return this.#silence.rules
  }

  ignores(path: string, isDirectory: boolean): boolean {
    return this.#silence.silent(path, isDirectory)
  }

  follow(request: FollowRequest): { added: boolean; complete: boolean } {
    return this.#outside.follow(request, (path) => this.covers(path))
  }

  async barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome> {
    return (await this.#backend?.barrier(limitMs, signal)) ?? 'unclean'
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#restart)
    this.#outside.close()
    this.#stop()
    await this.#closing
  }

  #note(path: string, existed: boolean | undefined): void {
    this.#silence.noticed(path)
    this.#journal.note(path, existed, performance.now())
  }

  #noteAll(): void {
    this.#silence.forget()
    this.#journal.noteAll()
  }

  /** Rules of git are read beside the first scan. */
  async #openSilence(): Promise<void> {
    await this.#silence.open()
    if (!this.#closed) this.follow({ directories: [], names: [], files: this.#silence.sources })
  }

  #start(): void {
    const { config, detached } = this.#options
    this.#coverage = nextCoverage(this.#coverage, { kind: 'started' })
    // A sink of its own for each backend: a closed one must not speak for its successor.
    let current: WatchBackend | undefined
    let failed = false
    const mine = () => !this.#closed && (current === undefined || current === this.#backend)
    const sink: WatchSink = {
      invalidate: (path, existed) => {
        if (mine()) this.#note(path, existed)
      },
      invalidateAll: () => {
        if (mine()) this.#noteAll()
      },
      ready: () => {
        if (!mine()) return
        // What happened while nobody listened is found by looking at everything again.
        if (this.#coverage.kind === 'degraded') this.#noteAll()
        this.#attempts = 0
        this.#coverage = nextCoverage(this.#coverage, { kind: 'ready' })
      },
      uncovered: (fault) => {
        if (mine()) this.#options.report(this.root, fault)
      },
      fault: (fault) => {
        if (!mine() || failed) return
        failed = true
        this.#fail(fault)
      },
    }
    try {
      if (!isDirectory(this.root)) {
        this.#fail(ROOT_LOST)
        return
      }
      current = detached(() =>
        this.#options.backend({
          root: this.root,
          sink,
          ignored: (path) => this.#silence.unwatched(path),
          debounceMs: config.debounceMs,
          polling: config.backend === 'polling',
          pollIntervalMs: config.pollIntervalMs,
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
    const { restartDelayMs, maxRestartDelayMs } = this.#options.config
    const delay = restartDelay(this.#attempts++, restartDelayMs, maxRestartDelayMs)
    this.#restart = this.#options.detached(() =>
      setTimeout(() => {
        this.#startAfterClosing()
      }, delay),
    )
    this.#restart.unref()
  }
}
