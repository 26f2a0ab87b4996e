/**
 * Many sessions and roots in one process: what they share, and that nothing is left of those that went.
 * `SOAK=full` (in `pnpm test:long`) plays the whole of the soak, otherwise a tenth of it is played.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { checkConfig } from '../../src/config.ts'
import { chokidarBackend } from '../../src/watch/chokidar.ts'
import { type RootReader, WatchRegistry } from '../../src/watch/registry.ts'
import { waitFor } from '../support/wait.ts'

const never = new AbortController().signal
const LIMIT_MS = 60_000
const FULL = process.env['SOAK'] === 'full'
const CYCLES = FULL ? 2_000 : 200
const EVENTS = FULL ? 100_000 : 10_000
const TEST_LIMIT_MS = FULL ? 1_800_000 : 120_000

let base: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-agents-')))
  onTestFinished(() => rmSync(base, { recursive: true, force: true }))
})

const makeRoot = (name: string, directories = 5): string => {
  const root = join(base, name)
  for (let index = 0; index < directories; index += 1) {
    mkdirSync(join(root, `d${index}`), { recursive: true })
    for (let file = 0; file < 4; file += 1) writeFileSync(join(root, `d${index}`, `f${file}`), '')
  }
  return root
}

const openRegistry = (): { readonly registry: WatchRegistry; readonly faults: readonly string[] } => {
  const faults: string[] = []
  const registry = new WatchRegistry({
    config: checkConfig({}).watch,
    backend: (options) => chokidarBackend(options),
    detached: (make) => make(),
    report: (_root, { code }) => faults.push(code),
  })
  onTestFinished(() => registry.close())
  return { registry, faults }
}

const live = async (...readers: readonly RootReader[]): Promise<void> => {
  await waitFor(() => readers.every(({ coverage }) => coverage.kind === 'live'), {
    timeoutMs: LIMIT_MS,
    describe: () => `live: ${readers.map(({ coverage }) => coverage.kind).join(' ')}`,
  })
}

/** Watches that the kernel counts for this process. */
const inotifyWatches = (): number => {
  let watches = 0
  for (const name of readdirSync('/proc/self/fdinfo')) {
    try {
      const lines = readFileSync(`/proc/self/fdinfo/${name}`, 'utf8').split('\n')
      watches += lines.filter((line) => line.startsWith('inotify ')).length
    } catch {
      // That descriptor is closed by now.
    }
  }
  return watches
}

const handles = (): number =>
  process.getActiveResourcesInfo().filter((name) => name !== 'Immediate' && name !== 'Timeout').length

/** Set up without a flag of the command line, so that an ordinary run can measure too. */
const collect = (): void => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc()')
}

const heap = async (): Promise<number> => {
  for (let round = 0; round < 3; round += 1) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().heapUsed
}

describe('fifty sessions on one root', () => {
  it('share one watcher, and each is told every event once', async () => {
    const { registry } = openRegistry()
    const root = makeRoot('one')
    const readers = Array.from({ length: 50 }, () => registry.join(root, true))
    await live(...readers)
    expect(registry.size).toBe(1)
    expect(new Set(readers.map(({ backend }) => backend)).size).toBe(1)
    const watches = inotifyWatches()
    // Directories, the root itself, the marker's, and those of git's files outside.
    expect(watches).toBeLessThanOrEqual(6 + 20)
    const file = join(root, 'd0', 'f0')
    writeFileSync(file, 'changed')
    for (const reader of readers) await reader.barrier(LIMIT_MS, never)
    for (const reader of readers) expect(reader.read().paths.map(({ path }) => path)).toEqual([file])
    for (const reader of readers) expect(reader.read().paths).toEqual([])
    await Promise.all(readers.slice(1).map((reader) => reader.leave()))
    expect(inotifyWatches()).toBe(watches)
    await readers[0]?.leave()
    expect(registry.size).toBe(0)
  })
})

describe('twenty roots in one process', () => {
  it('are each followed by themselves, and all are gone in the end', async () => {
    const before = [inotifyWatches(), handles()]
    const { registry, faults } = openRegistry()
    const roots = Array.from({ length: 20 }, (_, index) => makeRoot(`root${index}`))
    const readers = roots.map((root) => registry.join(root, true))
    await live(...readers)
    for (const root of roots) writeFileSync(join(root, 'd1', 'f1'), 'changed')
    await Promise.all(readers.map((reader) => reader.barrier(LIMIT_MS, never)))
    expect(readers.map((reader) => reader.read().paths.map(({ path }) => path))).toEqual(
      roots.map((root) => [join(root, 'd1', 'f1')]),
    )
    await registry.close()
    expect(faults).toEqual([])
    await waitFor(() => inotifyWatches() === before[0] && handles() === before[1], {
      timeoutMs: LIMIT_MS,
      describe: () => `${String([inotifyWatches(), handles()])} instead of ${String(before)}`,
    })
  })
})

describe('sessions that come and go for a long time', () => {
  it(`(${CYCLES} times, ${EVENTS} events) leave nothing behind`, { timeout: TEST_LIMIT_MS }, async () => {
    const { registry, faults } = openRegistry()
    const roots = [makeRoot('a'), makeRoot('b')]
    const cycle = async (index: number): Promise<void> => {
      const root = roots[index % roots.length] ?? base
      const reader = registry.join(root, true)
      reader.prefer(join(root, `d${index % 5}`, 'f0'))
      // Some leave before the first scan is over.
      if (index % 3 > 0) {
        await live(reader)
        writeFileSync(join(root, `d${index % 5}`, 'f0'), String(index))
        await reader.barrier(LIMIT_MS, never)
        if (reader.read().paths.length === 0) throw new Error(`nothing read in cycle ${index}`)
      }
      await reader.leave()
    }
    const resting = async () => {
      await waitFor(() => registry.size === 0, { timeoutMs: LIMIT_MS, describe: 'rest' })
      return { watches: inotifyWatches(), handles: handles(), heap: await heap() }
    }
    // What is made once for all is there before the count begins.
    for (let index = 0; index < 30; index += 1) await cycle(index)
    const before = await resting()
    for (let index = 0; index < CYCLES; index += 1) await cycle(index)

    const [reader, idle] = [registry.join(roots[0] ?? base, true), registry.join(roots[0] ?? base, true)]
    await live(reader)
    let seen = 0
    for (let done = 0; done < EVENTS;) {
      for (let burst = 0; burst < 500; burst += 1, done += 1) {
        writeFileSync(join(roots[0] ?? base, `d${done % 5}`, `f${done % 4}`), String(done))
      }
      await reader.barrier(LIMIT_MS, never)
      seen += reader.read().paths.length
    }
    expect(seen).toBeGreaterThan(0)
    // A session that never reads holds names, but no more than there are.
    expect(idle.read().paths.length).toBeLessThanOrEqual(20)
    await Promise.all([reader.leave(), idle.leave()])
    const after = await resting()
    expect(faults).toEqual([])
    expect(after.watches).toBe(before.watches)
    expect(after.handles).toBeLessThanOrEqual(before.handles)
    expect(after.heap - before.heap).toBeLessThan(4 * 1024 * 1024)
  })
})
