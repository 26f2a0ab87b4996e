/**
 * What a session has been told, and what is on its way. Pure.
 *
 * A message covers exact states. It counts as told when it is in the session log, and only as long as
 * the model can still see it there.
 *
 * @module dsh-live-workspace/ledger/receipts
 */

/** One state that a message tells. */
export interface Covered<S> {
  readonly key: string
  readonly state: S
}

interface Told<S> {
  readonly state: S
  /** Number of the log event that told it. */
  readonly seq: number
}

/** Told and travelling states of one session. `C` is what one covered state carries. */
export class Receipts<S, C extends Covered<S> = Covered<S>> {
  readonly #told = new Map<string, Told<S>>()
  readonly #open = new Map<string, readonly C[]>()

  /** What the model can take to be the last word on a key: on its way, or told. */
  lastWord(key: string): S | undefined {
    for (const covered of [...this.#open.values()].toReversed()) {
      const found = covered.findLast((item) => item.key === key)
      if (found) return found.state
    }
    return this.#told.get(key)?.state
  }

  /** Ids of messages that are not in the log yet. */
  get travelling(): ReadonlySet<string> {
    return new Set(this.#open.keys())
  }

  /** Whether a message that is not in the log yet speaks of the key. */
  isTravelling(key: string): boolean {
    return [...this.#open.values()].some((covered) => covered.some((item) => item.key === key))
  }

  /** A message was handed to the host. */
  issue(messageId: string, covered: readonly C[]): void {
    this.#open.set(messageId, covered)
  }

  /**
   * A message is in the log.
   * @returns what it covered; empty for a message that is not ours or known already.
   */
  settle(messageId: string, seq: number): readonly C[] {
    const covered = this.#open.get(messageId) ?? []
    this.#open.delete(messageId)
    for (const { key, state } of covered) {
      this.#told.delete(key)
      this.#told.set(key, { state, seq })
    }
    return covered
  }

  /** Messages that are neither in the log nor waiting any more told nothing. */
  withdrawExcept(waiting: (messageId: string) => boolean): void {
    for (const id of this.#open.keys()) if (!waiting(id)) this.#open.delete(id)
  }

  /** What was told of the key holds under another state. */
  restate(key: string, state: S): void {
    const told = this.#told.get(key)
    if (told) this.#told.set(key, { ...told, state })
  }

  /** The key is as the model saw it itself, so nothing told about it matters any more. */
  forget(key: string): void {
    this.#told.delete(key)
  }

  /** What the model cannot see any more was not told. */
  forgetInvisible(visible: (seq: number) => boolean): void {
    for (const [key, told] of this.#told) if (!visible(told.seq)) this.#told.delete(key)
  }

  /**
   * Keep the number of remembered states bounded, oldest first.
   * @param keep - whether a key must stay.
   */
  trim(most: number, keep: (key: string) => boolean): void {
    let excess = this.#told.size - most
    for (const key of this.#told.keys()) {
      if (excess <= 0) return
      if (keep(key)) continue
      this.#told.delete(key)
      excess -= 1
    }
  }
}
