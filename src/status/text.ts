/**
 * Layout of status texts: plain lines that read well in a terminal and in a browser. Pure.
 *
 * @module dsh-live-workspace/status/text
 */
import { quotePath } from '../notice/escape.ts'

/** Longest path in bytes in a status text: a person can widen the window, so only the absurd is cut. */
const MAX_PATH_BYTES = 4_096
/** Items of a list that are shown; the JSON form has them all. */
export const MOST_SHOWN = 20
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A path that cannot leave its line. */
export const quoted = (path: string): string => quotePath(path, MAX_PATH_BYTES)

/** `1 file`, `2 files`. */
export const counted = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : nouns}`

/** A fact with its label. Not in columns: the web UI shows this in a font whose letters differ in width. */
export const labelled = (label: string, text: string): string => `${label}: ${text}`

/** A title with a list below it; what is not shown is counted. */
export const listed = (title: string, lines: readonly string[]): string[] => [
  title,
  ...lines.slice(0, MOST_SHOWN).map((line) => `  ${line}`),
  ...(lines.length > MOST_SHOWN ? [`  … and ${lines.length - MOST_SHOWN} more (--json shows all)`] : []),
]

/**
 * How long ago something was.
 * @param at - ISO 8601.
 * @param now - ms since the epoch.
 */
export const ago = (at: string, now: number): string => {
  const ms = Math.max(0, now - Date.parse(at))
  if (ms < MINUTE) return `${Math.round(ms / 1_000)} s ago`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ago`
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ago`
  return `${Math.floor(ms / DAY)} d ago`
}
