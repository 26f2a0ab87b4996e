/**
 * What is to be asked at a boundary, with everything that waits for the answer.
 *
 * @module dsh-live-workspace/subjects
 */
import type { LedgerEntry } from './ledger/ledger.ts'
import type { FsTarget } from '@deepseek-ai/dsh-fs'
import type { Question } from './revalidate.ts'
import type { SessionState } from './session.ts'

/** A journal path that waits for an answer. */
export interface Waiting {
  readonly path: string
  readonly seq: number
  readonly existed: boolean | undefined
  /** Time in ms of the latest event. */
  readonly at: number
  /** Times in ms of the open events. */
  readonly times: readonly number[]
}

/** One question. */
export interface Subject {
  readonly question: Question
  /** The committed observation, for a target that the session has used. */
  readonly used: LedgerEntry<FsTarget> | undefined
  readonly waiting: Waiting[]
}

/** The question about a used target; behind a link it is resolved again: the link may lead elsewhere. */
const usedSubject = (state: SessionState, used: LedgerEntry<FsTarget>): Subject => ({
  question: state.isLinked(used.key) ? { path: used.target.displayPath } : { target: used.target },
  used,
  waiting: [],
})

/** The subject of a committed observation, if there is one with this key. */
export const subjectOfKey = (state: SessionState, key: string): Subject | undefined => {
  const used = state.ledger.get(key)
  return used && usedSubject(state, used)
}

/** Everything that events and lost results have put in doubt, by an id of its own. */
export const dirtySubjects = (state: SessionState): Map<string, Subject> => {
  const subjects = new Map<string, Subject>()
  const at = (id: string, make: () => Subject): Subject => {
    const subject = subjects.get(id) ?? make()
    subjects.set(id, subject)
    return subject
  }
  for (const [path, pending] of state.pending) {
    const used = state.entryAt(path)
    const subject = used
      ? at(used.key, () => usedSubject(state, used))
      : at(`path:${path}`, () => ({ question: { path }, used: undefined, waiting: [] }))
    subject.waiting.push({ path, ...pending })
  }
  for (const [key, target] of state.doubtful) {
    const used = state.ledger.get(key)
    at(key, () => (used ? usedSubject(state, used) : { question: { target }, used, waiting: [] }))
  }
  return subjects
}
