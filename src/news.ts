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
import { present, type Presentation } from './present.ts'
import type { SessionState } from './session.ts'
import type { Move } from './shapes.ts'

/**
 * Whether a finding is reason enough for a notice. A file that was told to be out of date, was not read
 * since and changes again is one after 1, 2, 4, … boundaries, and where a turn begins or ends.
 */
const isReason = (state: SessionState, { key, action, used }: Finding, turnEnds: boolean): boolean => {
  const flapping = state.flapping.get(key)
  if (!used || action !== 'modified' || !flapping) return true
  // No word of it has come through.
  if (state.receipts.lastWord(key) === undefined) return true
  return turnEnds || state.turn.fresh || state.boundaries >= flapping.nextAt
}

/**
 * The findings that are told now: all of them, or none. A notice that goes out anyway leaves nothing out,
 * or what it says of the rest would be wrong.
 */
export const dueFindings = (
  state: SessionState,
  findings: readonly Finding[],
  turnEnds: boolean,
  anyway: boolean,
): Finding[] => {
  const tell = anyway || findings.some((finding) => isReason(state, finding, turnEnds))
  for (const { key, action, used, now } of findings) {
    if (!used || action !== 'modified') continue
    const last = state.flapping.get(key)
    const version = now.kind === 'present' ? now.version : undefined
    const untold = (last?.untold ?? 0) + (last && !tell && last.version !== version ? 1 : 0)
    const told = last ? last.told + 1 : 0
    state.flapping.set(
      key,
      tell
        ? { told, nextAt: state.boundaries + 2 ** Math.min(told, 30), version, untold: 0, between: untold }
        : { told: told - 1, nextAt: last?.nextAt ?? 0, version, untold, between: last?.between ?? 0 },
    )
  }
  return tell ? [...findings] : []
}

/** The notice of what changed, if there is anything to say. */
export const newsFor = (
  state: SessionState,
  findings: readonly Finding[],
  moves: readonly Move[],
  head: HeadMove | undefined,
  shown: Presentation,
): Notice[] => {
  // A file can be met under several paths; it is told once.
  const unique = [...new Map(findings.toReversed().map((finding) => [finding.key, finding])).values()]
  const changes = present(state, unique, moves, shown)
  if (head && changes.length === 0 && state.ownCommands.ranAt(state.head.movedAt)) {
    // The session's own command moved it, and left every file as it was.
    state.head.settle()
    return []
  }
  if (changes.length === 0 && state.unlisted === 0 && !head) return []
  const { config } = shown
  const headline = head && headLine(head, unique.length, config.maxPathBytes)
  const rendered = renderChanges(changes, state.unlisted, config, headline)
  const covered = findings.flatMap(({ key, comparison, covers }) =>
    rendered.shownInFull?.has(key) === true
      ? covers.map((state) => ({ ...state, content: comparison?.now }))
      : covers,
  )
  if (state.unlisted > 0) covered.push({ key: UNLISTED, state: word(String(state.unlisted)) })
  if (head) covered.push({ key: HEAD, state: word('moved') })
  return [{ category: 'changes', covered, ...rendered }]
}
