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
  const listening: BackendFactory = (options) => {
    sinks.add(options.sink)
    return chokidarBackend(options)
  }
  return { chokidarBackend: listening }
})

const breakWatchers = (fault: WatchFault): void => {
  const all = [...sinks]
  reached += all.length
  sinks.clear()
  for (const sink of all) sink.fault(fault)
}

/** What the build under test promises of a resumed session. */
const AFTER_RESUME: AfterResume = 'everything'

/** In each of the two files that run side by side. */
const RUNS = 150
/** One for everybody, so that a red run is everybody's; `pnpm test:long` takes new ones and prints them. */
const SEED = Number(process.env['LIVE_WORKSPACE_SEED'] ?? 20_261_130)
const MOST_DEEDS = 24
const MINUTE_MS = 60_000
/** A run that takes this much longer has hung; a busy machine must not decide. */
const PATIENCE_MS = 10 * MINUTE_MS
const longMinutes = Number(process.env['LIVE_WORKSPACE_LONG_MINUTES'] ?? 0)

let template: string
let host: Harness | undefined
let number = 0
/** Watchers that could be broken. */
let reached = 0

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

/** @param sessions - how many there may be. */
const setupFor = (sessions: readonly number[]) =>
  fc.record({
    sessions: fc.constantFrom(...sessions),
    notice: fc.record({
      maxNoticeBytes: fc.constantFrom(4_096, 4_096, 700),
      maxNoticePaths: fc.constantFrom(50, 50, 2),
      showHunks: fc.boolean(),
    }),
  })

const propertyFor = (sessions: readonly number[]) =>
  fc.asyncProperty(
    setupFor(sessions).chain((options) =>
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

/** @param sessions - how many there may be in one run. */
export const describeSessions = (sessions: readonly number[]): void => {
  describe(`whatever ${sessions.join(' or ')} sessions, people and faults do`, () => {
    const property = propertyFor(sessions)
    beforeAll(() => {
      template = makeTemplate()
      // Each broken watcher is reported to the person; here that is a hundred lines of nothing.
      vi.spyOn(process, 'emitWarning').mockReturnValue()
    })

    afterAll(async () => {
      // Without them nothing would ever have been broken.
      expect(reached).toBeGreaterThan(0)
      await host?.dispose()
      rmSync(template, { recursive: true, force: true })
    })

    it.skipIf(longMinutes > 0)(
      'everything about used files is told, once, and no message that was lost has consumed anything',
      async () => {
        await fc.assert(property, { numRuns: RUNS, seed: SEED })
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
        process.stderr.write(
          `${sessions.join(' or ')} sessions: ${outcome.numRuns} runs in ${seconds} s, seed ${outcome.seed}\n`,
        )
        const failed = outcome.failed && outcome.counterexample !== null
        if (failed) throw new Error(fc.defaultReportMessage(outcome), { cause: outcome.errorInstance })
      },
      longMinutes * MINUTE_MS + PATIENCE_MS,
    )
  })
}
