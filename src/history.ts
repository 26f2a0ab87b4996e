/**
 * What the log of a session says about the time before this plugin followed it.
 *
 * @module dsh-live-workspace/history
 */
import type { Session } from '@deepseek-ai/dsh-session'

/** Tools of the host whose results show the model a file. */
const FILE_TOOLS = new Set(['read', 'read_image', 'write', 'edit', 'str_replace_editor'])

/** Which reminder a session needs whose file results nobody of us has followed. */
export const reminderFor = (session: Session): 'resume' | 'activation' | undefined => {
  const calls = new Set<string>()
  let latest = -1
  for (const event of session.events) {
    if (event.type === 'tool/call' && FILE_TOOLS.has(event.data.name)) calls.add(String(event.data.callId))
    if (event.type !== 'tool/result' || !calls.has(String(event.data.message.source.callId))) continue
    if (event.data.message.content[0].isError !== true) latest = event.seq
  }
  if (latest < 0) return undefined
  return latest < session.firstLiveSeq ? 'resume' : 'activation'
}

/** A message of the instruction protocol in the log. */
export interface LoggedInstructions {
  readonly seq: number
  readonly source: unknown
}

/** Every message of the instruction protocol in the log, visible or not. */
export const loggedInstructions = (session: Session): LoggedInstructions[] =>
  session.events.flatMap((event) =>
    event.type === 'user/message' && event.data.source.kind === 'agent-instructions'
      ? [{ seq: event.seq, source: event.data.source }]
      : [],
  )
