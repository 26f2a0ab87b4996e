/**
 * Random interleavings of sessions, people and faults, judged by an oracle after every boundary.
 *
 * A failure prints the seed and the path of the smallest case; give both to `fc.assert` to see it again.
 */
import { rmSync } from 'node:fs'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { BackendFactory, WatchFault, WatchSink } from '../../src/watch/contract.ts'
import type { Harness } from '../support/harness.ts'
import { type Deed, deedFor } from './deeds.ts'
import { type AfterResume, World } from './world.ts'
import { makeTemplate } from './workspace.ts'

const sinks = vi.hoisted(() => new Set<WatchSink>())

vi.mock(import('../../src/watch/chokidar.ts'), async (original) => {
  const { chokidarBackend } = await original()
  const reached: BackendFactory = (options) => {
    sinks.add(options.sink)
    return chokidarBackend(options)
  }
  return { chokidarBackend: reached }
})

const breakWatchers = (fault: WatchFault): void => {
  const all = [...sinks]
  sinks.clear()
  for (const sink of all) sink.fault(fault)
}

/** What the build under test promises of a resumed session. */
const AFTER_RESUME: AfterResume = 'nothing but a reminder'

const RUNS = 300
const MOST_DEEDS = 24
const MINUTE_MS = 60_000
/** A run that takes this much longer has hung; a busy machine must not decide. */
const PATIENCE_MS = 10 * MINUTE_MS
const longMinutes = Number(process.env['LIVE_WORKSPACE_LONG_MINUTES'] ?? 0)

let template: string
let host: Harness | undefined
let number = 0

beforeAll(() => {
  template = makeTemplate()
  // Each broken watcher is reported to the person; here that is a hundred lines of nothing.
  vi.spyOn(process, 'emitWarning').mockReturnValue()
})

afterAll(async () => {
  await host?.dispose()
  rmSync(template, { recursive: true, force: true })
})

class Command implements fc.AsyncCommand<World, World> {
  readonly #deed: Deed

  constructor(deed: Deed) {
    this.#deed = deed
  }

  check(world: Readonly<World>): boolean {
    return world.can(this.#deed)
  }

  async run(world: World): Promise<void> {
    await world.do(this.#deed)
  }

  toString(): string {
    return JSON.stringify(this.#deed)
  }
}

const setup = fc.record({
  sessions: fc.integer({ min: 2, max: 4 }),
  notice: fc.record({
    maxNoticeBytes: fc.constantFrom(4_096, 4_096, 700),
    maxNoticePaths: fc.constantFrom(50, 50, 2),
  }),
})

const property = fc.asyncProperty(
  setup.chain((options) =>
    fc.tuple(
      fc.constant(options),
      fc.commands([deedFor(options.sessions).map((deed) => new Command(deed))], {
        maxCommands: MOST_DEEDS,
        size: 'max',
      }),
    ),
  ),
  async ([options, commands]) => {
    sinks.clear()
    number += 1
    host ??= await World.host()
    try {
      const world = await World.make(host, number, {
        ...options,
        template,
        afterResume: AFTER_RESUME,
        breakWatchers,
      })
      await fc.asyncModelRun(() => ({ model: world, real: world }), commands)
      await world.end()
      await world.dispose()
    } catch (error) {
      // The next run gets services that nothing has happened to.
      const used = host
      host = undefined
      await used.dispose()
      throw error
    }
  },
)

describe('whatever sessions, people and faults do', () => {
  it.skipIf(longMinutes > 0)(
    'everything about used files is told, once, and no message that was lost has consumed anything',
    async () => {
      await fc.assert(property, { numRuns: RUNS })
    },
    PATIENCE_MS,
  )

  it.runIf(longMinutes > 0)(
    'the same, for as long as it was asked for',
    async () => {
      const limit = longMinutes * MINUTE_MS
      const started = performance.now()
      const outcome = await fc.check(property, { numRuns: 1_000_000, interruptAfterTimeLimit: limit })
      const seconds = Math.round((performance.now() - started) / 1_000)
      process.stderr.write(`sessions: ${outcome.numRuns} runs in ${seconds} s, seed ${outcome.seed}\n`)
      const failed = outcome.failed && outcome.counterexample !== null
      const why = failed ? `${fc.defaultReportMessage(outcome)}\n${String(outcome.errorInstance)}` : ''
      expect(failed, why).toBe(false)
    },
    longMinutes * MINUTE_MS + PATIENCE_MS,
  )
})
