/**
 * What a session has committed, as entries of its manifest, and entries as what it has committed.
 *
 * @module dsh-live-workspace/manifest/snapshot
 */
import type { FileSystem, FsTarget, FsTargetKey } from '@deepseek-ai/dsh-fs'
import type { Content } from '../ledger/content.ts'
import type { LedgerEntry, Seen } from '../ledger/ledger.ts'
import type { SessionState } from '../session.ts'
import { encodeEntry, type Remembered } from './format.ts'
import { type Log, proofOf } from './proof.ts'
import type { Recall } from './recall.ts'

/**
 * Put before a version whose equality proves nothing: the file may have been written twice within one tick
 * of its filesystem's clock. It equals no version of any provider, so content decides.
 */
const UNSETTLED = '?unsettled:'

const settledVersion = (version: string): string =>
  version.startsWith(UNSETTLED) ? version.slice(UNSETTLED.length) : version

interface Line {
  readonly content: Content | undefined
  readonly settled: boolean
  readonly told: boolean
  readonly text: string | undefined
}

/** Turns the committed entries of one session into lines; what did not change since the last time is kept. */
export class Snapshots {
  readonly #lines = new WeakMap<LedgerEntry<FsTarget>, Line>()
  readonly #proofs = new WeakMap<LedgerEntry<FsTarget>, string>()
  readonly #metAt = new WeakMap<LedgerEntry<FsTarget>, number>()
  readonly #racyWindowMs: number

  /** @param racyWindowMs - time in ms within which two writes may have one version. */
  constructor(racyWindowMs: number) {
    this.#racyWindowMs = racyWindowMs
  }

  /** Lines of a manifest, the latest used first. */
  *lines(state: SessionState, log: Log, most: number): Generator<string> {
    let count = 0
    for (const entry of this.#committed(state)) {
      if (count >= most) return
      const content = contentOf(state, entry)
      const settled = this.#isSettled(state, entry, content)
      const told = wasTold(state, entry.key)
      let line = this.#lines.get(entry)
      if (!line || line.content !== content || line.settled !== settled || line.told !== told) {
        const remembered = this.#remembered(state, entry, log)
        line = { content, settled, told, text: remembered && encodeEntry(remembered) }
        this.#lines.set(entry, line)
      }
      if (line.text === undefined) continue
      count += 1
      yield line.text
    }
    for (const remembered of state.recall?.queue ?? []) {
      if (count >= most) return
      const text = state.ledger.get(remembered.key) ? undefined : encodeEntry(remembered)
      if (text === undefined) continue
      count += 1
      yield text
    }
  }

  /** Entries of a manifest, the latest used first. */
  entries(state: SessionState, log: Log): Remembered[] {
    return [
      ...this.#committed(state).flatMap((entry) => this.#remembered(state, entry, log) ?? []),
      ...(state.recall?.queue ?? []).filter(({ key }) => !state.ledger.get(key)),
    ]
  }

  #committed(state: SessionState): LedgerEntry<FsTarget>[] {
    return [...state.ledger.entries()].toSorted((a, b) => b.sequence - a.sequence)
  }

  #remembered(state: SessionState, entry: LedgerEntry<FsTarget>, log: Log): Remembered | undefined {
    const { key, target, seen, resultSeq, alsoShown, nested } = entry
    const shown = [resultSeq, ...alsoShown] as const
    const proof = this.#proofs.get(entry) ?? proofOf(log, shown)
    if (proof === undefined) return undefined
    this.#proofs.set(entry, proof)
    const content = contentOf(state, entry)
    return {
      key,
      path: target.displayPath,
      seen: seen.kind === 'present' ? { kind: 'present', version: settledVersion(seen.version) } : seen,
      content: content && { digest: content.digest, size: content.size },
      shown,
      proof,
      nested,
      settled: this.#isSettled(state, entry, content),
      told: wasTold(state, key),
    }
  }

  /**
   * A boundary that was complete, so long after the reading that no write within the same tick of a clock
   * can have escaped it.
   */
  #isSettled(state: SessionState, entry: LedgerEntry<FsTarget>, content: Content | undefined): boolean {
    const { key, seen } = entry
    if (seen.kind === 'absent') return true
    if (seen.version.startsWith(UNSETTLED) || state.racy.has(key) || state.unwatched.has(key)) return false
    const metAt = this.#metAt.get(entry) ?? performance.now()
    this.#metAt.set(entry, metAt)
    const since = content?.readAt ?? metAt
    return state.completeAt !== undefined && state.completeAt - since > this.#racyWindowMs
  }
}

/** Whether the last word on a file is something else than what the session saw. */
const wasTold = (state: SessionState, key: string): boolean =>
  state.receipts.lastWord(key) !== undefined || state.recall?.toldBefore.has(key) === true

const contentOf = (state: SessionState, { key, seen }: LedgerEntry<FsTarget>): Content | undefined =>
  seen.kind === 'present' ? state.shelf.at(key, seen.version) : undefined

const seenOf = ({ seen, settled }: Remembered): Seen =>
  seen.kind === 'absent' || settled ? seen : { kind: 'present', version: `${UNSETTLED}${seen.version}` }

/**
 * Take up remembered files: from now on they are used files like all others, to be checked.
 * @param most - how many.
 * @returns the keys of those that the session has not seen anew meanwhile.
 */
export const takeUp = (state: SessionState, recall: Recall, fs: FileSystem, most: number): string[] => {
  const taken: LedgerEntry<FsTarget>[] = []
  const toldBefore: string[] = []
  for (const remembered of recall.take(most)) {
    const { key, path, content, nested, told } = remembered
    const [resultSeq, ...alsoShown] = remembered.shown
    // The host brands keys; this one came from its own service.
    const target: FsTarget = { targetKey: key as FsTargetKey, displayPath: path }
    const seen = seenOf(remembered)
    // Neither its version nor its content can prove anything.
    if (seen.kind === 'present' && !remembered.settled && !content) {
      recall.unknown = [...recall.unknown, path]
      continue
    }
    const entry = state.ledger.restore({ key, target, seen, tool: '', resultSeq, alsoShown, nested })
    if (!entry) continue
    taken.push(entry)
    if (content && seen.kind === 'present') {
      const readAt = remembered.settled ? -Infinity : performance.now()
      state.shelf.put(key, { ...content, version: seen.version, readAt, text: undefined })
    }
    if (told) toldBefore.push(key)
  }
  state.committed(taken, fs)
  for (const { key } of taken) recall.stand(key, 'waiting')
  for (const key of toldBefore) recall.toldBefore.add(key)
  return taken.map(({ key }) => key)
}
