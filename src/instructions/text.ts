/**
 * Bytes, cuts and escapes of what stands in a frame. Pure.
 *
 * @module dsh-live-workspace/instructions/text
 */
import { createHash } from 'node:crypto'

/** Size in bytes of UTF-8. */
export const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8')

/** SHA-1, in hex, of a text. */
export const digestOf = (text: string): string => createHash('sha1').update(text, 'utf8').digest('hex')

/** A text that cannot close the frame it stands in. */
export const escapeFrame = (text: string): string =>
  text.replaceAll(/<\/(?=\s*system-reminder\s*>)/gi, String.raw`<\/`)

/** Control, format (bidirectional and zero-width marks), line and paragraph separators, lone surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

const escapeUnits = (character: string): string =>
  character
    .split('')
    .map((unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

/** A path that stays on its line, shows every character, and cannot close the frame. */
export const showPath = (path: string): string => escapeFrame(path.replaceAll(INVISIBLE, escapeUnits))

/**
 * The longest beginning of a text within a number of bytes that ends between two characters.
 * @param most - in bytes of UTF-8.
 */
export const cutToBytes = (text: string, most: number): string => {
  if (most <= 0) return ''
  // A UTF-16 unit is at least one byte, so nothing behind this many units can fit.
  const head = Buffer.from(text.slice(0, most), 'utf8')
  if (head.length <= most) return head.toString('utf8')
  let end = most
  while (end > 0 && ((head[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return head.subarray(0, end).toString('utf8')
}
