/**
 * What sessions have seen, over restarts: reading it when a session is continued, writing it while it runs.
 *
 * @module dsh-live-workspace/manifest/memory
 */
import { randomUUID } from 'node:crypto'
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import type { Session } from '@deepseek-ai/dsh-session'
import pLimit from 'p-limit'
import type { ResumeConfig } from '../config.ts'
import { Deadline } from '../revalidate.ts'
import type { Reminder, SessionState } from '../session.ts'
import { encodeManifest, type Manifest, type Remembered } from './format.ts'
import { Keeper } from './keeper.ts'
import { fileResultsOf, proofOf, type Proven, prove, throughAt } from './proof.ts'
import { Recall } from './recall.ts'
import { Snapshots } from './snapshot.ts'
import type { ManifestStore, Report } from './store.ts'

/** What a memory works with. */
export interface MemoryParts {
  readonly config: ResumeConfig
  /** Time in ms within which two writes of a file may have one version. */
  readonly racyWindowMs: number
  /** Questions to the filesystem service under way at the same time. */
  readonly concurrency: number
  readonly store: ManifestStore
  readonly report: Report
  /** Runs a function in a context that belongs to no agent. */
  readonly detached: <T>(make: () => T) => T
  readonly fs: () => FileSystem | undefined
  /** State of a session that lives in this process. */
  readonly living: (
    sessionId: string,
  ) => { readonly session: Session; readonly state: SessionState } | undefined
}

/** A longer id is no key of a file of ours. */
const MAX_ID = 1_024

/** Sessions of one plugin instance. */
export class SessionMemory {
  readonly #parts: MemoryParts
  readonly #snapshots: Snapshots
  readonly #writer = randomUUID()
  readonly #keepers = new Map<SessionState, Keeper>()
  /** Sessions that were left and are still being written, by id. */
  readonly #leaving = new Map<string, Promise<void>>()
  /** Work that ends by itself. */
  readonly #underWay = new Set<Promise<void>>()

  constructor(parts: MemoryParts) {
    this.#parts = parts
    this.#snapshots = new Snapshots(parts.racyWindowMs)
  }

  /** Absolute path of what is remembered of a session. */
  pathOf(sessionId: string): string {
    return this.#parts.store.pathOf(sessionId)
  }

  /**
   * A session begins or is continued.
   * @param reminder - what it needs where nothing is remembered of it; nothing for a session without reads.
   */
  begin(session: Session, state: SessionState, reminder: Exclude<Reminder, 'compaction'> | undefined): void {
    if (!reminder) {
      this.#keep(session, state, Promise.resolve(undefined))
      return
    }
    const forked = session.header.parentSession !== undefined && session.header.seedLength !== undefined
    const recall = new Recall(reminder === 'resume' && !forked ? 'resumed' : 'continued')
    state.recall = recall
    const loading = this.#load(session, state, recall).catch((error: unknown) => {
      this.#parts.report(
        `what a session had seen could not be compared with its log (${String(error)})`,
        'none is needed: the session gets a general reminder; please report it with the message above',
      )
      return undefined
    })
    const loaded = loading.then((mark) => {
      // Nothing that can be used: the general reminder says so.
      if (!recall.loaded) {
        if (state.recall === recall) state.recall = undefined
        state.reminders.add(reminder)
      }
      return mark
    })
    recall.ready = this.#track(loaded)
    this.#keep(session, state, loaded)
  }

  /** Another instance of the plugin knew the session until now. */
  takeOver(session: Session, state: SessionState): void {
    this.#keep(session, state, Promise.resolve(undefined))
  }

  /** The session has ended: write what is not written yet. */
  leave(session: Session, state: SessionState): void {
    const keeper = this.#keepers.get(state)
    if (!keeper) return
    this.#keepers.delete(state)
    const id = String(session.id)
    const closing = this.#close(state, keeper).finally(() => {
      if (this.#leaving.get(id) === closing) this.#leaving.delete(id)
    })
    this.#leaving.set(id, closing)
  }

  /** Write everything that is not written yet; nothing is written afterwards. */
  async close(): Promise<void> {
    const keepers = [...this.#keepers]
    this.#keepers.clear()
    await Promise.all([
      ...keepers.map(async ([state, keeper]) => this.#close(state, keeper)),
      ...this.#leaving.values(),
      ...this.#underWay,
    ])
  }

  /** Remove what belongs to no session any more. @param existing - ids of all sessions, where known. */
  tidy(existing: () => Promise<ReadonlySet<string> | undefined>): void {
    void this.#track(this.#parts.detached(() => this.#parts.store.tidy(existing, Date.now())))
  }

  #track(work: Promise<unknown>): Promise<void> {
    const tracked = work.then(
      () => undefined,
      () => undefined,
    )
    this.#underWay.add(tracked)
    void tracked.then(() => this.#underWay.delete(tracked))
    return tracked
  }

  #keep(session: Session, state: SessionState, loaded: Promise<string | undefined>): void {
    const id = String(session.id)
    if (id.length > MAX_ID) return
    const { store, report, detached, config } = this.#parts
    const keeper = new Keeper({
      store,
      sessionId: id,
      writer: this.#writer,
      delayMs: config.saveDelayMs,
      loaded,
      compose: () => this.#compose(session, state),
      through: () => state.followedTo ?? -1,
      report,
      detached,
    })
    this.#keepers.set(state, keeper)
    state.remember = () => keeper.changed()
  }

  async #close(state: SessionState, keeper: Keeper): Promise<void> {
    // A content that is being read decides later whether a touched file is the same.
    const captures = Array.from(state.captures.values(), ({ done }) => done)
    if (captures.length > 0) {
      const deadline = new Deadline(this.#parts.config.flushMs, new AbortController().signal)
      await Promise.race([Promise.all(captures), deadline.reached])
      deadline.cancel()
    }
    await keeper.close()
  }

  #compose(session: Session, state: SessionState): { text: string; through: number } | undefined {
    if (state.ledger.size === 0 && (state.recall?.queue.length ?? 0) === 0) return undefined
    const { maxFiles, maxManifestBytes } = this.#parts.config
    const log = session.events
    const through = throughAt(log, state.followedTo)
    const text = encodeManifest(
      { session: String(session.id), createdAt: session.header.createdAt, writer: this.#writer, through },
      this.#snapshots.lines(state, log, maxFiles),
      maxManifestBytes,
    )
    return { text, through: through?.seq ?? -1 }
  }

  /** @returns the mark of the session's own file, if there was one. */
  async #load(session: Session, state: SessionState, recall: Recall): Promise<string | undefined> {
    const log = session.events
    const id = String(session.id)
    if (id.length > MAX_ID) return undefined
    // The same session may have ended in this process just now.
    await this.#leaving.get(id)
    const found = await this.#parts.store.load({ id, createdAt: session.header.createdAt })
    const manifest = found.kind === 'manifest' ? found.manifest : await this.#inherited(session, found.kind)
    if (manifest) {
      const results = fileResultsOf(log, session.header.cwd ?? '/')
      const proven = prove(manifest, log, results)
      if (proven.entries.length > 0) {
        const { entries, unknown } = await this.#accountFor(proven)
        state.followedTo ??= proven.through?.seq
        const isProven = (entry: Remembered) => proofOf(log, entry.shown) === entry.proof
        if (entries.length > 0) recall.load(entries, unknown, isProven)
      }
    }
    return found.kind === 'manifest' ? found.mark : undefined
  }

  /** What the parent of a forked session had seen: the log of the child decides what of it the child has. */
  async #inherited(session: Session, found: 'none' | 'unusable'): Promise<Manifest | undefined> {
    const { parentSession, seedLength = 0 } = session.header
    if (found === 'unusable' || parentSession === undefined || seedLength === 0) return undefined
    const parent = this.#parts.living(String(parentSession))
    if (!parent) return this.#parts.store.peek(String(parentSession))
    const log = parent.session.events
    return {
      session: String(parentSession),
      createdAt: parent.session.header.createdAt,
      writer: this.#writer,
      through: throughAt(log, parent.state.followedTo),
      entries: this.#snapshots.entries(parent.state, log),
    }
  }

  /**
   * Paths in the log that no entry stands for may be other names of files that one stands for.
   * @returns the entries of which the log shows nothing later, and the paths of which nothing is known.
   */
  async #accountFor({
    entries,
    unaccounted,
    through,
  }: Proven): Promise<Pick<Recall, 'unknown'> & Pick<Proven, 'entries'>> {
    const fs = this.#parts.fs()
    const limit = pLimit(this.#parts.concurrency)
    const deadline = new Deadline(this.#parts.config.flushMs, new AbortController().signal)
    const followed = through?.seq ?? -1
    const keyed = await Promise.all(
      Array.from(unaccounted, async ([path, seq]) => {
        // What cannot be resolved may be any of the files.
        const resolved = limit(async () => (deadline.expired ? undefined : fs?.resolve(path)))
        const target = await Promise.race([resolved.catch(() => undefined), deadline.reached])
        return { path, seq, key: target && String(target.targetKey) }
      }),
    )
    deadline.cancel()
    const shownAt = new Map(entries.map(({ key, shown: [result] }) => [key, result]))
    const outdated = new Set<string>()
    let unresolved = -1
    for (const { seq, key } of keyed) {
      if (seq <= followed) continue
      if (key === undefined) unresolved = Math.max(unresolved, seq)
      else if ((shownAt.get(key) ?? seq) < seq) outdated.add(key)
    }
    const kept = entries.filter(({ key, shown: [result] }) => !outdated.has(key) && result >= unresolved)
    const keptKeys = new Set(kept.map(({ key }) => key))
    const unknown = keyed.filter(({ key }) => key === undefined || !keptKeys.has(key)).map(({ path }) => path)
    return { entries: kept, unknown: unknown.toReversed() }
  }
}
