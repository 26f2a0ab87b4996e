/**
 * What a session's room remembers of its own messages. Pure.
 *
 * None of it is a reason for silence by itself: what a budget left out is only left alone while the
 * message that says so can be seen.
 *
 * @module dsh-live-workspace/instructions/memory
 */
import type { Applying, Choice } from './choose.ts'
import { renderBaseline, type Rendered, type Transition } from './render.ts'
import type { Standing } from './standing.ts'
import { digestOf } from './text.ts'

/** Memory of one session. */
export class Memory {
  readonly #ours = new Set<string>()
  /** By scope: fingerprint of the baseline whose budget left it out. */
  readonly #omitted = new Map<string, string>()
  readonly #cut = new Map<string, { readonly digest: string; readonly to: number }>()
  /** By scope: digest of a text of which nothing fits, even alone. */
  readonly #stuck = new Map<string, string>()
  /** What a baseline made now would hold. */
  #retained: ReadonlySet<string> = new Set()
  #retainedFor: string | undefined
  /** By scope: digest of what was told or left out last, empty for a removal; also where it is not visible any more. */
  readonly #met = new Map<string, string>()
  #looked = false

  /** Whether a message with this fingerprint was made here. */
  isOurs(print: string): boolean {
    return this.#ours.has(digestOf(print))
  }

  /** Take note of what the log says. */
  meet({ words }: Standing): void {
    for (const [key, { digest }] of words) this.#met.set(key, digest ?? '')
  }

  /** Whether a message says anything that the session was not told before. */
  isNews({ told }: Rendered): boolean {
    return told.some(({ key, change }) => this.#met.get(key) !== (change.digest ?? ''))
  }

  /** Take note of what applies now. */
  look(choice: Choice, standing: Standing, maxBytes: number): void {
    this.meet(standing)
    const { baseline } = standing
    const continued = !this.#looked && baseline !== undefined
    this.#looked = true
    if (!continued && this.#omitted.size === 0) return
    this.#retain(choice, maxBytes)
    if (!continued) return
    // A baseline from before this room: what its budget left out follows from its budget.
    for (const [key, { scope }] of choice.applying) {
      if (!scope.directory.chain || standing.inForce(key) || this.#retained.has(key)) continue
      this.#omitted.set(key, baseline.fingerprint)
    }
  }

  #retain(choice: Choice, maxBytes: number): void {
    const chain = [...choice.applying.values()].filter(({ scope }) => scope.directory.chain)
    const sizes = JSON.stringify(chain.map(({ scope, fact }) => [scope.key, fact.framedBytes]))
    if (sizes === this.#retainedFor) return
    this.#retainedFor = sizes
    this.#retained = retainedBy(chain, maxBytes)
  }

  /** Whether a visible baseline left the scope out, and one made now would do so too. */
  isOmitted(key: string, standing: Standing): boolean {
    const print = this.#omitted.get(key)
    return print !== undefined && standing.shows(print) && !this.#retained.has(key)
  }

  /** Bytes to which a text was cut when it was told. */
  cutTo(key: string, digest: string): number | undefined {
    const cut = this.#cut.get(key)
    return cut?.digest === digest ? cut.to : undefined
  }

  /** A message was made. */
  issued(print: string, { told, omitted, cutTo }: Rendered, baseline: boolean): void {
    this.#ours.add(digestOf(print))
    for (const { key } of told) this.#cut.delete(key)
    const last = told.at(-1)
    if (last?.change.digest !== undefined && cutTo !== undefined) {
      this.#cut.set(last.key, { digest: last.change.digest, to: cutTo })
    }
    for (const { key, change } of omitted) this.#met.set(key, change.digest ?? '')
    if (!baseline) return
    this.#omitted.clear()
    for (const { key } of omitted) this.#omitted.set(key, print)
  }

  /** Nothing of this transition fits. */
  stick(transition: Transition | undefined): void {
    if (transition) this.#stuck.set(transition.key, transition.change.digest ?? '')
  }

  isStuck({ key, change }: Pick<Transition, 'key' | 'change'>): boolean {
    return this.#stuck.get(key) === (change.digest ?? '')
  }
}

/** The scopes that a baseline of these would hold. Sizes decide that, not contents. */
const retainedBy = (chain: readonly Applying[], maxBytes: number): ReadonlySet<string> => {
  const { told } = renderBaseline(
    chain.map(({ scope, fact }) => ({
      key: scope.key,
      change: { action: 'set', scope: scope.key, path: scope.shown, digest: fact.digest },
      directory: scope.directory.id,
      text: ' '.repeat(fact.framedBytes),
    })),
    false,
    maxBytes,
  )
  return new Set(told.map(({ key }) => key))
}
