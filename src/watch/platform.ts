/**
 * What the system offers to a watcher.
 *
 * @module dsh-live-workspace/watch/platform
 */
import { readFileSync } from 'node:fs'

/** Share of a user's watches that one root may take: other programs watch files, too. */
const SHARE_OF_WATCHES = 0.6

/** Whether a watch on each directory, with one ordered queue for all of them, is to be had. */
export const hasNativeBackend = (): boolean => process.platform === 'linux'

/**
 * Directories to watch at most in one root.
 * @param wanted - what the configuration allows.
 */
export const grantedDirectories = (wanted: number): number => {
  try {
    const limit = Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'utf8'))
    return limit > 0 ? Math.min(wanted, Math.floor(limit * SHARE_OF_WATCHES)) : wanted
  } catch {
    // Another system, with other limits.
    return wanted
  }
}
