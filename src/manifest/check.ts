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
const BATCH = 128

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

/**
 * Check everything that no boundary has checked yet. What turns out to be another is looked at again by
 * the boundary that tells it.
 */
export const checkRest = async (state: SessionState, work: CheckWork): Promise<void> => {
  const { fs, signal, renewGuard, maxWaitMs, ask, renew } = work
  const going = () => !signal.aborted && !state.disposed && state.recall !== undefined
  const check = async (keys: readonly string[]): Promise<void> => {
    const deadline = new Deadline(maxWaitMs, signal)
    const subjects = keys.flatMap((key) => subjectOfKey(state, key) ?? [])
    const answers = await Promise.all(subjects.map(async (subject) => ask(subject, deadline)))
    deadline.cancel()
    if (!going()) return
    for (const [subject, answer, comparison] of answers) {
      const standing = standingOf(subject, answer, comparison)
      // A read of the model has come first.
      if (state.ledger.get(subject.used?.key ?? '') !== subject.used) continue
      if (standing === 'same' && comparison && comparison !== 'late') renew(subject, comparison)
      noteStanding(state, subject, answer, standing, renewGuard)
      if (standing === undefined && subject.used) state.doubt([subject.used.target])
    }
  }
  for (let recall = state.recall; recall && recall.queue.length > 0 && going(); recall = state.recall) {
    await check(takeUp(state, recall, fs, BATCH))
    await nextTurn()
  }
  if (!going()) return
  await check(state.recall?.keys('waiting') ?? [])
  // The next boundary asks again, and says what cannot be found out.
  for (const key of state.recall?.keys('waiting') ?? []) if (going()) state.recall?.stand(key, 'moved')
}
