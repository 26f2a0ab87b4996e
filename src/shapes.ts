/**
 * Changes that are told as one: a file that vanished in one place and appeared in another.
 *
 * @module dsh-live-workspace/shapes
 */
import type { Contents } from './contents.ts'
import type { Finding } from './judge.ts'
import type { Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'

/** A used file that is somewhere else now. */
export interface Move {
  readonly from: Finding
  readonly to: Finding
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
      return content && { finding, digest: content.digest }
    }),
  )
  const known = digests.filter((entry) => entry !== undefined)
  const taken = new Set<Finding>()
  return gone.flatMap((from) => {
    const content = state.shelf.get(from.key)
    const same = known.filter((entry) => entry.digest === content?.digest && !taken.has(entry.finding))
    const named = same.filter(({ finding }) => nameOf(finding.path) === nameOf(from.path))
    // Nothing, or several equal files, say nothing about where one went.
    const to = (named.length > 0 ? named : same).length === 1 ? (named[0] ?? same[0])?.finding : undefined
    if (!content || content.size === 0 || !to) return []
    taken.add(to)
    return [{ from, to }]
  })
}

/** A directory that was moved with everything in it, as far as the session's own files tell. */
export interface DirectoryMove {
  /** Paths with a slash at the end. */
  readonly from: string
  readonly to: string
}

/** The longest part at the end that two paths share, in whole segments. */
const sharedTail = (a: string, b: string): number => {
  const [left, right] = [a.split('/').toReversed(), b.split('/').toReversed()]
  let count = 0
  while (count < left.length - 1 && count < right.length - 1 && left[count] === right[count]) count += 1
  return count
}

const headOf = (path: string, tail: number): string => `${path.split('/').slice(0, -tail).join('/')}/`

/**
 * The directories whose used files moved together.
 * @returns those that most of their used files, and at least two, have followed.
 */
export const findDirectoryMoves = (moves: readonly Move[], findings: readonly Finding[]): DirectoryMove[] => {
  const votes = new Map<string, { move: DirectoryMove; count: number }>()
  for (const { from, to } of moves) {
    const tail = sharedTail(from.path, to.path)
    if (tail === 0) continue
    const move = { from: headOf(from.path, tail), to: headOf(to.path, tail) }
    const id = `${move.from}\0${move.to}`
    votes.set(id, { move, count: (votes.get(id)?.count ?? 0) + 1 })
  }
  return [...votes.values()]
    .filter(({ move, count }) => {
      const affected = findings.filter(({ used, path }) => used && path.startsWith(move.from))
      return count >= 2 && count * 2 > affected.length
    })
    .map(({ move }) => move)
}
