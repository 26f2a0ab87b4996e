/**
 * Where a session works, as the filesystem service sees it.
 *
 * @module dsh-live-workspace/place
 */
import { lstat } from 'node:fs/promises'
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import type { Place } from './session.ts'
import { findRoot } from './watch/root.ts'

/**
 * Find the place of a session.
 * @param cwd - the session's cwd; without one, the service's own default.
 * @param markers - names that make a directory a root.
 * @returns the place, and whether its files are on this machine's disk.
 * @throws what the service throws.
 */
export const locate = async (
  fs: FileSystem,
  cwd: string | undefined,
  markers: readonly string[],
): Promise<{ place: Place; local: boolean }> => {
  const target = await fs.resolve('.', cwd === undefined ? {} : { cwd })
  const real = fs.processPath(target)
  const local = await isLocal(fs, target, real)
  const root = local ? await findRoot(real, markers) : real
  return { place: { lexical: cwd ?? target.displayPath, real, root }, local }
}

/** Whether what the service shows of a directory is what this machine's disk holds. */
const isLocal = async (fs: FileSystem, target: FsTarget, path: string): Promise<boolean> => {
  const here = await lstat(path, { bigint: true }).catch(() => undefined)
  if (!here?.isDirectory()) return false
  const there = await fs.stat(target)
  // Local versions carry the inode; another provider's token only has it by accident.
  return there?.type === 'directory' && String(there.version).includes(`:${here.ino}:`)
}
