/**
 * What the person who runs the host is told of files that are not loaded.
 *
 * @module dsh-live-workspace/instructions/reports
 */
import type { Fact, Refusal } from './look.ts'
import type { Scope } from './scopes.ts'

/** Says a problem and what helps. */
export type Report = (problem: string, remedy: string) => void

const REMEDY: Readonly<Record<Refusal, string>> = {
  'too-large': 'shorten it, or raise instructions.maxSourceBytes',
  'not-text': 'save it as UTF-8 text',
  'pass-limit': 'nothing; it is read at the next request. instructions.maxPassBytes is the limit',
  changing: 'nothing; it is read at the next request',
  failed: 'make it readable; until then its last state stays in force',
}

/** Report every one of these files that is there and is not loaded. */
export const reportRefusals = (
  scopes: readonly Scope[],
  facts: ReadonlyMap<string, Fact>,
  report: Report,
): void => {
  for (const { key, path } of scopes) {
    const fact = facts.get(key)
    if (fact?.kind === 'refused') report(`${path} is not loaded: ${fact.detail}`, REMEDY[fact.why])
    if (fact?.kind === 'absent' && fact.dangling) {
      report(`${path} is a link that leads nowhere`, 'remove the link, or make what it leads to')
    }
  }
}
