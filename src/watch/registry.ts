/**
 * One watcher per root, shared by all sessions of that root.
 *
 * @module dsh-live-workspace/watch/registry
 */
import type { BarrierOutcome } from './contract.ts'
import { type Coverage } from './coverage.ts'
import type { DirtyPath, JournalSlice } from './journal.ts'
import type { FollowRequest } from './outside.ts'
import { type RegistryOptions, RootWatch, type WatchStatus } from './root-watch.ts'
import type { RulesInForce } from './silence.ts'
import type { Uncovered } from './uncovered.ts'

export type { RegistryOptions, WatchStatus } from './root-watch.ts'

/** A reader of one root's journal. */
export interface RootReader {
  readonly root: string
  readonly coverage: Coverage
  /** Name and size of the watcher, for status. */
  readonly backend: { readonly name: string; readonly watchedDirectories: number } | undefined
  /** Parts of the root that no event comes from although coverage is live. */
  readonly uncovered: Uncovered
  readonly status: WatchStatus
  /** Grows whenever {@link covers} may answer otherwise than before. */
  readonly generation: number
  /** Whether events of this path reach the journal while coverage is live. */
  covers(path: string): boolean
  /** Whether a change of a path is no news to a session that has not used it. */
  ignores(path: string, isDirectory: boolean): boolean
  /** What makes a change no news, for status. */
  readonly rules: RulesInForce
  /** Paths invalidated since the last call of `read`, for status: nothing is taken. */
  peek(): readonly DirtyPath[]
  /** Follow names elsewhere too; see `OutsideWatches.follow`. */
  follow(request: FollowRequest): { added: boolean; complete: boolean }
  /** A session uses a file: its directory is watched before others. */
  prefer(path: string): void
  /**
   * Wait for the events from before this call. Never rejects.
   * @param thorough - whether parts without events are compared in any case; otherwise only if that has
   *   not been done just before. Default true.
   */
  barrier(limitMs: number, signal: AbortSignal, thorough?: boolean): Promise<BarrierOutcome>
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
    const watch: RootWatch =
      this.#roots.get(key) ??
      new RootWatch(root, this.#options, local, this.#closing.get(key), () => this.#watchedBeside(key))
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
      get uncovered() {
        return watch.uncovered
      },
      get status() {
        return watch.status
      },
      get generation() {
        return watch.generation
      },
      covers: (path) => watch.covers(path),
      ignores: (path, isDirectory) => watch.ignores(path, isDirectory),
      get rules() {
        return watch.rules
      },
      peek: () => watch.peek(id),
      follow: (request) => watch.follow(id, request),
      prefer: (path) => watch.prefer(id, path),
      barrier: (limitMs, signal, thorough = true) => watch.barrier(limitMs, signal, thorough),
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

  /** The system counts the watches of all roots together. */
  #watchedBeside(key: string): number {
    let watched = 0
    for (const [other, { backend }] of this.#roots) {
      if (other !== key) watched += backend?.watchedDirectories ?? 0
    }
    return watched
  }

  #close(key: string, watch: RootWatch): Promise<void> {
    const closing = Promise.all([this.#closing.get(key), watch.close()]).then(() => {
      if (this.#closing.get(key) === closing) this.#closing.delete(key)
    })
    this.#closing.set(key, closing)
    return closing
  }
}
