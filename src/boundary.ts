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
import { divide } from './crowd.ts'
import { withoutDetours } from './detour.ts'
import type { Outcome } from './outcome.ts'
import { Contents } from './contents.ts'
import type { InstructionMessage, InstructionView } from './instructions/view.ts'
import { dueFindings, newsFor } from './news.ts'
import type { Shapes } from './present.ts'
import { findDirectoryMoves, findMoves } from './shapes.ts'
import { type Finding, hold, isAbsent, judge } from './judge.ts'
import { checkFirst, checkRest, type CheckWork, noteStanding } from './manifest/check.ts'
import { tellRecall } from './manifest/telling.ts'
import { instructionsChangedNotice } from './notice/reminders.ts'
import type { HeadMove } from './notice/git-head.ts'
import { secretMatcher } from './notice/secret.ts'
import { type Answer, Deadline, Revalidator } from './revalidate.ts'
import type { CoveredState, SessionState } from './session.ts'
import { type Coverage, coverageWord } from './watch/coverage.ts'
import { ROOT_LOST } from './watch/faults.ts'
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
  readonly shapes: Shapes
  readonly head: HeadMove | undefined
  /** Whether every event from before the boundary has come. */
  readonly live: boolean
  /** How far the watcher was to be trusted when the barrier ended. */
  readonly coverage: Coverage | undefined
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
      config.notice.maxHangingChecks,
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
    const checked = turnEnds ? NONE : await this.#recall(state, moment)
    const { findings, shapes, head, live, coverage } = await this.#look(state, moment, turnEnds, checked)
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
    const untold = findings.filter(
      (finding) => !isIn(told)(finding) && !others.includes(finding) && !settleIfInForce(state, finding),
    )
    const recalled = turnEnds ? undefined : tellRecall(state, untold, findings, moment.visible, this.#config)
    const rest = untold.filter((finding) => recalled?.findings.has(finding) !== true)
    const instructions = due.map((message, index) => ({
      ...message,
      covered: index === 0 ? covered.flatMap((finding) => coversWith(finding, due)) : [],
    }))
    const notices = [
      // Their text may not wait in the inbox, where the host's own loader would take it for its own.
      ...(turnEnds && hasNews
        ? [{ category: 'changes', covered: [], ...instructionsChangedNotice } as const]
        : []),
      // No reason to keep a turn going: they wait for the next request.
      ...(turnEnds ? [] : remindersFor(state)),
      ...(recalled?.notice ? [recalled.notice] : []),
      ...coverageFor(state, coverage, turnEnds),
      ...newsFor(state, rest, shapesIn(shapes, rest), head && { move: head, paths: countPaths(findings) }, {
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
    const touchesOthers =
      notices.some(({ category }) => category === 'coverage') ||
      state.unlisted > 0 ||
      rest.some(({ used, times }) => used !== undefined || !state.ownCommands.ranAt(times))
    const toldByOthers = others.flatMap(({ covers }) => covers)
    return { toldByOthers, instructions: turnEnds ? [] : instructions, notices, touchesUsed, touchesOthers }
  }

  /**
   * Check what was seen before this process, as far as the first request waits for it.
   * @returns the keys of what was checked.
   */
  async #recall(state: SessionState, moment: Moment): Promise<ReadonlySet<string>> {
    const { recall } = state
    if (!recall) return NONE
    if (!recall.loaded) {
      const deadline = new Deadline(this.#config.watch.maxWaitMs, moment.signal)
      await Promise.race([recall.ready, deadline.reached])
      deadline.cancel()
    }
    if (!recall.loaded || recall.partlyTold) return NONE
    const { firstStepFiles, firstStepMs } = this.#config.resume
    return checkFirst(state, this.#checkWork(state, moment), firstStepFiles, firstStepMs)
  }

  /** Check what no boundary has had the time for. */
  async finishRecall(
    state: SessionState,
    work: Pick<CheckWork, 'fs' | 'signal' | 'renewGuard'>,
  ): Promise<void> {
    await checkRest(state, this.#checkWork(state, work))
  }

  #checkWork(
    state: SessionState,
    { fs, signal, renewGuard }: Pick<CheckWork, 'fs' | 'signal' | 'renewGuard'>,
  ): CheckWork {
    return {
      fs,
      signal,
      renewGuard,
      maxWaitMs: this.#config.watch.maxWaitMs,
      ask: async (subject, deadline) => this.#ask(state, subject, deadline, fs),
      renew: (subject, comparison) => this.#renew(state, subject, comparison, { renewGuard }),
    }
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

  /** @param checked - keys of used files that this boundary has asked about already. */
  async #look(
    state: SessionState,
    moment: Moment,
    turnEnds: boolean,
    checked: ReadonlySet<string>,
  ): Promise<Seen> {
    const { watch } = this.#config
    const deadline = new Deadline(watch.maxWaitMs, moment.signal)
    const startedAt = performance.now()
    try {
      // The sweep of used files is sound without any watcher, so it runs beside the barrier.
      const full = turnEnds || state.turn.fresh || state.reader?.coverage.kind !== 'live'
      const asked = new Map<string, Promise<Asked>>()
      const ask = (id: string, subject: Subject) =>
        asked.set(id, this.#ask(state, subject, deadline, moment.fs))
      const sweep = (keys: Iterable<string>) => {
        for (const key of keys) {
          const known = asked.has(key) || (checked.has(key) && state.recall?.standing.get(key) === 'same')
          const subject = known ? undefined : subjectOfKey(state, key)
          if (subject) ask(key, subject)
        }
      }
      state.followCover(moment.fs)
      sweep(state.unwatched)
      if (!turnEnds)
        for (const standing of ['waiting', 'moved'] as const) sweep(state.recall?.keys(standing) ?? [])
      sweep(state.takeSweep(full ? Infinity : watch.sweepBudget))
      const limit = Math.ceil(watch.maxWaitMs * BARRIER_SHARE)
      const from = performance.now()
      const passed = (await state.reader?.barrier(limit, moment.signal, full)) ?? 'unclean'
      state.lastBarrier = { at: Date.now(), outcome: passed, ms: performance.now() - from }
      const slice = state.reader?.read()
      if (slice) state.absorb(slice, watch.maxJournalPaths)
      if (state.followCover(moment.fs)) sweep(state.unwatched)
      const watched = state.reader?.coverage
      const coverage = coverageWord(watched)
      const before = state.lastCoverage
      const moved = coverage !== before
      if (moved) state.instructions?.suspectAll()
      state.lastCoverage = coverage
      // Another directory stands there for the moment: what is not in it is not "deleted".
      const lost = moved && (coverage === ROOT_LOST.code || (state.movedAway && before === undefined))
      if (passed !== 'clean' || slice?.everything) sweep(state.takeSweep(Infinity))
      // What the watcher named is asked about anew, even if the sweep just did: it may be older.
      const [used, others] = [new Map<string, Subject>(), new Map<string, Subject>()]
      for (const [id, subject] of dirtySubjects(state)) (subject.used ? used : others).set(id, subject)
      for (const [id, subject] of used) ask(id, subject)
      const ofUsed = await this.#judgeAll(state, [...asked.values()], deadline, moment, lost)
      // Used files come first, whatever else has happened; what is left of the time is the others'.
      const rest = new Deadline(watch.maxWaitMs * OTHERS_SHARE, moment.signal)
      const limits = { ...watch, ...this.#config.notice }
      const crowd = await divide(state, [...others.values()], ofUsed, limits, rest)
      const answers = crowd.asked.map((subject) => this.#ask(state, subject, rest, moment.fs))
      const ofOthers = await this.#judgeAll(state, answers, rest, moment, lost)
      const found = [...ofUsed, ...ofOthers, ...crowd.counted]
      const live = passed === 'clean' && coverage === 'live'
      if (live && !deadline.expired) state.completeAt = startedAt
      const root = state.place?.root
      const headMoved = root === undefined ? undefined : await state.head.look(root, state.reader, live)
      const all =
        root === undefined ? found : await withoutDetours(state, found, root, watch.gitTimeoutMs, rest)
      // On its way in a message already; and by itself no reason to keep a turn going.
      const silent = state.receipts.lastWord(HEAD) !== undefined || (turnEnds && all.length === 0)
      const head = silent ? undefined : headMoved
      const findings = dueFindings(state, all, turnEnds, head !== undefined, this.#config.notice.maxDigests)
      const moves = await findMoves(state, this.contents, findings, this.#config.notice.maxMoveReads, rest)
      const isGone = async (path: string) => isAbsent(await this.#revalidator.ask({ path }, rest))
      const directories = await findDirectoryMoves(moves, findings, isGone)
      rest.cancel()
      return { findings, shapes: { moves, directories }, head, live, coverage: watched }
    } finally {
      deadline.cancel()
    }
  }

  async #judgeAll(
    state: SessionState,
    asked: readonly Promise<Asked>[],
    deadline: Deadline,
    moment: Moment,
    lost: boolean,
  ): Promise<Finding[]> {
    const settled = await Promise.all(asked)
    // What an abort has cut short says nothing of any file.
    if (moment.signal.aborted) return []
    const away = lost || (await this.#rootIsAway(state, settled, deadline))
    const findings: Finding[] = []
    for (const [subject, answer, compared] of settled) {
      const comparison = this.#inTime(state, subject, answer, compared)
      // A workspace that is moved away for a while is not "every file deleted".
      if (comparison === 'late' || (away && isAbsent(answer))) {
        hold(state, subject)
        noteStanding(state, subject, answer, 'waiting', moment.renewGuard)
        continue
      }
      if (comparison && isRacy(comparison) && subject.used) state.racy.add(subject.used.key)
      if (comparison && comparison.before.digest === comparison.now.digest) {
        this.#renew(state, subject, comparison, moment)
      }
      const finding = judge(state, subject, answer, comparison)
      if (finding) findings.push(finding)
      const standing = answer.kind === 'late' ? 'waiting' : finding ? 'moved' : 'same'
      noteStanding(state, subject, answer, answer.kind === 'failed' ? undefined : standing, moment.renewGuard)
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
  #renew(
    state: SessionState,
    subject: Subject,
    { now }: Comparison,
    { renewGuard }: Pick<Moment, 'renewGuard'>,
  ): void {
    if (!subject.used) return
    const { key, target } = subject.used
    state.ledger.renew(key, { kind: 'present', version: now.version })
    state.shelf.renew(key, now.version)
    renewGuard(target, now.version)
    state.remember()
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

/** A text that stands whole in a message is one that the model has as if it had read it. */
const coversWith = (
  { covers, paths, comparison }: Finding,
  due: readonly InstructionMessage[],
): readonly CoveredState[] => {
  const now = comparison?.now
  const whole =
    now?.text !== undefined &&
    due.some(({ wholeTexts }) => paths.some((path) => wholeTexts.get(path) === now.text))
  return whole ? covers.map((state) => ({ ...state, content: now })) : covers
}

/** The shapes that only these findings make. */
const shapesIn = ({ moves, directories }: Shapes, findings: readonly Finding[]): Shapes => {
  const known = new Set(findings)
  return {
    moves: moves.filter(({ from, to }) => known.has(from) && known.has(to)),
    directories: directories.filter(({ explains }) => [...explains].every((finding) => known.has(finding))),
  }
}

/** Changed paths, each target once; those that instructions tell of included. */
const countPaths = (findings: readonly Finding[]): number => new Set(findings.map(({ key }) => key)).size

/** Another content under the same version. */
const isRacy = ({ before, now }: Comparison): boolean =>
  before.version === now.version && before.digest !== now.digest

const isInstructionSource = (source: unknown): boolean =>
  typeof source === 'object' && source !== null && 'kind' in source && source.kind === 'agent-instructions'

const NONE: ReadonlySet<string> = new Set()

/** Nothing to tell. */
export const NOTHING: Outcome = {
  toldByOthers: [],
  instructions: [],
  notices: [],
  touchesUsed: false,
  touchesOthers: false,
}

const isIn =
  (paths: ReadonlySet<string>) =>
  (finding: Finding): boolean =>
    finding.paths.some((path) => paths.has(path))
