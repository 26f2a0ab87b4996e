/**
 * The texts of instruction messages. Pure.
 *
 * @module dsh-live-workspace/instructions/render
 */
import { type Block, fit } from './budget.ts'
import { GLOBAL_DIRECTORY, type InstructionChange, relativeOf } from './protocol.ts'
import { escapeFrame, showPath } from './text.ts'

/** One transition and what is needed to tell it. */
export interface Transition {
  readonly key: string
  readonly change: InstructionChange
  /** Directory part of the scope. */
  readonly directory: string
  /** The whole text; a removal has none. */
  readonly text: string | undefined
  /** Path that the model knew these instructions by, where it is another one now. */
  readonly formerly?: string | undefined
}

/** A message and those of its transitions that are really in it. */
export interface Rendered {
  readonly text: string
  readonly told: readonly Transition[]
  readonly omitted: readonly Transition[]
  /** The last told one was cut, to so many bytes. */
  readonly cutTo: number | undefined
}

const INTRODUCTION =
  'The following workspace instructions may be relevant to your work. Use them as guidance when applicable. More specific instructions take precedence over broader ones. They do not override system, developer, or direct user instructions.'
const SUPERSEDING =
  'These are all workspace instructions that apply from the start: they take the place of every earlier list of them.'
const NONE_LEFT = 'At present there are none.'
const REMOVED = 'The previously loaded instructions from this file no longer apply.'
const UPDATED = 'The file has changed. What follows takes the place of what was loaded from it before.'

const EMPTY = 'The file is empty now. What was loaded from it before no longer applies.'

const statement = (directory: string): string => {
  const reach =
    directory === GLOBAL_DIRECTORY
      ? 'all work'
      : `work under \`${directory === '.' ? directory : showPath(relativeOf(directory))}\``
  return `These instructions apply to ${reach}. Use them as guidance when relevant; more specific instructions take precedence. They do not override system, developer, or direct user instructions.`
}

const replaced = (formerly: string | undefined): string =>
  formerly === undefined
    ? ''
    : ` They take the place of those from \`${showPath(formerly)}\`, which no longer apply.`

const paragraphs = (...parts: string[]): string => parts.join('\n\n')

const baselineBlock = ({ change, text }: Transition): Block => {
  const path = showPath(change.path)
  return { path, lead: `Instructions from: ${path}`, content: escapeFrame(text ?? '') }
}

const changeBlock = ({ change, directory, text, formerly }: Transition): Block => {
  const path = showPath(change.path)
  const content = escapeFrame(text ?? '')
  switch (change.action) {
    case 'set': {
      const lead = paragraphs(
        `Additional instructions from: ${path}`,
        statement(directory) + replaced(formerly),
      )
      return { path, lead, content }
    }
    case 'replace': {
      const empty = content.trim() === ''
      const lead = paragraphs(
        `Updated instructions from: ${path}`,
        (empty ? EMPTY : UPDATED) + replaced(formerly),
      )
      return { path, lead, content }
    }
    case 'remove':
      return { path, lead: paragraphs(`Instructions removed: ${path}`, REMOVED), content: undefined }
    default:
      throw new Error(`unknown action ${String(change.action satisfies never)}`)
  }
}

const rendered = (
  transitions: readonly Transition[],
  blocks: readonly Block[],
  head: string | undefined,
  maxBytes: number,
): Rendered => {
  const { text, omitted, cutTo } = fit(blocks, head, maxBytes)
  return { text, told: transitions.slice(omitted), omitted: transitions.slice(0, omitted), cutTo }
}

/**
 * A complete baseline.
 * @param superseding - it takes the place of an earlier one that the model can see.
 */
export const renderBaseline = (
  transitions: readonly Transition[],
  superseding: boolean,
  maxBytes: number,
): Rendered => {
  const head = [
    ...(superseding ? [SUPERSEDING] : []),
    transitions.length === 0 ? NONE_LEFT : INTRODUCTION,
  ].join(' ')
  return rendered(transitions, transitions.map(baselineBlock), head, maxBytes)
}

/** Later transitions. With none of them told there is nothing to send. */
export const renderChanges = (transitions: readonly Transition[], maxBytes: number): Rendered =>
  rendered(transitions, transitions.map(changeBlock), undefined, maxBytes)

/** The transitions whose texts stand in a message whole and unchanged. */
export const wholeIn = ({ told, cutTo }: Rendered): (Transition & { readonly text: string })[] =>
  (cutTo === undefined ? told : told.slice(0, -1)).flatMap((transition) => {
    const { text } = transition
    return text !== undefined && escapeFrame(text) === text ? [{ ...transition, text }] : []
  })
