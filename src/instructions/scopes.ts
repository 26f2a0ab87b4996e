/**
 * The scopes of a session: which file names count in which directories. Pure.
 *
 * @module dsh-live-workspace/instructions/scopes
 */
import { join } from 'node:path'
import type { InstructionsConfig } from './config.ts'
import { GLOBAL_DIRECTORY, GLOBAL_FILE, directoryId, scopeKey } from './protocol.ts'

/** A directory in which instruction files count. */
export interface Directory {
  /** Directory part of its scopes. */
  readonly id: string
  /** Absolute path as files are looked for. */
  readonly path: string
  /** Real path, as a watcher names it. */
  readonly real: string
  /** Beginning of the paths that the model is shown, with a closing `/` unless empty. */
  readonly prefix: string
  /** It belongs to the baseline: the user-global directory, or one from the root to the cwd. */
  readonly chain: boolean
  /** Only what is in force there is followed, nothing new is loaded. */
  readonly gated: boolean
  /** Names that count: one list for base files, one for local additions. */
  readonly groups: readonly (readonly string[])[]
}

/** One candidate: a name in a directory. */
export interface Scope {
  readonly key: string
  readonly directory: Directory
  readonly name: string
  /** Absolute path as it is looked for. */
  readonly path: string
  /** Path as the model is shown it. */
  readonly shown: string
}

/** @param home - absolute path of the harness home; @param display - what the model is shown for it. */
export const globalDirectory = (home: string, real: string, display: string): Directory => ({
  id: GLOBAL_DIRECTORY,
  path: home,
  real,
  prefix: `${display}/`,
  chain: true,
  gated: false,
  groups: [[GLOBAL_FILE]],
})

export const projectDirectory = (
  config: InstructionsConfig,
  place: Pick<Directory, 'path' | 'real' | 'chain' | 'gated'> & { readonly relative: string },
): Directory => {
  const { relative, path, real, chain, gated } = place
  const base = [...new Set(config.instructionFileCandidates)]
  const local = [...new Set(config.localInstructionFileCandidates)].filter((name) => !base.includes(name))
  return {
    id: directoryId(relative),
    path,
    real,
    prefix: relative === '' ? '' : `${relative}/`,
    chain,
    gated,
    groups: [base, local],
  }
}

export const scopesOf = (directory: Directory): Scope[] =>
  directory.groups.flat().map((name) => ({
    key: scopeKey(directory.id, name),
    directory,
    name,
    path: join(directory.path, name),
    shown: directory.prefix + name,
  }))
