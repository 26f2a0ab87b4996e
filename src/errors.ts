/**
 * Facts about unknown errors. Host classes may exist twice in one process, so nothing here asks what
 * class an error is of.
 *
 * @module dsh-live-workspace/errors
 */
import { inspect } from 'node:util'

/** The `code` of an error (`ENOENT`, `FS_NOT_FOUND`), if it has one. */
export const codeOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined

/** Whether a filesystem service says that there is nothing, which is certain, instead of that it failed. */
export const saysAbsent = (error: unknown): boolean =>
  codeOf(error) === 'FS_NOT_FOUND' || codeOf(error) === 'FS_NOT_DIRECTORY'

/** The message of an error, or whatever else was thrown, on one line. */
export const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : typeof error === 'string' ? error : inspect(error, { depth: 1 }))
    .replaceAll(/\s+/g, ' ')
    .trim()
