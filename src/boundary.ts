/**
 * The order of work at a boundary: barrier, revalidation, notices.
 *
 * @module dsh-live-workspace/boundary
 */
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import type { LiveWorkspaceConfig } from './config.ts'
import { sameSeen } from './ledger/ledger.ts'
import { type Action, type Before, classify, type Now } from './notice/classify.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  recoveredNotice,
  resumeReminder,
} from './notice/reminders.ts'
import { type Change, renderChanges, type RenderedNotice } from './notice/render.ts'
import { type Answer, Deadline, type Question, Revalidator } from './revalidate.ts'
import type { CoveredState, Reminder, SessionState } from './session.ts'

/** What a notice is about, as its message's source says. */
export type Category = 'changes' | 'coverage' | Reminder

/** A notice that is to be told, and the states that it covers. */
export interface Notice extends RenderedNotice {
  readonly category: Category
  readonly covered: readonly CoveredState[]
}

/** What a boundary has found to tell. */
export interface Outcome {
  readonly notices: readonly Notice[]
  /** Whether something is of use to a turn that is about to end. */
  readonly touchesUsed: boolean
}

/** What one boundary needs to know of its moment. */
export interface Moment {
  readonly fs: FileSystem
  readonly signal: AbortSignal
  /** The boundary is that before the end of a turn, where a notice costs a further step. */
  readonly turnEnds: boolean
  /** Whether the model can still see this event of the session log. */
  readonly visible: (seq: number) => boolean
  /** Whether the surface was rewritten since the last boundary. */
  readonly surfaceMoved: boolean
}

interface Finding {
  readonly key: string
  /** The path as the model knows it. */
  readonly path: string
  readonly used: boolean
  readonly now: Now
  readonly action: Action | undefined
  readonly pending: readonly { readonly path: string; readonly seq: number }[]
}

/** What is to be asked, with everything that waits for the answer. */
interface Subject {
  readonly question: Question
  /** Key of the committed observation, for a used target. */
  readonly usedKey: string | undefined
  readonly pending: { readonly path: string; readonly seq: number; readonly existed: boolean | undefined }[]
}

/** Share of the longest wait that is left for asking after a barrier that did not pass. */
const RESERVED_FOR_ASKING = 0.25

const REMINDERS: Readonly<Record<Reminder, RenderedNotice>> = {
  resume: resumeReminder,
  activation: activationReminder,
  compaction: compactionReminder,
}

/** Does the work of all boundaries of one plugin instance. */
export class Boundary {
  readonly #config: LiveWorkspaceConfig
  /** One per filesystem service: a provider may be replaced while sessions live. */
  readonly #revalidators = new WeakMap<object, Revalidator>()

  constructor(config: LiveWorkspaceConfig) {
    this.#config = config
  }

  /**
   * Find out what is to be told to a session. Nothing is consumed: that happens when a message that
   * covers it is in the log.
   */
  async examine(state: SessionState, moment: Moment): Promise<Outcome> {
    if (moment.surfaceMoved) state.receipts.forgetInvisible(moment.visible)
    const findings = await this.#look(state, moment)
    if (moment.signal.aborted) return { notices: [], touchesUsed: false }
    const changes = this.#changes(state, findings)
    const notices = [
      // No reason to keep a turn going: they wait for the next request.
      ...(moment.turnEnds ? [] : this.#reminders(state)),
      ...this.#coverage(state, moment.turnEnds),
      ...changes,
    ]
    return { notices, touchesUsed: findings.some((finding) => finding.used && finding.action !== undefined) }
  }

  async #look(state: SessionState, moment: Moment): Promise<Finding[]> {
    const { watch } = this.#config
    const deadline = new Deadline(watch.maxWaitMs, moment.signal)
    try {
      const answers = new Map<string, Promise<[Subject, Answer]>>()
      const revalidator = this.#revalidator(moment.fs)
      const ask = (id: string, subject: Subject) => {
        const asked = revalidator.ask(subject.question, deadline)
        answers.set(
          id,
          asked.then((answer) => [subject, answer]),
        )
      }
      const sweep = (keys: Iterable<string>) => {
        for (const key of keys) {
          const subject = answers.has(key) ? undefined : this.#usedSubject(state, key)
          if (subject) ask(key, subject)
        }
      }
      // The sweep of used files is sound without any watcher, so it runs beside the barrier.
      const live = state.reader?.coverage.kind === 'live'
      const full = moment.turnEnds || state.turn.fresh || !live
      sweep(state.unwatched)
      sweep(state.takeSweep(full ? Infinity : watch.sweepBudget))
      const limit = Math.ceil(watch.maxWaitMs * (1 - RESERVED_FOR_ASKING))
      const passed = (await state.reader?.barrier(limit, moment.signal)) ?? 'unclean'
      const slice = state.reader?.read()
      if (slice) state.absorb(slice, watch.maxJournalPaths)
      if (passed !== 'clean' || slice?.everything) sweep(state.takeSweep(Infinity))
      // What the watcher named is asked about anew, even if the sweep just did: it may be older.
      for (const [id, subject] of this.#dirtySubjects(state)) ask(id, subject)
      const settled = await Promise.all(answers.values())
      const rootIsGone = await this.#rootIsGone(state, settled, revalidator, deadline)
      const findings: Finding[] = []
      for (const [subject, answer] of settled) {
        // A workspace that is moved away for a while is not "every file deleted".
        const held = rootIsGone && isAbsent(answer) ? { kind: 'late' as const, target: answer.target } : answer
        const finding = this.#judge(state, subject, held)
        if (finding) findings.push(finding)
      }
      return findings
    } finally {
      deadline.cancel()
    }
  }

  /** Asked only when something is missing. */
  async #rootIsGone(
    state: SessionState,
    answers: readonly [Subject, Answer][],
    revalidator: Revalidator,
    deadline: Deadline,
  ): Promise<boolean> {
    if (!state.place || !answers.some(([, answer]) => isAbsent(answer))) return false
    const root = await revalidator.ask({ path: state.place.root }, deadline)
    return root.kind !== 'known' || root.now.kind !== 'present' || root.now.type !== 'directory'
  }

  #revalidator(fs: FileSystem): Revalidator {
    const known = this.#revalidators.get(fs)
    if (known) return known
    const made = new Revalidator(fs, this.#config.notice.statConcurrency)
    this.#revalidators.set(fs, made)
    return made
  }

  #usedSubject(state: SessionState, key: string): Subject | undefined {
    const entry = state.ledger.get(key)
    return entry && { question: this.#questionFor(state, key, entry.target), usedKey: key, pending: [] }
  }

  /** A target behind a link is resolved again: the link may lead elsewhere by now. */
  #questionFor(state: SessionState, key: string, target: FsTarget): Question {
    return state.isLinked(key) ? { path: target.displayPath } : { target }
  }

  #dirtySubjects(state: SessionState): Map<string, Subject> {
    const subjects = new Map<string, Subject>()
    const at = (id: string, make: () => Subject): Subject => {
      const subject = subjects.get(id) ?? make()
      subjects.set(id, subject)
      return subject
    }
    for (const [path, pending] of state.pending) {
      const entry = state.entryAt(path)
      const subject = entry
        ? at(entry.key, () => ({
            question: this.#questionFor(state, entry.key, entry.target),
            usedKey: entry.key,
            pending: [],
          }))
        : at(`path:${path}`, () => ({ question: { path }, usedKey: undefined, pending: [] }))
      subject.pending.push({ path, ...pending })
    }
    for (const [key, target] of state.doubtful) {
      const used = state.ledger.get(key)
      at(key, () => ({ question: { target }, usedKey: used?.key, pending: [] }))
    }
    return subjects
  }

  /** Settle what needs no word; return what may need one. */
  #judge(state: SessionState, subject: Subject, answer: Answer): Finding | undefined {
    const entry = subject.usedKey === undefined ? undefined : state.ledger.get(subject.usedKey)
    if (answer.kind === 'late') {
      if (entry) state.doubtful.set(entry.key, entry.target)
      return undefined
    }
    const now: Now = answer.kind === 'known' ? answer.now : { kind: 'unverified' }
    const key = entry?.key ?? (answer.target ? String(answer.target.targetKey) : undefined)
    if (key === undefined) return undefined
    const used = entry ?? state.ledger.get(key)
    const word = state.receipts.lastWord(key)
    const told = word?.kind === 'unverified' && now.kind !== 'unverified' ? undefined : word
    const before: Before = told ?? used?.seen
    // Known at its first event: a path that was there before is not one that just appeared.
    const existed = subject.pending[0]?.existed
    const unusedWhileStarting = !used && state.reader?.coverage.kind === 'starting'
    // A target in doubt that the session never used and no event named is not known to have changed.
    const unmet = !used && before === undefined && subject.pending.length === 0
    const action =
      unusedWhileStarting || unmet ? undefined : classify(used !== undefined, before, existed, now)
    if (now.kind === 'unverified') {
      if (used) state.doubtful.set(key, used.target)
    } else if (!unusedWhileStarting && action === undefined) {
      state.doubtful.delete(key)
      for (const { path, seq } of subject.pending) state.settlePath(path, seq)
      if (used && sameSeen(used.seen, now)) state.receipts.forget(key)
    }
    const path = state.shown(used?.target.displayPath ?? subjectPath(subject, answer) ?? key)
    return { key, path, used: used !== undefined, now, action, pending: subject.pending }
  }

  #changes(state: SessionState, findings: readonly Finding[]): Notice[] {
    const changes: Change[] = []
    const covered: CoveredState[] = []
    const named = new Set<string>()
    for (const { key, path, used, now, action, pending } of findings) {
      if (action === undefined) continue
      covered.push({ key, state: now }, ...pending.map(({ path, seq }) => ({ key, state: now, path, seq })))
      if (named.has(key)) continue
      named.add(key)
      changes.push({ action, path, used })
    }
    if (changes.length === 0 && state.unlisted === 0) return []
    if (state.unlisted > 0)
      covered.push({ key: UNLISTED, state: { kind: 'present', version: String(state.unlisted) } })
    return [{ category: 'changes', covered, ...renderChanges(changes, state.unlisted, this.#config.notice) }]
  }

  #reminders(state: SessionState): Notice[] {
    return [...state.reminders]
      .filter((reminder) => state.receipts.lastWord(reminderKey(reminder)) === undefined)
      .map((reminder) => ({
        category: reminder,
        covered: [{ key: reminderKey(reminder), state: { kind: 'present', version: 'due' } as const }],
        ...REMINDERS[reminder],
      }))
  }

  #coverage(state: SessionState, turnEnds: boolean): Notice[] {
    const coverage = state.reader?.coverage
    const word = state.receipts.lastWord(COVERAGE)
    const told = word?.kind === 'present' ? word.version : LIVE
    const next =
      coverage?.kind === 'degraded' ? coverage.fault.code : coverage?.kind === 'live' ? LIVE : undefined
    if (next === undefined || next === told || (turnEnds && next === LIVE)) return []
    const rendered = coverage?.kind === 'degraded' ? degradedNotice(coverage.fault) : recoveredNotice
    const covered = [{ key: COVERAGE, state: { kind: 'present', version: next } as const }]
    return [{ category: 'coverage', covered, ...rendered }]
  }
}

const COVERAGE = 'notice:coverage'
const UNLISTED = 'notice:unlisted'
const LIVE = 'live'

const isAbsent = (answer: Answer): boolean => answer.kind === 'known' && answer.now.kind === 'absent'

const reminderKey = (reminder: Reminder): string => `notice:${reminder}`

const subjectPath = (subject: Subject, answer: Answer): string | undefined =>
  'path' in subject.question ? subject.question.path : answer.target?.displayPath

/**
 * A message is in the session log: what it covers is told.
 * @param covered - what {@link SessionState.receipts} had on its way.
 */
export const settleCovered = (state: SessionState, covered: readonly CoveredState[]): void => {
  for (const { key, path, seq, state: told } of covered) {
    if (path !== undefined && seq !== undefined) state.settlePath(path, seq)
    if (told?.kind !== 'unverified') state.doubtful.delete(key)
    if (key === UNLISTED && told?.kind === 'present') state.unlisted -= Number(told.version)
    for (const reminder of state.reminders) {
      if (key !== reminderKey(reminder)) continue
      state.reminders.delete(reminder)
      state.receipts.forget(key)
    }
  }
}
