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

const takeWhileFits = (parts: readonly string[], most: number): string[] => {
  const taken: string[] = []
  let size = 0
  for (const part of parts) {
    size += bytesOf(part)
    if (size > most) break
    taken.push(part)
  }
  return taken
}

/**
 * A path as a JSON string that cannot leave its line or close a frame: control and bidirectional
 * characters and angle brackets are visible escapes.
 * @param maxBytes - size in bytes of the result, quotes included; a longer path loses its middle, and
 *   the number of bytes left out stands there instead.
 */
export const quotePath = (path: string, maxBytes: number): string => {
  const parts = Array.from(path, escapeCharacter)
  const whole = `"${parts.join('')}"`
  if (bytesOf(whole) <= maxBytes) return whole
  const room = Math.max(0, maxBytes - bytesOf(`"…[${bytesOf(path)} bytes]…"`))
  const head = takeWhileFits(parts, Math.ceil(room / 2))
  const tail = takeWhileFits(parts.toReversed(), Math.floor(room / 2)).toReversed()
  const left = bytesOf(parts.slice(head.length, parts.length - tail.length).join(''))
  return `"${head.join('')}…[${left} bytes]…${tail.join('')}"`
}
