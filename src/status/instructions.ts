/**
 * What `/instructions` knows of one session, as plain values. What is not known is left out.
 *
 * @module dsh-live-workspace/status/instructions
 */
import { join } from 'node:path'
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import type { Session } from '@deepseek-ai/dsh-session'
import { messageOf } from '../errors.ts'
import { loggedInstructions } from '../history.ts'
import { parseScope, readSource, scopeKey } from '../instructions/protocol.ts'
import type { InstructionRoom } from '../instructions/room.ts'
import type { LookedIn, ScopeStatus } from '../instructions/status.ts'

/** When and by what the model got the text that it has. */
export interface LoadedBy {
  /** Number of the event in the session log. */
  readonly seq: number
  /** ISO 8601. */
  readonly at: string
  readonly action: 'set' | 'replace'
  /** It came with a complete baseline. */
  readonly baseline: boolean
}

/** One instruction file. */
export interface InstructionFileStatus extends Omit<
  ScopeStatus,
  'digest' | 'bytes' | 'cutTo' | 'duplicateOf' | 'reason'
> {
  /** SHA-1 of the text that the model has. */
  readonly digest?: string
  readonly bytes?: number
  readonly cutTo?: number
  readonly duplicateOf?: string
  readonly reason?: string
  readonly loaded?: LoadedBy
}

/** A file whose name differs from a candidate's in letter case alone. */
export interface WrongCase {
  /** As the model would be shown it. */
  readonly path: string
  /** The name that is looked for. */
  readonly candidate: string
}

/** Status of one session's instruction files; the JSON form is this as it is. */
export interface InstructionsStatus {
  /** Grows when the meaning of a field changes. */
  readonly format: 1
  readonly session: string
  /** `off`: switched off by configuration. `not-yet`: no request was made, so nothing was looked at. */
  readonly state: 'on' | 'off' | 'not-yet'
  readonly files: readonly InstructionFileStatus[]
  readonly wrongCase: readonly WrongCase[]
  readonly lookedIn: readonly LookedIn[]
  /** Directories that could not be listed to find names in a wrong case, with the reason. */
  readonly unlisted: readonly { readonly path: string; readonly why: string }[]
}

/** What the status is collected from. */
export interface InstructionsParts {
  readonly room: InstructionRoom | undefined
  readonly session: Session
  readonly fs: FileSystem | undefined
  readonly signal: AbortSignal
}

/** By scope: the message that set the text with this digest last. */
const loadedBy = ({ events }: Session): ReadonlyMap<string, LoadedBy & { readonly digest: string }> => {
  const found = new Map<string, LoadedBy & { readonly digest: string }>()
  for (const event of events) {
    const source = event.type === 'user/message' ? readSource(event.data.source) : undefined
    if (!source) continue
    for (const { action, scope, digest } of source.changes) {
      const parsed = parseScope(scope)
      if (!parsed || action === 'remove' || digest === undefined) continue
      const key = scopeKey(parsed.directory, parsed.name)
      const at = new Date(event.time).toISOString()
      found.set(key, { seq: event.seq, at, action, baseline: source.baseline === true, digest })
    }
  }
  return found
}

const fileStatus = (
  { digest, bytes, cutTo, duplicateOf, reason, ...rest }: ScopeStatus,
  loaded: (LoadedBy & { readonly digest: string }) | undefined,
): InstructionFileStatus => {
  const { digest: told, ...by } = loaded ?? { digest: undefined }
  return {
    ...rest,
    ...(digest === undefined ? {} : { digest }),
    ...(bytes === undefined ? {} : { bytes }),
    ...(cutTo === undefined ? {} : { cutTo }),
    ...(duplicateOf === undefined ? {} : { duplicateOf }),
    ...(reason === undefined ? {} : { reason }),
    ...('seq' in by && told === digest ? { loaded: by } : {}),
  }
}

/**
 * Names that differ from a candidate in letter case alone. Where the filesystem takes both for the same
 * file, the candidate is found and nothing is wrong.
 */
const wrongCaseIn = async (
  { shown, path, names }: LookedIn,
  isThere: (name: string) => boolean,
  fs: FileSystem,
  signal: AbortSignal,
): Promise<WrongCase[]> => {
  const target = await fs.resolve(path, { signal })
  if ((await fs.stat(target, signal))?.type !== 'directory') return []
  const entries = new Set(
    (await fs.listDir(target, signal)).flatMap(({ name, type }) => (type === 'directory' ? [] : [name])),
  )
  const byFolded = new Map(names.map((name) => [name.toLowerCase(), name]))
  return [...entries].flatMap((name) => {
    const candidate = byFolded.get(name.toLowerCase())
    if (candidate === undefined || names.includes(name)) return []
    if (!entries.has(candidate) && isThere(candidate)) return []
    return [{ path: shown === './' ? name : `${shown}${name}`, candidate }]
  })
}

/** The status as of the last look. Asks the filesystem service only for names in a wrong letter case. */
export const instructionsStatus = async ({
  room,
  session,
  fs,
  signal,
}: InstructionsParts): Promise<InstructionsStatus> => {
  const lookedIn = room?.lookedIn() ?? []
  const loaded = loadedBy(session)
  const nodes = new Set(session.surface.nodes)
  const visible = loggedInstructions(session).filter(({ seq }) => nodes.has(seq))
  const found = room?.inForce(visible.map(({ source }) => source)) ?? []
  const there = new Set(found.map(({ path }) => path))
  const wrongCase: WrongCase[] = []
  const unlisted: { path: string; why: string }[] = []
  for (const directory of fs ? lookedIn : []) {
    const isThere = (name: string) => there.has(join(directory.path, name))
    try {
      if (fs) wrongCase.push(...(await wrongCaseIn(directory, isThere, fs, signal)))
    } catch (error) {
      signal.throwIfAborted()
      unlisted.push({ path: directory.path, why: messageOf(error) })
    }
  }
  return {
    format: 1,
    session: String(session.id),
    state: room === undefined ? 'off' : lookedIn.length === 0 ? 'not-yet' : 'on',
    files: found.map((status) => fileStatus(status, loaded.get(status.scope))),
    wrongCase,
    lookedIn,
    unlisted,
  }
}
