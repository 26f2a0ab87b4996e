/** What is on the disk, without any of the code under test. */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A content, or that there is none. */
export const ABSENT = Symbol('absent')
export const NO_FILE = Symbol('no file')
export type DiskState = string | typeof ABSENT | typeof NO_FILE

export const stateAt = (path: string): DiskState => {
  const info = statSync(path, { throwIfNoEntry: false })
  if (!info) return ABSENT
  return info.isFile() ? readFileSync(path, 'utf8') : NO_FILE
}

/** Everything by which one state of a file can be told from another one without reading it. */
export const signatureAt = (path: string): string | undefined => {
  const info = statSync(path, { throwIfNoEntry: false, bigint: true })
  return info && `${info.ino}:${info.size}:${info.mtimeNs}:${info.ctimeNs}`
}

/** Real path; of what is not there, the path itself. */
export const realAt = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Signatures of all files below a directory; links and `.git` are left out. */
export const signaturesBelow = (root: string): Map<string, string> => {
  const found = new Map<string, string>()
  const walk = (directory: string): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== '.git') walk(path)
      const signature = entry.isFile() ? signatureAt(path) : undefined
      if (signature !== undefined) found.set(path, signature)
    }
  }
  walk(root)
  return found
}
