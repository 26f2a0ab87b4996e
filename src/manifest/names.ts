/**
 * Names of manifest files. Pure.
 *
 * @module dsh-live-workspace/manifest/names
 */
import { createHash } from 'node:crypto'

/** Harmless on every filesystem, whether or not it tells letter case apart. */
const PLAIN = /^[a-z0-9][a-z0-9_-]{0,119}$/
/** What a name stands for that is made from a digest; no plain name may look like it. */
const DIGESTED = /^h-[0-9a-f]{64}$/
/** Names that one platform keeps for devices. */
const RESERVED = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])$/

const SUFFIX = '.json'

/** Name of the manifest file of a session: its id where that is harmless as a name, else a digest of it. */
export const manifestName = (sessionId: string): string => {
  const plain = PLAIN.test(sessionId) && !DIGESTED.test(sessionId) && !RESERVED.test(sessionId)
  return `${plain ? sessionId : `h-${createHash('sha256').update(sessionId).digest('hex')}`}${SUFFIX}`
}

/** Whether a directory entry is a manifest. */
export const isManifest = (name: string): boolean =>
  name.endsWith(SUFFIX) && PLAIN.test(name.slice(0, -SUFFIX.length))

/** Whether a directory entry was left by a writing that did not end. */
export const isUnfinished = (name: string): boolean => /\.json\.[0-9a-f]+\.tmp$/.test(name)

const SET_ASIDE = '.unusable-'

/** Name under which an unusable file is kept. @param at - time of the day in ms. */
export const setAsideName = (name: string, at: number, mark: string): string =>
  `${name}${SET_ASIDE}${at}-${mark}`

/** Whether a directory entry is an unusable file that was kept. */
export const isSetAside = (name: string): boolean => name.includes(`${SUFFIX}${SET_ASIDE}`)
