/** Part 3: the boundary right after `git checkout` has changed, added and removed many files. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BarrierOutcome } from '../../src/watch/contract.ts'
import { config, type Mode, watchTree } from './watching.ts'

export interface CheckoutRun {
  readonly mode: Mode
  /** Paths that differ between the two branches and were not named. */
  readonly missed: number
  readonly outcome: BarrierOutcome
  /** Time of git itself in ms. */
  readonly gitMs: number
  readonly barrierMs: number
}

export interface CheckoutPlan {
  readonly root: string
  readonly files: readonly string[]
  /** Paths that differ between the branches. */
  readonly changed: number
  readonly runs: number
  /** Longest time in ms for the runs of one mode. */
  readonly limitMs: number
}

const SETTLE_MS = 700
/** One in so many of the differing paths is in one branch only. */
const ONLY_ONE_BRANCH = 20

const never = new AbortController().signal

/** Two branches that differ. @returns the paths in which they do. */
export const makeBranches = ({ root, files, changed }: CheckoutPlan): readonly string[] => {
  git(root, 'init', '--quiet', '--initial-branch=base')
  git(root, 'add', '--all')
  git(root, 'commit', '--quiet', '--message=base')
  git(root, 'checkout', '--quiet', '-b', 'other')
  const stride = Math.floor(files.length / changed)
  const paths: string[] = []
  for (let index = 0; index < changed; index += 1) {
    const file = files[index * stride]
    if (file === undefined) throw new Error('the tree is too small')
    const kind = index % ONLY_ONE_BRANCH
    const added = join(dirname(file), `other${index}`, 'f.ts')
    if (kind === 0) rmSync(file)
    else if (kind === 1) {
      mkdirSync(dirname(added))
      writeFileSync(added, 'only here\n')
    } else appendFileSync(file, '// other\n')
    paths.push(kind === 1 ? added : file)
  }
  git(root, 'add', '--all')
  git(root, 'commit', '--quiet', '--message=other')
  git(root, 'checkout', '--quiet', 'base')
  return paths
}

export const runCheckouts = async (
  { root, runs, limitMs }: CheckoutPlan,
  changed: readonly string[],
  mode: Mode,
): Promise<{ readonly runs: readonly CheckoutRun[]; readonly faults: readonly string[] }> => {
  const watching = await watchTree(root, mode)
  const { reader } = watching
  try {
    const results: CheckoutRun[] = []
    const deadline = performance.now() + limitMs
    for (let run = 0; run < runs && performance.now() < deadline; run += 1) {
      await pause(SETTLE_MS)
      await reader.barrier(config.watch.maxWaitMs, never)
      reader.read()
      const startedAt = performance.now()
      git(root, 'checkout', '--quiet', run % 2 === 0 ? 'other' : 'base')
      const returnedAt = performance.now()
      const outcome = await reader.barrier(config.watch.maxWaitMs, never)
      const barrierMs = performance.now() - returnedAt
      const named = new Set(reader.read().paths.map(({ path }) => path))
      results.push({
        mode,
        missed: changed.filter((path) => !named.has(path)).length,
        outcome,
        gitMs: Math.round(returnedAt - startedAt),
        barrierMs: Number(barrierMs.toFixed(1)),
      })
    }
    if (results.length % 2 === 1) git(root, 'checkout', '--quiet', 'base')
    return { runs: results, faults: [...watching.faults] }
  } finally {
    await watching.close()
  }
}

/** This process's loop stands still while git runs. */
const git = (cwd: string, ...args: readonly string[]): void => {
  const settings = ['-c', 'user.name=bench', '-c', 'user.email=bench@example.invalid', '-c', 'gc.auto=0']
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
  const { status, stderr } = spawnSync('git', [...settings, ...args], { cwd, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${args.join(' ')} failed: ${stderr}`)
}
