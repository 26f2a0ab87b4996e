/**
 * What is told of the session itself and of the watcher: once for each new condition.
 *
 * @module dsh-live-workspace/conditions
 */
import type { FsTarget } from '@deepseek-ai/dsh-fs'
import type { LedgerEntry } from './ledger/ledger.ts'
import type { Notice } from './outcome.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  recoveredNotice,
  resumeReminder,
  uncoveredNotice,
} from './notice/reminders.ts'
import { quotePath } from './notice/escape.ts'
import type { RenderedNotice } from './notice/render.ts'
import type { CoveredState, Reminder, SessionState } from './session.ts'
import type { WatchFault } from './watch/contract.ts'
import type { Coverage } from './watch/coverage.ts'
import { ROOT_LOST } from './watch/faults.ts'
import { isWithin } from './watch/root.ts'
import type { Uncovered } from './watch/uncovered.ts'

const COVERAGE = 'notice:coverage'
const LIVE = 'live'
/** Begins the word for parts that are not watched. */
const PART = 'part: '

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

/** Directories named in one notice. */
const PARTS_NAMED = 3
const PART_BYTES = 120

/** Whether what is not watched matters to a session. */
const affects = (state: SessionState, { directories, unknown, fault }: Uncovered): boolean => {
  const cwd = state.place?.real
  if (!fault || cwd === undefined) return false
  if (state.usesWithin(directories)) return true
  // What this user may not list is mostly nobody's work.
  if (fault.code === 'access-denied') return false
  return unknown || directories.some((directory) => isWithin(cwd, directory) || isWithin(directory, cwd))
}

const partNotice = (state: SessionState, fault: WatchFault, directories: readonly string[]) => {
  const named = directories
    .slice(0, PARTS_NAMED)
    .map((directory) => quotePath(state.shown(directory) || '.', PART_BYTES))
  const more = directories.length - named.length
  return uncoveredNotice(fault, [...named, ...(more > 0 ? [`${more} more`] : [])])
}

/**
 * A change of coverage that the model has not been told.
 * @param coverage - as this boundary met it: by now the watcher may have been started again.
 */
export const coverageFor = (
  state: SessionState,
  coverage: Coverage | undefined,
  turnEnds: boolean,
): Notice[] => {
  const { reader } = state
  if (!reader || !coverage) return []
  const { uncovered } = reader
  const last = state.receipts.lastWord(COVERAGE)
  const told = last?.kind === 'present' ? last.version : LIVE
  const tell = (version: string, notice: RenderedNotice): Notice[] => [
    { category: 'coverage', covered: [{ key: COVERAGE, state: word(version) }], ...notice },
  ]
  if (state.movedAway && told !== ROOT_LOST.code) return tell(ROOT_LOST.code, degradedNotice(ROOT_LOST))
  state.movedAway = false
  if (coverage.kind === 'degraded') {
    return coverage.fault.code === told ? [] : tell(coverage.fault.code, degradedNotice(coverage.fault))
  }
  if (coverage.kind !== 'live') return []
  const { fault, directories } = uncovered
  if (fault && affects(state, uncovered)) {
    const version = `${PART}${fault.code}`
    // No reason to keep a turn going, like the good news below.
    return turnEnds || version === told ? [] : tell(version, partNotice(state, fault, directories))
  }
  if (told === LIVE || turnEnds || (fault && told.startsWith(PART))) return []
  return tell(LIVE, recoveredNotice)
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
 * @returns versions that the model knows as if it had read them, and what it knows under another name now.
 */
export const settleCovered = (
  state: SessionState,
  covered: readonly CoveredState[],
  messageSeq: number,
): { readonly shown: readonly ShownVersion[]; readonly moved: readonly LedgerEntry<FsTarget>[] } => {
  const shown: ShownVersion[] = []
  const arrived: LedgerEntry<FsTarget>[] = []
  for (const { key, path, seq, digest, content, moved, state: told } of covered) {
    const entry = state.ledger.get(key)
    if (moved && told?.kind === 'present' && told.version === moved.content.version) {
      const seen = { kind: 'present', version: told.version } as const
      const there = state.ledger.move(moved.from, { key, target: moved.target, seen }, messageSeq)
      if (there) {
        state.left(moved.from)
        state.shelf.put(key, moved.content)
        arrived.push(there)
        shown.push({ target: moved.target, version: told.version })
      }
    }
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
  return { shown, moved: arrived }
}
