/**
 * Part 2: what a boundary adds to a step when nothing has changed.
 *
 * The real boundary with the host's own local file service, one session that has used some files, and a
 * watcher for each mode. The modes take turns, so that whatever else this machine does meets both.
 */
import { Context } from '@deepseek-ai/cordis'
import { LocalFileSystem } from '@deepseek-ai/dsh-fs-local'
import { setTimeout as pause } from 'node:timers/promises'
import { Boundary } from '../../src/boundary.ts'
import { SessionState } from '../../src/session.ts'
import { type Spread, spreadOf } from './numbers.ts'
import { config, type Mode, modes, type Watching, watchTree } from './watching.ts'

/** Which used files are checked: some of them inside a turn, all of them at its first boundary. */
export const sweeps = ['inside a turn', 'full sweep'] as const
type Sweep = (typeof sweeps)[number]

/**
 * What the process did before: the steps of a turn's tools follow each other, or it has waited for the
 * model, and the processor's caches and the thread pool are asleep.
 */
export const paces = ['at work', 'after 5 ms of rest'] as const
type Pace = (typeof paces)[number]
const REST_MS = 5

export type Spreads = Readonly<Record<Pace, Readonly<Record<Sweep, Spread>>>>

export interface QuietResult {
  readonly usedFiles: number
  readonly treeFiles: number
  readonly boundaryMs: Readonly<Record<Mode, Spreads>>
  readonly faults: readonly string[]
}

export interface QuietPlan {
  readonly root: string
  readonly treeFiles: number
  /** What the session has read. */
  readonly used: readonly string[]
  /** Boundaries of each sweep and pace. */
  readonly boundaries: Readonly<Record<Mode, number>>
}

const WARM_UP = 10

const never = new AbortController().signal

export const runQuiet = async (plan: QuietPlan): Promise<QuietResult> => {
  const ctx = new Context()
  const provider = await ctx.plugin(LocalFileSystem, { cwd: plan.root })
  const watchings: Watching[] = []
  try {
    const start = async (mode: Mode) => {
      const watching = await watchTree(plan.root, mode)
      watchings.push(watching)
      return new Stopwatch(await boundaryOf(ctx, plan, watching))
    }
    const stopwatches = { cookie: await start('cookie'), debounce: await start('debounce') }
    for (let round = 0; round < WARM_UP; round += 1) await stopwatches.cookie.warmUp()
    const rounds = Math.max(...Object.values(plan.boundaries))
    for (let round = 0; round < rounds; round += 1) {
      for (const mode of modes) {
        // The dearer mode takes part in every so many rounds only.
        if (round % Math.ceil(rounds / plan.boundaries[mode]) === 0) await stopwatches[mode].round()
      }
    }
    return {
      usedFiles: plan.used.length,
      treeFiles: plan.treeFiles,
      boundaryMs: { cookie: stopwatches.cookie.spreads, debounce: stopwatches.debounce.spreads },
      faults: watchings.flatMap(({ faults }) => faults),
    }
  } finally {
    for (const watching of watchings) await watching.close()
    await provider.dispose()
  }
}

/** Times every sweep at every pace. */
class Stopwatch {
  readonly #boundary: (sweep: Sweep) => Promise<void>
  readonly #times: Readonly<Record<Pace, Readonly<Record<Sweep, number[]>>>> = {
    'at work': { 'inside a turn': [], 'full sweep': [] },
    'after 5 ms of rest': { 'inside a turn': [], 'full sweep': [] },
  }

  constructor(boundary: (sweep: Sweep) => Promise<void>) {
    this.#boundary = boundary
  }

  async warmUp(): Promise<void> {
    for (const sweep of sweeps) await this.#boundary(sweep)
  }

  async round(): Promise<void> {
    for (const sweep of sweeps) {
      await pause(REST_MS)
      await this.#time('after 5 ms of rest', sweep)
      await this.#time('at work', sweep)
    }
  }

  get spreads(): Spreads {
    const at = (pace: Pace) => ({
      'inside a turn': spreadOf(this.#times[pace]['inside a turn']),
      'full sweep': spreadOf(this.#times[pace]['full sweep']),
    })
    return { 'at work': at('at work'), 'after 5 ms of rest': at('after 5 ms of rest') }
  }

  async #time(pace: Pace, sweep: Sweep): Promise<void> {
    const startedAt = performance.now()
    await this.#boundary(sweep)
    this.#times[pace][sweep].push(performance.now() - startedAt)
  }
}

/** The boundaries of a session that has read the used files. */
const boundaryOf = async (ctx: Context, { root, used }: QuietPlan, { reader }: Watching) => {
  const fs = ctx.fs
  const state = new SessionState(config.notice.maxKeptTextBytes, config.notice.maxDigests)
  state.place = { lexical: root, real: root, root }
  state.reader = reader
  for (const path of used) {
    const target = await fs.resolve(path)
    const info = await fs.stat(target)
    if (!info) throw new Error(`${path} is gone`)
    const seen = { kind: 'present', version: String(info.version) } as const
    state.ledger.stage(path, { key: String(target.targetKey), target, seen, tool: 'read' })
    state.ledger.settle(path, { failed: false, parent: undefined, callId: path })
    state.ledger.logged(path, 0)
  }
  state.committed(state.ledger.stepEnded().committed, fs)
  const boundary = new Boundary(config, () => fs)
  return async (sweep: Sweep): Promise<void> => {
    state.turn.fresh = sweep === 'full sweep'
    const { notices } = await boundary.examine(state, {
      signal: never,
      fs,
      entering: [],
      visible: () => true,
      surfaceMoved: false,
      renewGuard: () => undefined,
    })
    if (notices.length > 0) throw new Error(`a quiet boundary had this to tell: ${notices[0]?.text}`)
  }
}
