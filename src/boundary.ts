/**
 * The order of work at a boundary: barrier, revalidation, notices.
 *
 * @module dsh-live-workspace/boundary
 */
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import type { LiveWorkspaceConfig } from './config.ts'
import { Writers } from './attribution.ts'
import { compare, type Comparison } from './compare.ts'
import { coverageFor, HEAD, remindersFor } from './conditions.ts'
import type { Outcome } from './outcome.ts'
import { Contents } from './contents.ts'
import type { InstructionMessage, InstructionView } from './instructions/view.ts'
import { dueFindings, newsFor } from './news.ts'
import { findMoves, type Move } from './shapes.ts'
import { type Finding, hold, isAbsent, judge } from './judge.ts'
import { instructionsChangedNotice } from './notice/reminders.ts'
import type { HeadMove } from './notice/git-head.ts'
import { secretMatcher } from './notice/secret.ts'
import { type Answer, Deadline, Revalidator } from './revalidate.ts'
import type { SessionState } from './session.ts'
import { dirtySubjects, type Subject, subjectOfKey } from './subjects.ts'

/** What one boundary needs to know of its moment. */
export interface Moment {
  readonly signal: AbortSignal
  readonly fs: FileSystem
  /** Sources of the batch that is about to enter; `undefined` before the end of a turn. */
  readonly entering: readonly unknown[] | undefined
  /** Whether the model can still see this event of the session log. */
  readonly visible: (seq: number) => boolean
  /** Whether the surface was rewritten since the last boundary. */
  readonly surfaceMoved: boolean
  /** Tell the host's read-before-write guard that this version is what the session saw. */
  readonly renewGuard: (target: FsTarget, version: string) => void
}

/** What a look at everything in doubt has shown. */
interface Seen {
  readonly findings: Finding[]
  readonly moves: readonly Move[]
  readonly head: HeadMove | undefined
  /** Whether every event from before the boundary has come. */
  readonly live: boolean
}

/** Shares of the longest wait: for the watcher, and for unused files after the used ones. */
const BARRIER_SHARE = 0.5
const OTHERS_SHARE = 0.5

type Asked = readonly [Subject, Answer, Comparison | 'late' | undefined]

/** Does the work of all boundaries of one plugin instance. */
export class Boundary {
  readonly #config: LiveWorkspaceConfig
  readonly #revalidator: Revalidator
  /** The service as the latest boundary met it. */
  #fs: FileSystem | undefined
  readonly #isSecret: (path: string) => boolean
  /** Contents of what sessions see and saw. */
  readonly contents: Contents
  /** Who wrote what, over all sessions. */
  readonly writers: Writers

  /** @param fs - the filesystem service as it is now; the provider may be replaced while sessions live. */
  constructor(config: LiveWorkspaceConfig, fs: () => FileSystem) {
    this.#config = config
    this.#isSecret = secretMatcher(config.notice.secretFiles)
    this.writers = new Writers(config.notice.maxDigests)
    this.contents = new Contents(fs, config.notice, config.notice.statConcurrency)
    // Asking the host for the service makes a new proxy each time, which costs more than a stat.
    const now = () => this.#fs ?? fs()
    this.#revalidator = new Revalidator(
      { resolve: (path) => now().resolve(path), stat: (target) => now().stat(target) },
      config.notice.statConcurrency,
    )
  }

  /**
   * Find out what is to be told to a session. Nothing is consumed: that happens when a message that
   * covers it is in the log.
   */
  async examine(state: SessionState, moment: Moment): Promise<Outcome> {
    const turnEnds = moment.entering === undefined
    state.boundaries += 1
    this.#fs = moment.fs
    if (moment.surfaceMoved) state.receipts.forgetInvisible(moment.visible)
    const { findings, moves, head, live } = await this.#look(state, moment, turnEnds)
    if (moment.signal.aborted) return NOTHING
    const due = await this.#instructions(state, moment, live)
    if (moment.signal.aborted) return NOTHING
    const hasNews = due.some(({ news }) => news)
    const told = new Set(due.flatMap(({ summaryPaths }) => summaryPaths))
    const covered = findings.filter(isIn(told))
    const knows = ({ paths }: Finding) => paths.some((path) => state.instructions?.has(path) === true)
    // A used file that another loader's message in this batch speaks of is told by that message.
    const others = moment.entering?.some(isInstructionSource)
      ? findings.filter((finding) => finding.used && !isIn(told)(finding) && knows(finding))
      : []
    const rest = findings.filter(
      (finding) => !isIn(told)(finding) && !others.includes(finding) && !settleIfInForce(state, finding),
    )
    const instructions = due.map((message, index) => ({
      ...message,
      covered: index === 0 ? covered.flatMap(({ covers }) => covers) : [],
    }))
    const notices = [
      // Their text may not wait in the inbox, where the host's own loader would take it for its own.
      ...(turnEnds && hasNews
        ? [{ category: 'changes', covered: [], ...instructionsChangedNotice } as const]
        : []),
      // No reason to keep a turn going: they wait for the next request.
      ...(turnEnds ? [] : remindersFor(state)),
      ...coverageFor(state, turnEnds),
      ...newsFor(state, rest, moves, head, {
        config: this.#config.notice,
        writers: this.writers,
        isSecret: this.#isSecret,
        visible: moment.visible,
        now: performance.now(),
      }),
    ]
    const touchesUsed =
      hasNews ||
      // What cannot be verified now will hardly be known one step later.
      rest.some(({ used, action }) => used && action !== 'unverified')
    const toldByOthers = others.flatMap(({ covers }) => covers)
    return { toldByOthers, instructions: turnEnds ? [] : instructions, notices, touchesUsed }
  }

  async #instructions(
    state: SessionState,
    moment: Moment,
    live: boolean,
  ): Promise<readonly InstructionMessage[]> {
    const { instructions: room, place, reader } = state
    if (!room || !place) return []
    const view: InstructionView = {
      fs: moment.fs,
      cwd: place.lexical,
      signal: moment.signal,
      visible: state.loggedInstructions.filter(({ seq }) => moment.visible(seq)).map(({ source }) => source),
      entering: moment.entering,
      live: live && state.followsInstructions,
      ignored: (path) => reader?.ignores(path, true) ?? false,
    }
    if (room.isQuiet(view)) return []
    const messages = await room.compose(view)
    const followed = reader?.follow(room.followed())
    // What is followed only from now on may have changed just before.
    if (followed?.added) room.suspectAll()
    state.followsInstructions = followed?.complete ?? false
    return messages
  }

  async #look(state: SessionState, moment: Moment, turnEnds: boolean): Promise<Seen> {
    const { watch } = this.#config
    const deadline = new Deadline(watch.maxWaitMs, moment.signal)
    try {
      // The sweep of used files is sound without any watcher, so it runs beside the barrier.
      const full = turnEnds || state.turn.fresh || state.reader?.coverage.kind !== 'live'
      const asked = new Map<string, Promise<Asked>>()
      const ask = (id: string, subject: Subject) =>
        asked.set(id, this.#ask(state, subject, deadline, moment.fs))
      const sweep = (keys: Iterable<string>) => {
        for (const key of keys) {
          const subject = asked.has(key) ? undefined : subjectOfKey(state, key)
          if (subject) ask(key, subject)
        }
      }
      sweep(state.unwatched)
      sweep(state.takeSweep(full ? Infinity : watch.sweepBudget))
      const limit = Math.ceil(watch.maxWaitMs * BARRIER_SHARE)
      const from = performance.now()
      const passed = (await state.reader?.barrier(limit, moment.signal)) ?? 'unclean'
      state.lastBarrier = { at: Date.now(), outcome: passed, ms: performance.now() - from }
      const slice = state.reader?.read()
      if (slice) state.absorb(slice, watch.maxJournalPaths)
      const coverage = state.reader?.coverage.kind
      if (coverage !== state.lastCoverage) state.instructions?.suspectAll()
      state.lastCoverage = coverage
      if (passed !== 'clean' || slice?.everything) sweep(state.takeSweep(Infinity))
      // What the watcher named is asked about anew, even if the sweep just did: it may be older.
      const [used, others] = [new Map<string, Subject>(), new Map<string, Subject>()]
      for (const [id, subject] of dirtySubjects(state)) (subject.used ? used : others).set(id, subject)
      for (const [id, subject] of used) ask(id, subject)
      const ofUsed = await this.#judgeAll(state, [...asked.values()], deadline, moment)
      // Used files come first, whatever else has happened; what is left of the time is the others'.
      const rest = new Deadline(watch.maxWaitMs * OTHERS_SHARE, moment.signal)
      const answers = Array.from(others.values(), (subject) => this.#ask(state, subject, rest, moment.fs))
      const all = [...ofUsed, ...(await this.#judgeAll(state, answers, rest, moment))]
      const live = passed === 'clean' && coverage === 'live'
      const root = state.place?.root
      const moved = root === undefined ? undefined : await state.head.look(root, state.reader, live)
      // On its way in a message already; and by itself no reason to keep a turn going.
      const silent = state.receipts.lastWord(HEAD) !== undefined || (turnEnds && all.length === 0)
      const head = silent ? undefined : moved
      const findings = dueFindings(state, all, turnEnds, head !== undefined)
      const moves = await findMoves(state, this.contents, findings, this.#config.notice.maxMoveReads, rest)
      rest.cancel()
      return { findings, moves, head, live }
    } finally {
      deadline.cancel()
    }
  }

  async #judgeAll(
    state: SessionState,
    asked: readonly Promise<Asked>[],
    deadline: Deadline,
    moment: Moment,
  ): Promise<Finding[]> {
    const settled = await Promise.all(asked)
    const away = await this.#rootIsAway(state, settled, deadline)
    const findings: Finding[] = []
    for (const [subject, answer, compared] of settled) {
      const comparison = this.#inTime(state, subject, answer, compared)
      // A workspace that is moved away for a while is not "every file deleted".
      if (comparison === 'late' || (away && isAbsent(answer))) {
        hold(state, subject)
        continue
      }
      if (comparison && comparison.before.digest === comparison.now.digest) {
        this.#renew(state, subject, comparison, moment)
      }
      const finding = judge(state, subject, answer, comparison)
      if (finding) findings.push(finding)
    }
    return findings
  }

  /** A comparison that was not ready is waited for once; after that the change is told without it. */
  #inTime(
    state: SessionState,
    { used }: Subject,
    answer: Answer,
    comparison: Comparison | 'late' | undefined,
  ): Comparison | 'late' | undefined {
    if (!used || answer.kind !== 'known' || answer.now.kind !== 'present') return undefined
    const { version } = answer.now
    if (comparison !== 'late') {
      state.heldBack.delete(used.key)
      return comparison
    }
    if (state.heldBack.get(used.key) === version) return undefined
    state.heldBack.set(used.key, version)
    return 'late'
  }

  async #ask(state: SessionState, subject: Subject, deadline: Deadline, fs: FileSystem): Promise<Asked> {
    // Most files are quiet: they take no more turns of the loop than their one question.
    const answer =
      state.captures.size === 0
        ? await this.#revalidator.ask(subject.question, deadline)
        : await this.#answer(state, subject, deadline)
    if (isQuiet(subject, answer)) return [subject, answer, undefined]
    const resolve = (path: string) => fs.resolve(path)
    const { racyWindowMs } = this.#config.notice
    return [
      subject,
      answer,
      await compare(state, this.contents, subject, answer, resolve, racyWindowMs, deadline),
    ]
  }

  async #answer(state: SessionState, subject: Subject, deadline: Deadline): Promise<Answer> {
    const target = subject.used?.target
    switch (await this.contents.underWay(state, subject.used?.key, deadline)) {
      case 'settled':
        return this.#revalidator.ask(subject.question, deadline)
      case 'late':
        return { kind: 'late', target }
      case 'hangs':
        return { kind: 'failed', target, reason: 'no answer' }
    }
  }

  /** Equal bytes under another version are what the session saw: for us, and for the host's own guard. */
  #renew(state: SessionState, subject: Subject, { now }: Comparison, moment: Moment): void {
    if (!subject.used) return
    const { key, target } = subject.used
    state.ledger.renew(key, { kind: 'present', version: now.version })
    state.shelf.renew(key, now.version)
    moment.renewGuard(target, now.version)
  }

  /** Asked only when something is missing. */
  async #rootIsAway(state: SessionState, answers: readonly Asked[], deadline: Deadline): Promise<boolean> {
    if (!state.place || !answers.some(([, answer]) => isAbsent(answer))) return false
    const root = await this.#revalidator.ask({ path: state.place.root }, deadline)
    return root.kind !== 'known' || root.now.kind !== 'present' || root.now.type !== 'directory'
  }
}

/** An instruction file whose text the model has as it is: only its version moved. */
const settleIfInForce = (state: SessionState, finding: Finding): boolean => {
  if (finding.used || !finding.paths.some((path) => state.instructions?.has(path))) return false
  for (const { path, seq } of finding.covers) {
    if (path !== undefined && seq !== undefined) state.settlePath(path, seq)
  }
  return true
}

/** Nothing happened to a used file, by version and by events. */
const isQuiet = ({ used, waiting }: Subject, answer: Answer): boolean =>
  waiting.length === 0 &&
  answer.kind === 'known' &&
  answer.now.kind === 'present' &&
  used?.seen.kind === 'present' &&
  answer.now.version === used.seen.version

const isInstructionSource = (source: unknown): boolean =>
  typeof source === 'object' && source !== null && 'kind' in source && source.kind === 'agent-instructions'

const NOTHING: Outcome = { toldByOthers: [], instructions: [], notices: [], touchesUsed: false }

const isIn =
  (paths: ReadonlySet<string>) =>
  (finding: Finding): boolean =>
    finding.paths.some((path) => paths.has(path))
