/**
 * Changes that are told as one: a file that vanished in one place and appeared in another.
 *
 * @module dsh-live-workspace/shapes
 */
import type { Contents } from './contents.ts'
import type { Finding } from './judge.ts'
import type { Content } from './ledger/content.ts'
import type { Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'

/** A used file that is somewhere else now. */
export interface Move {
  readonly from: Finding
  readonly to: Finding
  /** What it holds, there as here. */
  readonly content: Content
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/**
 * Find moved files: equal content of a used file that vanished and a file that appeared.
 * @param maxReads - files read to find out; those of the same name first.
 */
export const findMoves = async (
  state: SessionState,
  contents: Contents,
  findings: readonly Finding[],
  maxReads: number,
  deadline: Deadline,
): Promise<Move[]> => {
  const gone = findings.filter(({ used, action }) => used && (action === 'deleted' || action === 'undone'))
  const appeared = findings.filter(
    ({ used, action, now }) => !used && action === 'created' && now.kind === 'present',
  )
  if (gone.length === 0 || appeared.length === 0) return []
  const goneNames = new Set(gone.map(({ path }) => nameOf(path)))
  const order = appeared.toSorted(
    (a, b) => Number(goneNames.has(nameOf(b.path))) - Number(goneNames.has(nameOf(a.path))),
  )
  const digests = await Promise.all(
    order.slice(0, maxReads).map(async (finding) => {
      const { target, now, key } = finding
      if (!target || now.kind !== 'present') return undefined
      const content = await contents.now(state, key, target, now.version, deadline)
      return content && { finding, content }
    }),
  )
  const known = digests.filter((entry) => entry !== undefined)
  const taken = new Set<Finding>()
  return gone.flatMap((from) => {
    const content = state.shelf.get(from.key)
    const same = known.filter(
      (entry) => entry.content.digest === content?.digest && !taken.has(entry.finding),
    )
    const named = same.filter(({ finding }) => nameOf(finding.path) === nameOf(from.path))
    // Nothing, or several equal files, say nothing about where one went.
    const there = (named.length > 0 ? named : same).length === 1 ? (named[0] ?? same[0]) : undefined
    if (!content || content.size === 0 || !there) return []
    taken.add(there.finding)
    return [{ from, to: there.finding, content: there.content }]
  })
}

/** A directory that was moved, as far as the session's own files tell. */
export interface DirectoryMove {
  /** Paths as the model knows them, with a slash at the end. */
  readonly from: string
  readonly to: string
  /** What it explains: files gone here of which one of the same name, for used ones also of the same content, is there. */
  readonly explains: ReadonlySet<Finding>
}

/** The longest part at the end that two paths share, in whole segments. */
const sharedTail = (a: string, b: string): number => {
  const [left, right] = [a.split('/').toReversed(), b.split('/').toReversed()]
  let count = 0
  while (count < left.length - 1 && count < right.length - 1 && left[count] === right[count]) count += 1
  return count
}

const headOf = (path: string, tail: number): string => `${path.split('/').slice(0, -tail).join('/')}/`

const explainedBy = (
  from: string,
  to: string,
  moves: readonly Move[],
  findings: readonly Finding[],
): Set<Finding> => {
  const explained = new Set<Finding>()
  for (const move of moves) {
    const inside = move.from.path.startsWith(from) && move.from.path.slice(from.length)
    if (inside === false || move.to.path !== to + inside) continue
    explained.add(move.from).add(move.to)
  }
  const created = new Map(
    findings.filter(({ action, used }) => action === 'created' && !used).map((found) => [found.path, found]),
  )
  for (const finding of findings) {
    if (finding.used || finding.action !== 'deleted' || !finding.path.startsWith(from)) continue
    const there = created.get(to + finding.path.slice(from.length))
    if (there) explained.add(finding).add(there)
  }
  return explained
}

/**
 * The directories whose used files moved together.
 * @param isGone - whether nothing is at an absolute path any more: what is still there was not moved.
 * @returns those that most of their used files, and at least two, have followed.
 */
export const findDirectoryMoves = async (
  moves: readonly Move[],
  findings: readonly Finding[],
  isGone: (path: string) => Promise<boolean>,
): Promise<DirectoryMove[]> => {
  const votes = new Map<string, { from: string; to: string; absolute: string; count: number }>()
  for (const { from, to } of moves) {
    const tail = sharedTail(from.path, to.path)
    if (tail === 0) continue
    const heads = { from: headOf(from.path, tail), to: headOf(to.path, tail) }
    const id = `${heads.from}\0${heads.to}`
    const absolute = headOf(from.paths.at(-1) ?? from.key, tail).slice(0, -1)
    votes.set(id, { ...heads, absolute, count: (votes.get(id)?.count ?? 0) + 1 })
  }
  const found: DirectoryMove[] = []
  for (const { from, to, absolute, count } of votes.values()) {
    const affected = findings.filter(({ used, path }) => used && path.startsWith(from))
    if (count < 2 || count * 2 <= affected.length || !(await isGone(absolute))) continue
    found.push({ from, to, explains: explainedBy(from, to, moves, findings) })
  }
  return found
}
