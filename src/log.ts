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
    // The level that the host shows by default; anything lower is dropped unless a log is set up.
    this.#ctx.logger.error(`dsh-live-workspace: ${problem}. Remedy: ${remedy}.`)
  }

  /** An error of our own that must not reach the host. */
  contained(where: string, error: unknown): void {
    this.once(
      `${where} failed (${messageOf(error)})`,
      'the agent goes on without this notice; please report it with the message above',
    )
  }
}
