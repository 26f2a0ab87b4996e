import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { checkConfig } from '../../src/config.ts'
import type { BackendOptions, BarrierOutcome, WatchBackend, WatchFault } from '../../src/watch/contract.ts'
import { WatchRegistry } from '../../src/watch/registry.ts'

const limit: WatchFault = { code: 'watch-limit', reason: 'no more watches', remedy: 'raise the limit' }
const broken: WatchFault = { code: 'error', reason: 'it broke', remedy: 'none' }
const never = new AbortController().signal

/** A backend that does what the test says, and whose closing lasts until the test lets it end. */
class FakeBackend implements WatchBackend {
  readonly name = 'fake'
  readonly watchedDirectories = 7
  readonly options: BackendOptions
  closings = 0
  refreshes = 0
  outcome: BarrierOutcome = 'clean'
  readonly #closed = Promise.withResolvers<void>()

  constructor(options: BackendOptions) {
    this.options = options
  }

  get sink(): BackendOptions['sink'] {
    return this.options.sink
  }

  barrier(): Promise<BarrierOutcome> {
    return Promise.resolve(this.outcome)
  }

  refresh(): void {
    this.refreshes += 1
  }

  close(): Promise<void> {
    this.closings += 1
    return this.#closed.promise
  }

  endClosing(error?: Error): void {
    if (error) this.#closed.reject(error)
    else this.#closed.resolve()
  }
}

interface Scene {
  readonly registry: WatchRegistry
  readonly backends: readonly FakeBackend[]
  readonly reported: readonly (readonly [string, WatchFault['code']])[]
  /** The nth backend that was made. */
  readonly backend: (index: number) => FakeBackend
}

const scene = (watch: object = {}, make = (options: BackendOptions) => new FakeBackend(options)): Scene => {
  const backends: FakeBackend[] = []
  const reported: (readonly [string, WatchFault['code']])[] = []
  const registry = new WatchRegistry({
    config: checkConfig({
      watch: { restartDelayMs: 100, maxRestartDelayMs: 400, restartJitterPercent: 0, ...watch },
    }).watch,
    backend: (options) => {
      const backend = make(options)
      backends.push(backend)
      return backend
    },
    detached: (make) => make(),
    report: (root, { code }) => reported.push([root, code]),
  })
  onTestFinished(async () => {
    for (const backend of backends) backend.endClosing()
    await registry.close()
  })
  return {
    registry,
    backends,
    reported,
    backend: (index) => {
      const backend = backends[index]
      if (!backend) throw new Error(`only ${backends.length} backends were made`)
      return backend
    },
  }
}

let root: string

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-registry-')))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
  rmSync(root, { recursive: true, force: true })
})

/** Whether a promise has settled once everything that waits has had its turn. */
const isSettled = async (promise: Promise<unknown>): Promise<boolean> => {
  let settled = false
  const note = (): void => {
    settled = true
  }
  void promise.then(note, note)
  await turns()
  return settled
}

/** Lets every continuation run that needs no timer and no system call. */
const turns = async (): Promise<void> => {
  for (let count = 0; count < 5; count += 1) await turn()
}

const sequencesOf = (reader: { read(): { readonly paths: readonly { readonly path: string }[] } }) =>
  reader.read().paths.map(({ path }) => path)

describe('sharing', () => {
  it('makes one watcher for all readers of a root, and one for each root', () => {
    const { registry, backends } = scene()
    const other = join(root, 'other')
    mkdirSync(other)
    registry.join(root, true)
    registry.join(root, true)
    expect(backends).toHaveLength(1)
    registry.join(other, true)
    expect(backends.map(({ options }) => options.root)).toEqual([root, other])
    expect(registry.size).toBe(2)
  })

  it('gives every reader what came after it joined, once', () => {
    const { registry, backend } = scene()
    const first = registry.join(root, true)
    backend(0).sink.invalidate('/a', true)
    const second = registry.join(root, true)
    backend(0).sink.invalidate('/b', false)
    expect(sequencesOf(first)).toEqual(['/a', '/b'])
    expect(sequencesOf(second)).toEqual(['/b'])
    expect(sequencesOf(first)).toEqual([])
    backend(0).sink.invalidate('/c', true)
    expect(sequencesOf(second)).toEqual(['/c'])
    expect(sequencesOf(first)).toEqual(['/c'])
  })

  it('hands on whether a path existed, and that everything is dirty', () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    backend(0).sink.invalidate('/a', false)
    backend(0).sink.invalidateAll()
    expect(reader.read()).toMatchObject({ everything: true, paths: [{ path: '/a', existed: false }] })
    expect(reader.read()).toMatchObject({ everything: false, paths: [] })
  })

  it('hands its settings to the backend', () => {
    const { registry, backend } = scene({ debounceMs: 5, usePolling: true, pollIntervalMs: 20 })
    registry.join(root, true)
    expect(backend(0).options).toMatchObject({ root, debounceMs: 5, polling: true, pollIntervalMs: 20 })
  })

  it('shows the backend for the status', () => {
    const { registry } = scene()
    expect(registry.join(root, true).backend).toMatchObject({ name: 'fake', watchedDirectories: 7 })
  })

  it('makes every handle outside of the caller’s context', () => {
    let inside = false
    let madeInside: boolean | undefined
    const registry = new WatchRegistry({
      config: checkConfig({}).watch,
      backend: (options) => {
        madeInside = inside
        const backend = new FakeBackend(options)
        backend.endClosing()
        return backend
      },
      detached: (make) => {
        inside = true
        try {
          return make()
        } finally {
          inside = false
        }
      },
      report: () => undefined,
    })
    registry.join(root, true)
    expect(madeInside).toBe(true)
    return registry.close()
  })
})

describe('what is ignored', () => {
  it.each([
    ['', false],
    ['src/a.ts', false],
    ['node_modules', true],
    ['node_modules/x/a.js', true],
    ['packages/p/node_modules/x.js', true],
    ['node_modules_old/x.js', false],
    ['.git/HEAD', true],
    ['.github/x.yml', false],
  ])('of "%s": %s', (path, ignored) => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    expect(backend(0).options.ignored(join(root, path), false)).toBe(ignored)
    expect(reader.covers(join(root, path))).toBe(!ignored)
  })

  it('does not depend on the names above the root', () => {
    const inside = join(root, 'node_modules', 'package')
    mkdirSync(inside, { recursive: true })
    const { registry, backend } = scene()
    registry.join(inside, true)
    expect(backend(0).options.ignored(join(inside, 'a.js'), false)).toBe(false)
    expect(backend(0).options.ignored(inside, true)).toBe(false)
  })

  it('covers nothing outside the root', () => {
    const { registry } = scene()
    const reader = registry.join(root, true)
    expect(reader.covers(`${root}-other/a`)).toBe(false)
    expect(reader.covers('/etc/hosts')).toBe(false)
  })
})

describe('coverage', () => {
  it('is starting until the backend is ready, then live', () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    expect(reader.coverage).toEqual({ kind: 'starting' })
    backend(0).sink.ready()
    expect(reader.coverage).toEqual({ kind: 'live' })
    // Nothing was missed: the reader came before the first scan.
    expect(reader.read().everything).toBe(false)
  })

  it('is remote without a watcher where the files are not on this disk', async () => {
    const { registry, backends } = scene()
    const reader = registry.join(root, false)
    expect(reader.coverage).toEqual({ kind: 'remote' })
    expect(backends).toHaveLength(0)
    expect(await reader.barrier(10, never)).toBe('unclean')
    // The same path on this disk is another root.
    registry.join(root, true)
    expect(backends).toHaveLength(1)
    expect(reader.coverage).toEqual({ kind: 'remote' })
  })

  it('is off without a watcher where that is wanted', async () => {
    const { registry, backends } = scene({ backend: 'off' })
    const reader = registry.join(root, true)
    expect(reader.coverage).toEqual({ kind: 'off' })
    expect(backends).toHaveLength(0)
    expect(await reader.barrier(10, never)).toBe('unclean')
  })

  it('passes a barrier on to the backend', async () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    for (const outcome of ['clean', 'best-effort', 'unclean'] as const) {
      backend(0).outcome = outcome
      expect(await reader.barrier(10, never)).toBe(outcome)
    }
  })

  it('stays what it is when a part cannot be watched, which is reported', () => {
    const { registry, backend, reported } = scene()
    const reader = registry.join(root, true)
    backend(0).sink.ready()
    backend(0).sink.uncovered(broken)
    expect(reader.coverage).toEqual({ kind: 'live' })
    expect(reported).toEqual([[root, 'error']])
  })
})

describe('a fault', () => {
  it('degrades, closes the backend, and starts another one after the delay and the closing', async () => {
    const { registry, backends, backend } = scene()
    const reader = registry.join(root, true)
    backend(0).sink.ready()
    backend(0).sink.fault(limit)
    expect(reader.coverage).toEqual({ kind: 'degraded', fault: limit })
    expect(reader.backend).toBeUndefined()
    expect(await reader.barrier(10, never)).toBe('unclean')
    await turns()
    expect(backend(0).closings).toBe(1)

    vi.advanceTimersByTime(99)
    await turns()
    expect(backends).toHaveLength(1)
    vi.advanceTimersByTime(1)
    await turns()
    // The delay is over, but limits must not count two watchers of one root.
    expect(backends).toHaveLength(1)
    backend(0).endClosing()
    await turns()
    expect(backends).toHaveLength(2)
    expect(reader.coverage).toEqual({ kind: 'degraded', fault: limit })
  })

  it('is over when the next backend is ready, and then everything is looked at again', async () => {
    const { registry, backend } = scene()
    const first = registry.join(root, true)
    const second = registry.join(root, true)
    backend(0).sink.ready()
    backend(0).sink.fault(limit)
    backend(0).endClosing()
    await turns()
    vi.advanceTimersByTime(100)
    await turns()
    expect(first.read().everything).toBe(false)
    backend(1).sink.ready()
    for (const reader of [first, second]) {
      expect(reader.coverage).toEqual({ kind: 'live' })
      expect(reader.read().everything).toBe(true)
      expect(reader.read().everything).toBe(false)
    }
    backend(1).sink.invalidate('/a', true)
    expect(sequencesOf(first)).toEqual(['/a'])
  })

  it('is reported once while it lasts, and again when it comes back', async () => {
    const { registry, backend, reported } = scene()
    registry.join(root, true)
    const failAndRestart = async (index: number, fault: WatchFault): Promise<void> => {
      backend(index).sink.fault(fault)
      backend(index).endClosing()
      await turns()
      vi.advanceTimersByTime(400)
      await turns()
    }
    await failAndRestart(0, limit)
    await failAndRestart(1, limit)
    expect(reported).toEqual([[root, 'watch-limit']])
    await failAndRestart(2, broken)
    expect(reported.slice(1)).toEqual([[root, 'error']])
    backend(3).sink.ready()
    await failAndRestart(3, broken)
    expect(reported.slice(2)).toEqual([[root, 'error']])
  })

  it('waits longer each time until a backend is ready again', async () => {
    const { registry, backends, backend } = scene()
    registry.join(root, true)
    const delayAfterFaultOf = async (index: number): Promise<number> => {
      backend(index).sink.fault(limit)
      backend(index).endClosing()
      await turns()
      let waited = 0
      while (backends.length === index + 1) {
        vi.advanceTimersByTime(50)
        waited += 50
        await turns()
      }
      return waited
    }
    const delays: number[] = []
    for (let index = 0; index < 4; index += 1) delays.push(await delayAfterFaultOf(index))
    expect(delays).toEqual([100, 200, 400, 400])
    backend(4).sink.ready()
    expect(await delayAfterFaultOf(4)).toBe(100)
  })

  it('of a backend that was replaced counts for nothing, and neither does anything else it says', async () => {
    const { registry, backend, backends, reported } = scene()
    const reader = registry.join(root, true)
    backend(0).sink.fault(limit)
    backend(0).sink.fault(broken)
    backend(0).sink.ready()
    backend(0).sink.invalidate('/late', true)
    backend(0).sink.invalidateAll()
    backend(0).sink.uncovered(broken)
    expect(reader.coverage).toEqual({ kind: 'degraded', fault: limit })
    expect(reader.read()).toMatchObject({ paths: [], everything: false })
    backend(0).endClosing()
    await turns()
    vi.advanceTimersByTime(100)
    await turns()
    expect(backends).toHaveLength(2)
    backend(1).sink.ready()
    backend(0).sink.fault(broken)
    expect(reader.coverage).toEqual({ kind: 'live' })
    expect(reported).toEqual([[root, 'watch-limit']])
  })

  it('of a backend that cannot even be made is met in the same way', async () => {
    let failures = 2
    const { registry, backends, reported } = scene({}, (options) => {
      if (failures-- > 0) throw Object.assign(new Error('no'), { code: 'EMFILE' })
      return new FakeBackend(options)
    })
    const reader = registry.join(root, true)
    expect(reader.coverage).toMatchObject({ kind: 'degraded', fault: { code: 'instance-limit' } })
    vi.advanceTimersByTime(100)
    await turns()
    expect(backends).toHaveLength(0)
    vi.advanceTimersByTime(200)
    await turns()
    expect(backends).toHaveLength(1)
    backends[0]?.sink.ready()
    expect(reader.coverage).toEqual({ kind: 'live' })
    expect(reported).toEqual([[root, 'instance-limit']])
  })

  it('that a backend reports while it is made replaces that backend', async () => {
    let faulty = true
    const { registry, backends, backend } = scene({}, (options) => {
      const made = new FakeBackend(options)
      if (faulty) options.sink.fault(limit)
      faulty = false
      return made
    })
    const reader = registry.join(root, true)
    await turns()
    expect(reader.backend).toBeUndefined()
    expect(backend(0).closings).toBe(1)
    backend(0).endClosing()
    await turns()
    vi.advanceTimersByTime(100)
    await turns()
    expect(backends).toHaveLength(2)
  })

  it('is what a root is in that does not exist, until it does', async () => {
    const missing = join(root, 'missing')
    const { registry, backends, reported } = scene()
    const reader = registry.join(missing, true)
    expect(reader.coverage).toMatchObject({ kind: 'degraded', fault: { code: 'root-lost' } })
    vi.advanceTimersByTime(100)
    await turns()
    expect(backends).toHaveLength(0)
    mkdirSync(missing)
    vi.advanceTimersByTime(200)
    await turns()
    backends[0]?.sink.ready()
    expect(reader.coverage).toEqual({ kind: 'live' })
    expect(reader.read().everything).toBe(true)
    expect(reported).toEqual([[missing, 'root-lost']])
  })

  it('of closing the failed backend is reported and keeps nothing from starting again', async () => {
    const { registry, backends, backend, reported } = scene()
    registry.join(root, true)
    backend(0).sink.fault(limit)
    backend(0).endClosing(new Error('cannot close'))
    await turns()
    vi.advanceTimersByTime(100)
    await turns()
    expect(backends).toHaveLength(2)
    expect(reported).toEqual([
      [root, 'watch-limit'],
      [root, 'error'],
    ])
  })

  it('leaves no restart behind when the last reader leaves', async () => {
    const { registry, backends, backend } = scene()
    const reader = registry.join(root, true)
    backend(0).sink.fault(limit)
    backend(0).endClosing()
    await reader.leave()
    expect(vi.getTimerCount()).toBe(0)
    vi.advanceTimersByTime(1_000)
    await turns()
    expect(backends).toHaveLength(1)
  })

  it('starts nothing when its last reader leaves after the delay, while the closing still lasts', async () => {
    const { registry, backends, backend } = scene()
    const reader = registry.join(root, true)
    backend(0).sink.fault(limit)
    await turns()
    vi.advanceTimersByTime(100)
    await turns()
    const leaving = reader.leave()
    backend(0).endClosing()
    await leaving
    await turns()
    expect(backends).toHaveLength(1)
    expect(backend(0).closings).toBe(1)
  })
})

describe('leaving', () => {
  it('closes the watcher with the last reader, and waits for that', async () => {
    const { registry, backend } = scene()
    const first = registry.join(root, true)
    const second = registry.join(root, true)
    await first.leave()
    expect(backend(0).closings).toBe(0)
    expect(registry.size).toBe(1)
    const leaving = second.leave()
    expect(registry.size).toBe(0)
    expect(await isSettled(leaving)).toBe(false)
    expect(backend(0).closings).toBe(1)
    backend(0).endClosing()
    await leaving
  })

  it('counts a reader that leaves twice once', async () => {
    const { registry, backend } = scene()
    const first = registry.join(root, true)
    registry.join(root, true)
    await first.leave()
    await first.leave()
    await turns()
    expect(backend(0).closings).toBe(0)
  })

  it('is not undone by a read that comes late, from a boundary that was under way', async () => {
    const { registry, backend } = scene()
    const gone = registry.join(root, true)
    const last = registry.join(root, true)
    await gone.leave()
    gone.read()
    backend(0).endClosing()
    await last.leave()
    expect(registry.size).toBe(0)
    expect(backend(0).closings).toBe(1)
  })

  it('ends what the backend can say', async () => {
    const { registry, backend, reported } = scene()
    const reader = registry.join(root, true)
    backend(0).endClosing()
    await reader.leave()
    backend(0).sink.invalidate('/a', true)
    backend(0).sink.invalidateAll()
    backend(0).sink.ready()
    backend(0).sink.uncovered(broken)
    backend(0).sink.fault(broken)
    expect(reader.read()).toMatchObject({ paths: [], everything: false })
    expect(reported).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
    expect(await reader.barrier(10, never)).toBe('unclean')
  })

  it('is followed by a new watcher for who joins then, but only when the old one is closed', async () => {
    const { registry, backends, backend } = scene()
    const leaving = registry.join(root, true).leave()
    await turns()
    const next = registry.join(root, true)
    await turns()
    // Limits of the system must not count two watchers of one root.
    expect(backends).toHaveLength(1)
    expect(next.coverage).toEqual({ kind: 'starting' })
    backend(0).endClosing()
    await leaving
    await turns()
    expect(backends).toHaveLength(2)
    backend(1).sink.ready()
    expect(next.coverage).toEqual({ kind: 'live' })
  })
})

describe('closing the registry', () => {
  it('closes every watcher and waits for all, also for one that is being closed already', async () => {
    const { registry, backend } = scene()
    const other = join(root, 'other')
    const third = join(root, 'third')
    for (const path of [other, third]) mkdirSync(path)
    const leaving = registry.join(root, true).leave()
    registry.join(other, true)
    registry.join(third, true)
    const closing = registry.close()
    expect(registry.closed).toBe(true)
    backend(1).endClosing()
    backend(2).endClosing()
    expect(await isSettled(closing)).toBe(false)
    backend(0).endClosing()
    await Promise.all([closing, leaving])
    expect([0, 1, 2].map((index) => backend(index).closings)).toEqual([1, 1, 1])
    expect(registry.size).toBe(0)
  })

  it('does not fail when a backend cannot be closed, which is reported', async () => {
    const { registry, backend, reported } = scene()
    registry.join(root, true)
    backend(0).endClosing(new Error('cannot close'))
    await registry.close()
    expect(reported).toEqual([[root, 'error']])
  })

  it('leaves no timer of a failed root', async () => {
    const { registry, backend } = scene()
    registry.join(root, true)
    backend(0).sink.fault(limit)
    backend(0).endClosing()
    await registry.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('can be done twice, and readers can leave afterwards', async () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    backend(0).endClosing()
    await registry.close()
    await registry.close()
    await reader.leave()
    expect(backend(0).closings).toBe(1)
  })
})
