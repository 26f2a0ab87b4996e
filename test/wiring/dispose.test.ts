import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { boot, Harness, quiet, read, type TestAgent, textOf } from '../support/harness.ts'
import { waitFor } from '../support/wait.ts'

/** What a watcher holds at least, as far as this test can see it. */
const LEAST_WATCHES = process.platform === 'linux' ? 1 : 0

/** Directories and files that this process has the kernel watch. */
const kernelWatches = (): number => {
  if (process.platform !== 'linux') return 0
  return readdirSync('/proc/self/fdinfo')
    .map((fd) => {
      try {
        return readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')
      } catch {
        // The descriptor of the listing itself is gone by now.
        return ''
      }
    })
    .reduce((sum, info) => sum + (info.match(/^inotify /gm)?.length ?? 0), 0)
}

const handles = (): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** Kinds of handles that a watcher or a timer of ours would show up as. */
const held = () => {
  const { FSEventWrap = 0, FSReqCallback = 0, StatWatcher = 0, Timeout = 0 } = handles()
  return { FSEventWrap, FSReqCallback, StatWatcher, Timeout, kernel: kernelWatches() }
}

/** Wait until nothing is held that was not held before; the test runner has timers of its own. */
const settled = async (before: ReturnType<typeof held>) =>
  waitFor(
    () => {
      const now = held()
      return (
        now.FSEventWrap <= before.FSEventWrap &&
        now.FSReqCallback <= before.FSReqCallback &&
        now.StatWatcher <= before.StatWatcher &&
        now.Timeout <= before.Timeout &&
        now.kernel <= before.kernel
      )
    },
    {
      timeoutMs: 10_000,
      describe: () => `${JSON.stringify(held())} is no more than ${JSON.stringify(before)}`,
    },
  )

describe('disposing the plugin', () => {
  it('leaves no watcher, no timer and no file, and nothing is told afterwards', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n', 'deep/er/b.ts': 'one\n' }, config: false })
    const agent = await harness.agent('main')
    await agent.prompt()
    const before = held()
    const temporary = mkdtempSync(join(harness.base, 'tmp-'))
    vi.stubEnv('TMPDIR', temporary)
    onTestFinished(() => void vi.unstubAllEnvs())
    await harness.mount()
    await agent.call(read('a.ts'))
    await harness.live()
    mkdirSync(harness.path('new/er'), { recursive: true })
    harness.write('a.ts', 'as told\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('"a.ts"')
    expect(kernelWatches()).toBeGreaterThanOrEqual(before.kernel + LEAST_WATCHES)

    await harness.unmount()
    await settled(before)
    expect(readdirSync(temporary)).toEqual([])
    const told = agent.notices.length
    harness.write('a.ts', 'two\n')
    harness.write('new/file.ts', 'new\n')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(told)
  })

  it('while the first scan runs leaves nothing', async () => {
    const files = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`d${n}/f.ts`, 'x\n']))
    const harness = await boot({ files, config: false })
    const before = held()
    await harness.mount()
    await harness.agent('main')
    await harness.unmount()

    await settled(before)
  })

  it('while a boundary waits lets the step go on without a word', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: { watch: { maxWaitMs: 60_000 } } })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    harness.probe.hangStat(harness.path('a.ts'))
    harness.write('a.ts', 'two\n')
    const next = agent.call(quiet)
    await waitFor(() => harness.probe.hanging > 0, { timeoutMs: 10_000, describe: 'the boundary waits' })
    await harness.unmount()
    harness.probe.healAll()
    await next

    expect(agent.told).toEqual([])
    await agent.end()
    expect(agent.notices).toEqual([])
    await harness.mount()
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('while a degraded watcher waits for its restart leaves no timer', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: false })
    const agent = await harness.agent('main')
    await agent.prompt()
    const before = held()
    await harness.mount()
    await harness.live()
    harness.remove('.')
    await agent.call(read('/nowhere'))
    await harness.covered('degraded')
    await harness.unmount()

    await settled(before)
    await agent.end()
  })

  it('twice, and mounting again in between, works on the same sessions', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' } })
    const agent = await harness.agent('main')
    await agent.turn(read('a.ts'))
    for (const text of ['two\n', 'three\n']) {
      await harness.reload()
      harness.write('a.ts', text)
      await agent.turn(quiet)
    }

    expect(agent.notices).toHaveLength(2)
  })
})

describe('a session that ends', () => {
  it('closes the watcher of a root that nobody else uses', async () => {
    const harness = await boot({ files: { 'sub/a.ts': 'one\n' } })
    const before = held()
    const agents: TestAgent[] = []
    for (const name of ['one', 'two']) agents.push(await harness.agent(name))
    await harness.live()
    const [one, two] = agents
    await one?.dispose()
    expect(kernelWatches()).toBeGreaterThanOrEqual(before.kernel + LEAST_WATCHES)
    await two?.dispose()

    await settled(before)
  })

  it('in its first moment leaves nothing', async () => {
    const harness = await boot({ files: { 'sub/a.ts': 'one\n' } })
    const before = held()
    for (let n = 0; n < 5; n++) await (await harness.agent(`short-${n}`)).dispose()

    await settled(before)
    expect(harness.errors).toEqual([])
  })
})

describe('disposing the whole composition', () => {
  it('leaves no handle', async () => {
    const before = held()
    const harness = await Harness.boot({ files: { 'a.ts': 'one\n' }, persistence: true, compaction: true })
    const agent = await harness.agent('main')
    await agent.prompt()
    await harness.live()
    await agent.call(read('a.ts'))
    await harness.dispose()

    await settled(before)
  })
})
