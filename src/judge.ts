/**
 * What the answers of one boundary mean to one session.
 *
 * @module dsh-live-workspace/judge
 */
import { sameSeen } from './ledger/ledger.ts'
import { type Action, type Before, classify, type Now } from './notice/classify.ts'
import type { Answer } from './revalidate.ts'
import type { CoveredState, SessionState } from './session.ts'
import type { Subject } from './subjects.ts'

/** One target that something is to be told of. */
export interface Finding {
  readonly key: string
  /** The path as the model knows it. */
  readonly path: string
  readonly used: boolean
  readonly action: Action
  /** What a message that tells it covers. */
  readonly covers: readonly CoveredState[]
}

/** Key of the word that a target could not be verified: it stands beside what was told of its state. */
const unverifiedKey = (key: string): string => `unverified:${key}`

/** Whether the target is missing, as far as the service says. */
export const isAbsent = (answer: Answer): boolean => answer.kind === 'known' && answer.now.kind === 'absent'

/** Nothing is known of a file while its whole workspace is away; a used one is asked about again. */
export const hold = (state: SessionState, { used, waiting }: Subject): void => {
  if (used) state.doubtful.set(used.key, used.target)
  for (const { path, seq } of waiting) state.settlePath(path, seq)
}

/**
 * Judge one answer: settle what needs no word, return what does.
 * @returns `undefined` when there is nothing to tell, or nothing to tell yet.
 */
export const judge = (state: SessionState, subject: Subject, answer: Answer): Finding | undefined => {
  if (answer.kind === 'late') {
    if (subject.used) state.doubtful.set(subject.used.key, subject.used.target)
    return undefined
  }
  const key = subject.used?.key ?? (answer.target && String(answer.target.targetKey))
  if (key === undefined) return undefined
  const used = subject.used ?? state.ledger.get(key)
  const asked = 'path' in subject.question ? subject.question.path : answer.target?.displayPath
  const finding = (action: Action, toldKey: string, now: Now): Finding => ({
    key,
    path: state.shown(used?.target.displayPath ?? asked ?? key),
    used: used !== undefined,
    action,
    covers: [
      { key: toldKey, state: now },
      ...subject.waiting.map(({ path, seq }) => ({ key: toldKey, state: now, path, seq })),
    ],
  })
  const unverifiedWord = state.receipts.lastWord(unverifiedKey(key))
  const lastState: Before = state.receipts.lastWord(key) ?? used?.seen
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
  const action = met ? classify(used !== undefined, lastState, subject.waiting[0]?.existed, now) : undefined
  if (action) return finding(action, key, now)
  state.doubtful.delete(key)
  for (const { path, seq } of subject.waiting) state.settlePath(path, seq)
  if (used && sameSeen(used.seen, now)) state.receipts.forget(key)
  return undefined
}
