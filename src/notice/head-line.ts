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

const placeName = ({ branch, commit }: HeadPlace, maxPathBytes: number): string => {
  const id = commit?.slice(0, SHORT)
  if (branch === undefined) return id === undefined ? 'an unknown commit' : `commit ${id}`
  return `branch ${quotePath(branch, maxPathBytes)}${id === undefined ? '' : ` at ${id}`}`
}

/**
 * Say what moved HEAD.
 * @param paths - changed paths that are told with it.
 * @param maxPathBytes - size in bytes of a branch name.
 */
export const headLine = (move: HeadMove, paths: number, maxPathBytes: number): string => {
  const action = move.action ?? (move.kind === 'moved' ? 'move' : undefined)
  const operation =
    move.operation === undefined
      ? undefined
      : `${move.operation.kind} ${move.kind === 'finished' ? 'ended' : 'in progress'}`
  const rest = `; ${plural(paths, 'path')} changed in the work tree. Untracked files are left alone.`
  const place = placeName(move.to, maxPathBytes)
  if (operation !== undefined && placeName(move.from, maxPathBytes) === place) {
    return `Git: ${operation}, HEAD still at ${place}${rest}`
  }
  const remarks = [action, operation].filter((remark) => remark !== undefined).join(', ')
  const names = `${placeName(move.from, maxPathBytes)} → ${place}`
  return `Git HEAD moved: ${names}${remarks === '' ? '' : ` (${remarks})`}${rest}`
}
