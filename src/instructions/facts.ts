/**
 * What is known of the candidates of one session, and which of them have to be looked at again.
 *
 * Texts are kept for one pass only.
 *
 * @module dsh-live-workspace/instructions/facts
 */
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import pLimit from 'p-limit'
import { type Fact, glance, readCandidate } from './look.ts'
import type { Scope } from './scopes.ts'

/** Candidates looked at at the same time. */
const GLANCES_AT_ONCE = 16

/** Facts by scope. */
export class Facts {
  readonly #facts = new Map<string, Fact>()
  readonly #dirty = new Set<string>()

  get all(): ReadonlyMap<string, Fact> {
    return this.#facts
  }

  /** A candidate has to be looked at again. */
  doubt(key: string): void {
    this.#dirty.add(key)
  }

  /** Forget everything: the scopes are about other files now. */
  clear(): void {
    this.#facts.clear()
    this.#dirty.clear()
  }

  /** Whether the fact is missing, or in doubt. */
  isDue(key: string): boolean {
    return !this.#facts.has(key) || this.#dirty.has(key)
  }

  /** Take a key up: doubts from now on are about a later moment. */
  take(key: string): void {
    this.#dirty.delete(key)
  }

  set(key: string, fact: Fact): void {
    this.#facts.set(key, fact)
    // Neither a failure nor what a dead link leads to announces its end.
    if (fact.kind === 'refused' ? fact.version === undefined : fact.kind === 'absent' && fact.dangling) {
      this.#dirty.add(key)
    }
  }
}

/** Bounds of one pass, in bytes. */
export interface PassLimits {
  readonly maxSourceBytes: number
  readonly maxPassBytes: number
}

/** One round of looking and reading. */
export class Pass {
  readonly texts = new Map<string, string>()
  readonly #facts: Facts
  readonly #fs: FileSystem
  readonly #limits: PassLimits
  readonly #signal: AbortSignal
  #left: number

  constructor(facts: Facts, fs: FileSystem, limits: PassLimits, signal: AbortSignal) {
    this.#facts = facts
    this.#fs = fs
    this.#limits = limits
    this.#signal = signal
    this.#left = limits.maxPassBytes
  }

  /**
   * Bring the facts of these candidates up to date.
   * @param scopes - from broad to specific; specific ones are read first, as long as the bytes last.
   * @throws only the reason of the signal; then nothing of these is taken for known.
   */
  async refresh(scopes: readonly Scope[]): Promise<void> {
    for (const { key } of scopes) this.#facts.take(key)
    try {
      const limit = pLimit(GLANCES_AT_ONCE)
      const seen = await Promise.all(
        scopes.map(({ key, path }) =>
          limit(() => glance(this.#fs, path, this.#facts.all.get(key), this.#signal)),
        ),
      )
      const unread: Scope[] = []
      for (const [index, scope] of scopes.entries()) {
        const fact = seen[index]
        if (fact) this.#facts.set(scope.key, fact)
        else unread.push(scope)
      }
      await this.read(unread)
    } catch (error) {
      for (const { key } of scopes) this.#facts.doubt(key)
      throw error
    }
  }

  /** Read these candidates, the most specific first. */
  async read(scopes: readonly Scope[]): Promise<void> {
    for (const { key, path } of scopes.toReversed()) {
      const limits = { maxSourceBytes: this.#limits.maxSourceBytes, left: this.#left }
      const { fact, text, cost } = await readCandidate(this.#fs, path, limits, this.#signal)
      this.#left -= cost
      this.#facts.set(key, fact)
      if (text !== undefined) this.texts.set(key, text)
    }
  }
}
