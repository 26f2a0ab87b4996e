/**
 * The message about the files that a session had seen before it was continued. Pure.
 *
 * @module dsh-live-workspace/notice/resume
 */
import { bytesOf, quotePath } from './escape.ts'
import { type Change, lineOf, plural } from './line.ts'
import { frame, type RenderedNotice } from './render.ts'

/** What is known of the files of a continued session. */
export interface ResumeFacts {
  /**
   * `resumed`: the session was not running for a while; `continued`: its conversation was taken over while
   * running; `rest`: further files than those that an earlier message spoke of.
   */
  readonly origin: 'resumed' | 'continued' | 'rest'
  /** What is not as the session saw it last, or is so again. */
  readonly changes: readonly Change[]
  /** Files that are unchanged and that the model still sees. */
  readonly unchanged: number
  /** Files that are unchanged and whose text has left the conversation, at least in part. */
  readonly unseen: number
  /** Paths of files of which it is not known what the session saw. */
  readonly unknown: readonly string[]
  /** Files that are not checked yet. */
  readonly unchecked: number
}

/** Bounds of one message. */
export interface ResumeLimits {
  readonly maxResumePaths: number
  /** In bytes, frame included. */
  readonly maxResumeBytes: number
  /** In bytes, for one path. */
  readonly maxPathBytes: number
}

const INTRO: Readonly<Record<ResumeFacts['origin'], string>> = {
  resumed: 'This session was resumed. The files that it had read or written were checked.',
  continued: 'The files that this session had read or written so far were checked.',
  rest: 'The files of this session that were still to be checked were checked.',
}

const ALL: Readonly<Record<ResumeFacts['origin'], (files: string) => string>> = {
  resumed: (files) => `This session was resumed. ${files} that it had read or written`,
  continued: (files) => `${files} that this session had read or written so far`,
  rest: (files) => `${files} of this session that were still to be checked`,
}

const be = (count: number): string => (count === 1 ? 'is' : 'are')

const unchangedLine = (count: number, others: string): string =>
  `${plural(count, others)} ${be(count)} unchanged: what this conversation shows of ${count === 1 ? 'it' : 'them'} is still true, without a new read.`

const unseenLine = (count: number, others: string): string =>
  `${plural(count, others)} ${be(count)} unchanged too, but no longer shown in full in this conversation: read one only where the next step needs its text.`

const uncheckedLine = (count: number, others: string): string =>
  `${plural(count, others)} ${be(count)} still being checked, and may have changed: until the result comes, read one again before you edit it or rely on it.`

const CHANGED = 'Not as this session last saw them:'
const FOOT = 'Read such a file again before you edit it or rely on it. Read only what the next step needs.'

/** What is not named, by kind. */
const restLine = (rest: readonly Change[]): string => {
  const counts = new Map<string, number>()
  for (const { action } of rest) counts.set(action, (counts.get(action) ?? 0) + 1)
  const parts = Array.from(counts, ([action, count]) => `${count} ${action}`)
  return `- ${rest.length} more: ${parts.join(', ')}`
}

const summaryOf = ({ changes, unchanged, unseen, unknown, unchecked }: ResumeFacts): string => {
  const parts = [
    changes.length > 0 ? `${changes.length} changed` : undefined,
    unchanged + unseen > 0 ? `${unchanged + unseen} unchanged` : undefined,
    unknown.length > 0 ? `${unknown.length} unknown` : undefined,
    unchecked > 0 ? `${unchecked} still being checked` : undefined,
  ].filter((part) => part !== undefined)
  return `files of this session: ${parts.join(', ')}`
}

const allUnchanged = ({ origin, unchanged, unseen }: ResumeFacts): string => {
  const count = unchanged + unseen
  const files = count === 1 ? 'The one file' : `All ${count} files`
  const hidden =
    unseen === 0
      ? 'no new read is needed.'
      : unseen === count
        ? 'no longer shown in full in this conversation, so read one only where the next step needs its text.'
        : `${unseen} no longer shown in full in this conversation, so read one of these only where the next step needs its text.`
  return `${ALL[origin](files)} ${be(count)} unchanged${unseen === 0 ? ':' : ','} ${hidden}`
}

/** Whether everything is as the session saw it. */
export const nothingChanged = ({ changes, unknown, unchecked }: ResumeFacts): boolean =>
  changes.length + unknown.length + unchecked === 0

/**
 * Render the message. Changed files come first, then unknown ones; whatever is not named is counted.
 * @returns a text within `maxResumeBytes` and at most `maxResumePaths` named paths.
 */
export const renderResume = (facts: ResumeFacts, limits: ResumeLimits): RenderedNotice => {
  const summary = summaryOf(facts)
  if (nothingChanged(facts)) return { text: frame([allUnchanged(facts)]), summary }
  const { origin, changes, unchanged, unseen, unknown, unchecked } = facts
  const others = changes.length > 0 ? 'other' : 'file'
  const counts = [
    ...(unchanged > 0 ? [unchangedLine(unchanged, others)] : []),
    ...(unseen > 0 ? [unseenLine(unseen, others)] : []),
  ]
  const unknownLine = (names: readonly string[]): string => {
    const left = unknown.length - names.length
    const more = left > 0 && names.length > 0 ? [`${left} more`] : []
    const list = names.length > 0 ? `: ${[...names, ...more].join(', ')}` : ''
    return `What this session saw of ${plural(unknown.length, others)} is not known${list}.`
  }
  const foot = [...(unchecked > 0 ? [uncheckedLine(unchecked, others)] : []), FOOT]
  const fixed = [
    INTRO[origin],
    ...(changes.length > 0 ? [CHANGED, restLine(changes)] : []),
    ...counts,
    ...(unknown.length > 0 ? [`${unknownLine([])} , ${unknown.length} more`] : []),
    ...foot,
  ]
  let room = limits.maxResumeBytes - bytesOf(frame(fixed))
  let named = 0
  const take = (text: string): boolean => {
    const cost = bytesOf(text) + 2
    if (named >= limits.maxResumePaths || cost > room) return false
    room -= cost
    named += 1
    return true
  }
  const lines: string[] = []
  const rest: Change[] = []
  for (const change of changes) {
    const line = lineOf(change, limits.maxPathBytes)
    if (rest.length === 0 && take(line)) lines.push(line)
    else rest.push(change)
  }
  const names = unknown.map((path) => quotePath(path, limits.maxPathBytes)).filter(take)
  const text = frame([
    INTRO[origin],
    ...(changes.length > 0 ? [CHANGED, ...lines, ...(rest.length > 0 ? [restLine(rest)] : [])] : []),
    ...counts,
    ...(unknown.length > 0 ? [unknownLine(names)] : []),
    ...foot,
  ])
  return { text, summary }
}
