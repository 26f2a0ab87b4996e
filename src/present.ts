/**
 * Findings as changes that a notice can tell: attributed, compared, and put together where they are one.
 *
 * @module dsh-live-workspace/present
 */
import { dirname } from 'node:path'
import type { Writers } from './attribution.ts'
import type { NoticeConfig } from './config.ts'
import type { Finding } from './judge.ts'
import { quotePath } from './notice/escape.ts'
import { type Difference, differenceOf } from './notice/hunk.ts'
import type { Change } from './notice/line.ts'
import { ABSENT, type SessionState } from './session.ts'
import { type DirectoryMove, findDirectoryMoves, type Move } from './shapes.ts'

/** What is needed to present findings to one session. */
export interface Presentation {
  readonly config: NoticeConfig
  readonly writers: Writers
  readonly isSecret: (path: string) => boolean
  /** Whether the model can still see this event of the session log. */
  readonly visible: (seq: number) => boolean
  /** Time in ms by the process's monotonic clock. */
  readonly now: number
}

const differenceFor = (finding: Finding, shown: Presentation): Difference | undefined => {
  const { used, comparison, path } = finding
  const { config, isSecret, visible } = shown
  if (!config.showHunks || !used || !comparison || finding.action === 'restored') return undefined
  if ([path, used.target.displayPath, used.key, ...finding.paths].some(isSecret)) return undefined
  // Only against a text that the model still holds.
  if (used.nested || ![used.resultSeq, ...used.alsoShown].every(visible)) return undefined
  const [before, now] = [comparison.before.text, comparison.now.text]
  return before === undefined || now === undefined
    ? undefined
    : differenceOf(before, now, { ...config, contextLines: config.hunkContextLines })
}

const ago = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  return seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`
}

const writerOf = (state: SessionState, finding: Finding, shown: Presentation): string | undefined => {
  const { key, now, before } = finding
  if (now.kind !== 'present') return undefined
  const writer = shown.writers.between(key, before, now.version)
  // Its own unfinished call is no other session's.
  if (!writer || writer.session === state.id) return undefined
  return `session ${quotePath(writer.session, 80)}, ${ago(shown.now - writer.at)}`
}

const changeOf = (
  state: SessionState,
  finding: Finding,
  near: ReadonlySet<string>,
  shown: Presentation,
): Change => {
  const by = writerOf(state, finding, shown)
  const ownCommand = by === undefined && finding.at !== undefined && state.ownCommands.ranAt(finding.at)
  return {
    key: finding.key,
    uncertain: finding.uncertain,
    action: finding.action,
    path: finding.path,
    used: finding.used !== undefined,
    difference: differenceFor(finding, shown),
    by,
    ownCommand,
    near: finding.paths.some((path) => near.has(dirname(path))),
    untold: state.flapping.get(finding.key)?.between ?? 0,
    isDirectory: finding.now.kind === 'present' && finding.now.type === 'directory',
    ownFile: finding.action === 'deleted' && state.beforeOwnWrite.get(finding.key) === ABSENT,
  }
}

/** Findings that a directory's move explains. */
const explainedBy = ({ from, to }: DirectoryMove, { path, action }: Finding): boolean =>
  ((action === 'deleted' || action === 'undone') && path.startsWith(from)) ||
  (action === 'created' && path.startsWith(to))

/** Changes for one notice. @param findings - each target once. */
export const present = (
  state: SessionState,
  findings: readonly Finding[],
  moves: readonly Move[],
  shown: Presentation,
): Change[] => {
  const near = new Set(Array.from(state.ledger.entries(), ({ target }) => dirname(target.displayPath)))
  for (const { key } of state.ledger.entries()) near.add(dirname(key))
  const directories = findDirectoryMoves(moves, findings)
  const gone = new Set(moves.flatMap(({ from, to }) => [from, to]))
  const changes: Change[] = []
  for (const directory of directories) {
    const explained = findings.filter((finding) => explainedBy(directory, finding))
    for (const finding of explained) gone.add(finding)
    const files = new Set(
      explained.map(({ path }) =>
        path.slice(path.startsWith(directory.from) ? directory.from.length : directory.to.length),
      ),
    )
    changes.push({
      action: 'moved',
      path: directory.from,
      to: directory.to,
      used: true,
      alongside: files.size,
    })
  }
  for (const { from, to } of moves) {
    if (directories.some(({ from: head }) => from.path.startsWith(head))) continue
    changes.push({ action: 'moved', path: from.path, to: to.path, used: true })
  }
  for (const finding of findings) if (!gone.has(finding)) changes.push(changeOf(state, finding, near, shown))
  return changes
}
