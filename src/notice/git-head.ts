/**
 * Where HEAD of a work tree stands, and what its move from one state to another was.
 *
 * Read from files alone (gitrepository-layout(5)): no git process, no lock. Names and messages are what
 * somebody wrote into the repository: they are handed on raw and must be escaped before they are shown.
 *
 * @module dsh-live-workspace/notice/git-head
 */
import { constants } from 'node:fs'
import { lstat, open, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type GitDirectories, gitDirectoriesOf } from '../watch/git-directories.ts'

/** One line of HEAD's own log (git-reflog(1)). */
export interface HeadStep {
  /** Commit ids in hex; all zeros for "no commit". */
  readonly from: string
  readonly to: string
  /** When, in seconds since 1970. */
  readonly time: number
  /** What git wrote, raw: a verb, and mostly text of the user's. */
  readonly message: string
}

/** Something that git has begun and will continue or abort. */
export interface HeadOperation {
  readonly kind: 'rebase' | 'am' | 'merge' | 'cherry-pick' | 'revert' | 'bisect'
  /** Full name of the ref that HEAD goes back to, where HEAD is detached meanwhile. */
  readonly ref: string | undefined
}

export interface HeadState {
  /** Full name of the ref that HEAD points to; `undefined` when detached or not known. */
  readonly ref: string | undefined
  readonly detached: boolean
  /** Commit id in hex; `undefined` when there is none yet, or when it is not known. */
  readonly commit: string | undefined
  /** Whether the ref has no commit yet. */
  readonly unborn: boolean
  readonly operation: HeadOperation | undefined
  /** The newest steps, oldest first, as far as the end of the log that was read goes. */
  readonly steps: readonly HeadStep[]
}

/** What moved HEAD, by git's own log. */
export type HeadAction =
  'commit' | 'amend' | 'checkout' | 'reset' | 'merge' | 'pull' | 'rebase' | 'cherry-pick' | 'revert' | 'am'

export interface HeadPlace {
  /** Name of the branch, the one being rebased or bisected included; `undefined` when detached. Raw. */
  readonly branch: string | undefined
  /** HEAD is not on that branch now, but will go back to it. */
  readonly detached: boolean
  readonly commit: string | undefined
}

export interface HeadMove {
  /**
   * - `switched`: another branch than before.
   * - `detached`: a commit instead of a branch.
   * - `moved`: the same branch, or again none, at another commit.
   * - `started`, `finished`: an operation was begun, or was completed or aborted, on the same branch.
   */
  readonly kind: 'switched' | 'detached' | 'moved' | 'started' | 'finished'
  readonly from: HeadPlace
  readonly to: HeadPlace
  /** The operation that is in progress now; with `finished` the one that was. */
  readonly operation: HeadOperation | undefined
  /** `undefined` when the log does not tell, or tells of different ones. */
  readonly action: HeadAction | undefined
  /** Steps in the log between the two states; `undefined` when it does not tell. */
  readonly steps: number | undefined
  /** The log's message of the last step, raw; `undefined` when it does not tell. */
  readonly message: string | undefined
}

const MAX_POINTER_BYTES = 8 * 1024
const MAX_PACKED_REFS_BYTES = 16 * 1024 * 1024
const LOG_TAIL_BYTES = 16 * 1024
/** As in git: a ref that names a ref that names a ref. */
const MAX_SYMBOLIC_DEPTH = 5
const LOCAL_BRANCH = 'refs/heads/'

/**
 * The end of a plain file; a pipe of that name is not waited for.
 * @param most - bytes of it that are read.
 * @returns the bytes and whether they are the whole file; `undefined` when it cannot be read.
 */
const readEnd = async (
  path: string,
  most: number,
): Promise<{ bytes: Buffer; whole: boolean } | undefined> => {
  let file
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const info = await file.stat()
    if (!info.isFile()) return undefined
    const length = Math.min(info.size, most)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, info.size - length)
    return { bytes: buffer.subarray(0, bytesRead), whole: length === info.size }
  } catch {
    return undefined
  } finally {
    await file?.close().catch(() => undefined)
  }
}

const readLine = async (path: string): Promise<string | undefined> => {
  const end = await readEnd(path, MAX_POINTER_BYTES)
  return end?.whole ? end.bytes.toString('utf8').trimEnd() : undefined
}

const exists = async (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** Whether a ref's name is one that git accepts (git-check-ref-format(1)): it becomes a path. */
const isRefName = (name: string): boolean =>
  /^refs\/[^\0-\x20\x7f~^:?*[\\]+$/.test(name) && !/\.\.|\/\/|\/\.|[/.]$/.test(name)

const symbolicTarget = (line: string): string | undefined => {
  const name = /^ref:\s*(.+)$/s.exec(line)?.[1]
  return name !== undefined && isRefName(name) ? name : undefined
}

interface RefValue {
  readonly commit: string | undefined
  readonly unborn: boolean
}

const UNKNOWN: RefValue = { commit: undefined, unborn: false }
const UNBORN: RefValue = { commit: undefined, unborn: true }

const readPacked = async (directories: GitDirectories, ref: string): Promise<RefValue> => {
  const path = join(directories.commonDirectory, 'packed-refs')
  const end = await readEnd(path, MAX_PACKED_REFS_BYTES)
  if (!end) return (await exists(path)) ? UNKNOWN : UNBORN
  if (!end.whole) return UNKNOWN
  const at = end.bytes.indexOf(` ${ref}\n`)
  if (at < 0) return UNBORN
  const commit = end.bytes.subarray(end.bytes.lastIndexOf('\n', at) + 1, at).toString('latin1')
  return COMMIT.test(commit) ? { commit, unborn: false } : UNKNOWN
}

const readRef = async (directories: GitDirectories, ref: string, depth = 0): Promise<RefValue> => {
  const line = await readLine(join(directories.commonDirectory, ref))
  if (!line) return readPacked(directories, ref)
  if (COMMIT.test(line)) return { commit: line, unborn: false }
  const target = symbolicTarget(line)
  return target !== undefined && depth < MAX_SYMBOLIC_DEPTH
    ? readRef(directories, target, depth + 1)
    : UNKNOWN
}

const readOperation = async (gitDirectory: string): Promise<HeadOperation | undefined> => {
  const has = async (name: string) => exists(join(gitDirectory, name))
  const refIn = async (name: string, prefix = '') => {
    const line = await readLine(join(gitDirectory, name))
    return line !== undefined && !COMMIT.test(line) && isRefName(prefix + line) ? prefix + line : undefined
  }
  // A stopped rebase leaves CHERRY_PICK_HEAD as well, so it comes first.
  if (await has('rebase-merge')) return { kind: 'rebase', ref: await refIn('rebase-merge/head-name') }
  if (await has('rebase-apply')) {
    if (await has('rebase-apply/applying')) return { kind: 'am', ref: undefined }
    return { kind: 'rebase', ref: await refIn('rebase-apply/head-name') }
  }
  if (await has('MERGE_HEAD')) return { kind: 'merge', ref: undefined }
  if (await has('CHERRY_PICK_HEAD')) return { kind: 'cherry-pick', ref: undefined }
  if (await has('REVERT_HEAD')) return { kind: 'revert', ref: undefined }
  if (await has('BISECT_LOG')) return { kind: 'bisect', ref: await refIn('BISECT_START', LOCAL_BRANCH) }
  return undefined
}

const STEP = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) .*?> (\d{1,15}) [+-]\d{4}(?:\t(.*))?$/s

const readSteps = async (gitDirectory: string): Promise<HeadStep[]> => {
  const end = await readEnd(join(gitDirectory, 'logs', 'HEAD'), LOG_TAIL_BYTES)
  if (!end) return []
  const lines = end.bytes.toString('utf8').split('\n')
  // What stands behind the last line end is being written; before the first one a line may be cut.
  return lines.slice(end.whole ? 0 : 1, -1).flatMap((line) => {
    const [, from, to, time, message = ''] = STEP.exec(line) ?? []
    return from === undefined || to === undefined ? [] : [{ from, to, time: Number(time), message }]
  })
}

/** HEAD's target: the text of the file, or, in old repositories, where the link points. */
const readHeadLine = async (gitDirectory: string): Promise<string | undefined> => {
  const path = join(gitDirectory, 'HEAD')
  const link = await readlink(path).catch(() => undefined)
  return link?.startsWith('refs/') ? `ref: ${link}` : readLine(path)
}

/**
 * Read where HEAD stands.
 * @param root - absolute path of a work tree's root; `.git` may be a directory or a file (worktrees,
 *   submodules).
 * @returns `undefined` when there is no repository or its HEAD makes no sense. Where refs are kept in
 *   another format than files (reftable), neither the ref nor the commit is known. Never rejects.
 */
export const readHead = async (root: string): Promise<HeadState | undefined> => {
  const directories = gitDirectoriesOf(root)
  if (!directories) return undefined
  const line = await readHeadLine(directories.gitDirectory)
  if (line === undefined) return undefined
  const operation = await readOperation(directories.gitDirectory)
  const rest = { operation, steps: await readSteps(directories.gitDirectory) }
  if (COMMIT.test(line)) return { ref: undefined, detached: true, commit: line, unborn: false, ...rest }
  if (await exists(join(directories.commonDirectory, 'reftable'))) {
    return { ref: undefined, detached: false, ...UNKNOWN, ...rest }
  }
  const ref = symbolicTarget(line)
  if (ref === undefined) return undefined
  return { ref, detached: false, ...(await readRef(directories, ref)), ...rest }
}

/**
 * The files whose change can be a move of HEAD; some of them may not exist. They are replaced by
 * renaming, so their directories are what to watch. After a switch the list is another one.
 * @param root - absolute path of a work tree's root.
 * @returns absolute paths; none without a repository. Never rejects.
 */
export const headSources = async (root: string): Promise<string[]> => {
  const directories = gitDirectoriesOf(root)
  // One may be made while the session runs.
  if (!directories) return [join(root, '.git'), join(root, '.git', 'HEAD')]
  const { gitDirectory, commonDirectory } = directories
  const ref = symbolicTarget((await readHeadLine(gitDirectory)) ?? '')
  return [
    ...['HEAD', 'logs/HEAD', 'rebase-merge', 'rebase-apply'].map((name) => join(gitDirectory, name)),
    ...['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'BISECT_LOG'].map((name) =>
      join(gitDirectory, name),
    ),
    ...[...(ref === undefined ? [] : [ref]), 'refs/stash', 'packed-refs', 'reftable/tables.list'].map(
      (name) => join(commonDirectory, name),
    ),
  ]
}

const ACTION = /^(commit|checkout|reset|merge|pull|rebase|cherry-pick|revert|am)\b/
const COMMIT_VARIANT = /^commit \((amend|merge|cherry-pick)\)/

/** The verb at the start of a log message. What follows it is the user's, and proves nothing. */
const actionOf = (message: string): HeadAction | undefined =>
  // Both expressions match nothing but names of actions.
  (COMMIT_VARIANT.exec(message)?.[1] ?? ACTION.exec(message)?.[1]) as HeadAction | undefined

const isSameStep = (a: HeadStep, b: HeadStep): boolean =>
  a.from === b.from && a.to === b.to && a.time === b.time && a.message === b.message

/**
 * Where in a log an earlier reading of it ended. Its last step alone does not tell: the log counts in
 * seconds, and a way there and back can be made twice in one.
 */
const endOfEarlier = (earlier: readonly HeadStep[], steps: readonly HeadStep[]): number =>
  steps.findLastIndex((_, end) =>
    earlier.toReversed().every((known, back) => {
      const step = steps[end - back]
      return step === undefined || isSameStep(known, step)
    }),
  )

/** The steps that lead from one state to the other, or none when the log is not about just that. */
const stepsBetween = (before: HeadState, after: HeadState): readonly HeadStep[] => {
  const seen = before.steps.length === 0 ? -1 : endOfEarlier(before.steps, after.steps)
  if (before.steps.length > 0 && seen < 0) return []
  const steps = after.steps.slice(seen + 1)
  const start = before.unborn ? /^0+$/.test(steps[0]?.from ?? '') : steps[0]?.from === before.commit
  return start && steps.at(-1)?.to === after.commit ? steps : []
}

const placeOf = ({ ref, operation, commit }: HeadState): HeadPlace => {
  const name = ref ?? operation?.ref
  const branch = name?.startsWith(LOCAL_BRANCH) ? name.slice(LOCAL_BRANCH.length) : name
  return { branch, detached: ref === undefined && branch !== undefined, commit }
}

const kindOf = (before: HeadState, after: HeadState): HeadMove['kind'] | undefined => {
  const from = placeOf(before)
  const to = placeOf(after)
  const known = [before, after].every(({ ref, detached }) => detached || ref !== undefined)
  if (known && from.branch !== to.branch) return to.branch === undefined ? 'detached' : 'switched'
  if (after.operation && after.operation.kind !== before.operation?.kind) return 'started'
  if (before.operation && !after.operation) return 'finished'
  const comparable = (before.unborn || from.commit !== undefined) && (after.unborn || to.commit !== undefined)
  return comparable && from.commit !== to.commit ? 'moved' : undefined
}

/** Whether HEAD stands where it stood, but by its log was at another commit meanwhile. Pure. */
export const ledBack = (before: HeadState | undefined, after: HeadState | undefined): boolean =>
  before !== undefined &&
  after !== undefined &&
  kindOf(before, after) === undefined &&
  stepsBetween(before, after).some(({ from, to }) => from !== to)

/**
 * What happened to HEAD between two states. Pure.
 * @returns `undefined` when it stands where it stood, also after a way there and back, and when one of
 *   the states is not known. The files alone cannot tell a commit from a reset or a pull; the log can,
 *   unless it is switched off, cut or about something else: then the move is only called a move.
 */
export const describeHeadMove = (
  before: HeadState | undefined,
  after: HeadState | undefined,
): HeadMove | undefined => {
  const kind = before && after && kindOf(before, after)
  if (!kind) return undefined
  const steps = stepsBetween(before, after)
  const moving = steps.filter(({ from, to }) => from !== to)
  const actions = new Set((moving.length > 0 ? moving : steps).map(({ message }) => actionOf(message)))
  return {
    kind,
    from: placeOf(before),
    to: placeOf(after),
    operation: kind === 'finished' ? before.operation : after.operation,
    action: actions.size === 1 ? [...actions][0] : undefined,
    steps: steps.length > 0 ? steps.length : undefined,
    message: steps.at(-1)?.message,
  }
}
