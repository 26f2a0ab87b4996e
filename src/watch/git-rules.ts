/**
 * The rules of one ignore file, matched as git matches them (gitignore(5)).
 *
 * @module dsh-live-workspace/watch/git-rules
 */
import ignore, { type Ignore } from 'ignore'
import { attempt, withoutTrailing } from './git-directories.ts'

/** A rule with more `**` than that costs seconds for one deep path, in git too. */
const MAX_GLOBSTARS = 4
/** No path is longer, on most systems. */
const MAX_RULE_BYTES = 4096
/** Paths that one matcher may cache before it is renewed. */
const MATCHER_CACHE_PATHS = 4096

/**
 * Git matches bytes, the library UTF-16 units. So each byte becomes one character: itself, or one of
 * the 256 Braille patterns, which have no upper or lower case.
 */
const oneCharacterPerByte = (bytes: Buffer): string =>
  bytes
    .toString('latin1')
    .replaceAll(/[\x80-\xff]/g, (high) => String.fromCharCode(0x28_00 | high.charCodeAt(0)))

/** A path as one character for each of its bytes. */
export const pathBytes = (path: string): string =>
  /^[\0-\x7f]*$/.test(path) ? path : oneCharacterPerByte(Buffer.from(path, 'utf8'))

/** Trailing spaces do not count unless a backslash stands before them. */
const trimSpaces = (line: string): string => {
  const kept = withoutTrailing(line, ' ')
  const backslashes = kept.length - withoutTrailing(kept, '\\').length
  return line.slice(0, kept.length + (backslashes % 2))
}

/**
 * Rewrite what the library reads otherwise than git (wildmatch.c, and `match_pathname` in dir.c).
 *
 * - `**` before or behind an escaped slash crosses directories.
 * - The literal start of an anchored pattern is compared first and cut off, so `**` right behind it,
 *   as in `foo**` + `/bar`, crosses directories as well.
 *
 * @param pattern - without `!`, trimmed.
 * @returns patterns that together match the same.
 */
const forLibrary = (pattern: string): string[] => {
  const body = pattern.replaceAll(/(^|\/)\*{2,}\\(?=\/.)/gs, '$1*/**')
  const [, literal, rest] = /^([^*?[\\]*[^*?[\\/])\*{2,}((?:\\?\/.*)?)$/s.exec(body) ?? []
  const anchored = literal?.includes('/') || (rest ?? '').slice(0, -1).includes('/')
  if (literal === undefined || rest === undefined || rest === '\\/' || !anchored) return [plainSlashes(body)]
  const start = literal.startsWith('/') ? literal : `/${literal}`
  const across = plainSlashes(`${start}*/**${rest}`)
  if (rest === '' || rest === '/') return [`${start}*${rest}`, across]
  return rest.startsWith('/') ? [...forLibrary(start + rest.slice(1)), across] : [across]
}

/** At the start or the end an escaped slash is no slash: such a pattern matches nothing. */
const plainSlashes = (pattern: string): string =>
  pattern.replaceAll(/\\(.)/gs, (escaped, character: string, at: number) =>
    character === '/' && at > 0 && at + 2 < pattern.length ? '/' : escaped,
  )

/** Neighbouring rules of one sign, all in the negated form: for those the library leaves parents alone. */
interface Run {
  readonly negative: boolean
  readonly patterns: string[]
  matcher: Ignore
  asked: number
}

/** The rules of one ignore file. */
export class RuleFile {
  readonly path: string
  /** Rules that are not applied because they would take too long. */
  readonly leftOut: number
  readonly #ignoreCase: boolean
  /** The last run first: it decides. */
  readonly #runs: readonly Run[]

  constructor(path: string, bytes: Buffer, ignoreCase: boolean) {
    this.path = path
    this.#ignoreCase = ignoreCase
    const runs: Run[] = []
    let leftOut = 0
    const marked = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
    for (const line of oneCharacterPerByte(marked ? bytes.subarray(3) : bytes).split('\n')) {
      if (line.startsWith('#')) continue
      // For git a line is a string of C: it ends at the first NUL.
      const rule = trimSpaces((line.endsWith('\r') ? line.slice(0, -1) : line).split('\0', 1)[0] ?? '')
      const negative = rule.startsWith('!')
      const patterns = this.#compilable(negative ? rule.slice(1) : rule)
      if (!patterns) {
        leftOut++
        continue
      }
      if (runs.at(-1)?.negative === negative) runs.at(-1)?.patterns.push(...patterns)
      else runs.push({ negative, patterns, matcher: this.#matcher(), asked: 0 })
    }
    for (const { matcher, patterns } of runs) matcher.add(patterns.map(asLine).join(''))
    this.leftOut = leftOut
    this.#runs = runs.toReversed()
  }

  /**
   * What the last rule that matches a path itself says, whatever holds for its parents.
   * @param path - relative to the file's directory, one character per byte; a directory ends with `/`.
   * @returns whether the path is ignored; `undefined` when no rule matches it.
   */
  verdict(path: string): boolean | undefined {
    for (const run of this.#runs) {
      if (++run.asked > MATCHER_CACHE_PATHS) {
        run.asked = 0
        run.matcher = this.#matcher().add(run.matcher)
      }
      if (run.matcher.test(path).unignored) return !run.negative
    }
    return undefined
  }

  #matcher(): Ignore {
    return ignore({ ignorecase: this.#ignoreCase, allowRelativePaths: true })
  }

  #compilable(pattern: string): string[] | undefined {
    if (pattern.length > MAX_RULE_BYTES) return undefined
    if ((pattern.match(/\*{2,}/g)?.length ?? 0) > MAX_GLOBSTARS) return undefined
    const patterns = forLibrary(pattern)
    const compiles = (one: string) => attempt(() => this.#matcher().add(asLine(one)).test('-')) !== undefined
    return patterns.every(compiles) ? patterns : undefined
  }
}

/** The library splits a text into lines and takes one line end off each. */
const asLine = (pattern: string): string => `!${pattern}\r\n`
