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
 * Whether a finding is told now. A file that was told to be out of date, was not read since and changes
 * again is told after 1, 2, 4, … boundaries, and where a turn begins or ends.
 */
export const isDue = (state: SessionState, { key, action, used }: Finding, turnEnds: boolean): boolean => {
  if (!used || action !== 'modified') return true
  const last = state.flapping.get(key)
  if (!last) {
    state.flapping.set(key, { told: 0, wait: 0, untold: 0, tellNow: true })
    return true
  }
  const due = turnEnds || state.turn.fresh || last.wait === 0
  const untold = last.tellNow ? 0 : last.untold
  state.flapping.set(
    key,
    due
      ? { told: last.told + 1, wait: 2 ** Math.min(last.told + 1, 30) - 1, untold, tellNow: true }
      : { told: last.told, wait: last.wait - 1, untold: untold + 1, tellNow: false },
  )
  return due
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
