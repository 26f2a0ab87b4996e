/**
 * Reports to the person who runs the host: each problem once.
 *
 * @module dsh-live-workspace/log
 */
import type { Context } from '@deepseek-ai/cordis'
import { messageOf } from './errors.ts'

/** Says each problem once. */
export class Reporter {
  readonly #ctx: Context
  readonly #said = new Set<string>()

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  /**
   * @param problem - what is wrong, in one sentence; the same text is said once.
   * @param remedy - what helps.
   */
  once(problem: string, remedy: string): void {
    if (this.#said.has(problem)) return
    this.#said.add(problem)
    const text = `${problem}. Remedy: ${remedy}.`
    this.#ctx.logger.error(text)
    // The host's own log shows nothing unless a person has set it up, so this goes to stderr as well.
    process.emitWarning(text, { type: 'dsh-live-workspace' })
  }

  /** An error of our own that must not reach the host. */
  contained(where: string, error: unknown): void {
    this.once(
      `${where} failed (${messageOf(error)})`,
      'the agent goes on without this notice; please report it with the message above',
    )
  }
}
