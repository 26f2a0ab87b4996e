/** What the surroundings do to a watcher, as the model and the person at the host see it. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type * as chokidar from 'chokidar'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type * as probing from '../../src/watch/probe.ts'
import { boot, type Harness, quiet, read, type TestAgent, textOf } from '../support/harness.ts'
import { waitFor } from '../support/wait.ts'

/** The parts of the system that a test can disturb. */
const system = vi.hoisted(() => ({ watchers: [] as chokidar.FSWatcher[], deaf: false }))

vi.mock('chokidar', async (original) => {
  const actual = await original<typeof chokidar>()
  const watch: typeof actual.watch = (...args) => {
    const watcher = actual.watch(...args)
    system.watchers.push(watcher)
    return watcher
  }
  return { ...actual, watch }
})

vi.mock('../../src/watch/probe.ts', async (original) => {
  const actual = await original<typeof probing>()
  const probe: typeof actual.probe = (root, limitMs, signal) =>
    system.deaf
      ? actual.probe(root, 1, signal, { watch: () => ({ close: () => undefined }) })
      : actual.probe(root, limitMs, signal)
  return { ...actual, probe }
})

beforeEach(() => {
  system.watchers.length = 0
  system.deaf = false
})

afterEach(() => {
  vi.useRealTimers()
})

const HOUR = 3_600_000
const SOON = { restartDelayMs: 20, maxRestartDelayMs: 20 }
const LATE = { restartDelayMs: HOUR, maxRestartDelayMs: HOUR }

const FILES = { 'used.ts': 'one\n', 'other.ts': 'one\n', 'dir/used.ts': 'one\n', 'dir/other.ts': 'one\n' }

/** A session that has used two of four files. */
const using = async (watch: Record<string, unknown> = {}, files: Record<string, string> = {}) => {
  const harness = await boot({
    files: { ...FILES, ...files },
    config: { watch: { backend: 'chokidar', ...watch } },
  })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('used.ts'), read('dir/used.ts'))
  return { harness, agent }
}

const coverageLines = ({ notices }: TestAgent) => notices.filter(({ category }) => category === 'coverage')

/** How often the whole log of the session names a file as changed. */
const timesTold = ({ notices }: TestAgent, line: string): number =>
  notices.filter(({ text }) => text.includes(line)).length

/** A change of a used file is told at the next request, and only there. */
const provesAttention = async (harness: Harness, agent: TestAgent, path = 'used.ts'): Promise<void> => {
  await agent.call(read(path))
  harness.write(path, `changed ${performance.now()}\n`)
  await agent.call(quiet)
  expect(textOf(agent.told)).toContain(`- modified "${path}"`)
  await agent.call(quiet)
  expect(agent.told).toEqual([])
}

describe('a filesystem that does not report every change', () => {
  it.each([
    ['by its type', () => ({ silentFilesystems: ['*'], ...LATE }), 'does not report every change'],
    [
      'as the probe finds out',
      () => {
        system.deaf = true
        return { ...SOON }
      },
      'does not report changes',
    ],
  ])('(%s) is said once, and used files are told', async (_how, settings, reason) => {
    const { harness, agent } = await using(settings())
    await harness.covered('degraded')
    await agent.call(quiet)
    await provesAttention(harness, agent)
    await agent.end()
    await agent.turn(quiet)
    expect(coverageLines(agent).map(({ text }) => text)).toEqual([expect.stringContaining(reason)])
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain('Remedy: nothing has to be done')
  })

  it('is followed all the same by polling', async () => {
    const { harness, agent } = await using({
      silentFilesystems: ['*'],
      backend: 'polling',
      pollIntervalMs: 20,
    })
    await harness.live()
    await provesAttention(harness, agent)
    expect(coverageLines(agent)).toEqual([])
    expect(harness.errors).toEqual([])
    await agent.end()
  })
})

describe('an error of the watcher', () => {
  const fail = (code: string) => {
    for (const watcher of system.watchers) {
      watcher.emit('error', Object.assign(new Error(`${code}: watch`), { code }))
    }
  }

  it.each([
    ['ENOSPC', 'sysctl fs.inotify.max_user_watches'],
    ['EMFILE', 'sysctl fs.inotify.max_user_instances'],
  ])('(%s) is told once and healed by a restart, and nothing of used files is lost', async (code, remedy) => {
    const { harness, agent } = await using(SOON)
    await harness.live()
    fail(code)
    fail(code)
    harness.write('used.ts', 'in the gap\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    await harness.live()
    await agent.call(quiet)
    await provesAttention(harness, agent)
    await agent.end()
    await agent.turn(quiet)
    // Told as lost at most once, and then as working again as often.
    const lines = coverageLines(agent).map(({ text }) => text)
    expect(lines.filter((text) => text.includes('at the moment'))).toHaveLength(lines.length / 2)
    expect(lines.length).toBeLessThanOrEqual(2)
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain(remedy)
  })

  it('of one path is reported once, and used files are told', async () => {
    const { harness, agent } = await using(SOON)
    await harness.live()
    fail('EIO')
    fail('EIO')
    await provesAttention(harness, agent)
    await agent.end()
    expect(harness.errors).toHaveLength(1)
  })
})

describe('a directory that this user may not read', () => {
  it('is reported once, says nothing to the model, and used files are told', async () => {
    const { getuid, seteuid } = process
    if (getuid?.() === 0 && seteuid) {
      // Nothing is forbidden to root.
      seteuid(65_534)
      onTestFinished(() => seteuid(0))
    }
    const { harness, agent } = await using({}, { 'closed/a.ts': 'one\n', 'closed too/b.ts': 'one\n' })
    const closed = ['closed', 'closed too'].map((path) => harness.path(path))
    for (const path of closed) chmodSync(path, 0o000)
    onTestFinished(() => {
      for (const path of closed) chmodSync(path, 0o700)
    })
    await harness.reload({ watch: { backend: 'chokidar' } })
    await harness.live()
    await agent.call(quiet)
    await provesAttention(harness, agent)
    await provesAttention(harness, agent, 'dir/used.ts')
    await agent.end()
    expect(coverageLines(agent)).toEqual([])
    expect(harness.errors.filter((text) => text.includes('may not be watched'))).toHaveLength(1)
    for (const path of closed) chmodSync(path, 0o700)
  })
})

describe('a root that is replaced', () => {
  it('by an empty directory is lost first, and its files are told gone only then', async () => {
    const { harness, agent } = await using(LATE)
    await harness.live()
    const aside = join(harness.base, 'aside')
    renameSync(harness.workspace, aside)
    mkdirSync(harness.workspace)
    await agent.call(read('/nowhere'))
    expect(textOf(agent.told)).toContain('cannot be followed completely')
    expect(textOf(agent.notices)).not.toContain('deleted')
    rmSync(harness.workspace, { recursive: true })
    renameSync(aside, harness.workspace)
    await agent.call(quiet)
    expect(textOf(agent.notices)).not.toContain('deleted')
    await provesAttention(harness, agent)
    await agent.end()
    expect(harness.errors).toHaveLength(1)
  })

  it('because the link to it leads elsewhere is told once, and files are followed there', async () => {
    const harness = await boot({ files: FILES, config: { watch: { backend: 'chokidar' } } })
    const link = join(harness.base, 'link')
    const second = join(harness.base, 'second')
    cpSync(harness.workspace, second, { recursive: true, preserveTimestamps: true })
    writeFileSync(join(second, 'used.ts'), 'of the second\n')
    unlinkSync(join(second, 'dir/used.ts'))
    symlinkSync(harness.workspace, link)
    const agent = await harness.agent('main', { cwd: link })
    await agent.prompt()
    await agent.call(read('used.ts'), read('dir/used.ts'))
    await harness.live()
    unlinkSync(link)
    symlinkSync(second, link)
    await agent.call(quiet)
    expect(textOf(agent.notices)).not.toContain('deleted')
    expect(coverageLines(agent)).toHaveLength(1)
    expect(textOf(agent.notices)).toContain('- modified "used.ts"')
    await agent.call(quiet)
    expect(textOf(agent.notices)).toContain('- deleted "dir/used.ts"')
    await harness.live()
    await agent.call(read('used.ts'))
    writeFileSync(join(second, 'used.ts'), 'changed there\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    // Lost, and found.
    expect(coverageLines(agent)).toHaveLength(2)
    expect(harness.errors).toHaveLength(1)
  })
})

describe('a used file', () => {
  it('is told gone when its directory becomes a file, and changed when it is back', async () => {
    const { harness, agent } = await using()
    await harness.live()
    harness.remove('dir')
    harness.write('dir', 'a file\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- deleted "dir/used.ts"')
    harness.remove('dir')
    harness.write('dir/used.ts', 'back, and other\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('"dir/used.ts"')
    await agent.end()
    expect(timesTold(agent, '- deleted "dir/used.ts"')).toBe(1)
    expect(harness.errors).toEqual([])
  })

  it('is told beside loops of links, and behind a link that leads out of the tree', async () => {
    const { harness, agent } = await using()
    const outside = join(harness.base, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'far.ts'), 'one\n')
    symlinkSync('..', harness.path('dir/loop'))
    symlinkSync('self', harness.path('self'))
    symlinkSync(outside, harness.path('out'))
    await harness.reload({ watch: { backend: 'chokidar' } })
    await harness.live()
    await agent.call(read('out/far.ts'))
    writeFileSync(join(outside, 'far.ts'), 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "out/far.ts"')
    await provesAttention(harness, agent)
    await agent.end()
    expect(harness.errors).toEqual([])
  })

  it.each([-2, 2])('is told when the clock jumps by %d days', async (days) => {
    const { harness, agent } = await using(SOON)
    await harness.live()
    vi.useFakeTimers({ toFake: ['Date'] })
    vi.setSystemTime(Date.now() + days * 86_400_000)
    await provesAttention(harness, agent)
    harness.write('other.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "other.ts"')
    await provesAttention(harness, agent, 'dir/used.ts')
    await agent.end()
    expect(coverageLines(agent)).toEqual([])
    expect(system.watchers).toHaveLength(1)
  })
})

describe('more events than the system’s queue holds', () => {
  it('while the loop is blocked: the used file that changed last is told', async () => {
    // No sweep inside the turn: only the doubt about the events can find it.
    const { harness, agent } = await using({ sweepBudget: 0 })
    await harness.live()
    const script =
      'for (let i = 0; i < 20000; i += 1) fs.writeFileSync(`dir/n${i}`, ""); fs.writeFileSync("used.ts", "two\\n")'
    execFileSync(process.execPath, ['-e', script], { cwd: harness.workspace })
    await agent.call(quiet)
    expect(textOf(agent.notices)).toContain('- modified "used.ts"')
    await agent.cancel()
  }, 60_000)
})

describe('a service that shows another machine’s files', () => {
  it('is asked about used files alone, once each, and they are told', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `f${index}.ts`)
    const harness = await boot({
      files: Object.fromEntries([...names, 'other.ts'].map((name) => [name, 'one\n'])),
      remote: true,
      config: { instructions: false },
    })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(...names.map((name) => read(name)))
    await harness.covered('remote')
    await agent.call(quiet)
    const [stats, resolves] = [harness.probe.stats, harness.probe.resolves]
    harness.write('other.ts', 'two\n')
    await agent.call(quiet)
    expect(agent.told).toEqual([])
    expect(harness.probe.stats - stats).toBe(names.length)
    expect(harness.probe.resolves - resolves).toBe(0)
    harness.write('f3.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "f3.ts"')
    await agent.end()
    expect(coverageLines(agent)).toEqual([])
    expect(harness.errors).toEqual([])
  })

  it('and does not answer holds up no step, however many files it is asked about', async () => {
    const { harness, agent } = await using({ maxWaitMs: 200 })
    await harness.live()
    for (const path of ['used.ts', 'dir/used.ts']) harness.probe.hangStat(harness.path(path))
    await agent.call(quiet)
    await agent.call(quiet)
    expect(harness.probe.hanging).toBeGreaterThan(0)
    expect(timesTold(agent, 'could not verify')).toBe(1)
    await waitFor(() => harness.probe.hanging <= 2, { timeoutMs: 1_000, describe: 'a bound' })
    await agent.cancel()
  })
})
