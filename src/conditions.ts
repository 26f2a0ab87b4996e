/**
 * What is told of the session itself and of the watcher: once for each new condition.
 *
 * @module dsh-live-workspace/conditions
 */
import type { FsTarget } from '@deepseek-ai/dsh-fs'
import type { Notice } from './outcome.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  recoveredNotice,
  resumeReminder,
} from './notice/reminders.ts'
import type { RenderedNotice } from './notice/render.ts'
import type { CoveredState, Reminder, SessionState } from './session.ts'

const COVERAGE = 'notice:coverage'
const LIVE = 'live'

/** Key of changed paths whose names were not kept. */
export const UNLISTED = 'notice:unlisted'
/** Key of a move of HEAD. */
export const HEAD = 'notice:head'
/** Key of the message about what was seen before the session was continued. */
export const RECALL = 'notice:recall'

const REMINDERS: Readonly<Record<Reminder, RenderedNotice>> = {
  resume: resumeReminder,
  activation: activationReminder,
  compaction: compactionReminder,
}

/** A state that is no file's. */
export const word = (version: string) => ({ kind: 'present', version }) as const

const reminderKey = (reminder: Reminder): string => `notice:${reminder}`

/** Reminders that are due. */
export const remindersFor = (state: SessionState): Notice[] =>
  [...state.reminders]
    .filter((reminder) => state.receipts.lastWord(reminderKey(reminder)) === undefined)
    .map((reminder) => ({
      category: reminder,
      covered: [{ key: reminderKey(reminder), state: word('due') }],
      ...REMINDERS[reminder],
    }))

/** A change of coverage that the model has not been told. */
export const coverageFor = (state: SessionState, turnEnds: boolean): Notice[] => {
  const coverage = state.reader?.coverage
  const last = state.receipts.lastWord(COVERAGE)
  const told = last?.kind === 'present' ? last.version : LIVE
  if (coverage?.kind === 'degraded' && coverage.fault.code !== told) {
    const covered = [{ key: COVERAGE, state: word(coverage.fault.code) }]
    return [{ category: 'coverage', covered, ...degradedNotice(coverage.fault) }]
  }
  if (coverage?.kind === 'live' && told !== LIVE && !turnEnds) {
    return [{ category: 'coverage', covered: [{ key: COVERAGE, state: word(LIVE) }], ...recoveredNotice }]
  }
  return []
}

/** A version whose content the model has been shown. */
export interface ShownVersion {
  readonly target: FsTarget
  readonly version: string
}

/**
 * A message is in the session log: what it covers is told.
 * @param covered - what {@link SessionState.receipts} had on its way.
 * @param messageSeq - number of the log event that holds the message.
 * @returns versions that the model knows as if it had read them.
 */
export const settleCovered = (
  state: SessionState,
  covered: readonly CoveredState[],
  messageSeq: number,
): ShownVersion[] => {
  const shown: ShownVersion[] = []
  for (const { key, path, seq, digest, content, state: told } of covered) {
    const entry = state.ledger.get(key)
    if (content && entry && told?.kind === 'present') {
      // Everything that changed is shown, so the model knows this content as if it had read it.
      state.ledger.renew(key, { kind: 'present', version: content.version }, messageSeq)
      state.shelf.put(key, content)
      state.receipts.forget(key)
      state.flapping.delete(key)
      shown.push({ target: entry.target, version: content.version })
    }
    if (key === RECALL) {
      state.receipts.forget(key)
      if (state.recall?.settle()) state.recall = undefined
    }
    if (digest !== undefined) state.toldDigests.set(key, digest)
    if (path !== undefined && seq !== undefined) state.settlePath(path, seq)
    if (told?.kind !== 'unverified') state.doubtful.delete(key)
    if (key === UNLISTED && told?.kind === 'present') state.unlisted -= Number(told.version)
    if (key === HEAD) {
      state.head.settle()
      state.receipts.forget(key)
    }
    for (const reminder of state.reminders) {
      if (key !== reminderKey(reminder)) continue
      state.reminders.delete(reminder)
      state.receipts.forget(key)
    }
  }
  if (covered.length > 0) state.remember()
  return shown
}
