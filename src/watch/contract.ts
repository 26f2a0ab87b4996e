/**
 * The contract between the registry and its watcher backends.
 *
 * A backend says that something may have changed, never what the change was; the truth comes from
 * the filesystem service at a boundary. It knows nothing of sessions and messages.
 *
 * @module dsh-live-workspace/watch/contract
 */

import type { SilenceRules } from './silence.ts'

/** A reason why a watcher cannot be trusted, with what a person can do about it. */
export interface WatchFault {
  /** One of the codes below, stable for tests and logs. */
  readonly code:
    | 'watch-limit'
    | 'instance-limit'
    | 'access-denied'
    | 'root-lost'
    | 'overflow'
    | 'no-events'
    | 'ignore-file'
    | 'error'
  /** What happened, in a fixed sentence without a full stop: models read it. */
  readonly reason: string
  /** What the system said, for the log alone: it may hold names of files. */
  readonly detail?: string
  /** What a person can do, in a sentence without a full stop. */
  readonly remedy: string
}

/** Where a backend reports to. Every call is synchronous and cheap. */
export interface WatchSink {
  /**
   * A path may have changed.
   * @param path - absolute path of a file.
   * @param existed - whether it was there before, as far as the backend knows.
   */
  invalidate(path: string, existed: boolean | undefined): void
  /** Anything below the root may have changed. */
  invalidateAll(): void
  /** The whole tree is subscribed to. */
  ready(): void
  /**
   * A part of the tree cannot be watched; the rest still is.
   * @param directory - absolute path; it and everything below it is not watched. Without it the part is
   *   not known, and no barrier is clean any more.
   */
  uncovered(fault: WatchFault, directory?: string): void
  /** The backend cannot be trusted any more; the registry closes and replaces it. */
  fault(fault: WatchFault): void
}

/**
 * What a barrier found out.
 *
 * - `clean`: every event from before the call has reached the sink.
 * - `best-effort`: the platform has no exact barrier; the backend waited for silence.
 * - `unclean`: events may be missing (still starting, limit reached, fault).
 */
export type BarrierOutcome = 'clean' | 'best-effort' | 'unclean'

/** One watcher of one root. */
export interface WatchBackend {
  /** Name for status and logs. */
  readonly name: string
  /**
   * Wait until every event from before the call has reached the sink.
   * @param limitMs - longest wait in ms.
   * @param signal - ends the wait at once, as `unclean`. Never rejects.
   */
  barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome>
  /** Number of directories watched, as far as the backend knows. */
  readonly watchedDirectories: number
  /**
   * The ignore rules or `first` changed: directories that are ignored now lose their watches, others get
   * watches and are listed. A barrier that is called afterwards waits for that.
   */
  refresh(): void
  /** Release every handle and timer; no call reaches the sink afterwards. */
  close(): Promise<void>
}

/** What a backend is made from. */
export interface BackendOptions {
  /** Real path of the root. */
  readonly root: string
  readonly sink: WatchSink
  /**
   * Whether a path is neither watched nor reported. It is asked once an entry; of files it knows only
   * what they are called.
   */
  readonly ignored: (path: string, isDirectory: boolean) => boolean
  /** Directories watched at most, besides `first`. */
  readonly maxDirectories: number
  /**
   * Absolute directories that hold used files and instruction files. They and their ancestors below the
   * root are watched before all others, also where they are ignored and when the limit is reached.
   */
  readonly first: () => readonly string[]
  /** Resolves when `ignored` and `rules` have their answers: no directory is read before. Default: now. */
  readonly prepared?: Promise<void>
  /** What `ignored` judges by, for a backend that works in another thread. */
  readonly rules?: () => SilenceRules
  /** Time in ms after which a scan lets the event loop turn. Default 8. */
  readonly sliceMs?: number
  /** Quiet time in ms that ends the wait where no exact barrier exists. */
  readonly debounceMs: number
  readonly polling: boolean
  readonly pollIntervalMs: number
  /** Runs a callback outside any agent's async context; every handle is made inside it. */
  readonly detached: <T>(make: () => T) => T
}

export type BackendFactory = (options: BackendOptions) => WatchBackend
