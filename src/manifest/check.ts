/**
 * Checking remembered files: as part of a boundary, and beside the model's work for what is left.
 *
 * @module dsh-live-workspace/manifest/check
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import type { Comparison } from '../compare.ts'
import { sameSeen } from '../ledger/ledger.ts'
import { type Answer, Deadline } from '../revalidate.ts'
import type { SessionState } from '../session.ts'
import { type Subject, subjectOfKey } from '../subjects.ts'
import type { Standing } from './recall.ts'
import { takeUp } from './snapshot.ts'

/** Tells the host's guard that this version is what the session saw. */
export type RenewGuard = (target: FsTarget, version: string) => void

/** Take note of how a remembered file stands. @param standing - nothing where it could not be found out. */
export const noteStanding = (
  state: SessionState,
  { used }: Subject,
  answer: Answer,
  standing: Standing | undefined,
  renewGuard: RenewGuard,
): void => {
  const { recall } = state
  if (!used || recall?.standing.has(used.key) !== true) return
  if (standing === undefined) {
    // That it cannot be verified is told as such, of this file like of all others.
    recall.forget(used.key)
    return
  }
  recall.stand(used.key, standing)
  // Its version may be the one that was seen in an earlier process, of which the guard knows nothing.
  if (standing === 'same' && answer.kind === 'known' && answer.now.kind === 'present') {
    renewGuard(used.target, answer.now.version)
  }
}

/** What the check of files beside the model's work needs. */
export interface CheckWork {
  readonly fs: FileSystem
  /** Ends the work. */
  readonly signal: AbortSignal
  readonly renewGuard: RenewGuard
  /** Longest wait in ms for one batch. */
  readonly maxWaitMs: number
  readonly ask: (
    subject: Subject,
    deadline: Deadline,
  ) => Promise<readonly [Subject, Answer, Comparison | 'late' | undefined]>
  /** The content is equal under another version. */
  readonly renew: (subject: Subject, comparison: Comparison) => void
}

/** Files checked before everything else gets its turn. */
const BATCH = 64

const standingOf = (
  { used }: Subject,
  answer: Answer,
  comparison: Comparison | 'late' | undefined,
): Standing | undefined => {
  if (answer.kind === 'late' || comparison === 'late') return 'waiting'
  if (answer.kind === 'failed') return undefined
  if (comparison) return comparison.before.digest === comparison.now.digest ? 'same' : 'moved'
  return sameSeen(used?.seen, answer.now) ? 'same' : 'moved'
}

/** Check files that were taken up. */
const check = async (state: SessionState, keys: readonly string[], work: CheckWork): Promise<void> => {
  const deadline = new Deadline(work.maxWaitMs, work.signal)
  const subjects = keys.flatMap((key) => subjectOfKey(state, key) ?? [])
  const answers = await Promise.all(subjects.map(async (subject) => work.ask(subject, deadline)))
  deadline.cancel()
  if (work.signal.aborted || state.disposed) return
  for (const [subject, answer, comparison] of answers) {
    // A read of the model has come first.
    if (state.ledger.get(subject.used?.key ?? '') !== subject.used) continue
    const standing = standingOf(subject, answer, comparison)
    if (standing === 'same' && comparison && comparison !== 'late') work.renew(subject, comparison)
    noteStanding(state, subject, answer, standing, work.renewGuard)
    if (standing === undefined && subject.used) state.doubt([subject.used.target])
  }
}

/**
 * Check the files used last, one batch at least, further ones within a time.
 * @param mostFiles - how many at most.
 * @param mostMs - time in ms after which no further batch begins.
 * @returns the keys of what was checked.
 */
export const checkFirst = async (
  state: SessionState,
  work: CheckWork,
  mostFiles: number,
  mostMs: number,
): Promise<Set<string>> => {
  const until = performance.now() + mostMs
  const checked = new Set<string>()
  for (let left = mostFiles; left > 0; left -= BATCH) {
    const { recall } = state
    if (!recall || recall.queue.length === 0 || work.signal.aborted) break
    const keys = takeUp(state, recall, work.fs, Math.min(left, BATCH))
    await check(state, keys, work)
    for (const key of keys) checked.add(key)
    if (performance.now() >= until) break
  }
  return checked
}

/**
 * Check everything that no boundary has checked yet. What turns out to be another is looked at again by
 * the boundary that tells it.
 */
export const checkRest = async (state: SessionState, work: CheckWork): Promise<void> => {
  const going = () => !work.signal.aborted && !state.disposed && state.recall !== undefined
  for (let recall = state.recall; recall && recall.queue.length > 0 && going(); recall = state.recall) {
    await check(state, takeUp(state, recall, work.fs, BATCH), work)
    await nextTurn()
  }
  if (!going()) return
  await check(state, state.recall?.keys('waiting') ?? [], work)
  // The next boundary asks again, and says what cannot be found out.
  for (const key of state.recall?.keys('waiting') ?? []) if (going()) state.recall?.stand(key, 'moved')
}
