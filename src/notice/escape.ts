/**
 * How names from the filesystem are shown to a model. Pure.
 *
 * @module dsh-live-workspace/notice/escape
 */

/** Control, format (bidirectional and zero-width marks), line and paragraph separators, and tags. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}<>]/u

const escapeUnits = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')

const escapeCharacter = (character: string): string => {
  if (character === '"' || character === '\\') return `\\${character}`
  if (character === '\n') return '\\n'
  if (character === '\r') return '\\r'
  if (character === '\t') return '\\t'
  return UNSAFE.test(character) ? escapeUnits(character) : character
}

/** Size of a text in bytes of UTF-8. */
export const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8')

/** One character of a text and how it is shown. */
interface Shown {
  readonly raw: string
  readonly text: string
}

const takeWhileFits = (parts: readonly Shown[], most: number): Shown[] => {
  const taken: Shown[] = []
  let size = 0
  for (const part of parts) {
    size += bytesOf(part.text)
    if (size > most) break
    taken.push(part)
  }
  return taken
}

const textOf = (parts: readonly Shown[]): string => parts.map(({ text }) => text).join('')
const rawBytesOf = (parts: readonly Shown[]): number => bytesOf(parts.map(({ raw }) => raw).join(''))

/**
 * A path as a JSON string that cannot leave its line or close a frame: control and bidirectional
 * characters and angle brackets are visible escapes.
 * @param maxBytes - size in bytes of the result, quotes included; a longer path loses its middle, and
 *   the number of bytes left out of the path stands there instead.
 */
export const quotePath = (path: string, maxBytes: number): string => {
  const parts = Array.from(path, (raw) => ({ raw, text: escapeCharacter(raw) }))
  const whole = `"${textOf(parts)}"`
  if (bytesOf(whole) <= maxBytes) return whole
  const room = Math.max(0, maxBytes - bytesOf(`"…[${bytesOf(path)} bytes]…"`))
  const head = takeWhileFits(parts, Math.ceil(room / 2))
  const tail = takeWhileFits(parts.slice(head.length).toReversed(), Math.floor(room / 2)).toReversed()
  const left = rawBytesOf(parts.slice(head.length, parts.length - tail.length))
  return `"${textOf(head)}…[${left} bytes]…${textOf(tail)}"`
}

/** The tag of the frame that notices stand in, in any spelling that a reader could take for it. */
const FRAME_TAG = /<(?=\s*\/?\s*system-reminder)/gi

/**
 * A line of a file's content: control and format characters but the tab are visible escapes, and the
 * frame cannot be opened or closed.
 * @param maxBytes - size in bytes of the result; a longer line loses its end, and says how much.
 */
export const escapeLine = (line: string, maxBytes: number): string => {
  const parts = Array.from(line.replaceAll(FRAME_TAG, '\u0000'), (character) => {
    if (character === '\u0000') return { raw: '<', text: '\\u003c' }
    const plain = character === '\t' || character === '<' || character === '>' || !UNSAFE.test(character)
    return { raw: character, text: plain ? character : escapeUnits(character) }
  })
  const whole = textOf(parts)
  if (bytesOf(whole) <= maxBytes) return whole
  const head = takeWhileFits(parts, Math.max(0, maxBytes - bytesOf(`…[${bytesOf(line)} bytes more]`)))
  return `${textOf(head)}…[${rawBytesOf(parts.slice(head.length))} bytes more]`
}
