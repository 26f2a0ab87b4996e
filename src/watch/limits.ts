/**
 * How many directories may be watched.
 *
 * @module dsh-live-workspace/watch/limits
 */
import { readFileSync } from 'node:fs'

/** Limits of watches of this user; the second one holds in a user namespace. */
const FILES = ['/proc/sys/fs/inotify/max_user_watches', '/proc/sys/user/max_inotify_watches']

const readNumber = (file: string): number => {
  try {
    const value = Number(readFileSync(file, 'utf8').trim())
    return Number.isInteger(value) && value > 0 ? value : Infinity
  } catch {
    // Another system, or hidden: no limit is known.
    return Infinity
  }
}

/** The user's limit of watches, `Infinity` where none is known. */
export const userLimit = (): number =>
  process.platform === 'linux' ? Math.min(...FILES.map(readNumber)) : Infinity

/**
 * Directories that all roots of this process may watch together. Pure.
 * @param most - the configured number.
 * @param percent - share of the user's limit.
 * @param limit - the user's limit.
 */
export const directoryCap = (most: number, percent: number, limit: number): number =>
  Math.max(1, Math.min(most, Math.floor((limit * percent) / 100)))
