/**
 * Files that git took away and brought back between two boundaries: another branch and back, a stash.
 *
 * @module dsh-live-workspace/detour
 */
import { relative, sep } from 'node:path'
import type { Finding } from './judge.ts'
import type { Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'
import { askGit } from './watch/git-process.ts'

/** Size in bytes of git's answer; beyond it the files are counted. */
const MAX_STATUS_BYTES = 16 * 1024 * 1024
/** Paths that git is asked about one by one; beyond them it is asked about all. */
const MAX_NAMED = 200

/** Of what the session has not used, its content says nothing. */
const isUnknown = ({ used, action, now, uncertain }: Finding): boolean =>
  !used && action === 'modified' && (now.kind === 'present' || uncertain === true)

/** Whether git, by its own status, has nothing to say of a path: it holds what the index holds. */
type IsClean = (path: string) => boolean

const cleanPaths = async (
  root: string,
  paths: readonly string[],
  timeoutMs: number,
): Promise<IsClean | undefined> => {
  const inside = (path: string) => relative(root, path).split(sep).join('/')
  const named = paths.length > MAX_NAMED ? [] : paths.map(inside)
  const answer = await askGit(
    root,
    [
      '--literal-pathspecs',
      'status',
      '--porcelain=v1',
      '-z',
      '--no-renames',
      '--untracked-files=all',
      '--ignored=traditional',
      '--ignore-submodules=all',
      '--',
      ...named,
    ],
    { timeoutMs, maxBytes: MAX_STATUS_BYTES },
  )
  if (answer === undefined) return undefined
  // Two letters, a space, and the path; a directory ends with a slash and stands for all in it.
  const entries = answer.split('\0').map((line) => line.slice(3))
  const listed = new Set(entries)
  const directories = entries.filter((entry) => entry.endsWith('/'))
  return (path) => {
    const name = inside(path)
    return !listed.has(name) && !directories.some((directory) => name.startsWith(directory))
  }
}

/**
 * Leave out the unused files that are as they were before git's detour, and only count those of which
 * that is not known.
 * @param root - real path of the work tree's root.
 * @param timeoutMs - longest wait in ms for git.
 */
export const withoutDetours = async (
  state: SessionState,
  findings: readonly Finding[],
  root: string,
  timeoutMs: number,
  deadline: Deadline,
): Promise<Finding[]> => {
  const detours = state.head.takeDetours()
  const pathOf = ({ paths, key }: Finding): string => paths.at(-1) ?? key
  const candidates = detours.size === 0 ? [] : findings.filter(isUnknown)
  if (candidates.length === 0) return [...findings]
  const isClean = await Promise.race([
    cleanPaths(root, candidates.map(pathOf), timeoutMs),
    deadline.reached.then(() => undefined),
  ])
  return findings.flatMap((finding) => {
    if (!isUnknown(finding)) return [finding]
    if (!isClean) return [{ ...finding, uncertain: true }]
    // What the session was told of before was another state, in which git found something to say.
    const isBack = detours.has('head') && finding.before === undefined && isClean(pathOf(finding))
    if (!isBack) {
      // What a stash holds is in no index: nobody can say whether it came back as it was.
      return [detours.has('stash') ? { ...finding, uncertain: true } : finding]
    }
    for (const { path, seq } of finding.covers) {
      if (path !== undefined && seq !== undefined) state.settlePath(path, seq)
    }
    return []
  })
}
