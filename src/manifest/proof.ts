/**
 * What of a manifest a session log bears out. Pure.
 *
 * A manifest and a log are two files: a crash, a copy, a fork or a second process can leave one of them
 * ahead of the other. So each entry names the events of the log that showed it to the model, with a mark
 * of exactly these events, and counts only where the log at hand holds them and shows nothing later of
 * the same file.
 *
 * @module dsh-live-workspace/manifest/proof
 */
import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { type Manifest, PROOF_LENGTH, type Remembered, type Through } from './format.ts'

/** Events of one log, by their number. */
export type Log = readonly SessionEvent[]

const idOf = (event: SessionEvent): string => {
  if (event.type === 'tool/result') return String(event.data.message.source.callId)
  return event.type === 'user/message' ? String(event.data.id) : ''
}

/** A mark of exactly these events, or `undefined` when the log does not hold all of them. */
export const proofOf = (log: Log, seqs: readonly number[]): string | undefined => {
  let text = ''
  for (const seq of seqs) {
    const event = log[seq]
    if (!event) return undefined
    text += `${event.type}\0${event.seq}\0${event.time}\0${idOf(event)}\n`
  }
  return hash('sha256', text, 'hex').slice(0, PROOF_LENGTH)
}

/** The mark of one event up to which a log was followed. */
export const throughAt = (log: Log, seq: number | undefined): Through | undefined => {
  const proof = seq === undefined ? undefined : proofOf(log, [seq])
  return seq === undefined || proof === undefined ? undefined : { seq, proof }
}

/** Tools of the host whose results show the model one file, with the argument that names it. */
const FILE_TOOLS: ReadonlyMap<string, string> = new Map([
  ['read', 'file_path'],
  ['read_image', 'file_path'],
  ['write', 'file_path'],
  ['edit', 'file_path'],
  ['str_replace_editor', 'path'],
])

/** Tools of the host that never show a file in a way that this plugin follows. Any other one might. */
const OTHER_TOOLS = new Set([
  'bash',
  'bash_persistent',
  'pwsh',
  'pwsh_persistent',
  'glob',
  'grep',
  'todo_write',
  'job_kill',
  'job_list',
  'job_output',
  'web_search',
  'get_goal',
  'create_goal',
  'update_goal',
  'exit_plan_mode',
  'list_agents',
  'interrupt_agent',
  'send_message',
  'subagent',
  'subagent_fork',
  'skill',
])

/** Whether results of a tool may have shown files that the log does not name. */
export const isOpaqueTool = (name: string): boolean => !FILE_TOOLS.has(name) && !OTHER_TOOLS.has(name)

/** What the tool results of a log have shown of files. */
export interface FileResults {
  /** Number of the latest successful result, by absolute path as the call named it. */
  readonly latest: ReadonlyMap<string, number>
  /** Numbers of results that may have shown files that the log does not name. */
  readonly opaque: readonly number[]
}

const namedPath = (name: string, text: string): string | undefined => {
  const argument = FILE_TOOLS.get(name)
  if (argument === undefined) return undefined
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null) return undefined
    const value: unknown = Object.getOwnPropertyDescriptor(parsed, argument)?.value
    return typeof value === 'string' && value !== '' && !value.includes('\0') ? value : undefined
  } catch {
    // The arguments of a call are what the model wrote; these named no file that could be asked for.
    return undefined
  }
}

/** An absolute path without anything to resolve: most are, and there may be thousands. */
const IS_PLAIN = /^\/(?!.*(?:\/\/|\/\.|\/$))/

/** Go through a log once. @param cwd - directory against which relative paths count. */
export const fileResultsOf = (log: Log, cwd: string): FileResults => {
  const calls = new Map<string, { readonly name: string; readonly path: string | undefined }>()
  const latest = new Map<string, number>()
  const opaque: number[] = []
  for (const event of log) {
    if (event.type === 'tool/call') {
      const { callId, name } = event.data
      calls.set(String(callId), { name, path: namedPath(name, event.data.arguments) })
    }
    // A replacing result is a pruned old one.
    if (event.type !== 'tool/result' || event.surfaceOp !== 'append') continue
    const call = calls.get(String(event.data.message.source.callId))
    if (call && OTHER_TOOLS.has(call.name)) continue
    if (event.data.message.content[0].isError === true && call && FILE_TOOLS.has(call.name)) continue
    if (call?.path === undefined) opaque.push(event.seq)
    else latest.set(IS_PLAIN.test(call.path) ? call.path : resolve(cwd, call.path), event.seq)
  }
  return { latest, opaque }
}

/** What a log bears out. */
export interface Proven {
  /** The latest used first. */
  readonly entries: readonly Remembered[]
  /** Paths of which the log shows something that no entry stands for; later than which entries, if at all. */
  readonly unaccounted: ReadonlyMap<string, number>
  /** Up to where everything that the log shows is in the manifest. */
  readonly through: Through | undefined
}

/** Hold a manifest against a log; what is left of each entry is {@link proofOf}. */
export const prove = (manifest: Manifest, log: Log, { latest, opaque }: FileResults): Proven => {
  const { through } = manifest
  const follows = through !== undefined && throughAt(log, through.seq)?.proof === through.proof
  const followed = follows ? through.seq : -1
  const lastOpaque = opaque.at(-1) ?? -1
  const entries = manifest.entries.filter(({ path, shown, proof }) => {
    const [result] = shown
    const last = latest.get(path) ?? -1
    if (last > result) return false
    // Where the log shows the same path at the same place, the mark is compared when its turn comes.
    if (last !== result && proofOf(log, shown) !== proof) return false
    // What ran after the last thing that was followed may have shown a newer state of any file.
    return lastOpaque <= Math.max(followed, result)
  })
  const accounted = new Map(entries.map(({ path, shown: [result] }) => [path, result]))
  const unaccounted = new Map([...latest].filter(([path, seq]) => (accounted.get(path) ?? -1) < seq))
  return { entries, unaccounted, through: follows ? through : undefined }
}
