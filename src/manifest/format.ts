/**
 * The manifest of a session as text: what it has committed, never a content, never prose. Pure.
 *
 * The text is one JSON object. Its first member is a checksum of all that follows it, so that a file of
 * which a part was lost or mixed up is never taken for a whole one.
 *
 * @module dsh-live-workspace/manifest/format
 */
import { createHash } from 'node:crypto'
import type { Seen } from '../ledger/ledger.ts'

/** One committed observation, as it is remembered. */
export interface Remembered {
  /** Identity of the target, opaque. */
  readonly key: string
  /** Path under which the session used it. */
  readonly path: string
  readonly seen: Seen
  /** SHA-256 of the content, hexadecimal, and its size in bytes, where it could be read. */
  readonly content?: { readonly digest: string; readonly size: number } | undefined
  /** Numbers of the log events that showed it to the model: the result, then what was told of changes. */
  readonly shown: readonly [number, ...number[]]
  /** Mark of exactly these events, by which another history is recognized. */
  readonly proof: string
  /** The result was that of an enclosing execution. */
  readonly nested: boolean
  /** An equal version alone proves an equal content: no write can hide within one tick of a clock. */
  readonly settled: boolean
  /** The session was told of another state. */
  readonly told: boolean
}

/** Up to where a log was followed without a gap. */
export interface Through {
  readonly seq: number
  readonly proof: string
}

/** What is remembered of one session. */
export interface Manifest {
  readonly session: string
  /** Time of the day in ms at which the session was made. */
  readonly createdAt: number
  /** The plugin instance that wrote it, opaque. */
  readonly writer: string
  readonly through: Through | undefined
  /** The latest used first. */
  readonly entries: readonly Remembered[]
}

/** What a text turned out to be. */
export type Decoded =
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'unusable'; readonly reason: string }

const FORMAT = 'dsh-live-workspace manifest'
const VERSION = 1
/** Longest texts that are written or believed, in UTF-16 units. */
const MAX_TEXT = 16_384
/** Most log events of one entry. */
const MAX_SHOWN = 256
const SUM = /^\{"sum":"([0-9a-f]{64})",/

const sumOf = (rest: string): string => createHash('sha256').update(rest).digest('hex')

/** One entry as text, or `undefined` for one that is too large to be remembered. */
export const encodeEntry = (entry: Remembered): string | undefined => {
  const { key, path, seen, content, shown, proof, nested, settled, told } = entry
  const texts = [key, path, seen.kind === 'present' ? seen.version : '']
  if (shown.length > MAX_SHOWN || texts.some((text) => text.length > MAX_TEXT)) return undefined
  return JSON.stringify({
    key,
    ...(path === key ? {} : { path }),
    ...(seen.kind === 'present' ? { version: seen.version } : { absent: true }),
    ...(content ? { digest: content.digest, size: content.size } : {}),
    shown,
    proof,
    ...(nested ? { nested } : {}),
    ...(settled ? { settled } : {}),
    ...(told ? { told } : {}),
  })
}

/**
 * A manifest as text.
 * @param lines - entries of {@link encodeEntry}, the latest used first.
 * @param maxBytes - size in bytes of the text; what does not fit is left out from the end.
 */
export const encodeManifest = (
  head: Omit<Manifest, 'entries'>,
  lines: Iterable<string>,
  maxBytes: number,
): string => {
  const { session, createdAt, writer, through } = head
  const opening = JSON.stringify({ format: FORMAT, version: VERSION, session, createdAt, writer, through })
  const open = `${opening.slice(1, -1)},"entries":[\n`
  const close = '\n]}\n'
  let room = maxBytes - Buffer.byteLength(`{"sum":"${'0'.repeat(64)}",${open}${close}`)
  const kept: string[] = []
  for (const line of lines) {
    room -= Buffer.byteLength(line) + (kept.length === 0 ? 0 : 2)
    if (room < 0) break
    kept.push(line)
  }
  const rest = `${open}${kept.join(',\n')}${close}`
  return `{"sum":"${sumOf(rest)}",${rest}`
}

type Fields = Readonly<Record<string, unknown>>

/** A field is not what it has to be. */
class Unusable extends Error {}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const own = (fields: Fields, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined

const need = (holds: boolean, what: string): void => {
  if (!holds) throw new Unusable(what)
}

const textIn = (fields: Fields, name: string): string => {
  const value = own(fields, name)
  if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT) throw new Unusable(name)
  return value
}

const hexIn = (fields: Fields, name: string, length: number): string => {
  const value = textIn(fields, name)
  need(value.length === length && /^[0-9a-f]+$/.test(value), name)
  return value
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const countIn = (fields: Fields, name: string): number => {
  const value = own(fields, name)
  if (!isCount(value)) throw new Unusable(name)
  return value
}

const flagIn = (fields: Fields, name: string): boolean => {
  const value = own(fields, name)
  need(value === undefined || value === true, name)
  return value === true
}

const seenIn = (fields: Fields): Seen => {
  if (own(fields, 'version') === undefined) {
    need(flagIn(fields, 'absent'), 'version')
    return { kind: 'absent' }
  }
  need(own(fields, 'absent') === undefined, 'absent')
  return { kind: 'present', version: textIn(fields, 'version') }
}

const shownIn = (fields: Fields): readonly [number, ...number[]] => {
  const value = own(fields, 'shown')
  if (!Array.isArray(value) || value.length > MAX_SHOWN || !value.every(isCount)) throw new Unusable('shown')
  const [first, ...rest] = value
  if (first === undefined) throw new Unusable('shown')
  return [first, ...rest]
}

const entryOf = (value: unknown): Remembered => {
  if (!isFields(value)) throw new Unusable('an entry')
  const key = textIn(value, 'key')
  const hasContent = own(value, 'digest') !== undefined
  return {
    key,
    path: own(value, 'path') === undefined ? key : textIn(value, 'path'),
    seen: seenIn(value),
    content: hasContent ? { digest: hexIn(value, 'digest', 64), size: countIn(value, 'size') } : undefined,
    shown: shownIn(value),
    proof: hexIn(value, 'proof', PROOF_LENGTH),
    nested: flagIn(value, 'nested'),
    settled: flagIn(value, 'settled'),
    told: flagIn(value, 'told'),
  }
}

/** Length of a mark of log events. */
export const PROOF_LENGTH = 32

const throughIn = (fields: Fields): Through | undefined => {
  const value = own(fields, 'through')
  if (value === undefined) return undefined
  if (!isFields(value)) throw new Unusable('through')
  return { seq: countIn(value, 'seq'), proof: hexIn(value, 'proof', PROOF_LENGTH) }
}

const manifestOf = (fields: Fields): Manifest => {
  const entries = own(fields, 'entries')
  if (!Array.isArray(entries)) throw new Unusable('entries')
  const decoded = entries.map(entryOf)
  need(new Set(decoded.map(({ key }) => key)).size === decoded.length, 'entries (a key twice)')
  return {
    session: textIn(fields, 'session'),
    createdAt: countIn(fields, 'createdAt'),
    writer: textIn(fields, 'writer'),
    through: throughIn(fields),
    entries: decoded,
  }
}

const unusable = (reason: string): Decoded => ({ kind: 'unusable', reason })

/** What a text is. Every field is checked; whatever is not exactly right makes the whole unusable. */
export const decodeManifest = (text: string): Decoded => {
  let fields: unknown
  try {
    fields = JSON.parse(text)
  } catch {
    return unusable('it is not complete')
  }
  if (!isFields(fields) || own(fields, 'format') !== FORMAT) return unusable('it is something else')
  if (own(fields, 'version') !== VERSION) return unusable('it was written by another version')
  const sum = SUM.exec(text)
  if (!sum || sumOf(text.slice(sum[0].length)) !== sum[1]) return unusable('it is damaged')
  try {
    return { kind: 'manifest', manifest: manifestOf(fields) }
  } catch (error) {
    if (error instanceof Unusable) return unusable(`a field is wrong: ${error.message}`)
    throw error
  }
}
