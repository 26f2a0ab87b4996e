import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { checkConfig } from '../../src/config.ts'
import { chokidarBackend } from '../../src/watch/chokidar.ts'
import type { BackendOptions, BarrierOutcome, WatchBackend, WatchFault } from '../../src/watch/contract.ts'
import { userLimit } from '../../src/watch/limits.ts'
import type { ProbeSystem } from '../../src/watch/probe.ts'
import { type RegistryOptions, type RootReader, WatchRegistry } from '../../src/watch/registry.ts'
import { waitFor } from '../support/wait.ts'

const capped: WatchFault = { code: 'watch-limit', reason: 'too many directories', remedy: 'watch fewer' }
const denied: WatchFault = { code: 'access-denied', reason: 'no access', remedy: 'ask for it' }
const never = new AbortController().signal
const LIMIT_MS = 10_000
const HOUR = 3_600_000

/** A backend that only does what the test says. */
class SpokenBackend implements WatchBackend {
  readonly name = 'spoken'
  watchedDirectories = 0
  refreshes = 0
  outcome: BarrierOutcome = 'clean'
  readonly options: BackendOptions

  constructor(options: BackendOptions) {
    this.options = options
  }

  barrier(): Promise<BarrierOutcome> {
    return Promise.resolve(this.outcome)
  }

  refresh(): void {
    this.refreshes += 1
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

let base: string
let root: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-gaps-')))
  root = join(base, 'parent', 'root')
  mkdirSync(root, { recursive: true })
  onTestFinished(() => rmSync(base, { recursive: true, force: true }))
})

const write = (path: string, text = 'x\n'): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

const scene = (watch: object = {}, options: Partial<RegistryOptions> = {}) => {
  const reported: WatchFault[] = []
  const backends: SpokenBackend[] = []
  const registry = new WatchRegistry({
    config: checkConfig({ watch: { restartDelayMs: HOUR, maxRestartDelayMs: HOUR, ...watch } }).watch,
    backend: (given) => {
      const backend = new SpokenBackend(given)
      backends.push(backend)
      return backend
    },
    detached: (make) => make(),
    report: (_root, fault) => reported.push(fault),
    ...options,
  })
  onTestFinished(() => registry.close())
  const backend = (index = 0): SpokenBackend => {
    const found = backends[index]
    if (!found) throw new Error(`only ${backends.length} backends were made`)
    return found
  }
  return { registry, backend, backends, reported }
}

/** What was invalidated, in the order of the paths. */
const pathsOf = (reader: RootReader) =>
  reader
    .read()
    .paths.map(({ path, existed }) => [path, existed])
    .toSorted(([a], [b]) => String(a).localeCompare(String(b)))

describe('a part that is not watched', () => {
  it('is named, is not covered, and is reported once for each cause', () => {
    const { registry, backend, reported } = scene()
    const reader = registry.join(root, true)
    const before = reader.generation
    backend().options.sink.ready()
    backend().options.sink.uncovered(capped, join(root, 'a'))
    backend().options.sink.uncovered(capped, join(root, 'b'))
    backend().options.sink.uncovered(denied, join(root, 'c'))
    expect(reader.coverage).toEqual({ kind: 'live' })
    expect(reader.uncovered.directories).toEqual(['a', 'b', 'c'].map((name) => join(root, name)))
    expect(['a/x', 'c', 'd/x', 'x'].map((path) => reader.covers(join(root, path)))).toEqual([
      false,
      false,
      true,
      true,
    ])
    expect(reader.generation).toBeGreaterThan(before)
    expect(reported).toEqual([capped, denied])
  })

  it('is compared at a boundary, for every session', async () => {
    for (const path of ['a/one', 'a/two', 'b/three']) write(path)
    const { registry, backend } = scene({ compareWaitMs: LIMIT_MS })
    const [first, second] = [registry.join(root, true), registry.join(root, true)]
    backend().options.sink.uncovered(capped, join(root, 'a'))
    backend().options.sink.ready()
    await first.barrier(LIMIT_MS, never)
    expect(pathsOf(first)).toEqual([])
    write('a/one', 'changed, and longer\n')
    rmSync(join(root, 'a/two'))
    write('a/new')
    write('b/three', 'no event, and watched\n')
    expect(await first.barrier(LIMIT_MS, never)).toBe('clean')
    const expected = [
      [join(root, 'a/new'), false],
      [join(root, 'a/one'), true],
      [join(root, 'a/two'), true],
    ]
    expect(pathsOf(first)).toEqual(expected)
    expect(pathsOf(second)).toEqual(expected)
    expect(first.status).toMatchObject({ comparedFiles: 2, comparisonComplete: true })
  })

  it('that is not known is everything', async () => {
    write('a/one')
    const { registry, backend } = scene({ compareWaitMs: LIMIT_MS })
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    backend().options.sink.uncovered(denied)
    expect(reader.covers(join(root, 'x'))).toBe(false)
    await reader.barrier(LIMIT_MS, never)
    write('a/one', 'changed, and longer\n')
    await reader.barrier(LIMIT_MS, never)
    expect(pathsOf(reader)).toEqual([[join(root, 'a/one'), true]])
  })

  it('that was watched until now loses nothing of the time since the last boundary', async () => {
    write('a/one')
    const { registry, backend } = scene({ compareWaitMs: LIMIT_MS })
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    await reader.barrier(LIMIT_MS, never)
    write('new/file')
    backend().options.sink.uncovered(capped, join(root, 'new'))
    await reader.barrier(LIMIT_MS, never)
    expect(pathsOf(reader)).toEqual([[join(root, 'new/file'), false]])
  })

  it('is whole again once it is gone, and watched anew with the next backend', async () => {
    write('a/one')
    const { registry, backend } = scene({ compareWaitMs: LIMIT_MS })
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    backend().options.sink.uncovered(capped, join(root, 'a'))
    await reader.barrier(LIMIT_MS, never)
    rmSync(join(root, 'a'), { recursive: true })
    await reader.barrier(LIMIT_MS, never)
    expect(pathsOf(reader)).toEqual([[join(root, 'a/one'), true]])
    expect(reader.uncovered).toEqual({ directories: [], unknown: false, fault: undefined })
  })
})

describe('what is watched before all else', () => {
  it('are the directories of files that sessions use and follow, while they are there', async () => {
    const { registry, backend } = scene()
    const [first, second] = [registry.join(root, true), registry.join(root, true)]
    first.prefer(join(root, 'a/used.ts'))
    second.prefer(join(root, 'a/other.ts'))
    second.follow({ directories: [join(root, 'b'), base], names: ['AGENTS.md'], files: [join(root, 'c/x')] })
    const directories = () => backend().options.first().toSorted()
    expect(directories()).toEqual(['a', 'b', 'c'].map((name) => join(root, name)))
    await turn()
    expect(backend().refreshes).toBe(1)
    await second.leave()
    expect(directories()).toEqual([join(root, 'a')])
  })

  it('asks the backend for nothing when it is watched already', async () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    await backend().options.prepared
    await turn()
    const before = backend().refreshes
    reader.prefer(join(root, 'a/used.ts'))
    await turn()
    expect(backend().refreshes).toBe(before)
    backend().options.sink.uncovered(capped, join(root, 'b'))
    reader.prefer(join(root, 'b/used.ts'))
    await turn()
    expect(backend().refreshes).toBe(before + 1)
  })

  it('includes changed ignore rules', async () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    await backend().options.prepared
    const [refreshes, { generation }] = [backend().refreshes, reader]
    backend().options.sink.invalidate(join(root, '.gitignore'), true)
    await turn()
    expect(backend().refreshes).toBe(refreshes + 1)
    expect(reader.generation).toBeGreaterThan(generation)
  })
})

describe('the number of directories', () => {
  it('is what is configured, or a share of the user’s limit', () => {
    const { registry, backend } = scene({ maxWatchedDirectories: 7 })
    registry.join(root, true)
    expect(backend().options.maxDirectories).toBe(7)
    const share = scene({ maxWatchedDirectories: 10_000_000, watchLimitPercent: 50 })
    share.registry.join(root, true)
    const half = Math.min(10_000_000, Math.floor(userLimit() / 2))
    expect(share.backend().options.maxDirectories).toBe(half)
  })

  it('counts what other roots of the process watch', () => {
    const { registry, backend } = scene({ maxWatchedDirectories: 10 })
    const other = join(base, 'other')
    mkdirSync(other)
    registry.join(root, true)
    backend(0).watchedDirectories = 8
    registry.join(other, true)
    expect(backend(1).options.maxDirectories).toBe(2)
  })
})

describe('an ignore file that is not applied', () => {
  it('is reported once', async () => {
    write('.gitignore', 'a\n'.repeat(100))
    const { registry, backend, reported } = scene({ maxIgnoreFileBytes: 10 })
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    await waitFor(
      async () => {
        reader.ignores(join(root, 'a'), false)
        await reader.barrier(LIMIT_MS, never)
        return reported.length > 0
      },
      { timeoutMs: LIMIT_MS, describe: 'the report' },
    )
    await reader.barrier(LIMIT_MS, never)
    expect(reported).toMatchObject([{ code: 'ignore-file' }])
    expect(reported[0]?.detail).toContain(join(root, '.gitignore'))
    expect(reported[0]?.remedy).toContain('watch.maxIgnoreFileBytes')
  })
})

describe('a filesystem', () => {
  it('of a type that does not report every change is not watched, unless by polling', () => {
    const { registry, backends, reported } = scene({ silentFilesystems: ['*'] })
    const reader = registry.join(root, true)
    expect(reader.coverage).toMatchObject({ kind: 'degraded', fault: { code: 'no-events' } })
    expect(backends).toHaveLength(0)
    expect(reported).toHaveLength(1)
    const polling = scene({ silentFilesystems: ['*'], backend: 'polling' })
    polling.registry.join(root, true)
    expect(polling.backends).toHaveLength(1)
  })

  it('that stays silent is found out after the first scan, and is not scanned again', async () => {
    mkdirSync(join(root, '.git'))
    let probes = 0
    const probeSystem: ProbeSystem = {
      watch: () => {
        probes += 1
        return { close: () => undefined }
      },
    }
    const { registry, backend, backends, reported } = scene(
      { probeTimeoutMs: 1, restartDelayMs: 1, maxRestartDelayMs: 1 },
      { probeSystem },
    )
    const reader = registry.join(root, true)
    await turn()
    expect(probes).toBe(0)
    backend().options.sink.ready()
    // Until that is known, nothing counts as watched.
    expect(reader.coverage).toEqual({ kind: 'starting' })
    await waitFor(() => reader.coverage.kind === 'degraded', { timeoutMs: LIMIT_MS, describe: 'the fault' })
    await waitFor(() => probes >= 6, { timeoutMs: LIMIT_MS, describe: 'further tries' })
    expect(backends).toHaveLength(1)
    expect(reported.map(({ code }) => code)).toEqual(['no-events'])
    expect(reader.status.probe).toEqual({ kind: 'silent' })
  })

  it('that reports is live after the probe', async () => {
    mkdirSync(join(root, '.git'))
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    await waitFor(() => reader.coverage.kind === 'live', { timeoutMs: LIMIT_MS, describe: 'live' })
    expect(reader.status.probe).toEqual({ kind: 'heard' })
  })
})

describe('more events at once than the queue may hold', () => {
  it('put everything in doubt, once', async () => {
    const { registry, backend } = scene()
    const reader = registry.join(root, true)
    backend().options.sink.ready()
    for (let index = 0; index < 3_000; index += 1) backend().options.sink.invalidate(join(root, 'f'), true)
    await turn()
    expect(reader.read().everything).toBe(false)
    for (let index = 0; index < 20_000; index += 1) backend().options.sink.invalidate(join(root, 'f'), true)
    expect(reader.read().everything).toBe(true)
    expect(reader.read().everything).toBe(false)
  })
})

/** The real watcher, restarted soon. */
const watchForReal = async () => {
  write('used')
  const { registry, reported } = scene(
    { restartDelayMs: 20, maxRestartDelayMs: 20 },
    { backend: (options) => chokidarBackend(options) },
  )
  const reader = registry.join(root, true)
  await waitFor(() => reader.coverage.kind === 'live', { timeoutMs: LIMIT_MS, describe: 'live' })
  await reader.barrier(LIMIT_MS, never)
  reader.read()
  return { reader, reported }
}

describe('a root that is not the same any more', () => {
  const aside = () => join(base, 'aside')
  it.each([
    ['is replaced', () => [renameSync(root, aside()), mkdirSync(root)]],
    [
      'is removed and made again at once',
      () => execFileSync('sh', ['-c', `rm -r '${root}'; mkdir '${root}'`]),
    ],
    ['is renamed', () => renameSync(root, aside())],
    ['is removed', () => rmSync(root, { recursive: true })],
    [
      'is under a parent that was moved',
      () => [renameSync(dirname(root), aside()), mkdirSync(root, { recursive: true })],
    ],
    [
      'is behind a link by now',
      () => [renameSync(dirname(root), aside()), symlinkSync(aside(), dirname(root))],
    ],
    ['is a file by now', () => [rmSync(root, { recursive: true }), writeFileSync(root, '')]],
  ])('because it %s: lost, said once, and followed again when a directory is there', async (_how, change) => {
    const { reader, reported } = await watchForReal()
    change()
    expect(await reader.barrier(LIMIT_MS, never)).toBe('unclean')
    expect(reader.coverage).toMatchObject({ kind: 'degraded', fault: { code: 'root-lost' } })
    rmSync(root, { recursive: true, force: true })
    mkdirSync(root, { recursive: true })
    await waitFor(() => reader.coverage.kind === 'live', { timeoutMs: LIMIT_MS, describe: 'live again' })
    expect(reader.read().everything).toBe(true)
    writeFileSync(join(root, 'new'), '')
    await reader.barrier(LIMIT_MS, never)
    expect(reader.read().paths.map(({ path }) => path)).toContain(join(root, 'new'))
    expect(reported.map(({ code }) => code)).toEqual(['root-lost'])
    expect(reader.status.faults).toMatchObject([{ code: 'root-lost' }])
    expect(reader.status.faults[0]?.lastedMs).toBeGreaterThan(0)
  })
})
