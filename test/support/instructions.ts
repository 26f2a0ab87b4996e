import { createHash } from 'node:crypto'
import type { Plugin } from '@deepseek-ai/cordis'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from './json.ts'
import type { SessionLog } from './session-log.ts'

/** A message of the instruction protocol, whichever loader has sent it. */
export interface ToldInstructions {
  readonly seq: number
  readonly text: string
  readonly baseline: boolean
  readonly changes: readonly JsonObject[]
}

/** What a session was told of instruction files, as its log holds it. */
export const toldInstructions = ({ events }: Pick<SessionLog, 'events'>): readonly ToldInstructions[] =>
  events.flatMap(({ seq, type, data }) => {
    const source = data['source']
    if (type !== 'user/message' || !isObject(source) || source['kind'] !== 'agent-instructions') return []
    const changes = arrayOf(source['changes'], 'changes').map((change) => objectOf(change, 'a change'))
    const blocks = arrayOf(data['content'], 'content').map((block) => objectOf(block, 'a block'))
    const text = blocks.map((block) => stringOf(block['text'], 'text')).join('')
    return [{ seq, text, baseline: source['baseline'] === true, changes }]
  })

/** Transitions in one line each, such as `baseline set .:AGENTS.md`. */
export const changesOf = (messages: readonly ToldInstructions[]): readonly string[] =>
  messages.flatMap(({ baseline, changes }) =>
    changes.map(({ action, scope }) =>
      `${baseline ? 'baseline ' : ''}${String(action)} ${String(scope)}`.replace('\0', ':'),
    ),
  )

/** How the protocol names a content. */
export const digestOf = (text: string): string => createHash('sha1').update(text, 'utf8').digest('hex')

/** How often a text stands in another one. */
export const occurrences = (text: string, part: string): number => text.split(part).length - 1

// Not a literal: the types of the host's own loader declare the message source that this package declares too.
const STOCK: string = '@deepseek-ai/dsh-agent-instructions'

/** The host's own loader of instruction files. */
export const stockLoader = async (): Promise<Plugin> => (await import(STOCK)) as Plugin
