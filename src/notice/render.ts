/**
 * The text of a change notice. Pure.
 *
 * @module dsh-live-workspace/notice/render
 */
import { bytesOf, quotePath } from './escape.ts'
import { type Change, inShort, lineOf, plural } from './line.ts'

export type { Change } from './line.ts'

/** Bounds of one notice. */
export interface RenderLimits {
  readonly maxNoticePaths: number
  /** In bytes, frame included. */
  readonly maxNoticeBytes: number
  /** In bytes, for one path. */
  readonly maxPathBytes: number
  /** Paths named of those that a command of the session changed and the session has not used. */
  readonly maxOwnCommandPaths?: number
  /** Unused paths named outside of the directories of used ones; when there are more, only lone ones. */
  readonly maxOtherPaths?: number
}

export interface RenderedNotice {
  readonly text: string
  /** One line for a person. */
  readonly summary: string
  /** Keys of changes that have a line of their own. */
  readonly named?: ReadonlySet<string>
  /** Keys of changed files of which everything that changed is shown. */
  readonly shownInFull?: ReadonlySet<string>
}

const USED = 'Used by this session:'
const DIRECTORIES_IN_COUNT = 5
/** Unused files named beside a headline: what moved is one thing, and its size is said. */
const NEAR_NAMED = 6

export const frame = (lines: readonly string[]): string =>
  ['<system-reminder>', ...lines, '</system-reminder>'].join('\n')

const directoryOf = (path: string): string => {
  const end = path.lastIndexOf('/')
  return end < 0 ? './' : path.slice(0, end + 1)
}

/** What is not named, as counts by directory, the largest first. */
const countLine = (rest: readonly Change[], maxPathBytes: number, directories: number): string => {
  const label = `- ${plural(rest.length, 'more path')}`
  const [first, ...others] = new Set(rest.map(({ path }) => directoryOf(path)))
  if (directories === 0 || first === undefined) return label
  if (others.length === 0) return `${label} in ${quotePath(first, maxPathBytes)}`
  const counts = new Map<string, number>()
  for (const { path } of rest) counts.set(directoryOf(path), (counts.get(directoryOf(path)) ?? 0) + 1)
  const top = [...counts].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, directories)
  const elsewhere = rest.length - top.reduce((sum, [, count]) => sum + count, 0)
  const parts = top.map(([directory, count]) => `${count} in ${quotePath(directory, maxPathBytes)}`)
  return `${label}: ${[...parts, ...(elsewhere > 0 ? [`${elsewhere} elsewhere`] : [])].join(', ')}`
}

const byPath = (a: Change, b: Change): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

const isFar = ({ near, action }: Change): boolean => !near && action !== 'moved'

/** How many of the changes are in the directory of one of them. */
const sizesIn = (changes: readonly Change[]): ((change: Change) => number) => {
  const sizes = new Map<string, number>()
  for (const { path } of changes) sizes.set(directoryOf(path), (sizes.get(directoryOf(path)) ?? 0) + 1)
  return ({ path }) => sizes.get(directoryOf(path)) ?? 0
}

/** Files near used ones first; then a lone file, which says more than one of a hundred together. */
const byRelevance = (changes: readonly Change[]): Change[] => {
  const sizeOf = sizesIn(changes)
  const farOf = (change: Change) => Number(isFar(change))
  return changes.toSorted((a, b) => farOf(a) - farOf(b) || sizeOf(a) - sizeOf(b) || byPath(a, b))
}

/**
 * Changes that are only counted because there are so many of them far from used files.
 * @param changes - unused ones, by relevance.
 */
const crowdIn = (changes: readonly Change[], most: number): ReadonlySet<Change> => {
  const far = changes.filter((change) => isFar(change) && !change.ownCommand)
  if (far.length <= most) return new Set()
  const sizeOf = sizesIn(changes)
  const alone = new Set(far.filter((change) => sizeOf(change) === 1).slice(0, most))
  return new Set(far.filter((change) => !alone.has(change)))
}

const summarize = (used: readonly Change[], others: number): string => {
  const first = used[0]
  if (!first) return `${plural(others, 'other path')} changed`
  const rest = others > 0 ? `, ${plural(others, 'other path')}` : ''
  return used.length === 1 ? `${inShort(first)}${rest}` : `${plural(used.length, 'used file')} changed${rest}`
}

const CARRY_ON = 'Leave these changes as they are unless asked to undo them. No reply is needed; carry on.'
const STALE =
  'What you remember of the used files may be out of date: read a file again before you rely on it.'
const PARTLY_STALE =
  'Where a change is not shown, what you remember of the file may be out of date: read it again before you rely on it.'
const COMPLETE = 'What is shown of the used files is everything that changed in them.'
const UNAFFECTED = 'No file that this session has used is affected.'
/** What its own command has made the session may undo as it likes. */
const CARRY_ON_OWN = 'No reply is needed; carry on.'

const longestFoot = (used: number): string => `${used === 0 ? UNAFFECTED : PARTLY_STALE} ${CARRY_ON}`

const footFor = (
  used: readonly Change[],
  shownInFull: ReadonlySet<string>,
  onlyOwnCommands: boolean,
): string => {
  if (used.length === 0) return `${UNAFFECTED} ${onlyOwnCommands ? CARRY_ON_OWN : CARRY_ON}`
  const known = used.filter(({ key }) => key !== undefined && shownInFull.has(key)).length
  return `${known === 0 ? STALE : known === used.length ? COMPLETE : PARTLY_STALE} ${CARRY_ON}`
}

/**
 * Render one notice. Files that the session has used come first; whatever is not named is counted.
 * @param changes - at least one, or `unlisted` above 0.
 * @param unlisted - further changed paths whose names are not known any more.
 * @param headline - a line that comes first, for example what moved HEAD; then of the unused files only
 *   those near used ones are named.
 * @returns a text within `maxNoticeBytes` and at most `maxNoticePaths` named paths.
 */
export const renderChanges = (
  changes: readonly Change[],
  unlisted: number,
  limits: RenderLimits,
  headline?: string,
): RenderedNotice => {
  const used = changes.filter((change) => change.used).toSorted(byPath)
  const others = byRelevance(changes.filter((change) => !change.used))
  const crowd = crowdIn(others, limits.maxOtherPaths ?? Infinity)
  const intro = "Workspace changes outside this session's recorded file operations."
  const head = headline === undefined ? intro : `${intro}\n${headline}`
  const groups = [
    { title: USED, changes: used, most: Infinity },
    {
      title: 'Other files:',
      changes: others.filter(({ ownCommand }) => !ownCommand),
      most: Infinity,
    },
    {
      title: 'Changed while a command of this session ran (other writers are possible):',
      changes: others.filter(({ ownCommand }) => ownCommand),
      most: limits.maxOwnCommandPaths ?? Infinity,
    },
  ]
  const counts = (left: readonly Change[], directories: number, behindUsed: boolean): string[] => {
    if (left.length === 0 && unlisted === 0) return []
    const usedLeft = left.filter((change) => change.used).length
    return [
      ...(behindUsed ? ['Not named:'] : []),
      ...(left.length > 0 ? [countLine(left, limits.maxPathBytes, directories)] : []),
      ...(usedLeft > 0 ? [`  (${usedLeft} of them used by this session)`] : []),
      ...(unlisted > 0 ? [`- at least ${plural(unlisted, 'further path')} whose names were not kept`] : []),
    ]
  }
  // Room for the counts is kept free to the end: nothing may be cut silently.
  let room =
    limits.maxNoticeBytes - bytesOf(frame([head, ...counts(changes, 0, true), longestFoot(used.length)]))
  let named = 0
  const groupsShown: { title: string; shown: { line: string; change: Change }[] }[] = []
  const rest: Change[] = []
  for (const group of groups) {
    const shown: { line: string; change: Change }[] = []
    for (const change of group.changes) {
      const line = lineOf(change, limits.maxPathBytes)
      const cost = bytesOf(line) + 1 + (shown.length === 0 ? bytesOf(group.title) + 1 : 0)
      const far = headline !== undefined && !change.used && (!change.near || shown.length >= NEAR_NAMED)
      if (
        far ||
        crowd.has(change) ||
        change.uncertain ||
        shown.length >= group.most ||
        named >= limits.maxNoticePaths ||
        cost > room
      ) {
        rest.push(change)
        continue
      }
      room -= cost
      named += 1
      shown.push({ line, change })
    }
    if (shown.length > 0) groupsShown.push({ title: group.title, shown })
  }
  const keysNamed = new Set(
    groupsShown.flatMap(({ shown }) => shown.flatMap(({ change: { key } }) => key ?? [])),
  )
  const shownInFull = new Set<string>()
  // Names come first; hunks take what is left.
  const lines = groupsShown.flatMap(({ title, shown }) => [
    title,
    ...shown.flatMap(({ line, change: { key, difference, action } }) => {
      if (action === 'restored' && key !== undefined) shownInFull.add(key)
      if (difference?.kind === 'encoding' && difference.complete && key !== undefined) shownInFull.add(key)
      if (difference?.kind !== 'hunk') return [line]
      const indented = difference.lines.map((text) => `  ${text}`)
      const cost = indented.reduce((sum, text) => sum + bytesOf(text) + 1, 0)
      if (cost > room) return [line]
      room -= cost
      if (difference.complete && key !== undefined) shownInFull.add(key)
      return [line, ...indented]
    }),
  ])
  const onlyOwnCommands = unlisted === 0 && others.length > 0 && others.every(({ ownCommand }) => ownCommand)
  const foot = footFor(used, shownInFull, onlyOwnCommands)
  const behindUsed = groupsShown.at(-1)?.title === USED
  const compose = (directories: number) =>
    frame([head, ...lines, ...counts(rest, directories, behindUsed), foot])
  let text = compose(DIRECTORIES_IN_COUNT)
  for (let directories = DIRECTORIES_IN_COUNT - 1; directories >= 0; directories -= 1) {
    if (bytesOf(text) <= limits.maxNoticeBytes) break
    text = compose(directories)
  }
  return { text, summary: summarize(used, others.length + unlisted), named: keysNamed, shownInFull }
}
