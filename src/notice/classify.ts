/**
 * What a revalidated path means to one session. Pure.
 *
 * @module dsh-live-workspace/notice/classify
 */
import { type Seen, sameSeen } from '../ledger/ledger.ts'

/** What the filesystem service says about a target now. */
export type Now =
  | { readonly kind: 'present'; readonly version: string; readonly type: 'file' | 'directory' | 'other' }
  | { readonly kind: 'absent' }
  /** The service failed or did not answer; which is never the same as absent. */
  | { readonly kind: 'unverified' }

/** What the session can take to be the last word on a target. */
export type Before = Seen | { readonly kind: 'unverified' } | undefined

export type Action =
  | 'created'
  | 'modified'
  | 'deleted'
  | 'unverified'
  /** Told to be another, it is as the session saw it again. */
  | 'restored'
  /** What the session's own last write changed is as it was before. */
  | 'undone'

/**
 * Compare.
 * @param used - whether the session has read or written the target.
 * @param before - what it last saw or was told; `undefined` for a path that it never met.
 * @param existed - whether the path was there before, as far as the watcher knows.
 * @returns what to tell, or `undefined` for nothing.
 */
export const classify = (
  used: boolean,
  before: Before,
  existed: boolean | undefined,
  now: Now,
): Action | undefined => {
  if (now.kind === 'unverified') return used && before?.kind !== 'unverified' ? 'unverified' : undefined
  if (before === undefined || before.kind === 'unverified') {
    if (now.kind === 'absent') return existed === true || before ? 'deleted' : undefined
    if (now.type !== 'file' && !before) return undefined
    return existed === false ? 'created' : 'modified'
  }
  if (now.kind === 'absent') return before.kind === 'absent' ? undefined : 'deleted'
  if (before.kind === 'absent') return now.type === 'file' ? 'created' : undefined
  return sameSeen(before, now) ? undefined : 'modified'
}
