/**
 * What a person is shown of instruction files: which are there, what became of them and why. Pure.
 *
 * @module dsh-live-workspace/instructions/status
 */
import type { Verdict } from './choose.ts'
import type { Fact } from './look.ts'
import { GLOBAL_DIRECTORY } from './protocol.ts'
import type { Directory, Scope } from './scopes.ts'
import type { Standing } from './standing.ts'

/** State of one instruction file. */
export interface ScopeStatus {
  /** Absolute path. */
  readonly path: string
  /** Path as the model is shown it. */
  readonly shown: string
  readonly scope: string
  /** Why it is looked at: see {@link LookedIn.because}. */
  readonly because: LookedIn['because']
  /**
   * `in-force`: the model has this text. `pending`: it will be told. `held`: the model keeps the last
   * text, because a file of the directory cannot be read. `omitted`: the budget left it out.
   */
  readonly state:
    'in-force' | 'pending' | 'held' | 'omitted' | 'duplicate' | 'passed-over' | 'ignored' | 'refused'
  /** SHA-1 of the text that the model has. */
  readonly digest: string | undefined
  /** Size of the file in bytes, where it could be read. */
  readonly bytes: number | undefined
  /** Bytes that the model has of it, where it was cut. */
  readonly cutTo: number | undefined
  /** Path, as the model is shown it, of the file that it repeats. */
  readonly duplicateOf: string | undefined
  /** Why it is not loaded. */
  readonly reason: string | undefined
}

/** A directory in which names are looked for. */
export interface LookedIn {
  /** Absolute path. */
  readonly path: string
  /** Beginning of the paths that the model is shown. */
  readonly shown: string
  /** In their order: the base files, then the local additions. */
  readonly names: readonly string[]
  /**
   * `user-global`: the harness home. `chain`: it lies between the project root and the working directory.
   * `reached`: a tool of the session has used a file there, or the log speaks of it.
   */
  readonly because: 'user-global' | 'chain' | 'reached'
}

/** Where names are looked for. */
export const lookedIn = (directories: readonly Directory[]): LookedIn[] =>
  directories.map((directory) => ({
    path: directory.path,
    shown: directory.prefix === '' ? './' : directory.prefix,
    names: directory.groups.flat(),
    because: reasonFor(directory),
  }))

const reasonFor = ({ id, chain }: Directory): LookedIn['because'] => {
  if (id === GLOBAL_DIRECTORY) return 'user-global'
  return chain ? 'chain' : 'reached'
}

/** What the status follows from. */
export interface StatusParts {
  readonly scopes: ReadonlyMap<string, Scope>
  readonly facts: ReadonlyMap<string, Fact>
  readonly verdicts: ReadonlyMap<string, Verdict>
  readonly standing: Standing
  readonly omitted: (key: string) => boolean
  readonly cutTo: (key: string, digest: string) => number | undefined
}

const stateOf = (
  { standing, omitted }: StatusParts,
  key: string,
  verdict: Verdict,
  fact: Fact | undefined,
): ScopeStatus['state'] | undefined => {
  if (verdict.kind === 'absent') {
    return fact?.kind === 'absent' && fact.dangling ? 'refused' : undefined
  }
  if (verdict.kind !== 'applies') return verdict.kind
  if (omitted(key)) return 'omitted'
  return standing.inForce(key)?.digest === (fact?.kind === 'loaded' ? fact.digest : undefined)
    ? 'in-force'
    : 'pending'
}

const reasonOf = (fact: Fact | undefined): string | undefined => {
  if (fact?.kind === 'refused') return fact.detail
  return fact?.kind === 'absent' && fact.dangling ? 'the link leads nowhere' : undefined
}

/** State of every instruction file that is there. */
export const statusOf = (parts: StatusParts): ScopeStatus[] =>
  [...parts.scopes.values()].flatMap((scope) => {
    const { key, path, shown } = scope
    const verdict = parts.verdicts.get(key)
    const fact = parts.facts.get(key)
    const state = verdict && stateOf(parts, key, verdict, fact)
    if (!state) return []
    const digest = parts.standing.inForce(key)?.digest
    return [
      {
        path,
        shown,
        scope: key,
        because: reasonFor(scope.directory),
        state,
        digest,
        bytes: fact?.kind === 'loaded' ? fact.bytes : undefined,
        cutTo: digest === undefined ? undefined : parts.cutTo(key, digest),
        duplicateOf: verdict.kind === 'duplicate' ? parts.scopes.get(verdict.of)?.shown : undefined,
        reason: reasonOf(fact),
      },
    ]
  })
