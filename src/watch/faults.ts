/**
 * What the operating system's watch errors mean and what helps against them.
 *
 * @module dsh-live-workspace/watch/faults
 */
import { codeOf, messageOf } from '../errors.ts'
import type { WatchFault } from './contract.ts'

/**
 * Explain a watcher's error.
 * @param error - as the watcher gave it.
 * @param root - the watched root, for the text.
 */
export const faultOf = (error: unknown, root: string): WatchFault => {
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
        reason: `a directory may not be watched (${messageOf(error)})`,
        remedy: 'give this user access, or add the directory to watch.ignoredDirectories',
      }
    default:
      return {
        code: 'error',
        reason: `the watcher of ${root} failed (${messageOf(error)})`,
        remedy: 'if it happens again, set watch.backend to "polling" or "off"',
      }
  }
}
