/**
 * Which filesystem a directory lies on, and whether it can be trusted to report every change.
 *
 * @module dsh-live-workspace/watch/mounts
 */
import { readFileSync } from 'node:fs'
import { isWithin } from './root.ts'

/**
 * Types of filesystems that report only this machine's changes, or none: others write to them too.
 * `*` stands for any characters.
 */
export const SILENT_FILESYSTEMS = [
  'nfs',
  'nfs4',
  'cifs',
  'smb3',
  'smbfs',
  '9p',
  'fuse.*',
  'virtiofs',
  'vboxsf',
  'prl_fs',
  'drvfs',
  'ceph',
  'lustre',
  'gpfs',
  'beegfs',
  'afs',
  'ocfs2',
  'gfs2',
]

/** On this machine's own disk or in its memory: such a filesystem answers at once. */
const LOCAL_TYPES = new Set(['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'tmpfs', 'overlay', 'zfs', 'f2fs'])

/** Spaces and the like are written as three octal digits (proc_pid_mountinfo(5)). */
const unescape = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/**
 * The type of the filesystem that a path lies on. Pure.
 * @param path - absolute real path.
 * @param table - content of `/proc/self/mountinfo`.
 * @returns `undefined` when the table does not say.
 */
export const filesystemIn = (path: string, table: string): string | undefined => {
  let [deepest, type]: [string, string | undefined] = ['', undefined]
  for (const line of table.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const point = unescape(before.split(' ')[4] ?? '')
    const found = after.split(' ')[0]
    // Of two mounts on one point the later one lies on top.
    if (!found || !point.startsWith('/') || !isWithin(point, path) || point.length < deepest.length) continue
    ;[deepest, type] = [point, found]
  }
  return type
}

/**
 * The type of the filesystem that a path lies on. Asks nothing of that filesystem, so it never hangs.
 * @returns `undefined` where the system does not tell.
 */
export const filesystemOf = (path: string): string | undefined => {
  if (process.platform !== 'linux') return undefined
  try {
    return filesystemIn(path, readFileSync('/proc/self/mountinfo', 'utf8'))
  } catch {
    // No such table here: the filesystem counts as one that reports everything, until the probe.
    return undefined
  }
}

/** Whether a type is among the patterns. @param patterns - names with `*` for any characters. */
export const matchesType = (type: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => new RegExp(`^${pattern.split('*').map(escapePattern).join('.*')}$`).test(type))

const escapePattern = (text: string): string => text.replace(/[\\^$.|?+()[\]{}-]/g, '\\$&')

/** Whether a filesystem of this type answers at once. */
export const answersAtOnce = (type: string | undefined): boolean =>
  type !== undefined && LOCAL_TYPES.has(type)
