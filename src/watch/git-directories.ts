/**
 * Where the repository of a work tree lies, read from files (gitrepository-layout(5)).
 *
 * @module dsh-live-workspace/watch/git-directories
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeOf } from '../errors.ts'

/** Where a work tree's repository lies. */
export interface GitDirectories {
  /** What belongs to this work tree alone: `HEAD`, `logs/HEAD`, operations in progress. */
  readonly gitDirectory: string
  /** What all work trees of the repository share: refs, `info/exclude`. */
  readonly commonDirectory: string
}

/** Size in bytes of a `.git` or `commondir` pointer: one path. */
const MAX_POINTER_BYTES = 32 * 1024

/** What a call returns, or `undefined` when it throws: for questions that any answer is better than none to. */
export const attempt = <T>(ask: () => T): T | undefined => {
  try {
    return ask()
  } catch {
    return undefined
  }
}

type Content = { readonly bytes: Buffer } | { readonly refused: string } | undefined

/** @returns `undefined` when there is no such file. Never throws, never waits for a pipe. */
export const readFile = (path: string, maxBytes: number, flags = 0): Content => {
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags)
    const info = fstatSync(file)
    if (!info.isFile()) return info.isDirectory() ? undefined : { refused: 'it is not a plain file' }
    if (info.size > maxBytes) return { refused: `it is larger than ${maxBytes} bytes` }
    const bytes = Buffer.alloc(info.size)
    return { bytes: bytes.subarray(0, readSync(file, bytes, 0, info.size, 0)) }
  } catch (error) {
    const code = codeOf(error)
    return code === 'EACCES' || code === 'ELOOP' ? { refused: `it cannot be opened (${code})` } : undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** A loop, because such expressions take quadratic time on long runs that do not end the text. */
export const withoutTrailing = (text: string, characters: string): string => {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

/** A pointer file holds one path, which may hold any character but ends with the line. */
const readPointer = (path: string): string | undefined => {
  const content = readFile(path, MAX_POINTER_BYTES)
  return content && 'bytes' in content ? withoutTrailing(content.bytes.toString('utf8'), '\r\n') : undefined
}

/**
 * The repository whose work tree starts at a directory: a `.git` directory, or a `.git` file that names
 * one (gitrepository-layout(5): submodules, and worktrees with their `commondir`).
 * @param directory - absolute path.
 * @returns `undefined` when no work tree starts there. Never throws.
 */
export const gitDirectoriesOf = (directory: string): GitDirectories | undefined => {
  const entry = join(directory, '.git')
  const info = attempt(() => statSync(entry))
  if (!info) return undefined
  const pointer = info.isDirectory() ? entry : /^gitdir: (.+)$/s.exec(readPointer(entry) ?? '')?.[1]
  if (pointer === undefined) return undefined
  const gitDirectory = resolve(directory, pointer)
  // Anything may be called `.git`; git asks for HEAD, too, which may be a dangling link.
  if (!attempt(() => lstatSync(join(gitDirectory, 'HEAD')))) return undefined
  const common = readPointer(join(gitDirectory, 'commondir'))
  return { gitDirectory, commonDirectory: common ? resolve(gitDirectory, common) : gitDirectory }
}
