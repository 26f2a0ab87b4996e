/**
 * What the system offers to a watcher.
 *
 * @module dsh-live-workspace/watch/platform
 */
/** Whether a watch on each directory, with one ordered queue for all of them, is to be had. */
export const hasNativeBackend = (): boolean => process.platform === 'linux'

/** Name of that backend. */
export const NATIVE = 'native'
