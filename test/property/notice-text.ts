/** Reads a notice as a model would: from its text alone. */

export const VERBS = [
  'created',
  'modified',
  'deleted',
  'moved',
  'could not verify',
  'again as this session saw it:',
  'no longer holds what this session wrote, but what was there before:',
] as const

export type Verb = (typeof VERBS)[number]

export interface NamedChange {
  readonly verb: Verb
  readonly used: boolean
  /** As it stands in the notice. */
  readonly path: string
  readonly to: string | undefined
  readonly remarks: string
  /** Lines of what is shown of the change. */
  readonly hunk: readonly string[]
}

export interface ReadNotice {
  readonly changes: readonly NamedChange[]
  /** Paths that are only counted, and how many of them the session has used. */
  readonly counted: number
  readonly countedUsed: number
}

const USED = 'Used by this session:'
const OTHERS = ['Other files:', 'Changed while a command of this session ran (other writers are possible):']
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`
const CHANGE = new RegExp(`^- (${VERBS.join('|')}) (${QUOTED})(?: → (${QUOTED}))?(?: \\((.*)\\))?$`)
const COUNT = /^- (\d+) more paths?/
const COUNT_USED = /^ {2}\((\d+) of them used by this session\)$/

const unquote = (quoted: string): string => String(JSON.parse(quoted))

/** @throws for a line that is none of those that a notice is made of. */
export const readNotice = (text: string): ReadNotice => {
  const lines = text.split('\n')
  if (lines[0] !== '<system-reminder>' || lines.at(-1) !== '</system-reminder>') throw new Error('no frame')
  const changes: (NamedChange & { hunk: string[] })[] = []
  let used: boolean | undefined
  let [counted, countedUsed] = [0, 0]
  for (const line of lines.slice(1, -1)) {
    const [, verb, path, to, remarks] = CHANGE.exec(line) ?? []
    const count = COUNT.exec(line) ?? COUNT_USED.exec(line)
    if (line === USED) used = true
    else if (OTHERS.includes(line)) used = false
    else if (verb !== undefined && path !== undefined && used !== undefined) {
      changes.push({
        verb: verb as Verb,
        used,
        path: unquote(path),
        to: to === undefined ? undefined : unquote(to),
        remarks: remarks ?? '',
        hunk: [],
      })
    } else if (count) {
      if (COUNT.test(line)) counted += Number(count[1])
      else countedUsed += Number(count[1])
    } else if (line.startsWith('  ')) changes.at(-1)?.hunk.push(line.slice(2))
    else if (/^[-\s]/.test(line)) throw new Error(`a line that nobody can place: ${line}`)
  }
  return { changes, counted, countedUsed }
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

/** What a text becomes by the lines of a hunk. @throws where they do not fit. */
export const applyHunk = (before: string, hunk: readonly string[]): string => {
  const old = linesOf(before)
  const now: string[] = []
  let at = 0
  let ending = '\n'
  let sign = ' '
  for (const line of hunk) {
    const range = /^@@ -(\d+),(\d+) \+\d+,\d+ @@$/.exec(line)
    if (range) {
      const start = range[2] === '0' ? Number(range[1]) : Number(range[1]) - 1
      now.push(...old.slice(at, start))
      at = start
      continue
    }
    if (line.startsWith('\\')) {
      if (sign !== '-') ending = ''
      continue
    }
    sign = line[0] ?? ''
    if (sign !== '+') {
      if (old[at] !== line.slice(1)) throw new Error(`${JSON.stringify(line)} is not ${String(old[at])}`)
      at += 1
    }
    if (sign !== '-') now.push(line.slice(1))
  }
  // Behind the last line that is shown, everything is as it was.
  if (at < old.length) ending = before.endsWith('\n') ? '\n' : ''
  now.push(...old.slice(at))
  return now.length === 0 ? '' : now.join('\n') + ending
}
