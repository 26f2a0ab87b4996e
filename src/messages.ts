/**
 * Messages of this bundle, as the host wants them.
 *
 * @module dsh-live-workspace/messages
 */
import type { Agent } from '@deepseek-ai/dsh-agent'
import { boundContextSummary, createUserMessage, type UserMessage } from '@deepseek-ai/dsh-llm'
import type { Category, Notice } from './outcome.ts'
import type { InstructionSource } from './instructions/protocol.ts'

declare module '@deepseek-ai/dsh-llm' {
  interface MessageSourceMap {
    'agent-instructions': InstructionSource
  }
}

/** Value of `source.plugin` in every notice of this bundle. */
export const PLUGIN = 'dsh-live-workspace'

/** Source of a change notice in the session log. */
export interface NoticeSource {
  readonly kind: 'plugin'
  readonly plugin: typeof PLUGIN
  readonly form: 'notice'
  /** One line for a person, at most 120 characters. */
  readonly summary: string
  readonly category: Category
}

/** A notice as a user message. */
export const noticeMessage = ({ text, summary, category }: Notice): UserMessage => {
  const source: NoticeSource = {
    kind: 'plugin',
    plugin: PLUGIN,
    form: 'notice',
    summary: boundContextSummary(summary),
    category,
  }
  return createUserMessage({ content: [{ type: 'text', text }], source })
}

/** An instruction message as a user message, in the protocol of the host's own loader. */
export const instructionMessage = (text: string, source: InstructionSource): UserMessage =>
  createUserMessage({ content: [{ type: 'text', text }], source })

/** Everything that waits in an agent's inbox. */
export const pendingMessages = ({ inbox }: Agent): readonly UserMessage[] => [
  ...inbox.nextStep,
  ...inbox.nextTurn,
]

/** Insert after the last claimed message, and after instructions, so that notices follow them. */
export const fold = (
  batch: readonly UserMessage[],
  claimed: readonly UserMessage[],
  messages: readonly UserMessage[],
): UserMessage[] => {
  const at = batch.findLastIndex(
    (message) => claimed.includes(message) || message.source.kind === 'agent-instructions',
  )
  return batch.toSpliced(at + 1, 0, ...messages)
}
