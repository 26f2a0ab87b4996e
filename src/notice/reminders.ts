/**
 * The fixed notices: short, neutral, and without content of the workspace. Pure.
 *
 * @module dsh-live-workspace/notice/reminders
 */
import type { WatchFault } from '../watch/contract.ts'
import { frame, type RenderedNotice } from './render.ts'

const notice = (text: string, summary: string): RenderedNotice => ({ text: frame([text]), summary })

/** A session continues whose files were not followed meanwhile. */
export const resumeReminder: RenderedNotice = notice(
  'This session was resumed. Files may have changed while it was not running, so file contents further up may be out of date: read a file again before you edit it or rely on it. Read only what the next step needs.',
  'session resumed; files may have changed meanwhile',
)

/** The plugin was mounted in the middle of a session. */
export const activationReminder: RenderedNotice = notice(
  'Workspace changes are followed from now on. Files read earlier in this session may have changed since: read a file again before you edit it or rely on it. Read only what the next step needs.',
  'workspace changes are followed from now on',
)

/** What the session knew of files was summarized away. */
export const compactionReminder: RenderedNotice = notice(
  'The conversation was compacted. Where the next step needs the exact text of a file, read that file; nothing else needs to be read again.',
  'conversation compacted',
)

/** A turn is about to end while its instructions have changed; their text comes with the next request. */
export const instructionsChangedNotice: RenderedNotice = notice(
  'Instruction files of this workspace changed; what applies now follows.',
  'instruction files changed',
)

/** Changes may be missed from now on. */
export const degradedNotice = (fault: WatchFault): RenderedNotice =>
  notice(
    `Workspace changes cannot be followed completely at the moment: ${fault.reason}. Files that this session has used are still checked before each request; changes of other files may go unmentioned. Carry on.`,
    `watching is limited: ${fault.reason}`,
  )

/** Changes are followed again. */
export const recoveredNotice: RenderedNotice = notice(
  'Workspace changes are followed completely again. Changes made meanwhile to files that this session has not used may have gone unmentioned. Carry on.',
  'watching works again',
)

/**
 * A part of the workspace is not watched.
 * @param parts - the directories, each quoted already; may be empty.
 */
export const uncoveredNotice = (fault: WatchFault, parts: readonly string[]): RenderedNotice =>
  notice(
    `Part of the workspace is not watched${parts.length > 0 ? ` (${parts.join(', ')})` : ''}: ${fault.reason}. Files that this session has used are still checked before each request; changes of other files there may be told late or not at all. Carry on.`,
    `a part is not watched: ${fault.reason}`,
  )
