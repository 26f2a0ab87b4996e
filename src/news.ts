/**
 * Findings of one boundary as one notice.
 *
 * @module dsh-live-workspace/news
 */
import type { Notice } from './outcome.ts'
import { HEAD, UNLISTED, word } from './conditions.ts'
import type { Finding } from './judge.ts'
import type { HeadMove } from './notice/git-head.ts'
import { headLine } from './notice/head-line.ts'
import { renderChanges } from './notice/render.ts'
import { movesTold, present, type Presentation, type Shapes } from './present.ts'
import { ABSENT, type Moved, type SessionState } from './session.ts'
import type { Move } from './shapes.ts'

/**
 * Whether a finding is reason enough for a notice. A file that was told to be out of date, was not read
 * since and changes again is one after 1, 2, 4, … boundaries, and where a turn begins or ends.
 */
const isReason = (state: SessionState, { key, action }: Finding, turnEnds: boolean): boolean => {
  const flapping = state.flapping.get(key)
  if (action !== 'modified' || !flapping) return true
  // No word of it has come through.
  if (state.receipts.lastWord(key) === undefined) return true
  return turnEnds || state.turn.fresh || state.boundaries >= flapping.nextAt
}

/**
 * The findings that are told now: all of them, or none. A notice that goes out anyway leaves nothing out,
 * or what it says of the rest would be wrong.
 * @param maxFlapping - unused files whose going on changing is remembered.
 */
export const dueFindings = (
  state: SessionState,
  findings: readonly Finding[],
  turnEnds: boolean,
  anyway: boolean,
  maxFlapping: number,
): Finding[] => {
  const tell = anyway || findings.some((finding) => isReason(state, finding, turnEnds))
  for (const { key, action, now } of findings) {
    if (action !== 'modified') continue
    const last = state.flapping.get(key)
    const version = now.kind === 'present' ? now.version : undefined
    const untold = (last?.untold ?? 0) + (last && !tell && last.version !== version ? 1 : 0)
    const told = last ? last.told + 1 : 0
    state.flapping.delete(key)
    state.flapping.set(
      key,
      tell
        ? { told, nextAt: state.boundaries + 2 ** Math.min(told, 30), version, untold: 0, between: untold }
        : { told: told - 1, nextAt: last?.nextAt ?? 0, version, untold, between: last?.between ?? 0 },
    )
  }
  state.boundFlapping(maxFlapping)
  return tell ? [...findings] : []
}

/** A move of HEAD, with the number of paths that changed meanwhile. */
export interface HeadNews {
  readonly move: HeadMove
  readonly paths: number
}

/** Whether there are files that the session made, and another branch has left them all as they were. */
const keepsOwnFiles = (state: SessionState, { kind }: HeadMove, findings: readonly Finding[]): boolean => {
  const made = [...state.beforeOwnWrite].filter(([, before]) => before === ABSENT).map(([key]) => key)
  const touched = new Set(findings.map(({ key }) => key))
  return (
    (kind === 'switched' || kind === 'detached') &&
    made.length > 0 &&
    made.every((key) => !touched.has(key) && !state.doubtful.has(key))
  )
}

/** What the session knows of a file that is somewhere else now. */
const movedState = ({ from, to, content }: Move, isSecret: (path: string) => boolean): Moved | undefined => {
  if (!to.target) return undefined
  // The new name of a secret must not make it one that is shown.
  const text = from.paths.some(isSecret) ? undefined : content.text
  return { from: from.key, target: to.target, content: { ...content, text } }
}

/** The notice of what changed, if there is anything to say. */
export const newsFor = (
  state: SessionState,
  findings: readonly Finding[],
  shapes: Shapes,
  head: HeadNews | undefined,
  shown: Presentation,
): Notice[] => {
  // A file can be met under several paths; it is told once.
  const unique = [...new Map(findings.toReversed().map((finding) => [finding.key, finding])).values()]
  const changes = present(state, unique, shapes, shown)
  const headByCommand = state.ownCommands.ranAt([state.head.movedAt])
  if (head && changes.length === 0 && headByCommand) {
    // The session's own command moved it, and left every file as it was.
    state.head.settle()
    return []
  }
  if (changes.length === 0 && state.unlisted === 0 && !head) return []
  const { config } = shown
  const headline =
    head &&
    headLine(head.move, {
      paths: head.paths,
      ownCommand: headByCommand,
      ownFilesKept: keepsOwnFiles(state, head.move, unique),
      maxPathBytes: config.maxPathBytes,
    })
  const rendered = renderChanges(changes, state.unlisted, config, headline)
  const arrived = new Map(movesTold(shapes, rendered.named).map((move) => [move.to.key, move]))
  const covered = findings.flatMap(({ key, comparison, covers }) => {
    const content = rendered.shownInFull?.has(key) === true ? comparison?.now : undefined
    const move = arrived.get(key)
    return covers.map((covered) => ({
      ...covered,
      ...(content && { content }),
      ...(move && { moved: movedState(move, shown.isSecret) }),
    }))
  })
  if (state.unlisted > 0) covered.push({ key: UNLISTED, state: word(String(state.unlisted)) })
  if (head) covered.push({ key: HEAD, state: word('moved') })
  return [{ category: 'changes', covered, ...rendered }]
}
