/**
 * A move of git's HEAD as one line. Pure.
 *
 * @module dsh-live-workspace/notice/head-line
 */
import { quotePath } from './escape.ts'
import type { HeadMove, HeadPlace } from './git-head.ts'
import { plural } from './line.ts'

/** Hex digits shown of a commit id. */
const SHORT = 10

const placeName = ({ branch, detached, commit }: HeadPlace, maxPathBytes: number): string => {
  const id = commit?.slice(0, SHORT)
  const at = id === undefined ? 'an unknown commit' : `commit ${id}`
  if (branch === undefined) return at
  const name = `branch ${quotePath(branch, maxPathBytes)}`
  if (detached) return `${at}, detached from ${name}`
  return `${name}${id === undefined ? '' : ` at ${id}`}`
}

/** What is told with a move of HEAD. */
export interface HeadLineParts {
  /** Changed paths that are told with it. */
  readonly paths: number
  /** A command of the session ran when it moved. */
  readonly ownCommand: boolean
  /** No file that the session made has changed. */
  readonly ownFilesKept: boolean
  /** Size in bytes of a branch name. */
  readonly maxPathBytes: number
}

/** Say what moved HEAD. */
export const headLine = (move: HeadMove, parts: HeadLineParts): string => {
  const { paths, ownCommand, ownFilesKept, maxPathBytes } = parts
  const operation =
    move.operation === undefined
      ? undefined
      : `${move.operation.kind} ${move.kind === 'finished' ? 'ended' : 'in progress'}`
  const command = ownCommand ? 'while a command of this session ran' : undefined
  // What git ignores is not among them, so none is no news either.
  const count = paths === 0 ? '.' : `; ${plural(paths, 'path')} changed in the work tree.`
  const rest = ownFilesKept ? `${count} Files that this session made are as they were.` : count
  const place = placeName(move.to, maxPathBytes)
  if (operation !== undefined && placeName(move.from, maxPathBytes) === place) {
    return `Git: ${[operation, command].filter(Boolean).join(', ')}, HEAD still at ${place}${rest}`
  }
  const remarks = [move.action, operation, command].filter((remark) => remark !== undefined).join(', ')
  const names = `${placeName(move.from, maxPathBytes)} → ${place}`
  return `Git HEAD moved: ${names}${remarks === '' ? '' : ` (${remarks})`}${rest}`
}
