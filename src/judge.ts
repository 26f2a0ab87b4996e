/**
 * What the answers of one boundary mean to one session.
 *
 * @module dsh-live-workspace/judge
 */
import type { Comparison } from './compare.ts'
import { type LedgerEntry, sameSeen } from './ledger/ledger.ts'
import { type Action, type Before, classify, type Now } from './notice/classify.ts'
import type { Answer } from './revalidate.ts'
import type { CoveredState, SessionState } from './session.ts'
import type { Subject } from './subjects.ts'
import type { FsTarget } from '@deepseek-ai/dsh-fs'

/** One target that something is to be told of. */
export interface Finding {
  readonly key: string
  /** The path as the model knows it. */
  readonly path: string
  /** Every absolute path under which it was met. */
  readonly paths: readonly string[]
  /** The committed observation, for a target that the session has used. */
  readonly used: LedgerEntry<FsTarget> | undefined
  readonly action: Action
  /** Version that the session last saw or was told; `absent`; `undefined` for a path that it never met. */
  readonly before: string | undefined
  readonly now: Now
  /** The target as the service resolved it. */
  readonly target: FsTarget | undefined
  /** Times in ms of the events for it that are open; empty where none came. */
  readonly times: readonly number[]
  readonly comparison: Comparison | undefined
  /** Only that something happened is known: it is counted, not named. */
  readonly uncertain?: boolean
  /** What a message that tells it covers. */
  readonly covers: readonly CoveredState[]
}

/** Key of the word that a target could not be verified: it stands beside what was told of its state. */
const unverifiedKey = (key: string): string => `unverified:${key}`

const versionOf = (before: Before, existed: boolean | undefined): string | undefined => {
  if (before?.kind === 'present') return before.version
  return before?.kind === 'absent' || (before === undefined && existed === false) ? 'absent' : undefined
}

/** Whether the target is missing, as far as the service says. */
export const isAbsent = (answer: Answer): boolean => answer.kind === 'known' && answer.now.kind === 'absent'

/** Stands for bytes that are no UTF-8. */
const REPLACEMENT = '\uFFFD'

/** Something happened to an unused path, and more than that could not be found out in time. */
const uncertain = (state: SessionState, { waiting }: Subject): Finding | undefined => {
  const first = waiting[0]
  if (!first || state.reader?.coverage.kind === 'starting') return undefined
  return {
    key: `path:${first.path}`,
    path: state.shown(first.path),
    paths: waiting.map(({ path }) => path),
    used: undefined,
    action: 'modified',
    before: undefined,
    now: { kind: 'unverified' },
    target: undefined,
    times: waiting.flatMap(({ times }) => times),
    comparison: undefined,
    uncertain: true,
    covers: waiting.map(({ path, seq }) => ({
      key: `path:${path}`,
      state: { kind: 'unverified' },
      path,
      seq,
    })),
  }
}

/** A path of which only the change counts: nobody asks what has become of it. */
export const countOnly = (state: SessionState, subject: Subject): readonly Finding[] => {
  const finding = uncertain(state, subject)
  return finding ? [finding] : []
}

/** Another content under the version that was seen; unless just that was told. */
const sameVersionAction = (state: SessionState, key: string, { now }: Comparison): Action | undefined =>
  state.receipts.lastWord(key) !== undefined || state.toldDigests.get(key) === now.digest
    ? undefined
    : 'modified'

/** Nothing is known of a file while its whole workspace is away; a used one is asked about again. */
export const hold = (state: SessionState, { used, waiting }: Subject): void => {
  if (used) state.doubtful.set(used.key, used.target)
  for (const { path, seq } of waiting) state.settlePath(path, seq)
}

/** What to tell of a used file whose content differs from what the session saw. */
const actionFor = (
  state: SessionState,
  key: string,
  action: Action | undefined,
  now: Now,
  comparison: Comparison | undefined,
): Action | undefined => {
  const digestBefore = state.beforeOwnWrite.get(key)
  if (now.kind === 'absent') return action
  if (action !== 'modified' || !comparison) return action
  // The same content as was told, under another version.
  if (state.toldDigests.get(key) === comparison.now.digest && state.receipts.lastWord(key) !== undefined) {
    return undefined
  }
  return digestBefore === comparison.now.digest ? 'undone' : action
}

/**
 * Judge one answer: settle what needs no word, return what does.
 * @returns `undefined` when there is nothing to tell, or nothing to tell yet.
 */
export const judge = (
  state: SessionState,
  subject: Subject,
  answer: Answer,
  comparison: Comparison | undefined,
): Finding | undefined => {
  if (answer.kind === 'late') {
    if (subject.used) state.doubtful.set(subject.used.key, subject.used.target)
    return subject.used ? undefined : uncertain(state, subject)
  }
  const key =
    subject.used?.key ??
    (answer.target ? String(answer.target.targetKey) : undefined) ??
    (answer.kind === 'known' && 'path' in subject.question ? subject.question.path : undefined)
  if (key === undefined) return undefined
  const used = state.ledger.get(key)
  const asked = 'path' in subject.question ? subject.question.path : answer.target?.displayPath
  const finding = (action: Action, toldKey: string, now: Now): Finding => ({
    key,
    path: used ? state.shownTarget(key, used.target) : state.shown(asked ?? key),
    paths: [key, asked, used?.target.displayPath, ...subject.waiting.map(({ path }) => path)].filter(
      (path) => path !== undefined,
    ),
    used,
    action,
    before: versionOf(state.receipts.lastWord(key) ?? used?.seen, subject.waiting[0]?.existed),
    now,
    target: answer.target,
    times: subject.waiting.flatMap(({ times }) => times),
    comparison,
    covers: [
      { key: toldKey, state: now, digest: comparison?.now.digest },
      ...subject.waiting.map(({ path, seq }) => ({ key: toldKey, state: now, path, seq })),
    ],
  })
  const unverifiedWord = state.receipts.lastWord(unverifiedKey(key))
  const told = state.receipts.lastWord(key)
  const lastState: Before = told ?? used?.seen
  if (answer.kind === 'failed') {
    if (used) state.doubtful.set(key, used.target)
    const now: Now = { kind: 'unverified' }
    const action = classify(used !== undefined, unverifiedWord ?? lastState, undefined, now)
    return action && finding(action, unverifiedKey(key), now)
  }
  const { now } = answer
  state.receipts.forget(unverifiedKey(key))
  // While the first scan runs, nobody can say what an event of an unused file means.
  if (!used && state.reader?.coverage.kind === 'starting') return undefined
  // A target in doubt that the session never used and no event named is not known to have changed.
  const met = used !== undefined || lastState !== undefined || subject.waiting.length > 0
  const plain = met ? classify(used !== undefined, lastState, subject.waiting[0]?.existed, now) : undefined
  const racy =
    comparison !== undefined &&
    comparison.before.version === comparison.now.version &&
    comparison.before.digest !== comparison.now.digest
  const asSeen = used !== undefined && sameSeen(used.seen, now) && !racy
  if (!used && plain === 'deleted' && asked?.includes(REPLACEMENT) === true) return uncertain(state, subject)
  const differs = racy && !plain ? sameVersionAction(state, key, comparison) : plain
  const action =
    asSeen && differs ? 'restored' : used ? actionFor(state, key, differs, now, comparison) : differs
  if (action) return finding(action, key, now)
  // A name that is not UTF-8 cannot be asked about: all that is known is that something happened to it.
  if (!used && now.kind === 'absent' && asked?.includes(REPLACEMENT) === true && subject.waiting.length > 0) {
    return uncertain(state, subject)
  }
  // What is only on its way may get lost; it is settled when it is in the log.
  if (state.receipts.isTravelling(key)) return undefined
  state.doubtful.delete(key)
  for (const { path, seq } of subject.waiting) state.settlePath(path, seq)
  if (asSeen) state.receipts.forget(key)
  else if (plain) state.receipts.restate(key, now)
  return undefined
}
