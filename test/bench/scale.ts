/** Part 7: many sessions, a large tree, a busy one, and the first request of all. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BackendOptions } from '../../src/watch/contract.ts'
import { WatchRegistry } from '../../src/watch/registry.ts'
import { BenchHost } from './host.ts'
import { besideLoad } from './load.ts'
import { median, shown, type Spread, spreadOf, table } from './numbers.ts'
import { figuresOf } from './starts.ts'
import { config, type Mode, modes } from './watching.ts'

const SESSIONS = [1, 10, 50]
const exact = modes.filter((mode) => mode !== 'debounce')

/** Time in µs that one event costs the whole process, by the number of sessions of the root. */
export const measureEvents = async (
  scratch: string,
  events: number,
): Promise<Readonly<Record<string, number>>> => {
  const root = join(scratch, 'events')
  mkdirSync(root, { recursive: true })
  const costs: Record<string, number> = {}
  for (const sessions of SESSIONS) {
    let options: BackendOptions | undefined
    const registry = new WatchRegistry({
      config: config.watch,
      // Events come as fast as they are made here, and nothing else happens.
      backend: (given) => {
        options = given
        return {
          name: 'bench',
          watchedDirectories: 0,
          barrier: () => Promise.resolve('clean'),
          refresh: () => undefined,
          close: () => Promise.resolve(),
        }
      },
      detached: (make) => make(),
      report: () => undefined,
    })
    for (let index = 0; index < sessions; index += 1) registry.join(root, true)
    const paths = Array.from({ length: 1_000 }, (_, index) => join(root, `d${index % 50}`, `f${index}`))
    const times: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const startedAt = performance.now()
      for (let index = 0; index < events; index += 1) {
        options?.sink.invalidate(paths[index % paths.length] ?? root, true)
      }
      times.push(((performance.now() - startedAt) * 1_000) / events)
    }
    costs[sessions] = Number(median(times).toFixed(3))
    await registry.close()
  }
  return costs
}

export interface Boundaries {
  readonly insideMs: Spread
  readonly fullMs: Spread
  /** The same steps beside a process that changes files. */
  readonly busyMs: Spread
  readonly busyRate: number
}

export interface BoundaryPlan {
  readonly root: string
  readonly used: readonly string[]
  readonly turns: number
  readonly busySteps: number
}

/** Times of `agent/pre-step` with many used files in a large tree. */
export const measureBoundaries = async (
  plan: BoundaryPlan,
): Promise<Readonly<Partial<Record<Mode, Boundaries>>>> => {
  const found: Partial<Record<Mode, Boundaries>> = {}
  for (const mode of exact) {
    const host = await BenchHost.boot(plan.root, mode)
    try {
      await host.open()
      await host.call(plan.used.map((path) => ({ name: 'read', args: { file_path: path } })))
      await host.end()
      const [inside, full, busy]: number[][] = [[], [], []]
      for (let turn = 0; turn < plan.turns; turn += 1) {
        full?.push(await host.open())
        for (let step = 0; step < 4; step += 1) inside?.push(await host.call())
        await host.end()
      }
      const { rate } = await besideLoad(plan.root, async () => {
        await host.open()
        for (let step = 0; step < plan.busySteps; step += 1) busy?.push(await host.call())
        await host.end()
      })
      found[mode] = {
        insideMs: spreadOf(inside ?? []),
        fullMs: spreadOf(full ?? []),
        busyMs: spreadOf(busy ?? []),
        busyRate: Math.round(rate),
      }
    } finally {
      await host.dispose()
    }
  }
  return found
}

interface FirstRequest {
  readonly requestMs: number
  readonly secondMs: number
  readonly loopMs: number
}

/** The first two requests while the first scan runs; fresh processes that take turns. */
export const measureFirstRequests = async (
  root: string,
  pairs: number,
): Promise<Readonly<Record<string, FirstRequest>>> => {
  const all = new Map<string, FirstRequest[]>()
  for (let pair = 0; pair < pairs; pair += 1) {
    for (const subject of ['bare', ...exact]) {
      const figures = await figuresOf<FirstRequest>('first-request.ts', [subject, root])
      all.set(subject, [...(all.get(subject) ?? []), figures])
    }
  }
  return Object.fromEntries(
    Array.from(all, ([subject, each]) => {
      const middle = (key: keyof FirstRequest) => median(each.map((figures) => figures[key]))
      return [
        subject,
        { requestMs: middle('requestMs'), secondMs: middle('secondMs'), loopMs: middle('loopMs') },
      ]
    }),
  )
}

export interface ScaleFigures {
  readonly eventUs: Readonly<Record<string, number>>
  readonly boundaries: Readonly<Partial<Record<Mode, Boundaries>>>
  readonly firstRequests: Readonly<Record<string, FirstRequest>>
}

export const printScale = ({ eventUs, boundaries, firstRequests }: ScaleFigures): void => {
  const one = eventUs['1'] ?? Number.NaN
  console.log(
    table(
      ['sessions of the root', 'µs for one event', 'of one session'],
      Object.entries(eventUs).map(([sessions, cost]) => [sessions, shown(cost), shown(cost / one)]),
    ),
  )
  console.log()
  console.log(
    table(
      ['boundary', 'inside p50 ms', 'p95', 'full p50', 'p95', 'busy p50', 'p95', 'max', 'op/s'],
      Object.entries(boundaries).map(([mode, { insideMs, fullMs, busyMs, busyRate }]) => [
        mode,
        shown(insideMs.p50),
        shown(insideMs.p95),
        shown(fullMs.p50),
        shown(fullMs.p95),
        shown(busyMs.p50),
        shown(busyMs.p95),
        shown(busyMs.max),
        busyRate,
      ]),
    ),
  )
  console.log()
  const bare = firstRequests['bare']
  console.log(
    table(
      ['first request', 'ms', 'of bare', 'second ms', 'loop held ms'],
      Object.entries(firstRequests).map(([subject, { requestMs, secondMs, loopMs }]) => [
        subject === 'bare' ? 'without the plugin' : subject,
        requestMs,
        bare ? shown(requestMs / bare.requestMs) : '-',
        secondMs,
        shown(loopMs),
      ]),
    ),
  )
}
