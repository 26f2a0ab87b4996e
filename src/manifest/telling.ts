/**
 * What a continued session is told of the files that it had seen.
 *
 * @module dsh-live-workspace/manifest/telling
 */
import type { NoticeConfig, ResumeConfig } from '../config.ts'
import { RECALL, word } from '../conditions.ts'
import type { Finding } from '../judge.ts'
import type { Change } from '../notice/line.ts'
import { activationReminder, resumeReminder } from '../notice/reminders.ts'
import { nothingChanged, renderResume, type ResumeFacts } from '../notice/resume.ts'
import type { Notice } from '../outcome.ts'
import type { CoveredState, SessionState } from '../session.ts'
import type { Recall } from './recall.ts'

/** The message, and what it says instead of another one. */
export interface Told {
  readonly notice: Notice | undefined
  readonly findings: ReadonlySet<Finding>
}

const NOTHING: Told = { notice: undefined, findings: new Set() }

/** Bounds of what is said. */
export interface TellingLimits {
  readonly resume: ResumeConfig
  readonly notice: NoticeConfig
}

const covering = (findings: Iterable<Finding>): CoveredState[] => [
  { key: RECALL, state: word('due') },
  ...Array.from(findings, ({ covers }) => covers).flat(),
]

/** What it has waited for is not known yet: the general reminder, and the exact word when it comes. */
const generalNotice = (recall: Recall): Notice => ({
  category: 'resume',
  covered: covering([]),
  ...(recall.origin === 'resumed' ? resumeReminder : activationReminder),
})

/** What is to be said of the remembered files whose check has come to an end. */
const factsOf = (
  state: SessionState,
  recall: Recall,
  findings: readonly Finding[],
  visible: (seq: number) => boolean,
): { facts: ResumeFacts; keys: string[]; told: Set<Finding> } => {
  const found = new Map(findings.map((finding) => [finding.key, finding]))
  const told = new Set<Finding>()
  const changes: Change[] = []
  const keys: string[] = []
  let [unchanged, unseen] = [0, 0]
  for (const [key, standing] of recall.standing) {
    const entry = state.ledger.get(key)
    if (standing === 'waiting' || !entry) continue
    keys.push(key)
    const finding = found.get(key)
    if (finding) {
      told.add(finding)
      changes.push({ action: finding.action, path: finding.path, used: true })
    } else if (recall.toldBefore.has(key)) {
      changes.push({ action: 'restored', path: state.shownTarget(key, entry.target), used: true })
    } else if (standing === 'same') {
      const seen = !entry.nested && [entry.resultSeq, ...entry.alsoShown].every(visible)
      if (seen) unchanged += 1
      else unseen += 1
    }
  }
  const byPath = changes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const unknown = recall.unknown.map((path) => state.shown(path))
  const origin = recall.partlyTold ? 'rest' : recall.origin
  return {
    facts: { origin, changes: byPath, unchanged, unseen, unknown, unchecked: recall.unchecked },
    keys,
    told,
  }
}

/**
 * The message that is due before a request, if one is.
 * @param findings - what this boundary has found and nothing else tells.
 * @param found - everything that it has found: such files are not unchanged.
 * @param visible - whether the model can still see this event of the session log.
 */
export const tellRecall = (
  state: SessionState,
  findings: readonly Finding[],
  found: readonly Finding[],
  visible: (seq: number) => boolean,
  { resume, notice }: TellingLimits,
): Told => {
  const { recall } = state
  if (!recall || state.receipts.lastWord(RECALL) !== undefined) return NOTHING
  if (!recall.loaded) {
    return recall.partlyTold ? NOTHING : { notice: generalNotice(recall), findings: new Set() }
  }
  // What is left is told at once, when all of it is known.
  if (recall.partlyTold && recall.unchecked > 0) return NOTHING
  // An instruction message, or another one, speaks of these.
  for (const finding of found) if (!findings.includes(finding)) recall.forget(finding.key)
  const { facts, keys, told } = factsOf(
    state,
    recall,
    findings.filter(({ used, action }) => used && action !== 'unverified'),
    visible,
  )
  const all = facts.changes.length + facts.unchanged + facts.unseen + facts.unknown.length + facts.unchecked
  if (all === 0 || (nothingChanged(facts) && !resume.tellUnchanged)) {
    state.recall = undefined
    return NOTHING
  }
  recall.compose(keys)
  const limits = { ...resume, maxPathBytes: notice.maxPathBytes }
  const rendered = renderResume(facts, limits)
  return { notice: { category: 'resume', covered: covering(told), ...rendered }, findings: told }
}
