/**
 * What the plugin knows about one session.
 *
 * @module dsh-live-workspace/session
 */
import { join, relative } from 'node:path'
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import { OwnCommands } from './attribution.ts'
import { HeadWatch } from './head.ts'
import type { LoggedInstructions } from './history.ts'
import type { InstructionRoom } from './instructions/room.ts'
import { type Content, ContentShelf } from './ledger/content.ts'
import { Ledger, type LedgerEntry } from './ledger/ledger.ts'
import { type Covered, Receipts } from './ledger/receipts.ts'
import type { Recall } from './manifest/recall.ts'
import type { Before } from './notice/classify.ts'
import type { BarrierOutcome, WatchFault } from './watch/contract.ts'
import type { JournalSlice } from './watch/journal.ts'
import type { RootReader } from './watch/registry.ts'
import { isWithin } from './watch/root.ts'
import type { coverageWord } from './watch/coverage.ts'

/** Where a session works. */
export interface Place {
  /** The session's cwd as it was given. */
  readonly lexical: string
  /** Its real path. */
  readonly real: string
  /** Real path of the workspace root. */
  readonly root: string
}

/** A path of the journal that this session has not settled yet. */
export interface PendingPath {
  readonly seq: number
  /** Time in ms of the latest event, by the process's monotonic clock. */
  readonly at: number
  /** Times in ms of the open events: of many, the first and the latest. */
  readonly times: readonly number[]
  readonly existed: boolean | undefined
}

/** A used file that is somewhere else now, with the same content. */
export interface Moved {
  /** Key of the target that is gone. */
  readonly from: string
  readonly target: FsTarget
  readonly content: Content
}

/** One state that a message covers, and the journal entry that it settles. */
export interface CoveredState extends Covered<Before> {
  readonly path?: string
  readonly seq?: number
  /** Digest of the content that is told. */
  readonly digest?: string | undefined
  /** The content, where the message shows everything that changed in it. */
  readonly content?: Content | undefined
  /** What the model knows of it from elsewhere. */
  readonly moved?: Moved | undefined
}

/** A reason for a reminder, told once. */
export type Reminder = 'resume' | 'activation' | 'compaction'

/** Steps that changes have caused in the open turn. */
interface TurnState {
  steers: number
  /** A step was caused by something that the session had not used. */
  steeredForOthers: boolean
  /** `agent/turn-stopping` has fired since the last step began. */
  stopping: boolean
  /** No boundary of this turn has been passed yet. */
  fresh: boolean
}

/** A content that is being read. */
export interface Capture {
  readonly version: string
  readonly done: Promise<void>
  /** A boundary has waited for it in vain: the service hangs. */
  hangs: boolean
}

/** A file that changes again and again while the session does not read it. */
export interface Flapping {
  /** How often a newer state was told. */
  readonly told: number
  /** Number of the boundary from which on the next one is told. */
  readonly nextAt: number
  /** The latest version met. */
  readonly version: string | undefined
  /** States that went by untold since the last one that was told. */
  readonly untold: number
  /** States that had gone by untold before that one. */
  readonly between: number
}

/** Commands of one session that changes are attributed to. */
const MAX_COMMANDS = 64

/** Times of earlier open events that are kept of one path. */
const MAX_TIMES = 8

/** Stands for the digest of a file that was not there. */
export const ABSENT = 'absent'

/** State of one session. */
export class SessionState {
  readonly ledger = new Ledger<FsTarget>()
  readonly receipts = new Receipts<Before, CoveredState>()
  /** Journal paths to be looked at. */
  readonly pending = new Map<string, PendingPath>()
  /** Targets to be looked at, because a result was lost or a check failed. */
  readonly doubtful = new Map<string, FsTarget>()
  readonly reminders = new Set<Reminder>()
  readonly turn: TurnState = { steers: 0, steeredForOthers: false, stopping: false, fresh: true }
  place: Place | undefined
  reader: RootReader | undefined
  /** Instruction files, unless that room is off. */
  instructions: InstructionRoom | undefined
  /** Whether everything that instructions depend on is followed. */
  followsInstructions = false
  /** Messages of the instruction protocol in the log, visible or not. */
  readonly loggedInstructions: LoggedInstructions[] = []
  /** Coverage at the last boundary. */
  lastCoverage: ReturnType<typeof coverageWord>
  /** The fault that the model was told about last. */
  toldFault: WatchFault['code'] | undefined
  /** What was seen before this process and is not told yet. */
  recall: Recall | undefined
  /** Number of the latest log event up to which everything that the log shows was followed. */
  followedTo: number | undefined
  /** A tool of the open step may have shown files that the log does not name. */
  ranOpaqueTool = false
  /** The log shows something from a time at which nobody of us followed it. */
  hasGap = false
  /** Time in ms, by the process's monotonic clock, of the latest boundary that missed nothing. */
  completeAt: number | undefined
  /** Used files that hold something else under the version that was seen. */
  readonly racy = new Set<string>()
  /** Something that is to be remembered has changed. */
  remember: () => void = () => undefined
  /** Changed paths that the journal has dropped: all that can be told of them is that they exist. */
  unlisted = 0
  /** The cwd led to another directory at the last boundary, and the model is still to be told. */
  movedAway = false
  /** The latest wait for the watcher, for status. `at` in ms since the epoch, its length in ms. */
  lastBarrier: { readonly at: number; readonly outcome: BarrierOutcome; readonly ms: number } | undefined
  surfaceGeneration = 0
  disposed = false
  /** Number of boundaries so far. */
  boundaries = 0
  /** The session's id, by which other sessions are told of its writes. */
  readonly id: string
  /** Version of the session's own last write, by target. */
  readonly ownVersions = new Map<string, string>()
  /** Contents of what the session has seen, by target. */
  readonly shelf: ContentShelf
  /** Contents of what was there at the last look, by target. */
  readonly latest: ContentShelf
  /** Digest of what a file held before this session's own last write of it. */
  readonly beforeOwnWrite = new Map<string, string>()
  /** Digest of the content that a told state had, by target. */
  readonly toldDigests = new Map<string, string>()
  /** Contents that are being read, by target. */
  readonly captures = new Map<string, Capture>()
  readonly head = new HeadWatch()
  readonly ownCommands = new OwnCommands(MAX_COMMANDS)
  /** Files that were told to be out of date and keep changing, by target; the longest unchanged first. */
  readonly flapping = new Map<string, Flapping>()
  /** The reader's generation when the ledger was last indexed. */
  #coverGeneration: number | undefined
  /** Keys by the paths that the session used last for them. */
  readonly #keyByName = new Map<string, string>()
  readonly #keyByPath = new Map<string, string>()
  readonly #linked = new Set<string>()
  readonly #unwatched = new Set<string>()
  readonly #realPaths = new Map<string, string>()
  /** Targets whose comparison outlasted a boundary, by target and version. */
  readonly heldBack = new Map<string, string>()
  /** Keys in the order of their last check, the longest ago first. */
  readonly #sweepOrder = new Set<string>()

  /**
   * @param id - the session's id.
   * @param maxKeptTextBytes - bytes of all texts kept.
   * @param maxDigests - contents remembered by their digest.
   */
  constructor(id: string, maxKeptTextBytes: number, maxDigests: number) {
    this.id = id
    this.shelf = new ContentShelf(maxKeptTextBytes, maxDigests)
    this.latest = new ContentShelf(maxKeptTextBytes, maxDigests)
  }

  /** Take note of committed observations. */
  committed(entries: readonly LedgerEntry<FsTarget>[], fs: FileSystem | undefined): void {
    for (const entry of entries) {
      this.receipts.forget(entry.key)
      this.toldDigests.delete(entry.key)
      this.flapping.delete(entry.key)
      this.#supersede(entry)
      this.recall?.forget(entry.key)
      this.racy.delete(entry.key)
      this.instructions?.touch(entry.target.displayPath)
      if (fs) this.instructions?.touch(fs.processPath(entry.target))
      this.#index(entry, fs)
    }
    if (entries.length > 0) this.remember()
  }

  /** A link led elsewhere when the session used a path again: what it had seen there before is no more. */
  #supersede({ key, target }: LedgerEntry<FsTarget>): void {
    const earlier = this.#keyByName.get(target.displayPath)
    this.#keyByName.set(target.displayPath, key)
    if (earlier === undefined || earlier === key) return
    if (this.ledger.get(earlier)?.target.displayPath !== target.displayPath) return
    this.ledger.forget(earlier)
    this.receipts.forget(earlier)
    this.left(earlier)
  }

  /** Index the ledger anew: the place is known now, or it was handed over. */
  indexAll(fs: FileSystem | undefined): void {
    for (const entry of this.ledger.entries()) this.#index(entry, fs)
  }

  #index({ key, target }: LedgerEntry<FsTarget>, fs: FileSystem | undefined): void {
    this.#sweepOrder.delete(key)
    this.#sweepOrder.add(key)
    if (!fs) return
    this.#place(key, target, fs)
  }

  /** Where a target lies, and whether events come from there. */
  #place(key: string, target: FsTarget, fs: FileSystem): void {
    const real = fs.processPath(target)
    const expected = this.#expectedPath(target)
    this.#realPaths.set(key, real)
    this.#keyByPath.set(real, key)
    this.#keyByPath.set(expected, key)
    if (real === expected) this.#linked.delete(key)
    else this.#linked.add(key)
    this.reader?.prefer(real)
    if (real === expected && this.reader?.covers(real)) this.#unwatched.delete(key)
    else this.#unwatched.add(key)
  }

  /** What was a target of the session is none any more. */
  left(key: string): void {
    for (const known of [this.doubtful, this.flapping, this.toldDigests, this.heldBack]) known.delete(key)
    for (const [path, known] of this.#keyByPath) if (known === key) this.#keyByPath.delete(path)
    for (const known of [this.#linked, this.#unwatched, this.#sweepOrder]) known.delete(key)
    this.#realPaths.delete(key)
    this.beforeOwnWrite.delete(key)
    this.shelf.drop(key)
  }

  /**
   * Take note of what is watched now.
   * @returns whether that has changed.
   */
  followCover(fs: FileSystem): boolean {
    const generation = this.reader?.generation
    if (generation === this.#coverGeneration) return false
    this.#coverGeneration = generation
    // What instructions depend on may need to be followed in another way.
    this.followsInstructions = false
    this.instructions?.suspectAll()
    for (const { key, target } of this.ledger.entries()) this.#place(key, target, fs)
    return true
  }

  /** Whether a used target lies in one of these directories. @param directories - absolute real paths. */
  usesWithin(directories: readonly string[]): boolean {
    return [...this.#unwatched].some((key) => {
      const path = this.#realPaths.get(key)
      return path !== undefined && directories.some((directory) => isWithin(directory, path))
    })
  }

  /** Keys of used targets that no event of the watcher reaches. */
  get unwatched(): ReadonlySet<string> {
    return this.#unwatched
  }

  /** Whether a link lies on the way to the target, other than the cwd's own. */
  isLinked(key: string): boolean {
    return this.#linked.has(key)
  }

  /**
   * The session has written a target: what it held before may come back.
   * @param version - version after the write.
   */
  noteOwnWrite(key: string, version: string): void {
    const before = this.shelf.get(key)
    const continued = before !== undefined && before.version === this.ownVersions.get(key)
    this.ownVersions.set(key, version)
    // Several writes in a row are undone together.
    if (continued && this.beforeOwnWrite.has(key)) return
    const created = before === undefined && this.ledger.get(key)?.seen.kind !== 'present'
    if (before !== undefined) this.beforeOwnWrite.set(key, before.digest)
    else if (created) this.beforeOwnWrite.set(key, ABSENT)
    else this.beforeOwnWrite.delete(key)
  }

  doubt(targets: readonly FsTarget[]): void {
    for (const target of targets) this.doubtful.set(String(target.targetKey), target)
  }

  /** The committed observation of a path that the watcher names. */
  entryAt(path: string): LedgerEntry<FsTarget> | undefined {
    const key = this.#keyByPath.get(path)
    return key === undefined ? undefined : this.ledger.get(key)
  }

  /** Merge a slice of the journal. @param most - pending paths kept. */
  absorb(slice: JournalSlice, most: number): void {
    if (slice.everything) {
      this.instructions?.suspectAll()
      this.head.doubt()
    }
    for (const { path, seq, existed, at, times } of slice.paths) {
      this.instructions?.suspect(path)
      this.head.noticed(path, at)
      if (!this.entryAt(path) && this.#isNoNews(path)) continue
      const known = this.pending.get(path)
      // Whether it was there before the first of several events is what counts.
      this.pending.set(path, {
        seq,
        at,
        times: known ? [...known.times.slice(0, MAX_TIMES), ...times] : times,
        existed: known ? known.existed : existed,
      })
    }
    for (const path of this.pending.keys()) {
      if (this.pending.size <= most) break
      if (this.entryAt(path)) continue
      this.pending.delete(path)
      this.unlisted += 1
    }
    this.unlisted += slice.dropped
  }

  /** Paths that the next boundary will look at, as far as it is known now. */
  waitingPaths(): string[] {
    const fresh = (this.reader?.peek() ?? []).map(({ path }) => path)
    return [...this.pending.keys(), ...fresh.filter((path) => this.entryAt(path) || !this.#isNoNews(path))]
  }

  /** Followed for instructions alone, or silent by the rules of the root. */
  #isNoNews(path: string): boolean {
    if (this.place && !isWithin(this.place.root, path)) return true
    return this.reader?.ignores(path, false) ?? false
  }

  /** A pending path is settled as of `seq`; a newer event for it stays. */
  settlePath(path: string, seq: number): void {
    if ((this.pending.get(path)?.seq ?? Infinity) <= seq) this.pending.delete(path)
  }

  /** Keys to check at this boundary; they move to the end of the order. */
  takeSweep(most: number): string[] {
    const keys: string[] = []
    for (const key of this.#sweepOrder) {
      if (keys.length >= most) break
      keys.push(key)
    }
    for (const key of keys) {
      this.#sweepOrder.delete(key)
      this.#sweepOrder.add(key)
    }
    return keys
  }

  /** Where a target would really lie if no link but the cwd's own were on its way. */
  #expectedPath(target: FsTarget): string {
    const { place } = this
    if (!place || !isWithin(place.lexical, target.displayPath)) return target.displayPath
    return join(place.real, relative(place.lexical, target.displayPath))
  }

  /** A used target as the model knows it: by the path that it used; beside a cwd that is a link, by where it lies. */
  shownTarget(key: string, target: FsTarget): string {
    const { place } = this
    const usable = place?.lexical === place?.real || isWithin(place?.lexical ?? '/', target.displayPath)
    if (place && usable) return this.shown(target.displayPath)
    return this.shown(this.#realPaths.get(key) ?? target.displayPath)
  }

  /** A path as the model knows it: relative to the cwd within the root, else absolute. */
  shown(path: string): string {
    const { place } = this
    if (!place) return path
    if (isWithin(place.lexical, path)) return relative(place.lexical, path)
    return isWithin(place.root, path) ? relative(place.real, path) : path
  }

  /** Another instance of the plugin takes over: what belongs to this one is let go. */
  detach(): void {
    this.place = undefined
    this.reader = undefined
    this.disposed = true
  }

  /** Forget unused files that keep changing, the longest unchanged first. @param most - files kept. */
  boundFlapping(most: number): void {
    for (const key of this.flapping.keys()) {
      if (this.flapping.size <= most) return
      if (!this.ledger.get(key)) this.flapping.delete(key)
    }
  }

  /** The cwd leads to another directory now: everything is looked at again there. */
  moveAway(): void {
    this.place = undefined
    this.reader = undefined
    this.movedAway = true
    this.lastCoverage = undefined
    this.pending.clear()
    this.turn.fresh = true
    this.head.doubt()
    this.instructions?.suspectAll()
  }

  turnStarted(): void {
    Object.assign(this.turn, { steers: 0, steeredForOthers: false, stopping: false, fresh: true })
  }
}
