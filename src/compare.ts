/**
 * Whether a used file whose version moved holds something else now.
 *
 * @module dsh-live-workspace/compare
 */
import type { FsTarget } from '@deepseek-ai/dsh-fs'
import type { Contents } from './contents.ts'
import type { Content } from './ledger/content.ts'
import type { Answer, Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'
import type { Subject } from './subjects.ts'

/** Contents behind two versions of one file. */
export interface Comparison {
  /** What the session saw. */
  readonly before: Content
  /** What is there now; of the same version where the clock was too coarse to tell. */
  readonly now: Content
}

/**
 * Compare what a session saw of a file with what is there now.
 * @param resolve - resolves a path through the filesystem service.
 * @param racyWindowMs - time after a reading within which an event counts although the version is equal.
 * @returns `undefined` when the version did not move or one of the contents cannot be read; `late` when
 *   that could not be found out in time.
 */
export const compare = async (
  state: SessionState,
  contents: Contents,
  subject: Subject,
  answer: Answer,
  resolve: (path: string) => Promise<FsTarget>,
  racyWindowMs: number,
  deadline: Deadline,
): Promise<Comparison | 'late' | undefined> => {
  const { used } = subject
  if (!used || used.seen.kind !== 'present' || answer.kind !== 'known') return undefined
  if (answer.now.kind !== 'present' || answer.now.type !== 'file') return undefined
  if (answer.now.version === used.seen.version)
    return compareSameVersion(state, contents, subject, racyWindowMs, deadline)
  const before = await contents.seen(state, used.key, used.seen.version, deadline)
  if (!before) return deadline.expired ? 'late' : undefined
  // A link may have been put in its place: then what is read there is not the file that was seen.
  const target = await Promise.race([
    // What cannot be resolved is not compared; the change is told as such.
    resolve(used.target.displayPath).catch(() => 'unknown' as const),
    deadline.reached,
  ])
  if (target === undefined) return 'late'
  if (target === 'unknown') return undefined
  if (String(target.targetKey) !== used.key) return undefined
  const now = await contents.now(state, used.key, used.target, answer.now.version, deadline)
  if (!now) return deadline.expired ? 'late' : undefined
  return { before, now }
}

/** Two writes within one tick of a filesystem's clock have one version: after an event, content decides. */
const compareSameVersion = async (
  state: SessionState,
  contents: Contents,
  { used, waiting }: Subject,
  racyWindowMs: number,
  deadline: Deadline,
): Promise<Comparison | undefined> => {
  const at = waiting.at(-1)?.at
  if (!used || used.seen.kind !== 'present' || at === undefined) return undefined
  const before = state.shelf.at(used.key, used.seen.version)
  if (!before || at <= before.readAt || at - before.readAt > racyWindowMs) return undefined
  const now = await contents.again(used.target, used.seen.version, deadline)
  return now && now.digest !== before.digest ? { before, now } : undefined
}
