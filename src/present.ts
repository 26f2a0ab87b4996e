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
import { holdsPrivateKey } from './notice/secret.ts'
import { ABSENT, type SessionState } from './session.ts'
import type { DirectoryMove, Move } from './shapes.ts'

/** Findings that are one change together. */
export interface Shapes {
  readonly moves: readonly Move[]
  readonly directories: readonly DirectoryMove[]
}

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

const differenceFor = (
  finding: Finding,
  secretMoved: boolean,
  shown: Presentation,
): Difference | undefined => {
  const { used, comparison, path } = finding
  const { config, isSecret, visible } = shown
  if (!config.showHunks || !used || !comparison || finding.action === 'restored') return undefined
  if ([path, used.target.displayPath, used.key, ...finding.paths].some(isSecret)) return undefined
  // Only against a text that the model still holds.
  if (used.nested || ![used.resultSeq, ...used.alsoShown].every(visible)) return undefined
  const { before, now } = comparison
  if (before.text === undefined) return undefined
  if (now.text === undefined) return now.size <= config.maxTextBytes ? { kind: 'binary' } : undefined
  const difference = differenceOf(before.text, now.text, { ...config, contextLines: config.hunkContextLines })
  const secret = secretMoved || holdsPrivateKey(now.text) || holdsPrivateKey(before.text)
  if (difference.kind !== 'hunk' || !secret) return difference
  return { kind: 'counts', added: difference.added, removed: difference.removed }
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

/** What one notice knows beside a finding. */
interface Surroundings {
  /** Directories of used files. */
  readonly near: ReadonlySet<string>
  /** A file that is never shown went away: it may be what another one holds now. */
  readonly secretMoved: boolean
}

const changeOf = (
  state: SessionState,
  finding: Finding,
  { near, secretMoved }: Surroundings,
  shown: Presentation,
): Change => {
  const by = writerOf(state, finding, shown)
  const ownCommand = by === undefined && state.ownCommands.ranAt(finding.times)
  return {
    key: finding.key,
    uncertain: finding.uncertain,
    action: finding.action,
    path: finding.path,
    used: finding.used !== undefined,
    difference: differenceFor(finding, secretMoved, shown),
    by,
    ownCommand,
    near: finding.paths.some((path) => near.has(dirname(path))),
    untold: state.flapping.get(finding.key)?.between ?? 0,
    isDirectory: finding.now.kind === 'present' && finding.now.type === 'directory',
    ownFile: finding.action === 'deleted' && state.beforeOwnWrite.get(finding.key) === ABSENT,
  }
}

/** Key of the change that a directory's move is. */
const directoryKey = (from: string): string => `directory:${from}`

/** The moves that a notice with these changes tells of. @param named - keys of its changes. */
export const movesTold = (
  { moves, directories }: Shapes,
  named: ReadonlySet<string> | undefined,
): readonly Move[] =>
  moves.filter(({ from, to }) => {
    const directory = directories.find(({ explains }) => explains.has(from))
    return named?.has(directory ? directoryKey(directory.from) : to.key) === true
  })

/** Changes for one notice. @param findings - each target once. */
export const present = (
  state: SessionState,
  findings: readonly Finding[],
  { moves, directories }: Shapes,
  shown: Presentation,
): Change[] => {
  const near = new Set(Array.from(state.ledger.entries(), ({ target }) => dirname(target.displayPath)))
  for (const { key } of state.ledger.entries()) near.add(dirname(key))
  const secretMoved = findings.some(({ action, paths }) => action === 'deleted' && paths.some(shown.isSecret))
  const gone = new Set(moves.flatMap(({ from, to }) => [from, to]))
  const changes: Change[] = []
  const byCommand = (found: Iterable<Finding>) =>
    [...found].every(({ times }) => state.ownCommands.ranAt(times))
  for (const { from, to, explains } of directories) {
    for (const finding of explains) gone.add(finding)
    changes.push({
      key: directoryKey(from),
      action: 'moved',
      path: from,
      to,
      used: true,
      ownCommand: byCommand(explains),
      alongside: explains.size / 2,
    })
  }
  for (const { from, to } of moves) {
    if (directories.some(({ explains }) => explains.has(from))) continue
    changes.push({
      key: to.key,
      action: 'moved',
      path: from.path,
      to: to.path,
      used: true,
      ownCommand: byCommand([from, to]),
    })
  }
  for (const finding of findings)
    if (!gone.has(finding)) changes.push(changeOf(state, finding, { near, secretMoved }, shown))
  return changes
}
