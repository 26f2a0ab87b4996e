/**
 * One change as one line of a notice. Pure.
 *
 * @module dsh-live-workspace/notice/line
 */
import type { Action } from './classify.ts'
import { quotePath } from './escape.ts'
import type { Difference } from './hunk.ts'

/** One change as it is told. */
export interface Change {
  /** Identity of the target, where the caller wants to know it again. */
  readonly key?: string
  /** It is only counted: what became of it could not be found out in time. */
  readonly uncertain?: boolean | undefined
  readonly action: Action | 'moved'
  /** Path as the model knows it: relative to the session's cwd where that is possible. */
  readonly path: string
  /** Whether this session has read or written the file. */
  readonly used: boolean
  /** Where a moved file is now. */
  readonly to?: string | undefined
  /** What changed in it, where that may be shown. */
  readonly difference?: Difference | undefined
  /** Who changed it, where that is known. */
  readonly by?: string | undefined
  /** It changed while a command of this session ran. */
  readonly ownCommand?: boolean
  /** It lies in a directory of which the session has used a file. */
  readonly near?: boolean
  /** A directory stands where a file was. */
  readonly isDirectory?: boolean
  /** It was made by this session. */
  readonly ownFile?: boolean
  /** States that went by untold since the last word on it. */
  readonly untold?: number
  /** Files of a moved directory that are not told one by one. */
  readonly alongside?: number
}

const VERB: Readonly<Record<Change['action'], string>> = {
  created: 'created',
  modified: 'modified',
  deleted: 'deleted',
  moved: 'moved',
  unverified: 'could not verify',
  restored: 'again as this session saw it:',
  undone: 'no longer holds what this session wrote, but what was there before:',
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

/** What a difference adds to the line of its file. */
const differenceRemark = (difference: Difference | undefined): string | undefined => {
  switch (difference?.kind) {
    case undefined:
      return undefined
    case 'encoding':
      return `only ${difference.what}`
    case 'binary':
      return 'binary or not UTF-8 now'
    case 'rewritten':
      return `${difference.before} → ${difference.after} lines`
    case 'counts':
      return `+${difference.added} −${difference.removed} lines`
    case 'hunk': {
      const encoding = difference.encoding === undefined ? '' : `, ${difference.encoding}`
      return `+${difference.added} −${difference.removed} lines${encoding}`
    }
  }
}

/** The line of a change, without a line break. @param maxPathBytes - size in bytes of each path in it. */
export const lineOf = (change: Change, maxPathBytes: number): string => {
  const { action, path, to, by, used, ownCommand, untold = 0, alongside = 0 } = change
  const remarks = [
    differenceRemark(change.difference),
    alongside > 0 ? `with ${plural(alongside, 'more path')}` : undefined,
    change.isDirectory ? 'now a directory' : undefined,
    change.ownFile ? 'made by this session' : undefined,
    by === undefined ? undefined : `by ${by}`,
    used && ownCommand ? 'while a command of this session ran, other writers are possible' : undefined,
    untold > 0 ? `keeps changing, ${plural(untold, 'state')} in between` : undefined,
  ].filter((remark) => remark !== undefined)
  const target = to === undefined ? '' : ` → ${quotePath(to, maxPathBytes)}`
  const remark = remarks.length > 0 ? ` (${remarks.join('; ')})` : ''
  return `- ${VERB[action]} ${quotePath(path, maxPathBytes)}${target}${remark}`
}

/** One change in a few words, for a person. */
export const inShort = (change: Change): string =>
  `${VERB[change.action].replace(/:$/, '')} ${quotePath(change.path, 80)}`
