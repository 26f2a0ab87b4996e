/**
 * Part 2: what the plugin adds to a step when nothing has changed.
 *
 * The host's real services in this process, one agent that has read some files, and a scripted model
 * that answers at once. What is timed is `agent/pre-step` as a whole, beside the same host without the
 * plugin. The hosts take turns, so that whatever else this machine does meets all of them.
 */
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { BenchHost } from './host.ts'
import { type Spread, spreadOf } from './numbers.ts'
import { modes } from './watching.ts'

/** Which used files are checked: some of them inside a turn, all of them at its first boundary. */
export const sweeps = ['inside a turn', 'full sweep'] as const
type Sweep = (typeof sweeps)[number]

/** What came before: the step of another call, or a wait for the model, in which everything cools down. */
export const paces = ['at work', 'after a rest'] as const
type Pace = (typeof paces)[number]

/** `bare` is the host without the plugin. */
export const subjects = [...modes, 'bare'] as const
export type Subject = (typeof subjects)[number]

export type Spreads = Readonly<Record<Pace, Readonly<Record<Sweep, Spread>>>>

export interface QuietResult {
  readonly usedFiles: number
  readonly treeFiles: number
  readonly restMs: number
  /** Times of `agent/pre-step`. */
  readonly preStepMs: Readonly<Record<Subject, Spreads>>
  readonly cutShort: boolean
}

export interface QuietPlan {
  readonly root: string
  readonly treeFiles: number
  /** What the session reads. */
  readonly used: readonly string[]
  /** Turns; each gives a full sweep and, inside the turn, two boundaries at each pace. */
  readonly turns: Readonly<Record<Subject, number>>
  readonly limitMs: number
}

export const REST_MS = 20
const WARM_UP_TURNS = 5
const STEPS_AT_EACH_PACE = 2

export const runQuiet = async (plan: QuietPlan): Promise<QuietResult> => {
  const hosts: BenchHost[] = []
  try {
    const start = async (subject: Subject) => {
      const host = await BenchHost.boot(plan.root, subject === 'bare' ? undefined : subject)
      hosts.push(host)
      return new Turns(host, subject === 'debounce' ? 0 : WARM_UP_TURNS)
    }
    const turns = {
      native: await start('native'),
      cookie: await start('cookie'),
      debounce: await start('debounce'),
      bare: await start('bare'),
    }
    for (const subject of subjects) await turns[subject].readAll(plan.used)
    const deadline = performance.now() + plan.limitMs
    const rounds = Math.max(...Object.values(plan.turns))
    let round = 0
    for (; round < rounds && performance.now() < deadline; round += 1) {
      for (const subject of subjects) {
        // The dearer one takes part in every so many rounds only.
        if (round % Math.ceil(rounds / plan.turns[subject]) === 0) await turns[subject].turn()
      }
    }
    await turns.native.proveAttention(plan.used[0] ?? '')
    await turns.cookie.proveAttention(plan.used[1] ?? '')
    return {
      usedFiles: plan.used.length,
      treeFiles: plan.treeFiles,
      restMs: REST_MS,
      preStepMs: {
        native: turns.native.spreads,
        cookie: turns.cookie.spreads,
        debounce: turns.debounce.spreads,
        bare: turns.bare.spreads,
      },
      cutShort: round < rounds,
    }
  } finally {
    for (const host of hosts) await host.dispose()
  }
}

/** Times every sweep at every pace. */
class Turns {
  readonly #host: BenchHost
  readonly #warmUp: number
  #turns = 0
  readonly #times: Readonly<Record<Pace, Readonly<Record<Sweep, number[]>>>> = {
    'at work': { 'inside a turn': [], 'full sweep': [] },
    'after a rest': { 'inside a turn': [], 'full sweep': [] },
  }

  constructor(host: BenchHost, warmUp: number) {
    this.#host = host
    this.#warmUp = warmUp
  }

  /** One turn that reads the files, and some that only warm up. */
  async readAll(files: readonly string[]): Promise<void> {
    await this.#host.open()
    await this.#host.call(files.map((path) => ({ name: 'read', args: { file_path: path } })))
    await this.#host.end()
    for (let turn = 0; turn < this.#warmUp; turn += 1) {
      await this.#host.open()
      await this.#host.call()
      await this.#host.end()
    }
  }

  async turn(): Promise<void> {
    const pace = paces[this.#turns % paces.length] ?? 'at work'
    this.#turns += 1
    await this.#time(pace, 'full sweep', () => this.#host.open())
    for (const pace of paces) {
      for (let step = 0; step < STEPS_AT_EACH_PACE; step += 1) {
        await this.#time(pace, 'inside a turn', () => this.#host.call())
      }
    }
    await this.#host.end()
  }

  /** A change of a used file is told, or all of this has measured nothing. */
  async proveAttention(path: string): Promise<void> {
    writeFileSync(path, 'changed\n')
    await this.#host.open()
    const { told } = this.#host
    if (!told.some((text) => text.includes(basename(path)))) throw new Error(`nothing told of ${path}`)
    await this.#host.end()
  }

  get spreads(): Spreads {
    const at = (pace: Pace) => ({
      'inside a turn': spreadOf(this.#times[pace]['inside a turn']),
      'full sweep': spreadOf(this.#times[pace]['full sweep']),
    })
    return { 'at work': at('at work'), 'after a rest': at('after a rest') }
  }

  async #time(pace: Pace, sweep: Sweep, step: () => Promise<number>): Promise<void> {
    if (pace === 'after a rest') await pause(REST_MS)
    this.#times[pace][sweep].push(await step())
    if (this.#host.told.length > 0)
      throw new Error(`a quiet step had this to tell: ${this.#host.told.join(' ')}`)
  }
}
