/**
 * What the operating system's watch errors mean and what helps against them.
 *
 * @module dsh-live-workspace/watch/faults
 */
import { codeOf, messageOf } from '../errors.ts'
import type { WatchFault } from './contract.ts'

/** Codes after which a watcher as a whole cannot be trusted; every other one concerns one path. */
const LIMITS = new Set<WatchFault['code']>(['watch-limit', 'instance-limit'])

/** Whether a fault concerns the whole watcher, not only the path that it was met at. */
export const concernsAll = (fault: WatchFault): boolean => LIMITS.has(fault.code)

/** The root is gone, or another directory stands in its place. */
export const ROOT_LOST: WatchFault = {
  code: 'root-lost',
  reason: 'the workspace directory was moved, replaced or removed',
  remedy: 'put the directory back; watching starts again by itself',
}

/** The filesystem is of a type that does not report every change. */
export const unreportedOn = (type: string): WatchFault => ({
  code: 'no-events',
  reason: 'the filesystem of the workspace does not report every change',
  detail: `its type is ${type}`,
  remedy:
    'nothing has to be done: used files are checked at each request; to follow other files too set watch.backend to "polling", or take the type out of watch.silentFilesystems if only this machine writes there',
})

/** An event that must have come did not. */
export const SILENT: WatchFault = {
  code: 'no-events',
  reason: 'the filesystem of the workspace does not report changes',
  remedy:
    'nothing has to be done: used files are checked at each request; to follow other files too set watch.backend to "polling"',
}

/** An ignore file does not count. @param detail - which one, and why. */
export const ignoreFileFault = (detail: string): WatchFault => ({
  code: 'ignore-file',
  reason: 'an ignore file is not applied as a whole',
  detail,
  remedy: 'make it a plain, readable and smaller file, or raise watch.maxIgnoreFileBytes',
})

/** More directories than are to be watched. */
export const overLimit = (directories: number): WatchFault => ({
  code: 'watch-limit',
  reason: 'only a part of the directories is watched, because there are too many',
  detail: `the limit is ${directories} directories`,
  remedy:
    'raise watch.maxWatchedDirectories and "sysctl fs.inotify.max_user_watches", or let git ignore large generated directories',
})

/** The thread of the native backend is gone. */
export const THREAD_LOST: WatchFault = {
  code: 'error',
  reason: 'the thread that watches files ended unexpectedly',
  remedy: 'watching starts again by itself; if it happens again, set watch.backend to "chokidar"',
}

/** Explain a watcher's error. */
export const faultOf = (error: unknown): WatchFault => {
  switch (codeOf(error)) {
    case 'ENOSPC':
      return {
        code: 'watch-limit',
        reason: 'the limit of file watches of this user is used up',
        remedy:
          'raise it with "sysctl fs.inotify.max_user_watches=524288", or add large generated directories to watch.ignoredDirectories',
      }
    case 'EMFILE':
    case 'ENFILE':
      return {
        code: 'instance-limit',
        reason: 'the limit of watcher instances or open files is used up',
        remedy:
          'close other programs that watch files, or raise "sysctl fs.inotify.max_user_instances" and "ulimit -n"',
      }
    case 'EACCES':
    case 'EPERM':
      return {
        code: 'access-denied',
        reason: 'a directory may not be watched',
        detail: messageOf(error),
        remedy: 'give this user access, or add the directory to watch.ignoredDirectories',
      }
    default:
      return {
        code: 'error',
        reason: 'the file watcher reported an error',
        detail: messageOf(error),
        remedy: 'if it happens again, set watch.backend to "polling" or "off"',
      }
  }
}
