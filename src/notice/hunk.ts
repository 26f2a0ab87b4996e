/**
 * What changed between two texts of a file, within a budget. Pure.
 *
 * @module dsh-live-workspace/notice/hunk
 */
import { structuredPatch } from 'diff'
import { bytesOf, escapeLine } from './escape.ts'

/** Difference of two texts, as it is told. */
export type Difference =
  /** Lines of a unified diff, without file headers; `complete` unless a line lost its end. */
  | {
      readonly kind: 'hunk'
      readonly complete: boolean
      /** What else differs: line endings, byte order mark. */
      readonly encoding: string | undefined
      readonly lines: readonly string[]
      readonly added: number
      readonly removed: number
    }
  /** Too much for the budget. */
  | { readonly kind: 'counts'; readonly added: number; readonly removed: number }
  /** Too much even to be counted: the numbers of lines before and after. */
  | { readonly kind: 'rewritten'; readonly before: number; readonly after: number }
  /** What was text is none any more. */
  | { readonly kind: 'binary' }
  /** Only line endings or the byte order mark differ. */
  | { readonly kind: 'encoding'; readonly what: string; readonly complete: boolean }

/** Bounds of one difference, in bytes, and the lines of context around a change. */
export interface HunkLimits {
  readonly maxHunkBytes: number
  readonly maxLineBytes: number
  readonly contextLines: number
}

const BOM = '\uFEFF'

const MIXED = 'mixed line endings'

const endingsOf = (text: string): string => {
  const crlf = text.split('\r\n').length - 1
  const lf = text.split('\n').length - 1 - crlf
  return crlf === 0 ? 'LF' : lf === 0 ? 'CRLF' : MIXED
}

const plain = (text: string): string =>
  (text.startsWith(BOM) ? text.slice(BOM.length) : text).replaceAll('\r\n', '\n')

const encodingDifference = (before: string, after: string): string | undefined => {
  const parts: string[] = []
  if (endingsOf(before) !== endingsOf(after)) {
    parts.push(`line endings ${endingsOf(before)} → ${endingsOf(after)}`)
  }
  if (before.startsWith(BOM) !== after.startsWith(BOM)) {
    parts.push(after.startsWith(BOM) ? 'byte order mark added' : 'byte order mark removed')
  }
  return parts.length > 0 ? parts.join(', ') : undefined
}

/** As in a unified diff: an empty range names the line before it. */
const range = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`

const lineCount = (text: string): number =>
  text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0)

/**
 * Describe a change.
 * @param before - text that the session last saw.
 * @param after - text now, not equal to `before`.
 */
export const differenceOf = (before: string, after: string, limits: HunkLimits): Difference => {
  const [old, now] = [plain(before), plain(after)]
  const encoding = encodingDifference(before, after)
  // Which lines end in which way is not said.
  const exact = ![before, after].some((text) => endingsOf(text) === MIXED)
  if (old === now)
    return { kind: 'encoding', what: encoding ?? 'line endings', complete: exact && encoding !== undefined }
  const patch = structuredPatch('', '', old, now, undefined, undefined, {
    context: limits.contextLines,
    // Each edited line takes at least two bytes: beyond this many nothing would fit anyway.
    maxEditLength: limits.maxHunkBytes,
  })
  if (!patch) return { kind: 'rewritten', before: lineCount(old), after: lineCount(now) }
  const lines: string[] = []
  let [added, removed, bytes] = [0, 0, 0]
  let complete = exact
  for (const hunk of patch.hunks) {
    lines.push(`@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`)
    for (const line of hunk.lines) {
      if (line.startsWith('+')) added += 1
      if (line.startsWith('-')) removed += 1
      const shown = escapeLine(line, limits.maxLineBytes)
      // What is shortened or escaped is not shown to the letter.
      complete &&= shown === line
      lines.push(shown)
    }
  }
  for (const line of lines) bytes += bytesOf(line) + 1
  return bytes <= limits.maxHunkBytes
    ? { kind: 'hunk', lines, added, removed, complete, encoding }
    : { kind: 'counts', added, removed }
}
