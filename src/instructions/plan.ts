/**
 * What has to be told: the difference between what applies and what the model can see. Pure.
 *
 * @module dsh-live-workspace/instructions/plan
 */
import { type Choice, isFailing } from './choose.ts'
import type { Fact } from './look.ts'
import { type InstructionChange, parseScope } from './protocol.ts'
import { type Directory, type Scope, scopesOf } from './scopes.ts'
import type { Standing, Word } from './standing.ts'

/** A transition whose text is still to be read. */
export interface Planned {
  readonly key: string
  readonly change: InstructionChange
  readonly directory: string
  readonly formerly: string | undefined
}

export interface Plan {
  readonly baseline:
    | {
        readonly superseding: boolean
        readonly items: readonly Planned[]
        /** Removals that follow from the new baseline and need no words. */
        readonly gone: readonly InstructionChange[]
      }
    | undefined
  readonly changes: readonly Planned[]
}

/** What the plan follows from. */
export interface Situation {
  readonly directories: readonly Directory[]
  readonly facts: ReadonlyMap<string, Fact>
  readonly choice: Choice
  readonly standing: Standing
  /** Identity of our own baseline. */
  readonly identity: string
  /**
   * Names that another living loader looks for in the directories of the baseline; `undefined` when
   * there is no other loader, and then the baseline is ours to make.
   */
  readonly otherNames: ReadonlySet<string> | undefined
  /** The budget of the visible baseline left this scope out. */
  readonly omitted: (key: string) => boolean
  readonly selection: 'distinct' | 'first'
}

const setOf = (scope: Scope, digest: string): InstructionChange => ({
  action: 'set',
  scope: scope.key,
  path: scope.shown,
  digest,
})

const removalOf = ({ scope, path }: Word): InstructionChange => ({ action: 'remove', scope, path })

const planned = (directory: string, key: string, change: InstructionChange, formerly?: string): Planned => ({
  key,
  change,
  directory,
  formerly,
})

/** Whether the visible baseline is to be kept. */
const baselineStands = (situation: Situation): boolean => {
  const { standing, identity, otherNames, directories } = situation
  if (!standing.baseline) return false
  if (otherNames || standing.baseline.identity === identity) return true
  // A new baseline cannot repeat a file that cannot be read now, and must not drop it.
  return directories
    .filter(({ chain }) => chain)
    .flatMap(scopesOf)
    .some(({ key }) => isFailing(key, situation.facts, standing))
}

/** The transition of one scope, if there is one. */
const difference = (situation: Situation, scope: Scope): Planned | undefined => {
  const { choice, standing } = situation
  const { key, directory } = scope
  const word = standing.words.get(key)
  const standingWord = standing.inForce(key)
  const fact = choice.applying.get(key)?.fact
  if (!fact) {
    if (!standingWord || choice.verdicts.get(key)?.kind === 'held') return undefined
    return planned(directory.id, key, removalOf(standingWord))
  }
  // The log's own spelling of a scope is kept: another reader may not know ours.
  const set = { ...setOf(scope, fact.digest), scope: word?.scope ?? key }
  if (!standingWord) return planned(directory.id, key, set)
  if (standingWord.digest === fact.digest) return undefined
  const formerly = standingWord.path === scope.shown ? undefined : standingWord.path
  return planned(directory.id, key, { ...set, action: 'replace' }, formerly)
}

const nameOf = ({ change }: Planned): string => parseScope(change.scope)?.name ?? ''

/** In `first` mode a file that takes over says from which one of its list. */
const withPredecessors = (items: readonly Planned[], { groups }: Directory): Planned[] =>
  items.map((item) => {
    if (item.change.action !== 'set') return item
    const names = groups.find((group) => group.includes(nameOf(item))) ?? []
    const predecessor = items.find(
      (other) => other.change.action === 'remove' && names.includes(nameOf(other)),
    )
    return predecessor ? { ...item, formerly: predecessor.change.path } : item
  })

/** Scopes in force whose names no longer count, in directories that are known. */
const orphans = ({
  directories,
  standing,
}: Situation): { directory: Directory; key: string; word: Word }[] => {
  const byId = new Map(directories.map((directory) => [directory.id, directory]))
  const known = new Set(directories.flatMap(scopesOf).map(({ key }) => key))
  return [...standing.words].flatMap(([key, word]) => {
    const directory = byId.get(parseScope(word.scope)?.directory ?? '')
    return directory && word.digest !== undefined && !known.has(key) ? [{ directory, key, word }] : []
  })
}

/** Find out what has to be told. */
export const plan = (situation: Situation): Plan => {
  const { directories, choice, standing, identity, otherNames, omitted, selection } = situation
  const stands = baselineStands(situation)
  const chain = directories.filter((directory) => directory.chain)
  const chainScopes = chain.flatMap(scopesOf)
  const changes: Planned[] = []

  const superseded = !stands && standing.baseline !== undefined
  const orphaned = superseded ? orphans(situation) : []
  const applying = chainScopes.filter(({ key }) => choice.applying.has(key))
  const gone = [
    ...chainScopes
      .filter(({ key }) => !choice.applying.has(key) && choice.verdicts.get(key)?.kind !== 'held')
      .flatMap(({ key }) => standing.inForce(key) ?? []),
    ...orphaned.filter(({ directory }) => directory.chain).map(({ word }) => word),
  ]
  const composes = !stands && !otherNames && (superseded || applying.length > 0)
  const baseline = composes
    ? {
        superseding: superseded || gone.length > 0,
        items: applying.map((scope) => {
          const digest = choice.applying.get(scope.key)?.fact.digest ?? ''
          return planned(scope.directory.id, scope.key, setOf(scope, digest))
        }),
        gone: gone.map(removalOf),
      }
    : undefined

  for (const directory of directories) {
    if (directory.chain && composes) continue
    const items = scopesOf(directory).flatMap((scope) => difference(situation, scope) ?? [])
    const due = items.filter((item) => {
      if (!directory.chain || item.change.action !== 'set') return true
      if (omitted(item.key)) return false
      // What the other loader leaves out of a baseline of other settings is not known here.
      return standing.baseline?.identity === identity || !otherNames?.has(nameOf(item))
    })
    changes.push(...(selection === 'first' ? withPredecessors(due, directory) : due))
  }
  for (const { directory, key, word } of orphaned) {
    if (!directory.chain) changes.push(planned(directory.id, key, removalOf(word)))
  }
  return { baseline, changes }
}
