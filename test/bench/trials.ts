/**
 * Part 1: is a change that was made right before a boundary seen by it?
 *
 * Another process makes one change and answers through a FIFO that this one reads while its loop stands
 * still; then, at once, the barrier; then the journal, as a session reads it. What counts is the path of
 * the file itself, not of a directory above it.
 */
import { stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { BarrierOutcome } from '../../src/watch/contract.ts'
import type { RootReader } from '../../src/watch/registry.ts'
import { besideLoad } from './load.ts'
import { type Spread, spreadOf } from './numbers.ts'
import { type Change, operations, type Site, type Trial } from './operations.ts'
import type { Somebody } from './somebody.ts'
import { config, type Mode, watchTree } from './watching.ts'

export interface Tally {
  trials: number
  /** Trials in which a path was not named. */
  missed: number
  /** Those of them in which the barrier said that it may have missed something. */
  admitted: number
  /** Trials in which a path was named, but said wrongly, or not, whether it was there before. */
  mislabelled: number
}

/** One trial that missed something. */
export interface Miss {
  readonly operation: string
  readonly trial: number
  /** Relative to the root. */
  readonly paths: readonly string[]
  readonly outcome: BarrierOutcome
  readonly waitedMs: number
  /** Age of the trial's own directory in ms, when the change was made. */
  readonly ageMs: number
  /** Whether the paths were named within the next 300 ms. */
  readonly cameLater: boolean
}

export interface Block {
  readonly mode: Mode
  readonly load: 'quiet' | 'busy'
  /** Operations a second of the other process. */
  readonly loadRate: number
  readonly trials: number
  readonly missed: number
  readonly admitted: number
  readonly mislabelled: number
  readonly barrierMs: Spread
  readonly outcomes: Readonly<Record<BarrierOutcome, number>>
  readonly operations: Readonly<Record<string, Tally>>
  readonly misses: readonly Miss[]
  /** The time of the block ran out before all trials were done. */
  readonly cutShort: boolean
}

export interface TrialsPlan {
  readonly root: string
  /** Files of the tree, in the order of their use. */
  readonly files: readonly string[]
  readonly somebody: Somebody
  /** Trials for each mode, half of them beside load. */
  readonly trials: Readonly<Record<Mode, number>>
  /** Longest time in ms for both blocks of a mode. */
  readonly limitMs: Readonly<Record<Mode, number>>
}

/** Ages in ms at which a trial's own directory is changed: chokidar is at work in it, or has finished. */
const AGES_MS: Readonly<Record<Mode, readonly number[]>> = {
  native: [0, 5, 20, 120],
  cookie: [0, 5, 20, 120],
  debounce: [150],
}
const SETTLE_MS = 300
const SCRATCH_KEPT = 40
const MISSES_KEPT = 50

const never = new AbortController().signal

/** Both blocks, quiet and busy, of one mode, on one watcher. */
export const runTrials = async (plan: TrialsPlan, mode: Mode) => {
  const watching = await watchTree(plan.root, mode)
  try {
    const count = Math.ceil(plan.trials[mode] / 2)
    const deadline = performance.now() + plan.limitMs[mode]
    const quiet = await new TrialBlock(plan, mode, watching.reader, 'q').run(count, deadline)
    const busy = await besideLoad(plan.root, async () => {
      await pause(SETTLE_MS)
      return new TrialBlock(plan, mode, watching.reader, 'b').run(count, deadline)
    })
    const blocks: Block[] = [
      { load: 'quiet', loadRate: 0, ...quiet },
      { load: 'busy', loadRate: Math.round(busy.rate), ...busy.value },
    ]
    return { blocks, faults: [...watching.faults], readyMs: watching.readyMs }
  } finally {
    await watching.close()
  }
}

class TrialBlock {
  readonly #plan: TrialsPlan
  readonly #mode: Mode
  readonly #reader: RootReader
  readonly #prefix: string
  readonly #times: number[] = []
  readonly #outcomes: Record<BarrierOutcome, number> = { clean: 0, 'best-effort': 0, unclean: 0 }
  readonly #tallies = new Map<string, Tally>()
  readonly #misses: Miss[] = []
  #scratch: string[] = []

  constructor(plan: TrialsPlan, mode: Mode, reader: RootReader, prefix: string) {
    this.#plan = plan
    this.#mode = mode
    this.#reader = reader
    this.#prefix = `${prefix}${mode}`
  }

  async run(count: number, deadline: number): Promise<Omit<Block, 'load' | 'loadRate'>> {
    const names = Object.keys(operations)
    let done = 0
    for (; done < count && performance.now() < deadline; done += 1) {
      const name = names[done % names.length]
      const file = this.#plan.files[done % this.#plan.files.length]
      if (name === undefined || file === undefined) throw new Error('nothing to do')
      await this.#attempt(done, name, { file, name: `${this.#prefix}${done}` })
    }
    await this.#clear()
    const sum = (key: keyof Tally) =>
      [...this.#tallies.values()].reduce((total, tally) => total + tally[key], 0)
    return {
      mode: this.#mode,
      trials: sum('trials'),
      missed: sum('missed'),
      admitted: sum('admitted'),
      mislabelled: sum('mislabelled'),
      barrierMs: spreadOf(this.#times),
      outcomes: this.#outcomes,
      operations: Object.fromEntries(this.#tallies),
      misses: this.#misses,
      cutShort: done < count,
    }
  }

  async #attempt(index: number, name: string, site: Site): Promise<void> {
    const trial = operations[name]?.(site)
    if (!trial) throw new Error(`no operation ${name}`)
    const ageMs = await this.#prepare(index, trial)
    await this.#measure(index, name, trial, ageMs)
    if (trial.later) await this.#measure(index, `${name}: later write`, trial.later, 0)
    if (trial.after) this.#plan.somebody.perform(trial.after)
    if (trial.scratch !== undefined) this.#scratch.push(trial.scratch)
    if (this.#scratch.length >= SCRATCH_KEPT) await this.#clear()
    await this.#settle()
  }

  /** @returns the age in ms of what was made. */
  async #prepare(index: number, { before }: Trial): Promise<number> {
    if (!before) return 0
    this.#plan.somebody.perform(before)
    await this.#barrier()
    const ages = AGES_MS[this.#mode]
    // Each operation meets every age.
    const ageMs = ages[Math.floor(index / Object.keys(operations).length) % ages.length] ?? 0
    if (ageMs > 0) await pause(ageMs)
    return ageMs
  }

  async #measure(trial: number, name: string, change: Change, ageMs: number): Promise<void> {
    await arrive(trial, this.#plan.root)
    this.#reader.read()
    this.#plan.somebody.perform(change.steps)
    const startedAt = performance.now()
    const outcome = await this.#barrier()
    const waitedMs = performance.now() - startedAt
    this.#times.push(waitedMs)
    this.#outcomes[outcome] += 1
    const named = this.#named()
    const missing = change.expected.filter(({ path }) => !named.has(path))
    const tally = this.#tallies.get(name) ?? { trials: 0, missed: 0, admitted: 0, mislabelled: 0 }
    this.#tallies.set(name, tally)
    tally.trials += 1
    if (missing.length === 0) {
      if (change.expected.some(({ path, existed }) => named.get(path) !== existed)) tally.mislabelled += 1
      return
    }
    tally.missed += 1
    if (outcome === 'unclean') tally.admitted += 1
    if (this.#misses.length >= MISSES_KEPT) return
    await pause(SETTLE_MS)
    const later = this.#named()
    this.#misses.push({
      operation: name,
      trial,
      paths: missing.map(({ path }) => relative(this.#plan.root, path)),
      outcome,
      waitedMs: Number(waitedMs.toFixed(2)),
      ageMs,
      cameLater: missing.every(({ path }) => later.has(path)),
    })
  }

  #named(): Map<string, boolean | undefined> {
    return new Map(this.#reader.read().paths.map(({ path, existed }) => [path, existed]))
  }

  async #barrier(): Promise<BarrierOutcome> {
    return this.#reader.barrier(config.watch.maxWaitMs, never)
  }

  async #clear(): Promise<void> {
    this.#plan.somebody.perform(this.#scratch.map((path) => ({ do: 'remove', path })))
    this.#scratch = []
    await pause(20)
    await this.#settle()
  }

  /** What was put back is no part of the next trial. */
  async #settle(): Promise<void> {
    if (this.#mode !== 'debounce') await this.#barrier()
    // Where that costs half a second: the events are delivered, and the next trial uses other files.
    else await pause(10)
  }
}

/** Come from another phase of the loop each time: an I/O callback, a timer, an immediate. */
const arrive = async (trial: number, root: string): Promise<void> => {
  if (trial % 3 === 0) await stat(join(root, '.'))
  else if (trial % 3 === 1) await nextTurn()
  else await pause(1)
}
