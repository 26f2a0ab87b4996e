/**
 * Which of the files that are there apply. Pure.
 *
 * @module dsh-live-workspace/instructions/choose
 */
import type { Fact, Loaded } from './look.ts'
import { type Directory, type Scope, scopesOf } from './scopes.ts'
import type { Standing } from './standing.ts'

/** What becomes of one candidate. */
export type Verdict =
  | { readonly kind: 'applies' }
  /** Its directory keeps its last good state, because a file in force there cannot be read. */
  | { readonly kind: 'held' }
  | { readonly kind: 'duplicate'; readonly of: string }
  /** An earlier name of the same list is there, and only the first counts. */
  | { readonly kind: 'passed-over' }
  /** It lies in an ignored directory. */
  | { readonly kind: 'ignored' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'absent' }

/** A file that applies. */
export interface Applying {
  readonly scope: Scope
  readonly fact: Loaded
}

/** The choice over all directories, in their order. */
export interface Choice {
  /** Files that apply, from broad to specific. */
  readonly applying: ReadonlyMap<string, Applying>
  readonly verdicts: ReadonlyMap<string, Verdict>
}

/** In `first` mode the names of a list up to the first one that is there, or may be. */
const firstOf = (names: readonly string[], factOf: (name: string) => Fact | undefined): string | undefined =>
  names.find((name) => factOf(name)?.kind !== 'absent')

/** Whether a file in force cannot be read, and may be readable again without having changed. */
export const isFailing = (key: string, facts: ReadonlyMap<string, Fact>, standing: Standing): boolean => {
  const fact = facts.get(key)
  return standing.inForce(key) !== undefined && fact?.kind === 'refused' && fact.version === undefined
}

/**
 * @param superseding - the baseline is about to be replaced: files of its directories that are refused
 *   for what they are do not hold back the others.
 */
export const choose = (
  directories: readonly Directory[],
  facts: ReadonlyMap<string, Fact>,
  standing: Standing,
  { selection, superseding }: { readonly selection: 'distinct' | 'first'; readonly superseding: boolean },
): Choice => {
  const applying = new Map<string, Applying>()
  const verdicts = new Map<string, Verdict>()
  /** By identity of the file: whoever applies first. */
  const holders = new Map<string, string>()

  for (const directory of directories) {
    const scopes = scopesOf(directory)
    const byName = new Map(scopes.map((scope) => [scope.name, scope]))
    const factOf = (name: string) => facts.get(byName.get(name)?.key ?? '')
    const held = scopes.some(({ key }) =>
      superseding && directory.chain
        ? isFailing(key, facts, standing)
        : standing.inForce(key) && facts.get(key)?.kind === 'refused',
    )
    const firsts = new Set(directory.groups.map((names) => firstOf(names, factOf)))
    const contents = new Map<string, string>()

    const judge = ({ key, name }: Scope, fact: Fact | undefined): Verdict => {
      const inForce = standing.inForce(key) !== undefined
      if (held && inForce) return { kind: 'held' }
      if (!fact || fact.kind === 'absent') return { kind: 'absent' }
      if (selection === 'first' && !firsts.has(name)) return { kind: 'passed-over' }
      if (fact.kind === 'refused') return { kind: 'refused' }
      if (held) return { kind: 'held' }
      const sibling = contents.get(fact.trimmed)
      if (sibling !== undefined) return { kind: 'duplicate', of: sibling }
      // What another loader has put into force twice is left as it is: taking it back would not last.
      const holder = holders.get(fact.identity)
      if (holder !== undefined && !inForce) return { kind: 'duplicate', of: holder }
      return directory.gated && !inForce ? { kind: 'ignored' } : { kind: 'applies' }
    }

    for (const scope of scopes) {
      const fact = facts.get(scope.key)
      const verdict = judge(scope, fact)
      verdicts.set(scope.key, verdict)
      if (fact?.kind !== 'loaded') continue
      if (verdict.kind === 'applies') applying.set(scope.key, { scope, fact })
      // A held file counts as far as it is in force: its text is what the model has.
      if (verdict.kind !== 'applies' && !(verdict.kind === 'held' && standing.inForce(scope.key))) continue
      if (!contents.has(fact.trimmed)) contents.set(fact.trimmed, scope.key)
      if (!holders.has(fact.identity)) holders.set(fact.identity, scope.key)
    }
  }
  return { applying, verdicts }
}
