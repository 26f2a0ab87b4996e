/** Parts of the workspace that no event comes from, as the model and the person at the host see them. */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type * as backend from '../../src/watch/chokidar.ts'
import type { WatchFault, WatchSink } from '../../src/watch/contract.ts'
import { isWithin } from '../../src/watch/root.ts'
import { boot, quiet, read, type TestAgent, textOf } from '../support/harness.ts'

/** A watcher that leaves out what the test says. */
const watcher = vi.hoisted(() => ({
  out: [] as string[],
  sinks: [] as WatchSink[],
  /** Happens once, while a barrier is being waited for. */
  atBarrier: undefined as (() => void) | undefined,
}))

vi.mock('../../src/watch/chokidar.ts', async (original) => {
  const actual = await original<typeof backend>()
  const chokidarBackend: typeof actual.chokidarBackend = (options, kind) => {
    watcher.sinks.push(options.sink)
    const isOut = (path: string) => watcher.out.some((part) => isWithin(part, path))
    const made = actual.chokidarBackend(
      { ...options, ignored: (...args) => isOut(args[0]) || options.ignored(...args) },
      kind,
    )
    const barrier = made.barrier.bind(made)
    made.barrier = async (...args) => {
      const outcome = await barrier(...args)
      watcher.atBarrier?.()
      watcher.atBarrier = undefined
      return outcome
    }
    return made
  }
  return { ...actual, chokidarBackend }
})

beforeEach(() => {
  watcher.out.length = 0
  watcher.sinks.length = 0
  watcher.atBarrier = undefined
})

const capped: WatchFault = {
  code: 'watch-limit',
  reason: 'too many directories',
  remedy: 'watch fewer of them',
}
const denied: WatchFault = { code: 'access-denied', reason: 'a directory is closed', remedy: 'open it' }

const settings = { watch: { backend: 'chokidar', compareWaitMs: 10_000, sweepBudget: 0 } }

/** A session in a workspace of which `big` is not watched. */
const using = async (fault: WatchFault | undefined, cwd = '.') => {
  const files = {
    'elsewhere/a.ts': 'one\n',
    'big/used.ts': 'one\n',
    'big/other.ts': 'one\n',
    'used.ts': 'one\n',
    'other.ts': 'one\n',
  }
  const harness = await boot({ files, config: false })
  watcher.out.push(harness.path('big'))
  await harness.mount(settings)
  const agent = await harness.agent('main', { cwd })
  await agent.prompt()
  const leave = (part: string) => {
    watcher.out.push(harness.path(part))
    if (fault) for (const sink of watcher.sinks) sink.uncovered(fault, harness.path(part))
  }
  await harness.live()
  if (fault) leave('big')
  return { harness, agent, leave }
}

const coverageLines = ({ notices }: TestAgent) => notices.filter(({ category }) => category === 'coverage')

describe('a part that is not watched', () => {
  it('is told once, by name, with a reason, and reported once, with a remedy', async () => {
    const { harness, agent, leave } = await using(capped)
    await agent.call(quiet)
    expect(coverageLines(agent).map(({ text }) => text)).toEqual([
      expect.stringContaining('Part of the workspace is not watched ("big"): too many directories.'),
    ])
    leave('other')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(coverageLines(agent)).toHaveLength(1)
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain('Remedy: watch fewer of them')
  })

  it('holds used files that are checked at every boundary', async () => {
    const { harness, agent } = await using(capped)
    await agent.call(read('big/used.ts'))
    for (const text of ['two\n', 'three\n']) {
      harness.write('big/used.ts', text)
      await agent.call(quiet)
      expect(textOf(agent.told)).toContain('- modified "big/used.ts"')
      await agent.call(read('big/used.ts'))
      expect(agent.told).toEqual([])
    }
    await agent.end()
  })

  it('holds other files that are compared, and told', async () => {
    const { harness, agent } = await using(capped)
    await agent.call(quiet)
    harness.write('big/other.ts', 'two, and longer\n')
    harness.write('big/new/file.ts', 'new\n')
    // At the latest before the turn ends.
    expect(await agent.finish()).toBeDefined()
    const told = textOf(agent.told)
    expect(told).toContain('- modified "big/other.ts"')
    expect(told).toContain('- created "big/new/file.ts"')
    await agent.end()
    await agent.turn(quiet)
    expect(agent.told).toEqual([])
  })

  it('may begin in the middle of a session, and used files in it are told from then on', async () => {
    const { harness, agent, leave } = await using(capped)
    await agent.call(read('used.ts'))
    harness.write('young/used.ts', 'one\n')
    await agent.call(read('young/used.ts'))
    leave('young')
    for (const sink of watcher.sinks) sink.uncovered(capped, harness.path('young'))
    harness.write('young/used.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "young/used.ts"')
    await agent.end()
  })

  it('may be found out by the barrier itself, and used files in it are told at that boundary', async () => {
    const { harness, agent, leave } = await using(capped)
    harness.write('young/used.ts', 'one\n')
    await agent.call(read('young/used.ts'))
    await agent.call(quiet)
    watcher.out.push(harness.path('young'))
    harness.write('young/used.ts', 'two\n')
    watcher.atBarrier = () => leave('young')
    // No command, which would have a barrier of its own.
    await agent.call(read('/nowhere'))
    expect(textOf(agent.told)).toContain('- modified "young/used.ts"')
    await agent.end()
  })

  it('is no word to a session that works elsewhere', async () => {
    const { harness, agent } = await using(capped, 'elsewhere')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(coverageLines(agent)).toEqual([])
    expect(harness.errors).toHaveLength(1)
  })

  it('that is closed to this user is told only to who has used a file there', async () => {
    const { agent } = await using(denied)
    await agent.call(quiet)
    expect(coverageLines(agent)).toEqual([])
    await agent.call(read('big/used.ts'))
    await agent.call(quiet)
    expect(coverageLines(agent)).toHaveLength(1)
    await agent.end()
  })
})
