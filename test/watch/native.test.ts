import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { BlindSpots } from '../../src/watch/blind-spots.ts'
import { CookieFence } from '../../src/watch/cookie.ts'
import { Freshness } from '../../src/watch/freshness.ts'
import { overLimit } from '../../src/watch/faults.ts'
import { type Subscribe, subscribeNatively } from '../../src/watch/handles.ts'
import { BurstDetector } from '../../src/watch/native/burst.ts'
import { Desk } from '../../src/watch/native/desk.ts'
import type { Report } from '../../src/watch/native/messages.ts'
import { Outbox } from '../../src/watch/native/outbox.ts'
import { WatchThread } from '../../src/watch/native/thread.ts'
import { WatchScope } from '../../src/watch/scope.ts'
import { Silence } from '../../src/watch/silence.ts'
import { waitFor, within } from '../support/wait.ts'
import {
  kernelWatches,
  LIMIT_MS,
  never,
  outside,
  settle,
  start,
  startSettled,
  temporaryRoot,
  write,
} from '../support/watching.ts'

const onLinux = process.platform === 'linux'
const via = 'native on this thread'

const systemError = (code: string): Error => Object.assign(new Error(`${code}: made up`), { code })

/** Handles as the system gives them, unless the test says otherwise. */
const refusing =
  (code: string, refuses: (directory: string) => boolean): Subscribe =>
  (directory, onEvent) => {
    if (refuses(directory)) throw systemError(code)
    return subscribeNatively(directory, onEvent)
  }

describe.runIf(onLinux)('handles that the system does not give', () => {
  it('ENOSPC: directories that come first get theirs, the others are named once, nothing else is missed', async () => {
    const { root } = temporaryRoot(['a/f', 'b/f', 'c/f', 'd/e/f'])
    const first = [join(root, 'd/e')]
    let left = 2
    const { backend, sink } = await startSettled(root, {
      via,
      options: { first: () => first },
      engine: { subscribe: refusing('ENOSPC', (directory) => !directory.includes('/d') && --left < 0) },
    })
    expect(sink.uncoveredParts.length).toBeGreaterThan(0)
    for (const { fault, directory } of sink.uncoveredParts) {
      expect(directory).toMatch(/\/[abc]$/)
      expect(fault.code).toBe('watch-limit')
      expect(fault.remedy).toContain('sysctl')
    }
    outside(root, 'echo y > d/e/f; echo y > new')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'd/e/f'))).not.toEqual([])
    expect(sink.of(join(root, 'new'))).not.toEqual([])
    expect(sink.faults).toEqual([])
  })

  it('EACCES: the directory is named, and everything else is watched', async () => {
    const { root } = temporaryRoot(['a/f', 'closed/deep/f'])
    const { backend, sink } = await startSettled(root, {
      via,
      engine: { subscribe: refusing('EACCES', (directory) => directory.endsWith('/closed')) },
    })
    expect(sink.uncoveredParts).toMatchObject([
      { fault: { code: 'access-denied' }, directory: join(root, 'closed') },
    ])
    outside(root, 'echo y > a/f')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'a/f'))).not.toEqual([])
  })

  it.each([
    ['EMFILE', 'instance-limit'],
    ['ENOSPC', 'watch-limit'],
  ])('%s for the root: the backend says that it is of no use', async (code, fault) => {
    const { root } = temporaryRoot(['a/f'])
    const { backend, sink } = start(root, { via, engine: { subscribe: refusing(code, () => true) } })
    onTestFinished(() => backend.close())
    await waitFor(() => sink.faults.length > 0, { timeoutMs: LIMIT_MS, describe: 'a fault' })
    expect(sink.faults).toMatchObject([{ code: fault }])
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
  })

  it('a directory that is there and cannot be found is not tried for ever', async () => {
    const { root } = temporaryRoot(['a/f', 'b/f'])
    const { sink } = await startSettled(root, {
      via,
      engine: { subscribe: refusing('ENOENT', (directory) => directory.endsWith('/a')) },
    })
    expect(sink.uncoveredParts.map(({ directory }) => directory)).toEqual([join(root, 'a')])
  })
})

describe.runIf(onLinux)('events that were lost', () => {
  it('are found by looking at everything, directories that were made meanwhile included', async () => {
    const { root } = temporaryRoot(['a/f', 'b/f'])
    const bursts = new BurstDetector(40)
    let deaf = false
    const { backend, sink } = await startSettled(root, {
      via,
      engine: {
        bursts,
        subscribe: (directory, onEvent) =>
          subscribeNatively(directory, (event, name) => {
            if (!deaf) onEvent(event, name)
          }),
      },
    })
    deaf = true
    outside(root, 'mkdir -p a/new/deep; echo y > a/new/deep/x; rm b/f; echo y > a/f')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.told).toEqual([])
    deaf = false
    outside(root, 'i=0; while [ $i -lt 30 ]; do echo y > b/g$i; i=$((i+1)); done')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
    expect(sink.alls).toBeGreaterThan(0)
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'a/new/deep/x'))[0]).toMatchObject({ existed: false })
    expect(sink.of(join(root, 'b/f'))[0]).toMatchObject({ existed: true })
    sink.told.length = 0
    outside(root, 'echo z > a/new/deep/x')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'a/new/deep/x'))[0]).toMatchObject({ existed: true })
  })

  it('are suspected once in a turn of the loop, when it brings too many', async () => {
    const bursts = new BurstDetector(10)
    let suspected = 0
    const stop = bursts.onBurst(() => {
      suspected += 1
    })
    for (let event = 0; event < 9; event += 1) bursts.count()
    await turn()
    await turn()
    for (let event = 0; event < 9; event += 1) bursts.count()
    expect(suspected).toBe(0)
    for (let event = 0; event < 20; event += 1) bursts.count()
    expect(suspected).toBe(1)
    stop()
    await turn()
    await turn()
    for (let event = 0; event < 20; event += 1) bursts.count()
    expect(suspected).toBe(1)
  })

  it('show in a marker that comes before an earlier one', async () => {
    const { base } = temporaryRoot([])
    let lost = 0
    let events = 0
    const fence = new CookieFence(
      () => {
        events += 1
      },
      () => {
        lost += 1
      },
    )
    onTestFinished(() => fence.close())
    expect(await fence.pass(LIMIT_MS, never)).toBe(true)
    // Gives up before the loop turns: slow is not lost.
    const aborting = new AbortController()
    const slow = fence.pass(LIMIT_MS, aborting.signal)
    aborting.abort()
    expect(await slow).toBe(false)
    expect(await fence.pass(LIMIT_MS, never)).toBe(true)
    expect([lost, existsSync(base)]).toEqual([0, true])
    expect(events).toBeGreaterThanOrEqual(3)
  })
})

describe.runIf(onLinux)('a barrier whose answer comes before the change of the rules is known', () => {
  it('does not make old what is told only then', async () => {
    const { root } = temporaryRoot(['build/x'])
    write(join(root, '.gitignore'), 'build/\n')
    const rules = new Silence({
      root,
      ignoredDirectories: [],
      ownPaths: [],
      respectGitignore: true,
      maxIgnoreFileBytes: 1_000,
      maxIgnoreDirectories: 100,
      gitTimeoutMs: LIMIT_MS,
    })
    await rules.open()
    const reports: Report[] = []
    const desk = new Desk((letter) => {
      if ('report' in letter) reports.push(letter.report)
    })
    onTestFinished(() => desk.serve({ kind: 'close', root: 0 }))
    const order = { path: root, rules: rules.rules, first: [], maxDirectories: 10, sliceMs: undefined }
    await desk.serve({ kind: 'open', root: 0, order })
    await waitFor(() => reports.some(({ kind }) => kind === 'ready'), {
      timeoutMs: LIMIT_MS,
      describe: 'the engine',
    })
    outside(root, 'echo y > build/x; : > .gitignore')
    const madeAt = Date.now()
    await waitFor(() => Date.now() > madeAt + 200, { timeoutMs: LIMIT_MS, describe: 'the clock' })
    await desk.serve({ kind: 'barrier', root: 0, id: 0, limitMs: LIMIT_MS })
    await desk.serve({ kind: 'refresh', root: 0, rules: rules.rules, first: [] })
    await desk.serve({ kind: 'barrier', root: 0, id: 1, limitMs: LIMIT_MS })
    await desk.serve({ kind: 'settled', root: 0, id: 1 })
    const told = reports.flatMap((report) => (report.kind === 'told' ? report.paths : []))
    expect(reports.filter(({ kind }) => kind === 'barrier')).toMatchObject([
      { outcome: 'clean' },
      { outcome: 'clean' },
    ])
    expect(told).toContain(join(root, 'build/x'))
  })
})

describe('when a change is new', () => {
  it('does not depend on a clock that is set back', () => {
    const noon = 1_900_000_000_000
    vi.useFakeTimers({ now: noon, toFake: ['Date'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    const freshness = new Freshness()
    freshness.settled(noon, performance.now())
    expect(freshness.newFrom).toBeLessThanOrEqual(noon)
    expect(freshness.newFrom).toBeGreaterThan(noon - 1_000)
    vi.setSystemTime(noon - 3_600_000)
    expect(freshness.newFrom).toBeLessThanOrEqual(noon - 3_600_000)
    vi.setSystemTime(noon + 3_600_000)
    expect(freshness.newFrom).toBeLessThanOrEqual(noon)
  })
})

describe('the outbox of a thread', () => {
  const outbox = () => {
    const reports: Report[] = []
    return {
      reports,
      box: new Outbox(
        (report) => reports.push(report),
        () => 3,
      ),
    }
  }
  const toldBy = (reports: readonly Report[]) =>
    reports.flatMap((report) =>
      report.kind === 'told' ? report.paths.map((path, index) => [path, report.existed[index]]) : [],
    )

  it('sends of the events of a path the first one, before anything that stands behind it', () => {
    const { box, reports } = outbox()
    box.invalidate('/a', true)
    box.invalidate('/b', undefined)
    box.invalidate('/a', false)
    box.ready()
    box.invalidate('/a', false)
    box.flush()
    box.flush()
    expect(reports.map(({ kind }) => kind)).toEqual(['told', 'ready', 'told'])
    expect(toldBy(reports)).toEqual([
      ['/a', true],
      ['/b', undefined],
      ['/a', false],
    ])
  })

  it('sends in batches, waits for the other end, and holds nothing back when it is asked', async () => {
    const { box, reports } = outbox()
    for (let index = 0; index < 5_000; index += 1) box.invalidate(`/${index}`, true)
    await waitFor(() => reports.length > 0, { timeoutMs: LIMIT_MS, describe: 'the first batches' })
    const underWay = reports.length
    expect(toldBy(reports).length).toBeLessThan(5_000)
    box.taken()
    expect(reports).toHaveLength(underWay + 1)
    box.flush()
    expect(toldBy(reports).map(([path]) => path)).toEqual(
      Array.from({ length: 5_000 }, (_, index) => `/${index}`),
    )
  })

  it('takes everything for changed rather than grow without a bound', () => {
    const { box, reports } = outbox()
    for (let index = 0; index <= 100_000; index += 1) box.invalidate(`/${index}`, true)
    expect(reports).toEqual([{ kind: 'everything' }])
    box.close()
    box.flush()
    expect(toldBy(reports)).toEqual([])
  })
})

describe('directories that are not watched', () => {
  const told = (directories: readonly string[]) => {
    const spots = new BlindSpots('/r')
    const parts: (string | undefined)[] = []
    for (const directory of directories) spots.add(directory, overLimit(1))
    spots.tell({ uncovered: (_fault, directory) => parts.push(directory) })
    spots.tell({ uncovered: () => parts.push('told twice') })
    return { parts, spots }
  }

  it('are told one by one while they are few', () => {
    const { parts, spots } = told(['/r/a', '/r/b/c', '/r/a'])
    expect(parts).toEqual(['/r/a', '/r/b/c'])
    expect(spots.everywhere).toBe(false)
  })

  it('are told as what holds them when they are many, and then as the whole', () => {
    const below = (top: string) => Array.from({ length: 100 }, (_, index) => `${top}/d${index}`)
    expect(told([...below('/r/a'), ...below('/r/b/c'), '/r/e']).parts).toEqual(
      expect.arrayContaining(['/r/a', '/r/b/c', '/r/e']),
    )
    const whole = told(below('/r'))
    expect(whole.parts).toEqual([undefined])
    expect(whole.spots.everywhere).toBe(true)
  })
})

describe('what is watched', () => {
  it('of directories that come first includes their ancestors, those before what is in them', () => {
    const scope = new WatchScope({
      root: '/r',
      ignored: () => true,
      first: () => ['/r/a/b/c', '/elsewhere/x', '/r', '/r/a/d'],
      maxDirectories: 1,
    })
    expect([...scope.first]).toEqual(['/r/a', '/r/a/b', '/r/a/b/c', '/r/a/d'])
    expect(['/r', '/r/a', '/r/a/d', '/r/x'].map((path) => scope.prunes(path))).toEqual([
      false,
      false,
      false,
      true,
    ])
    expect(['/r/a/d/f', '/r/a/f', '/r/x/f'].map((path) => scope.silences(path))).toEqual([false, true, true])
    expect(['/r/a', '/r/x'].map((path) => scope.admits(path, 1))).toEqual([true, false])
  })
})

/** Inotify instances of this process: one for each loop that watches. */
const instances = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('inotify')
    } catch {
      return false
    }
  }).length

const program = (text: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort as port } from 'node:worker_threads'\n${text}`)}`,
  )

describe.runIf(onLinux)('the thread', () => {
  it('is shared by all roots and ends with the last one', async () => {
    const before = { instances: instances(), watches: kernelWatches() }
    const roots = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { root } = temporaryRoot([`d${index}/f`])
        const started = start(root, { via: 'native' })
        await settle(started)
        return { root, ...started }
      }),
    )
    expect(instances()).toBe(before.instances + 1)
    for (const [index, { root, backend, sink }] of roots.entries()) {
      outside(root, `echo y > d${index}/f`)
      expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
      expect(new Set(sink.told.map(({ path }) => path))).toEqual(new Set([join(root, `d${index}/f`)]))
    }
    for (const { backend } of roots) await backend.close()
    expect({ instances: instances(), watches: kernelWatches() }).toEqual(before)
    const again = temporaryRoot(['f'])
    const { backend } = await startSettled(again.root, { via: 'native' })
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
  })

  it('that ends unexpectedly is a fault, told once, and no barrier is passed', async () => {
    const { root } = temporaryRoot(['f'])
    const thread = new WatchThread(
      program(`
        port.postMessage({ started: true })
        port.on('message', ({ kind, root }) => {
          if (kind === 'open') port.postMessage({ root, report: { kind: 'ready', directories: 1 } })
          if (kind === 'barrier') throw new Error('torn down')
        })`),
    )
    const { backend, sink } = start(root, { via: 'native', native: { thread: () => thread } })
    onTestFinished(() => backend.close())
    await waitFor(() => sink.readies > 0, { timeoutMs: LIMIT_MS, describe: 'the thread' })
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
    await waitFor(() => sink.faults.length > 0, { timeoutMs: LIMIT_MS, describe: 'the fault' })
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
    expect(sink.faults).toMatchObject([{ code: 'error', detail: 'torn down' }])
    expect(sink.faults[0]?.remedy).toContain('watch.backend')
    expect(sink.noThread).toEqual([])
    await within(backend.close(), { timeoutMs: LIMIT_MS, describe: 'closing' })
    expect(sink.faults).toHaveLength(1)
  })

  it.each([
    ['has no program', () => new WatchThread(new URL('file:///nowhere/worker.js'))],
    ['fails at once', () => new WatchThread(program("throw new Error('not here')"))],
    [
      'is not to be had',
      () => {
        throw systemError('EAGAIN')
      },
    ],
  ])('that %s is replaced by the library, which is said once', async (_what, thread) => {
    const { root } = temporaryRoot(['d/f'])
    const { backend, sink } = await startSettled(root, { via: 'native', native: { thread } })
    expect(backend.name).toBe('chokidar')
    expect(backend.watchedDirectories).toBe(2)
    expect(sink.noThread).toHaveLength(1)
    outside(root, 'echo y > d/f')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'd/f'))[0]).toMatchObject({ existed: true })
    expect(sink.faults).toEqual([])
    await backend.close()
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
  })

  it('that does not answer holds up neither a barrier nor the closing', async () => {
    const { root } = temporaryRoot(['f'])
    const thread = new WatchThread(
      program(`
        port.postMessage({ started: true })
        port.on('message', ({ kind, root }) => {
          if (kind === 'open') port.postMessage({ root, report: { kind: 'ready', directories: 1 } })
        })`),
    )
    const { backend, sink } = start(root, {
      via: 'native',
      native: { thread: () => thread, closeLimitMs: 20 },
    })
    await waitFor(() => sink.readies > 0, { timeoutMs: LIMIT_MS, describe: 'the thread' })
    const bounded = { timeoutMs: LIMIT_MS, describe: 'the end' }
    expect(await within(backend.barrier(20, never), bounded)).toBe('unclean')
    const aborting = new AbortController()
    const waiting = backend.barrier(1e8, aborting.signal)
    aborting.abort()
    expect(await within(waiting, bounded)).toBe('unclean')
    await within(backend.close(), bounded)
    expect(thread.over).toBe(true)
    expect(sink.faults).toEqual([])
  })

  it.each([
    ['while it watches', ''],
    ['in the middle of a scan', 'process.exitCode = 0'],
    ['after a barrier', 'console.log(await backend.barrier(10_000, new AbortController().signal))'],
    ['after it was closed', 'await backend.close()'],
  ])('does not hold its process: %s', async (what, further) => {
    const { root } = temporaryRoot(['f', 'd/e/f'])
    for (let index = 0; index < 200; index += 1) mkdirSync(join(root, `many${index}`))
    const lib = fileURLToPath(new URL('../../lib/watch/', import.meta.url))
    const wait = what === 'in the middle of a scan' ? '' : 'await ready'
    const script = `
      const { nativeBackend } = await import(${JSON.stringify(`${lib}native/backend.js`)})
      const { Silence } = await import(${JSON.stringify(`${lib}silence.js`)})
      const silence = new Silence({ root: ${JSON.stringify(root)}, ignoredDirectories: [], ownPaths: [], respectGitignore: false })
      const nothing = () => undefined
      let tell
      const ready = new Promise((resolve) => { tell = resolve })
      const backend = nativeBackend({ onNoThread: (detail) => { throw new Error(detail) } })({
        root: ${JSON.stringify(root)}, ignored: () => false, first: () => [], maxDirectories: 1e6, rules: () => silence.rules,
        sink: { invalidate: nothing, invalidateAll: nothing, ready: tell, uncovered: nothing, fault: nothing },
        debounceMs: 1, polling: false, pollIntervalMs: 1, detached: (make) => make(),
      })
      const hold = setTimeout(nothing, 60_000)
      ${wait}
      ${further}
      clearTimeout(hold)
      console.log('done')`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      timeout: LIMIT_MS,
    })
    expect(stdout).toBe(what === 'after a barrier' ? 'clean\ndone\n' : 'done\n')
  })
})
