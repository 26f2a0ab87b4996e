/**
 * The text of `/instructions`. Pure.
 *
 * @module dsh-live-workspace/status/render-instructions
 */
import type { InstructionFileStatus, InstructionsStatus } from './instructions.ts'
import { ago, counted, listed, quoted } from './text.ts'

/** Digits of a digest that tell two texts apart for a person. */
const DIGEST_SHOWN = 10

const BECAUSE: Readonly<Record<InstructionFileStatus['because'], string>> = {
  'user-global': 'user-global',
  chain: 'from the project root to the working directory',
  reached: 'the session has used this directory',
}

const WHY_NOT: Readonly<Record<InstructionFileStatus['state'], string>> = {
  'in-force': '',
  pending: 'comes with the next request',
  held: 'a file of this directory cannot be read, so the model keeps the last text',
  omitted: 'left out: instructions.maxBytes is used up',
  duplicate: 'the same text',
  'passed-over': 'an earlier name is there, and instructions.candidateSelection is "first"',
  ignored: 'not used: the directory is ignored',
  refused: 'not used',
}

const inForceLine = (file: InstructionFileStatus, now: number): string => {
  const { shown, bytes, digest, cutTo, loaded, because } = file
  const facts = [
    ...(bytes === undefined ? [] : [counted(bytes, 'byte')]),
    ...(cutTo === undefined ? [] : [`cut to ${counted(cutTo, 'byte')} by instructions.maxBytes`]),
    ...(digest === undefined ? [] : [`sha1 ${digest.slice(0, DIGEST_SHOWN)}`]),
    ...(loaded
      ? [
          `${loaded.action === 'replace' ? 'replaced' : 'loaded'} ${ago(loaded.at, now)}${loaded.baseline ? ' with the baseline' : ''}`,
        ]
      : []),
    BECAUSE[because],
  ]
  return `${quoted(shown)}  ${facts.join(', ')}`
}

const otherLine = ({ shown, state, duplicateOf, reason }: InstructionFileStatus): string => {
  const why =
    state === 'duplicate' && duplicateOf !== undefined ? `repeats ${quoted(duplicateOf)}` : WHY_NOT[state]
  return `${quoted(shown)}  ${why}${reason === undefined ? '' : `: ${reason}`}`
}

const lookedForLines = ({ lookedIn }: InstructionsStatus): string[] =>
  lookedIn.map(
    ({ shown, names, because }) =>
      `${names.map(quoted).join(', ')} in ${quoted(shown)} (${BECAUSE[because]})`,
  )

const ABOUT: Readonly<Record<Exclude<InstructionsStatus['state'], 'on'>, string>> = {
  off: 'Instruction files: switched off (instructions is false, or instructions.maxBytes leaves no room).',
  'not-yet': 'Instruction files: not looked at yet. They are loaded with the first request of the session.',
}

/**
 * @param now - ms since the epoch.
 * @returns lines; the first one is a summary by itself.
 */
export const renderInstructions = (status: InstructionsStatus, now: number): string => {
  if (status.state !== 'on') return ABOUT[status.state]
  const inForce = status.files.filter(({ state }) => state === 'in-force' || state === 'held')
  const held = (file: InstructionFileStatus) => (file.state === 'held' ? `; ${WHY_NOT.held}` : '')
  const others = [
    ...status.files.filter((file) => !inForce.includes(file)).map(otherLine),
    ...status.wrongCase.map(
      ({ path, candidate }) =>
        `${quoted(path)}  not used: wrong letter case, the name is ${quoted(candidate)}`,
    ),
  ]
  return [
    `Instruction files: ${inForce.length} in force, ${others.length} not, as of the last request`,
    '',
    ...listed(
      inForce.length === 0 ? 'In force: none' : 'In force, the more specific ones last:',
      inForce.map((file) => `${inForceLine(file, now)}${held(file)}`),
    ),
    ...(others.length > 0 ? ['', ...listed('Not in force:', others)] : []),
    '',
    ...listed('Looked for:', lookedForLines(status)),
    ...(status.unlisted.length > 0
      ? [
          '',
          ...listed(
            'Could not be searched for names in a wrong letter case:',
            status.unlisted.map(({ path, why }) => `${quoted(path)}: ${why}`),
          ),
        ]
      : []),
  ].join('\n')
}
