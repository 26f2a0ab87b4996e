/**
 * What the model has been told of instructions and can still see. Pure.
 *
 * @module dsh-live-workspace/instructions/standing
 */
import { fingerprint, type InstructionSource, parseScope, readSource, scopeKey } from './protocol.ts'

/** The last word on one scope. */
export interface Word {
  /** The scope as the log spells it. */
  readonly scope: string
  readonly path: string
  /** SHA-1 of the text in force; `undefined` when the last word was a removal. */
  readonly digest: string | undefined
}

/** A baseline that the model can see. */
export interface StandingBaseline {
  readonly identity: string | undefined
  readonly fingerprint: string
}

/** State of all scopes that visible messages speak of. */
export class Standing {
  readonly #words = new Map<string, Word>()
  readonly #fingerprints = new Set<string>()
  /** The latest visible baseline. */
  readonly baseline: StandingBaseline | undefined

  /** @param sources - sources of visible messages in their order, and then those of the batch. */
  constructor(sources: readonly unknown[]) {
    let baseline: StandingBaseline | undefined
    for (const value of sources) {
      const source = readSource(value)
      if (!source) continue
      const print = fingerprint(source)
      this.#fingerprints.add(print)
      if (source.baseline) baseline = { identity: source.baselineIdentity, fingerprint: print }
      for (const change of source.changes) this.#apply(change)
    }
    this.baseline = baseline
  }

  #apply({ scope, path, digest }: InstructionSource['changes'][number]): void {
    const parsed = parseScope(scope)
    if (parsed) this.#words.set(scopeKey(parsed.directory, parsed.name), { scope, path, digest })
  }

  /** The last words, by scope in the spelling of this room, in the order of their first mention. */
  get words(): ReadonlyMap<string, Word> {
    return this.#words
  }

  /** The word on a scope that is in force. */
  inForce(key: string): (Word & { readonly digest: string }) | undefined {
    const word = this.#words.get(key)
    return word?.digest === undefined ? undefined : { ...word, digest: word.digest }
  }

  /** Whether a message with this source is visible. */
  shows(print: string): boolean {
    return this.#fingerprints.has(print)
  }
}
