/**
 * What one session has durably seen of files. Pure: no I/O, no clock.
 *
 * An observation is staged on the execution that made it, handed to the enclosing execution when a
 * nested one succeeds, and committed when the outermost result is in the session log and its step has
 * ended. Anything else leaves the target in doubt: it is looked at again, never assumed.
 *
 * @module dsh-live-workspace/ledger
 */

/** State of one target: the provider's version of a present file, or absent. */
export type Seen = { readonly kind: 'present'; readonly version: string } | { readonly kind: 'absent' }

/** Whether two states are the same. */
export const sameSeen = (a: Seen | undefined, b: Seen | undefined): boolean =>
  a?.kind === b?.kind && (a?.kind !== 'present' || b?.kind !== 'present' || a.version === b.version)

/** One observation of a target by a tool of the session. `T` is the provider's own target. */
export interface Observation<T> {
  /** Identity of the target, opaque. */
  readonly key: string
  readonly target: T
  readonly seen: Seen
  /** Version that the tool met before, if it is known; `absent` where there was none. */
  readonly from?: string | undefined
  /** Name of the tool that observed it. */
  readonly tool: string
}

/** Where the model saw the result of an observation. */
export interface Shown {
  /** Number of the log event that holds the result. */
  readonly resultSeq: number
  /** The result was that of an enclosing execution, which may not have shown what this one saw. */
  readonly nested: boolean
}

/** A committed observation. */
export interface LedgerEntry<T> extends Observation<T>, Shown {
  /** Further log events that showed the model what has changed since. */
  readonly alsoShown: readonly number[]
  /** Order of commitment in the session. */
  readonly sequence: number
}

/** Identity of one tool execution, opaque. */
export type ExecutionToken = symbol | object | string

interface Staged<T> extends Observation<T> {
  readonly order: number
  readonly nested: boolean
}

type Logged<T> = Staged<T> & Shown

/** Observations of one session. */
export class Ledger<T> {
  readonly #entries = new Map<string, LedgerEntry<T>>()
  readonly #staged = new Map<ExecutionToken, Staged<T>[]>()
  /** Successful root results that are not in the log yet, by call id. */
  readonly #awaitingLog = new Map<string, Staged<T>[]>()
  /** Logged results of the open step. */
  #awaitingStepEnd: Logged<T>[] = []
  #order = 0
  #sequence = 0
  #restored = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: string): LedgerEntry<T> | undefined {
    return this.#entries.get(key)
  }

  entries(): IterableIterator<LedgerEntry<T>> {
    return this.#entries.values()
  }

  /** A tool saw a target; nothing is committed yet. */
  stage(token: ExecutionToken, observation: Observation<T>): void {
    const staged = { ...observation, order: this.#order++, nested: false }
    const list = this.#staged.get(token)
    if (list) list.push(staged)
    else this.#staged.set(token, [staged])
  }

  /**
   * An execution has its final result.
   * @param parent - the enclosing execution; the outermost one has none.
   * @param callId - id of the call that the log will name.
   * @returns the targets that are in doubt now, because the result was an error; else what it saw.
   */
  settle(
    token: ExecutionToken,
    result: {
      readonly failed: boolean
      readonly parent: ExecutionToken | undefined
      readonly callId: string
    },
  ): { readonly doubtful: readonly T[]; readonly kept: readonly Observation<T>[] } {
    const staged = this.#staged.get(token)
    this.#staged.delete(token)
    if (!staged) return { doubtful: [], kept: [] }
    if (result.failed) return { doubtful: staged.map((observation) => observation.target), kept: [] }
    if (result.parent !== undefined) {
      const nested = staged.map((observation) => ({ ...observation, nested: true }))
      const list = this.#staged.get(result.parent)
      if (list) list.push(...nested)
      else this.#staged.set(result.parent, nested)
    } else {
      this.#awaitingLog.set(result.callId, [...(this.#awaitingLog.get(result.callId) ?? []), ...staged])
    }
    return { doubtful: [], kept: staged }
  }

  /**
   * The log holds the result of this call.
   * @param resultSeq - number of the event that holds it.
   */
  logged(callId: string, resultSeq: number): void {
    const staged = this.#awaitingLog.get(callId)
    if (!staged) return
    this.#awaitingLog.delete(callId)
    this.#awaitingStepEnd.push(...staged.map((observation) => ({ ...observation, resultSeq })))
  }

  /**
   * The open step has ended: logged observations are committed.
   * @returns the targets in doubt, because their results never reached the log.
   */
  stepEnded(): { committed: LedgerEntry<T>[]; doubtful: T[] } {
    const committed = this.#awaitingStepEnd
      .toSorted((a, b) => a.order - b.order)
      .map(({ order: _order, ...logged }) => this.#commit(logged))
    this.#awaitingStepEnd = []
    const doubtful = [...this.#awaitingLog.values()].flat().map((observation) => observation.target)
    this.#awaitingLog.clear()
    return { committed, doubtful }
  }

  /** The turn has ended: whatever an execution still holds will never be committed. */
  turnEnded(): T[] {
    const { doubtful } = this.stepEnded()
    doubtful.push(...[...this.#staged.values()].flat().map((observation) => observation.target))
    this.#staged.clear()
    return doubtful
  }

  /**
   * The model knows the content of another version: the same, or shown to it.
   * @param shownSeq - number of the log event that showed what has changed.
   */
  renew(key: string, seen: Seen, shownSeq?: number): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    const alsoShown = shownSeq === undefined ? entry.alsoShown : [...entry.alsoShown, shownSeq]
    this.#entries.set(key, { ...entry, seen, alsoShown })
  }

  /**
   * A target that the model knows is another one now, with the same content.
   * @param shownSeq - number of the log event that said so.
   * @returns the entry; `undefined` when the model knows no such target, or knows the other one by itself.
   */
  move(
    from: string,
    to: { readonly key: string; readonly target: T; readonly seen: Seen },
    shownSeq: number,
  ): LedgerEntry<T> | undefined {
    const entry = this.#entries.get(from)
    if (!entry || this.#entries.has(to.key)) return undefined
    this.#entries.delete(from)
    const moved = { ...entry, ...to, from: undefined, alsoShown: [...entry.alsoShown, shownSeq] }
    this.#entries.set(to.key, moved)
    return moved
  }

  /** The session knows nothing of this target any more. */
  forget(key: string): void {
    this.#entries.delete(key)
  }

  /**
   * What was committed before this process: it counts as older than everything that is here already.
   * @returns `undefined` when the session has seen the target anew.
   */
  restore(observation: Omit<LedgerEntry<T>, 'sequence'>): LedgerEntry<T> | undefined {
    if (this.#entries.has(observation.key)) return undefined
    const entry = { ...observation, sequence: --this.#restored }
    this.#entries.set(entry.key, entry)
    return entry
  }

  #commit(observation: Observation<T> & Shown): LedgerEntry<T> {
    const entry = { ...observation, alsoShown: [], sequence: ++this.#sequence }
    // Re-inserted, so that the map stays in the order of commitment.
    this.#entries.delete(entry.key)
    this.#entries.set(entry.key, entry)
    return entry
  }
}
