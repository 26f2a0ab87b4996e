/**
 * Which directory is the root of a workspace.
 *
 * @module dsh-live-workspace/watch/root
 */
import { lstat, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, parse, sep } from 'node:path'
import { codeOf } from '../errors.ts'

const has = async (directory: string, marker: string): Promise<boolean> => {
  try {
    await lstat(join(directory, marker))
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false
    throw error
  }
}

/**
 * The first directory from `cwd` upward that holds one of the markers. Without one, or when that is
 * the home directory or the filesystem's top, or when a directory cannot be asked, it is `cwd` itself:
 * nobody's whole home is ever watched.
 * @param cwd - absolute path of a directory.
 * @param markers - names, for example `.git`.
 * @returns the real path of the root.
 */
export const findRoot = async (cwd: string, markers: readonly string[]): Promise<string> => {
  const start = await realpath(cwd)
  const home = await realpath(homedir()).catch(() => homedir())
  const top = parse(start).root
  try {
    for (let directory = start; directory !== top && directory !== home; directory = dirname(directory)) {
      for (const marker of markers) if (await has(directory, marker)) return directory
    }
  } catch {
    // A marker that cannot be asked for is not absent: what lies above may be somebody else's.
    return start
  }
  return start
}

/** Whether `path` is `directory` or lies below it. Both absolute and real. */
export const isWithin = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep)
