/**
 * How the watcher asks the disk for entries.
 *
 * Asynchronous calls wait behind everything else that the process asks of its four threads, chokidar's
 * own reading included, which under load is most of the time of a barrier. A local disk answers such a
 * question in microseconds, so there it is asked directly; a filesystem that may hang never is.
 *
 * @module dsh-live-workspace/watch/disk
 */
import { type Dirent, lstatSync, readdirSync, type Stats, statfsSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { codeOf } from '../errors.ts'

/** Asks for entries. */
export interface Disk {
  /** @returns `undefined` when there is no such entry. A link is not followed. */
  entry(path: string): Promise<Stats | undefined>
  /** @throws `ENOENT` or `ENOTDIR` when the directory is gone. */
  list(directory: string): Promise<Dirent[]>
}

/** Types of filesystems that are on this machine's own disk or in its memory (statfs(2)). */
const LOCAL_TYPES = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x01021994, // tmpfs
  0x794c7630, // overlayfs
  0x2fc12fc1, // zfs
  0xf2f52010, // f2fs
  0xca451a4e, // bcachefs
])

const isLocalDisk = (path: string): boolean => {
  try {
    return process.platform === 'linux' && LOCAL_TYPES.has(statfsSync(path).type)
  } catch {
    // Not there, or not to be asked: the careful way is right for both.
    return false
  }
}

/** What lies below something that is no directory is absent too. */
const unlessAbsent = async (ask: () => Stats | Promise<Stats>): Promise<Stats | undefined> => {
  try {
    return await ask()
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

const directDisk: Disk = {
  entry: (path) => unlessAbsent(() => lstatSync(path)),
  // Async, so that an error of the call is a rejection in both ways.
  list: async (directory) => readdirSync(directory, { withFileTypes: true }),
}

const patientDisk: Disk = {
  entry: (path) => unlessAbsent(() => lstat(path)),
  list: (directory) => readdir(directory, { withFileTypes: true }),
}

/** The way to ask a disk of this machine directly; `undefined` where that may take long. */
export const localDisk = (root: string): Disk | undefined => (isLocalDisk(root) ? directDisk : undefined)

/** The way to ask for entries below a root. */
export const diskFor = (root: string): Disk => (isLocalDisk(root) ? directDisk : patientDisk)
