/**
 * What a boundary has found to tell.
 *
 * @module dsh-live-workspace/outcome
 */
import type { InstructionMessage } from './instructions/view.ts'
import type { RenderedNotice } from './notice/render.ts'
import type { CoveredState, Reminder } from './session.ts'

/** What a notice is about, as its message's source says. */
export type Category = 'changes' | 'coverage' | Reminder

/** A notice that is to be told, and the states that it covers. */
export interface Notice extends RenderedNotice {
  readonly category: Category
  readonly covered: readonly CoveredState[]
}

/** Instructions that are to be told, and the states of the files that they speak of. */
export interface DueInstructions extends InstructionMessage {
  readonly covered: readonly CoveredState[]
}

/** What a boundary has found to tell. */
export interface Outcome {
  /** States that an instruction message of another loader in the batch tells. */
  readonly toldByOthers: readonly CoveredState[]
  readonly instructions: readonly DueInstructions[]
  readonly notices: readonly Notice[]
  /** Whether a file that the session has used has changed. */
  readonly touchesUsed: boolean
  /** Whether anything else is worth a step: what a command of the session may have done is not. */
  readonly touchesOthers: boolean
}
