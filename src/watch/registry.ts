/**
 * One watcher per root, shared by all sessions of that root.
 *
 * @module dsh-live-workspace/watch/registry
 */
import type { BarrierOutcome } from './contract.ts'
import { type Coverage } from './coverage.ts'
import type { DirtyPath, JournalSlice } from './journal.ts'
import type { FollowRequest } from './outside.ts'
import { type RegistryOptions, RootWatch } from './root-watch.ts'
import type { SilenceRules } from './silence.ts'

export type { RegistryOptions } from './root-watch.ts'

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
  /** What makes a change no news, for status. */
  readonly rules: SilenceRules
  /** Paths invalidated since the last call of `read`, for status: nothing is taken. */
  peek(): readonly DirtyPath[]
  /** Follow names elsewhere too; see `OutsideWatches.follow`. */
  follow(request: FollowRequest): { added: boolean; complete: boolean }
  /** Wait for the events from before this call. Never rejects. */
  barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome>
  /** Take what was invalidated since the last call. */
  read(): JournalSlice
  /** Leave; the last reader's leaving closes the watcher, and is awaited. */
  leave(): Promise<void>
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
      get rules() {
        return watch.rules
      },
      peek: () => watch.peek(id),
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
