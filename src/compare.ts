/**
 * Whether a used file whose version moved holds something else now.
 *
 * @module dsh-live-workspace/compare
 */
import type { Contents } from './contents.ts'
import type { Content } from './ledger/content.ts'
import type { Answer, Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'
import type { Subject } from './subjects.ts'

/** Contents behind two versions of one file. */
export interface Comparison {
  /** What the session saw. */
  readonly before: Content
  /** What is there now. */
  readonly now: Content
}

/**
 * Compare what a session saw of a file with what is there now.
 * @returns `undefined` when the version did not move, or when one of the contents could not be read.
 */
export const compare = async (
  state: SessionState,
  contents: Contents,
  subject: Subject,
  answer: Answer,
  deadline: Deadline,
): Promise<Comparison | undefined> => {
  const { used } = subject
  if (!used || used.seen.kind !== 'present' || answer.kind !== 'known') return undefined
  if (answer.now.kind !== 'present' || answer.now.type !== 'file') return undefined
  if (answer.now.version === used.seen.version) return undefined
  const before = await contents.seen(state, used.key, used.seen.version, deadline)
  if (!before) return undefined
  const now = await contents.now(state, used.key, answer.target, answer.now.version, deadline)
  return now && { before, now }
}
