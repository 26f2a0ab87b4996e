/**
 * One watcher per root, shared by all sessions of that root.
 *
 * @module dsh-live-workspace/watch/registry
 */
import { statSync } from 'node:fs'
import type { WatchConfig } from '../config.ts'
import type { BackendFactory, BarrierOutcome, WatchBackend, WatchFault, WatchSink } from './contract.ts'
import { type Coverage, nextCoverage, restartDelay } from './coverage.ts'
import { faultOf, ROOT_LOST } from './faults.ts'
import { Journal, type JournalSlice } from './journal.ts'
import { type FollowRequest, OutsideWatches } from './outside.ts'
import { isWithin } from './root.ts'
import { Silence } from './silence.ts'

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

/** A reader of one root's journal. */
export interface RootReader {
  readonly root: string
  readonly coverage: Coverage
  /** Name and size of the watcher, for status. */
  readonly backend: { readonly name: string; readonly watchedDirectories: number } | undefined
  /** Whether events of this path reach the journal while coverage is live. */
  covers(path: string): boolean
  /** Whether a change of a path is no news to a session that has not used it. */
  ignores(path: string, isDirectory: boolean): boolean
  /** Follow names elsewhere too; see {@link OutsideWatches.follow}. */
  follow(request: FollowRequest): { added: boolean; complete: boolean }
  /** Wait for the events from before this call. Never rejects. */
  barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome>
  /** Take what was invalidated since the last call. */
  read(): JournalSlice
  /** Leave; the last reader's leaving closes the watcher, and is awaited. */
  leave(): Promise<void>
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

class RootWatch {
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
    const { ignoredDirectories, respectGitignore } = options.config
    const { ownPaths = [] } = options
    this.#silence = new Silence({ root, ignoredDirectories, ownPaths, respectGitignore })
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

  leave(reader: object): void {
    this.#cursors.delete(reader)
  }

  covers(path: string): boolean {
    return isWithin(this.root, path) && !this.#silence.unwatched(path)
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

/** All watched roots of one plugin instance. */
export class WatchRegistry {
  readonly #options: RegistryOptions
  readonly #roots = new Map<string, RootWatch>()
  /** Roots that are being closed: a successor waits. */
  readonly #closing = new Map<string, Promise<void>>()
  #closed = false

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  /** Roots watched now, for status and tests. */
  get size(): number {
    return this.#roots.size
  }

  /**
   * Join a root; the first reader starts its watcher.
   * @param root - real path of the root.
   * @param local - whether the files are on this machine's disk.
   */
  join(root: string, local: boolean): RootReader {
    const key = local ? root : `remote:${root}`
    const watch = this.#roots.get(key) ?? new RootWatch(root, this.#options, local, this.#closing.get(key))
    this.#roots.set(key, watch)
    const id = {}
    watch.join(id)
    return {
      root,
      get coverage() {
        return watch.coverage
      },
      get backend() {
        return watch.backend
      },
      covers: (path) => watch.covers(path),
      ignores: (path, isDirectory) => watch.ignores(path, isDirectory),
      follow: (request) => watch.follow(request),
      barrier: (limitMs, signal) => watch.barrier(limitMs, signal),
      read: () => watch.read(id),
      leave: async () => {
        watch.leave(id)
        if (watch.readers > 0 || this.#roots.get(key) !== watch) return
        this.#roots.delete(key)
        await this.#close(key, watch)
      },
    }
  }

  /** Close every watcher and wait until all are closed. */
  async close(): Promise<void> {
    this.#closed = true
    for (const [key, watch] of this.#roots) void this.#close(key, watch)
    this.#roots.clear()
    await Promise.all(this.#closing.values())
  }

  get closed(): boolean {
    return this.#closed
  }

  #close(key: string, watch: RootWatch): Promise<void> {
    const closing = Promise.all([this.#closing.get(key), watch.close()]).then(() => {
      if (this.#closing.get(key) === closing) this.#closing.delete(key)
    })
    this.#closing.set(key, closing)
    return closing
  }
}
