/**
 * Looking at one candidate through the filesystem service: what is there, and its bounded text.
 *
 * @module dsh-live-workspace/instructions/look
 */
import type { FileSystem, FsInfo, FsTarget } from '@deepseek-ai/dsh-fs'
import { codeOf, messageOf, saysAbsent } from '../errors.ts'
import { unlessAborted } from './abort.ts'
import { bytesOf, digestOf, escapeFrame } from './text.ts'

/** Why a file that is there, or may be there, is not loaded. */
export type Refusal = 'too-large' | 'not-text' | 'pass-limit' | 'changing' | 'failed'

/** What is known of one candidate. A failure is never an absence. */
export type Fact =
  | {
      readonly kind: 'absent'
      /** There is a link, but nothing where it leads. */
      readonly dangling: boolean
    }
  | {
      readonly kind: 'refused'
      readonly why: Refusal
      readonly detail: string
      /** Version for which the refusal holds; without one it is tried again. */
      readonly version: string | undefined
    }
  | Loaded

/** A file whose text was read as a whole at one version. */
export interface Loaded {
  readonly kind: 'loaded'
  /** Identity of the file, opaque; the same for every path that leads to it. */
  readonly identity: string
  readonly real: string
  readonly version: string
  /** SHA-1 of the exact text. */
  readonly digest: string
  /** SHA-1 of the text without surrounding blanks: equal ones are duplicates. */
  readonly trimmed: string
  /** Size of the text in bytes of UTF-8. */
  readonly bytes: number
  /** Its size inside a frame, escapes included. */
  readonly framedBytes: number
}

/** Bounds of reading, in bytes. */
export interface ReadLimits {
  readonly maxSourceBytes: number
  /** What is left for this pass. */
  readonly left: number
}

/** What reading one candidate gave. */
export interface Reading {
  readonly fact: Fact
  /** Text of a loaded file. */
  readonly text?: string
  /** Bytes that went through memory. */
  readonly cost: number
}

/** How often a file that changes while it is read is read again. */
const ATTEMPTS = 3

const ABSENT: Fact = { kind: 'absent', dangling: false }

const refused = (why: Refusal, detail: string, version?: string): Fact => ({
  kind: 'refused',
  why,
  detail,
  version,
})

const failed = (error: unknown): Fact => refused('failed', messageOf(error))

interface Seen {
  readonly target: FsTarget
  readonly info: FsInfo | undefined
}

const seeTarget = async (fs: FileSystem, path: string, signal: AbortSignal): Promise<Seen> => {
  const target = await unlessAborted(fs.resolve(path, { signal }), signal)
  return { target, info: await unlessAborted(fs.stat(target, signal), signal) }
}

const isDangling = async (fs: FileSystem, path: string, signal: AbortSignal): Promise<boolean> =>
  (await unlessAborted(fs.lstat(path, {}, signal), signal))?.type === 'symlink'

/** The fact still holds for what is there now. */
const holds = (known: Fact, { target, info }: Seen): boolean => {
  if (info?.type !== 'file') return false
  if (known.kind === 'refused') return known.version === String(info.version)
  return (
    known.kind === 'loaded' &&
    known.version === String(info.version) &&
    known.identity === String(target.targetKey)
  )
}

/**
 * Look at a candidate without reading it.
 * @param known - what was known of it.
 * @returns the fact that holds now, or `undefined` when only reading can tell.
 * @throws only the reason of the signal.
 */
export const glance = async (
  fs: FileSystem,
  path: string,
  known: Fact | undefined,
  signal: AbortSignal,
): Promise<Fact | undefined> => {
  try {
    const seen = await seeTarget(fs, path, signal)
    if (seen.info?.type === 'file') return known && holds(known, seen) ? known : undefined
    // Whether a dead link is there is asked for once: it must be looked at again without an event.
    if (known?.kind === 'absent' && !known.dangling) return known
    return seen.info ? ABSENT : { kind: 'absent', dangling: await isDangling(fs, path, signal) }
  } catch (error) {
    signal.throwIfAborted()
    // Below something that is no directory there is nothing, and that is certain.
    return saysAbsent(error) ? ABSENT : failed(error)
  }
}

const tooLarge = (limits: ReadLimits, size: number, version: string): Fact =>
  size > limits.maxSourceBytes
    ? refused('too-large', `more than ${limits.maxSourceBytes} bytes`, version)
    : refused('pass-limit', 'the bytes of this pass are used up')

/** The text, or the number of bytes seen when that is over the limit. */
const readStream = async (
  chunks: AsyncIterable<string>,
  most: number,
  signal: AbortSignal,
): Promise<{ text: string } | { over: number }> => {
  const iterator = chunks[Symbol.asyncIterator]()
  let text = ''
  let size = 0
  try {
    for (;;) {
      const step: IteratorResult<string, unknown> = await unlessAborted(iterator.next(), signal)
      if (step.done === true) return { text }
      size += bytesOf(step.value)
      if (size > most) return { over: size }
      text += step.value
    }
  } finally {
    // Nobody waits for a stream that is not read to its end.
    iterator.return?.().catch(() => undefined)
  }
}

const readOnce = async (
  fs: FileSystem,
  path: string,
  limits: ReadLimits,
  signal: AbortSignal,
): Promise<Reading | undefined> => {
  const { target, info } = await seeTarget(fs, path, signal)
  if (!info) return { fact: { kind: 'absent', dangling: await isDangling(fs, path, signal) }, cost: 0 }
  if (info.type !== 'file') return { fact: ABSENT, cost: 0 }
  const version = String(info.version)
  const most = Math.min(limits.maxSourceBytes, limits.left)
  if ((info.size ?? 0) > most) return { fact: tooLarge(limits, info.size ?? 0, version), cost: 0 }
  const chunks = await unlessAborted(fs.streamText(target, signal), signal)
  const read = await readStream(chunks, most, signal)
  const after = await seeTarget(fs, path, signal)
  const same = after.target.targetKey === target.targetKey && String(after.info?.version) === version
  if (!same) return undefined
  if ('over' in read) return { fact: tooLarge(limits, read.over, version), cost: most }
  const { text } = read
  const bytes = bytesOf(text)
  const fact: Loaded = {
    kind: 'loaded',
    identity: String(target.targetKey),
    real: fs.processPath(target),
    version,
    digest: digestOf(text),
    trimmed: digestOf(text.trim()),
    bytes,
    framedBytes: bytesOf(escapeFrame(text)),
  }
  return { fact, text, cost: bytes }
}

/**
 * Read a candidate. A file that changes meanwhile is read again, never mixed.
 * @returns what is there; a file that cannot be read is refused.
 * @throws only the reason of the signal.
 */
export const readCandidate = async (
  fs: FileSystem,
  path: string,
  limits: ReadLimits,
  signal: AbortSignal,
): Promise<Reading> => {
  let problem: Fact = refused('changing', 'it changed while it was read')
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      const reading = await readOnce(fs, path, limits, signal)
      if (reading) return reading
    } catch (error) {
      signal.throwIfAborted()
      if (codeOf(error) === 'FS_NOT_TEXT') return { fact: await notText(fs, path, error, signal), cost: 0 }
      problem = failed(error)
      // Gone or replaced between two questions: ask again.
      if (codeOf(error) !== 'FS_NOT_FOUND' && codeOf(error) !== 'FS_NOT_REGULAR_FILE') break
    }
  }
  return { fact: problem, cost: 0 }
}

/** A file that holds no text stays refused for as long as it is the same. */
const notText = async (fs: FileSystem, path: string, error: unknown, signal: AbortSignal): Promise<Fact> => {
  try {
    const { info } = await seeTarget(fs, path, signal)
    return refused('not-text', messageOf(error), info && String(info.version))
  } catch (failure) {
    signal.throwIfAborted()
    return failed(failure)
  }
}
