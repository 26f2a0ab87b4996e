/**
 * Where a session's project lies: its root, and the directories from there to the working directory.
 *
 * @module dsh-live-workspace/instructions/frame
 */
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import { messageOf } from '../errors.ts'
import { unlessAborted } from './abort.ts'

/** A project as one session sees it. */
export interface Frame {
  /** Root of the project, spelled as a beginning of `cwd`. */
  readonly root: string
  readonly cwd: string
  /** Real path of `root`. */
  readonly realRoot: string
  /** Why the root is not known for certain. */
  readonly doubt: string | undefined
}

/** Whether `path` is `directory` or lies below it; both absolute. */
export const isWithin = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep)

/** Path relative to a directory that contains it, with `/`; empty for the directory itself. */
export const relativeWithin = (directory: string, path: string): string =>
  relative(directory, path).split(sep).join('/')

/** Path relative to the root of the project, by its real or its given spelling; `undefined` outside. */
export const relativeTo = ({ root, realRoot }: Frame, path: string): string | undefined => {
  if (isWithin(realRoot, path)) return relativeWithin(realRoot, path)
  return isWithin(root, path) ? relativeWithin(root, path) : undefined
}

/** Relative paths from the root down to a directory below it, both included. */
export const chainTo = (relativePath: string): string[] => {
  const segments = relativePath === '' ? [] : relativePath.split('/')
  return ['', ...segments.map((_, index) => segments.slice(0, index + 1).join('/'))]
}

const usable = (marker: string): boolean => marker !== '' && marker !== '.' && marker !== '..'

const has = async (fs: FileSystem, path: string, signal: AbortSignal): Promise<boolean> => {
  const entry = await unlessAborted(fs.lstat(path, {}, signal), signal)
  if (entry?.type !== 'symlink') return entry !== undefined
  const target = await unlessAborted(fs.resolve(path, { signal }), signal)
  return (await unlessAborted(fs.stat(target, signal), signal)) !== undefined
}

/** The nearest directory upward that has a marker; `undefined` when there is none. */
const findMarked = async (
  fs: FileSystem,
  start: string,
  markers: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> => {
  for (let directory = start; ; directory = dirname(directory)) {
    for (const marker of markers) {
      if (usable(marker) && (await has(fs, join(directory, marker), signal))) return directory
    }
    if (dirname(directory) === directory) return undefined
  }
}

/** Real path of a directory, or the given one where the provider cannot say. */
const realPath = async (fs: FileSystem, path: string, signal: AbortSignal): Promise<string> =>
  fs.processPath(await unlessAborted(fs.resolve(path, { signal }), signal))

/**
 * Find the project of a working directory: upward from the directory as it is given, and if nothing is
 * found there, from its real path. Without any marker the working directory is the root, and so it is
 * when a directory cannot be asked: what lies above may be somebody else's.
 * @param given - working directory of the session.
 * @throws when the working directory itself cannot be resolved, or the signal aborts.
 */
export const findFrame = async (
  fs: FileSystem,
  given: string,
  markers: readonly string[],
  signal: AbortSignal,
): Promise<Frame> => {
  const real = await realPath(fs, given, signal)
  const cwd = isAbsolute(given) ? resolve(given) : real
  const at = async (cwd: string, root: string, doubt?: string): Promise<Frame> => ({
    cwd,
    root,
    realRoot: await realPath(fs, root, signal),
    doubt,
  })
  try {
    const marked = await findMarked(fs, cwd, markers, signal)
    if (marked !== undefined) return await at(cwd, marked)
    const really = real === cwd ? undefined : await findMarked(fs, real, markers, signal)
    if (really !== undefined) return await at(real, really)
  } catch (error) {
    signal.throwIfAborted()
    return at(cwd, cwd, messageOf(error))
  }
  return at(cwd, cwd)
}

/**
 * The frame of a root that an earlier baseline was made for.
 * @param projectRoot - relative to the working directory, as the baseline's identity says.
 * @returns the frame, or `undefined` if that is not the working directory or above it.
 */
export const frameOf = async (
  fs: FileSystem,
  frame: Frame,
  projectRoot: string,
  signal: AbortSignal,
): Promise<Frame | undefined> => {
  const root = resolve(frame.cwd, projectRoot)
  if (root === frame.root) return frame
  if (!isWithin(root, frame.cwd)) return undefined
  return { ...frame, root, realRoot: await realPath(fs, root, signal) }
}
