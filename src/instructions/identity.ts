/**
 * By what a baseline was made. Pure.
 *
 * The string holds exactly the keys of the host's own loader in its order, so that a baseline of the
 * same settings counts as the same, whichever of the two wrote it.
 *
 * @module dsh-live-workspace/instructions/identity
 */
import { relative } from 'node:path'
import type { InstructionsConfig } from './config.ts'

/**
 * @param cwd - absolute working directory of the session.
 * @param root - absolute root of the project, `cwd` or above it.
 */
export const baselineIdentity = (config: InstructionsConfig, cwd: string, root: string): string =>
  JSON.stringify({
    projectRoot: relative(cwd, root),
    projectRootMarkers: config.projectRootMarkers,
    maxBytes: config.maxBytes,
    maxSourceBytes: config.maxSourceBytes,
    instructionFileCandidates: config.instructionFileCandidates,
    localInstructionFileCandidates: config.localInstructionFileCandidates,
    ...(config.candidateSelection === 'distinct' ? {} : { candidateSelection: config.candidateSelection }),
  })

/** What can be read out of the identity that another loader wrote. */
export interface ForeignIdentity {
  /** Root of its project, relative to the session's cwd. */
  readonly projectRoot: string | undefined
  /** Names that it looks for. */
  readonly names: ReadonlySet<string>
}

const stringsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []

/** Read an identity; one that cannot be read tells nothing. */
export const readIdentity = (identity: string | undefined): ForeignIdentity => {
  try {
    const parsed: unknown = JSON.parse(identity ?? '')
    if (typeof parsed !== 'object' || parsed === null) throw new TypeError('not an object')
    const { projectRoot, instructionFileCandidates, localInstructionFileCandidates } = parsed as Readonly<
      Record<string, unknown>
    >
    return {
      projectRoot: typeof projectRoot === 'string' ? projectRoot : undefined,
      names: new Set([...stringsOf(instructionFileCandidates), ...stringsOf(localInstructionFileCandidates)]),
    }
  } catch {
    // An identity of an unknown form: nothing about it may be assumed.
    return { projectRoot: undefined, names: new Set() }
  }
}
