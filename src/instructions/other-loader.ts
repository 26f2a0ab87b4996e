/**
 * Whether another loader of the same protocol acts in a session. Decided by evidence: a message in a
 * batch that is not ours. Pure.
 *
 * @module dsh-live-workspace/instructions/other-loader
 */
import type { Choice } from './choose.ts'
import { readIdentity } from './identity.ts'
import { fingerprint, readSource } from './protocol.ts'
import type { Standing } from './standing.ts'

/** What is known of another loader in one session. */
export class OtherLoader {
  #seen = false
  #names: ReadonlySet<string> | undefined

  /** Look at a batch. */
  notice(entering: readonly unknown[], isOurs: (print: string) => boolean): void {
    for (const value of entering) {
      const source = readSource(value)
      if (!source || isOurs(fingerprint(source))) continue
      this.#seen = true
      if (source.baselineIdentity !== undefined) this.#names = readIdentity(source.baselineIdentity).names
    }
  }

  /**
   * Whether to reckon with another loader.
   * @param likely - there may be one although no batch showed it: then a baseline that is not ours is its.
   */
  present(likely: boolean, standing: Standing, isOurs: (print: string) => boolean): boolean {
    if (this.#seen) return true
    return likely && standing.baseline !== undefined && !isOurs(standing.baseline.fingerprint)
  }

  /** Names that it looks for, as far as it has said so. */
  names(standing: Standing): ReadonlySet<string> | undefined {
    return standing.baseline ? readIdentity(standing.baseline.identity).names : this.#names
  }

  /**
   * Whether it is not there any more, asked when a batch enters and no baseline is to be seen: it would
   * have told what applies. Then what showed it was a message that it had once left in the inbox.
   */
  isGone({ applying }: Choice, standing: Standing): boolean {
    const names = this.names(standing)
    const untold = [...applying].some(
      ([key, { scope }]) =>
        scope.directory.chain && !standing.inForce(key) && (names?.has(scope.name) ?? true),
    )
    if (untold) this.#seen = false
    return untold
  }
}
