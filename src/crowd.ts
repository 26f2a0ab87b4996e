/**
 * Very many unused paths at once: a few are asked about one by one, the rest is only counted anyway.
 *
 * @module dsh-live-workspace/crowd
 */
import { basename, dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { countOnly, type Finding } from './judge.ts'
import type { Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'
import type { Subject } from './subjects.ts'
import { type Disk, localDisk } from './watch/disk.ts'

/** What becomes of unused paths. */
export interface Crowd {
  /** To be asked about through the filesystem service. */
  readonly asked: readonly Subject[]
  /** Known to have changed, and no more than that. */
  readonly counted: readonly Finding[]
}

export interface CrowdLimits {
  /** Paths asked about one by one; more of them are counted. */
  readonly maxCheckedPaths: number
  /** Time in ms after which other work goes on. */
  readonly scanSliceMs: number
}

const pathOf = ({ waiting }: Subject): string => waiting[0]?.path ?? ''

/** Those that a notice would name come first: where a used file may have gone, near used ones, alone. */
const byRelevance = (
  state: SessionState,
  subjects: readonly Subject[],
  ofUsed: readonly Finding[],
): Subject[] => {
  const gone = new Set(ofUsed.filter(({ action }) => action === 'deleted').map(({ key }) => basename(key)))
  const near = new Set<string>()
  for (const { key, target } of state.ledger.entries())
    near.add(dirname(key)).add(dirname(target.displayPath))
  const sizes = new Map<string, number>()
  for (const subject of subjects) {
    const directory = dirname(pathOf(subject))
    sizes.set(directory, (sizes.get(directory) ?? 0) + 1)
  }
  const rankOf = (subject: Subject): number => {
    const path = pathOf(subject)
    if (gone.has(basename(path))) return 0
    if (near.has(dirname(path))) return 1
    return sizes.get(dirname(path)) === 1 ? 2 : 3
  }
  const ranked = subjects.map((subject) => ({ subject, rank: rankOf(subject) }))
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ subject }) => subject)
}

/** Whether a path is there, by this machine's own disk; `undefined` where it cannot say. */
const isThere = async (disk: Disk, path: string): Promise<boolean | undefined> =>
  disk.entry(path).then(
    (entry) => entry !== undefined,
    () => undefined,
  )

/**
 * Divide unused paths into those to ask about and those to count. What nobody knew and is not there is
 * nothing: it is settled.
 * @param ofUsed - what was found of used files.
 * @returns every path as `asked` where there are few, or where the disk is not this machine's own.
 */
export const divide = async (
  state: SessionState,
  subjects: readonly Subject[],
  ofUsed: readonly Finding[],
  { maxCheckedPaths, scanSliceMs }: CrowdLimits,
  deadline: Deadline,
): Promise<Crowd> => {
  const root = state.place?.root
  const isLive = state.reader?.coverage.kind === 'live'
  const disk = subjects.length > maxCheckedPaths && isLive && root !== undefined ? localDisk(root) : undefined
  if (!disk) return { asked: subjects, counted: [] }
  const ordered = byRelevance(state, subjects, ofUsed)
  const counted: Finding[] = []
  let sliceStartedAt = performance.now()
  for (const subject of ordered.slice(maxCheckedPaths)) {
    const [first] = subject.waiting
    if (first?.existed === false && !deadline.expired && (await isThere(disk, first.path)) === false) {
      for (const { path, seq } of subject.waiting) state.settlePath(path, seq)
    } else counted.push(...countOnly(state, subject))
    if (performance.now() - sliceStartedAt < scanSliceMs) continue
    await turn()
    sliceStartedAt = performance.now()
  }
  return { asked: ordered.slice(0, maxCheckedPaths), counted }
}
