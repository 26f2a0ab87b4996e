import { lstatSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { checkConfig } from '../../src/config.ts'
import { defaultBarrierKind } from '../../src/watch/chokidar.ts'
import type { BackendOptions, WatchFault } from '../../src/watch/contract.ts'
import { Journal } from '../../src/watch/journal.ts'
import { WatchRegistry } from '../../src/watch/registry.ts'
import { waitFor, within } from '../support/wait.ts'
import {
  contenders,
  factoryOf,
  kernelWatches,
  LIMIT_MS,
  makeBase,
  never,
  outside,
  Recorder,
  remove,
  settle,
  start,
  type Started,
  type StartOptions,
  startSettled,
  temporaryRoot,
  type Told,
  write,
} from '../support/watching.ts'

const onLinux = process.platform === 'linux'

/** Path → identity and freshness of each file below a directory. */
const snapshot = (root: string): ReadonlyMap<string, string> => {
  const files = new Map<string, string>()
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue
    const path = join(entry.parentPath, entry.name)
    const { ino, mtimeNs, ctimeNs, size } = lstatSync(path, { bigint: true })
    files.set(path, `${ino} ${mtimeNs} ${ctimeNs} ${size}`)
  }
  return files
}

interface Stage {
  /** What the other process does, in the directory of the operation. */
  readonly script: string
  /** Files that have to be told, and whether they were there before; as directories, both will do. */
  readonly told: Readonly<Record<string, boolean | 'either'>>
  /** Further files that the operation touches. */
  readonly also?: readonly string[]
}

interface Operation {
  readonly name: string
  /** Files that are there from the start, beside `neighbour`. */
  readonly files: readonly string[]
  readonly stages: readonly Stage[]
}

const operations: readonly Operation[] = [
  { name: 'a file modified in place', files: ['f'], stages: [{ script: 'echo y > f', told: { f: true } }] },
  { name: 'a file appended to', files: ['f'], stages: [{ script: 'echo y >> f', told: { f: true } }] },
  {
    name: 'a few bytes written into the middle of a file',
    files: ['f'],
    stages: [{ script: 'printf z | dd of=f conv=notrunc status=none', told: { f: true } }],
  },
  { name: 'a file created', files: [], stages: [{ script: 'echo y > f', told: { f: false } }] },
  { name: 'an empty file created', files: [], stages: [{ script: ': > f', told: { f: false } }] },
  { name: 'a file removed', files: ['f'], stages: [{ script: 'rm f', told: { f: true } }] },
  {
    name: 'a file replaced atomically',
    files: ['f'],
    stages: [{ script: 'echo y > f.tmp; mv f.tmp f', told: { f: true }, also: ['f.tmp'] }],
  },
  {
    name: 'a file removed and created again',
    files: ['f'],
    stages: [{ script: 'rm f; echo y > f', told: { f: true } }],
  },
  {
    name: 'a file removed, and created again after the boundary',
    files: ['f'],
    stages: [
      { script: 'rm f', told: { f: true } },
      { script: 'echo y > f', told: { f: false } },
    ],
  },
  {
    name: 'a file renamed',
    files: ['f'],
    stages: [{ script: 'mv f g', told: { f: true, g: false } }],
  },
  {
    name: 'two files swapped',
    files: ['f', 'g'],
    stages: [{ script: 'mv f t; mv g f; mv t g', told: { f: true, g: true }, also: ['t'] }],
  },
  { name: 'a file touched', files: ['f'], stages: [{ script: 'touch f', told: { f: true } }] },
  {
    name: 'the mode of a file changed',
    files: ['f'],
    stages: [{ script: 'chmod 600 f', told: { f: true } }],
  },
  {
    name: 'links created',
    files: ['f'],
    stages: [{ script: 'ln -s nowhere l; ln f h', told: { l: false, h: false }, also: ['f'] }],
  },
  {
    name: 'a file with an unusual name',
    files: [],
    stages: [{ script: "echo y > 'a\nb <é> \\'", told: { 'a\nb <é> \\': false } }],
  },
  {
    name: 'a directory with a file created',
    files: [],
    stages: [{ script: 'mkdir d; echo y > d/a', told: { 'd/a': false } }],
  },
  {
    name: 'a directory created, and a file in it after the boundary',
    files: [],
    stages: [
      { script: 'mkdir d', told: {} },
      { script: 'echo y > d/a', told: { 'd/a': false } },
      { script: 'echo z > d/a', told: { 'd/a': true } },
    ],
  },
  {
    name: 'a deep directory created',
    files: [],
    stages: [
      {
        script: 'mkdir -p d/e/g/h; : > d/e/g/h/a; echo y > d/e/b; mkdir d/e/i',
        told: { 'd/e/g/h/a': false, 'd/e/b': false },
      },
      { script: 'echo y > d/e/i/c; echo y > d/e/g/h/a', told: { 'd/e/i/c': false, 'd/e/g/h/a': true } },
    ],
  },
  {
    name: 'a directory renamed',
    files: ['d/a', 'd/s/b'],
    stages: [
      { script: 'mv d e', told: { 'd/a': true, 'd/s/b': true, 'e/a': false, 'e/s/b': false } },
      { script: 'echo y > e/s/b; echo y > e/c', told: { 'e/s/b': true, 'e/c': false }, also: ['e/a'] },
    ],
  },
  {
    name: 'a directory renamed and written into',
    files: ['d/a', 'd/s/b'],
    stages: [
      {
        script: 'mv d e; echo y > e/s/b; echo y > e/c',
        told: { 'd/a': true, 'd/s/b': true, 'e/a': false, 'e/s/b': false, 'e/c': false },
      },
    ],
  },
  {
    name: 'a directory renamed there and back',
    files: ['d/a', 'd/s/b'],
    stages: [
      { script: 'mv d e', told: { 'd/a': true, 'd/s/b': true, 'e/a': false, 'e/s/b': false } },
      { script: 'mv e d', told: { 'd/a': false, 'd/s/b': false, 'e/a': true, 'e/s/b': true } },
      { script: 'echo y > d/s/b', told: { 'd/s/b': true } },
    ],
  },
  {
    name: 'two directories swapped',
    files: ['d/a', 'e/a', 'e/b'],
    stages: [
      { script: 'mv d t; mv e d; mv t e', told: { 'd/a': true, 'e/a': true, 'd/b': false, 'e/b': true } },
      { script: 'echo y > d/b; echo y > e/a', told: { 'd/b': true, 'e/a': true } },
    ],
  },
  {
    name: 'a directory removed',
    files: ['d/a', 'd/s/b'],
    stages: [{ script: 'rm -r d', told: { 'd/a': true, 'd/s/b': true } }],
  },
  {
    name: 'a directory removed and made again at once',
    files: ['d/a', 'd/gone', 'd/s/b'],
    stages: [
      {
        script: 'rm -r d; mkdir -p d/s; echo y > d/a',
        told: { 'd/a': true, 'd/gone': true, 'd/s/b': true },
      },
      { script: 'echo z > d/a; echo z > d/new', told: { 'd/a': true, 'd/new': false } },
      { script: 'echo z > d/s/b', told: { 'd/s/b': false } },
    ],
  },
  {
    name: 'an empty directory removed and made again at once',
    files: ['d/s/b'],
    stages: [
      { script: 'rm -r d/s; mkdir d/s', told: { 'd/s/b': true } },
      { script: 'echo y > d/s/c', told: { 'd/s/c': false } },
    ],
  },
  {
    name: 'a directory moved in from elsewhere',
    files: [],
    stages: [
      { script: 'mv "$ELSEWHERE/whole" d', told: { 'd/a': false, 'd/s/b': false } },
      { script: 'echo y > d/s/b', told: { 'd/s/b': true } },
    ],
  },
  {
    name: 'a directory moved away',
    files: ['d/a', 'd/s/b'],
    stages: [{ script: 'mv d "$ELSEWHERE/away"', told: { 'd/a': true, 'd/s/b': true } }],
  },
  {
    name: 'a file replaced by a directory, and back',
    files: ['f'],
    stages: [
      { script: 'rm f; mkdir f; echo y > f/a', told: { f: true, 'f/a': false } },
      { script: 'rm -r f; echo y > f', told: { f: 'either', 'f/a': true } },
      { script: 'echo z > f', told: { f: true } },
    ],
  },
  {
    name: 'a directory replaced by a file, and back',
    files: ['d/a'],
    stages: [
      { script: 'rm -r d; echo y > d', told: { d: 'either', 'd/a': true } },
      { script: 'rm d; mkdir d; echo y > d/a', told: { d: true, 'd/a': false } },
      { script: 'echo z > d/a', told: { 'd/a': true } },
    ],
  },
  {
    name: 'an empty directory replaced by an empty file, and back',
    files: ['d/a'],
    stages: [
      { script: 'rm d/a', told: { 'd/a': true } },
      { script: 'rmdir d; : > d', told: { d: 'either' } },
      { script: 'rm d; mkdir d', told: { d: true } },
      { script: 'rmdir d; : > d', told: { d: 'either' } },
    ],
  },
  {
    name: 'the mode of a directory changed',
    files: ['d/a', 'd/s/b'],
    stages: [
      { script: 'chmod 700 d', told: {} },
      { script: 'echo y > d/a', told: { 'd/a': true } },
    ],
  },
  {
    name: 'a file that is named like its directory',
    files: ['d/d', 'd/a'],
    stages: [
      { script: 'echo y > d/d', told: { 'd/d': true } },
      { script: 'rm d/d', told: { 'd/d': true } },
    ],
  },
  {
    name: 'many files at once',
    files: [],
    stages: [
      {
        script: 'i=0; while [ $i -lt 300 ]; do echo y > f$i; i=$((i+1)); done',
        told: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f${index}`, false])),
      },
      {
        script: 'rm f*',
        told: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f${index}`, true])),
      },
    ],
  },
]

describe.runIf(onLinux).each(contenders)(
  '%s, the exact barrier: what another process did just before it',
  (via) => {
    let base: string
    let started: Started
    const directoryOf = (operation: Operation): string =>
      join(base, 'root', `op${operations.indexOf(operation)}`)

    beforeAll(async () => {
      base = makeBase()
      for (const file of ['whole/a', 'whole/s/b']) write(join(base, 'elsewhere', file))
      for (const operation of operations)
        for (const file of ['neighbour', ...operation.files]) write(join(directoryOf(operation), file))
      started = start(join(base, 'root'), { via })
      await settle(started)
    })

    afterAll(async () => {
      await started.backend.close()
      remove(base)
    })

    /** All files that some operation touches: nothing else is ever told. */
    const touched = (): ReadonlySet<string> =>
      new Set(
        operations.flatMap((operation) =>
          operation.stages.flatMap(({ told, also = [] }) =>
            [...Object.keys(told), ...also].map((file) => join(directoryOf(operation), file)),
          ),
        ),
      )

    it.each(operations)('$name', async (operation) => {
      const { backend, sink } = started
      const directory = directoryOf(operation)
      for (const { script, told } of operation.stages) {
        sink.told.length = 0
        const before = snapshot(join(base, 'root'))
        outside(directory, `ELSEWHERE='${join(base, 'elsewhere')}'\n${script}`)
        expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
        // Taken here: the library says more of the same later.
        const said = [...sink.told]
        const after = snapshot(join(base, 'root'))
        const firstWords = Object.entries(told).map(([file, existed]) => {
          const first = said.find(({ path }) => path === join(directory, file))
          return [file, first === undefined ? 'not told' : existed === 'either' ? existed : first.existed]
        })
        expect(firstWords).toEqual(Object.entries(told))
        const further = said.filter(({ path }) => !touched().has(path))
        expect(further.filter(({ path }) => before.has(path) || after.has(path))).toEqual([])
        // A directory may be named, what an event leaves open, and what came and went while it was looked at,
        // if it cannot be taken for a loss: of the words on a path the first one counts.
        const firstOfFurther = new Map(further.toReversed().map(({ path, existed }) => [path, existed]))
        expect([...firstOfFurther].filter(([, existed]) => existed !== false)).toEqual([])
      }
      expect(sink.faults).toEqual([])
      expect(sink.uncoveredParts).toEqual([])
    })

    it('misses nothing when it is called where an agent runs: after the answer of a system call', async () => {
      const { backend, sink } = started
      const file = join(base, 'root', 'op0', 'f')
      for (let trial = 0; trial < 60; trial += 1) {
        await readFile(file)
        sink.told.length = 0
        outside(dirname(file), `echo ${trial} > f`)
        expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
        expect(sink.of(file)).not.toEqual([])
      }
    })

    it('serves several callers at once, each for what was done before its call', async () => {
      const { backend, sink } = started
      const directory = join(base, 'root', 'op0')
      sink.told.length = 0
      outside(directory, 'echo one > f')
      const first = backend.barrier(LIMIT_MS, never)
      outside(directory, 'mkdir -p late/deep; echo two > late/deep/g')
      const second = backend.barrier(LIMIT_MS, never)
      expect(await first).toBe('clean')
      expect(sink.of(join(directory, 'f'))).not.toEqual([])
      expect(await second).toBe('clean')
      expect(sink.of(join(directory, 'late', 'deep', 'g'))).not.toEqual([])
    })

    it('is not passed by a caller who gives up, and harms no other', async () => {
      const { backend, sink } = started
      expect(await backend.barrier(LIMIT_MS, AbortSignal.abort())).toBe('unclean')
      const directory = join(base, 'root', 'op0')
      sink.told.length = 0
      outside(directory, 'mkdir given-up; echo y > given-up/a')
      const aborting = new AbortController()
      const aborted = backend.barrier(LIMIT_MS, aborting.signal)
      const patient = backend.barrier(LIMIT_MS, never)
      aborting.abort()
      expect(await aborted).toBe('unclean')
      expect(await patient).toBe('clean')
      expect(sink.of(join(directory, 'given-up', 'a'))).not.toEqual([])
    })

    it('leaves no timer behind when it is passed', async () => {
      const timers = (): number =>
        process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
      const before = timers()
      for (let trial = 0; trial < 50; trial += 1) await started.backend.barrier(1e8, never)
      // Timers of others may come and go, but not by the dozen.
      expect(timers() - before).toBeLessThan(25)
    })

    it('is passed each time while nothing happens', async () => {
      const { backend } = started
      for (let trial = 0; trial < 20; trial += 1) expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    })
  },
)

const directoriesIn = (root: string): ReadonlySet<string> =>
  new Set(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  )

const place = fc
  .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 })
  .map((names) => names.join('/'))

/** Commands that may fail, since they are drawn blindly: what then is there counts. */
const command = fc.oneof(
  place.map((at) => `echo y > ${at}`),
  place.map((at) => `echo y >> ${at}`),
  place.map((at) => `: > ${at}`),
  place.map((at) => `echo y > ${at}.tmp && mv -T ${at}.tmp ${at}`),
  place.map((at) => `rm -rf ${at}`),
  place.map((at) => `mkdir -p ${at}`),
  place.map((at) => `rm -rf ${at}; mkdir -p ${at}; echo y > ${at}/a`),
  place.map((at) => `mkdir -p ${at}/a/b && echo y > ${at}/a/b/c`),
  fc.tuple(place, place).map(([from, to]) => `mv -T ${from} ${to}`),
  place.map((at) => `chmod 755 ${at}`),
)

const stages = fc.array(fc.array(command, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 })

describe.runIf(onLinux).each(contenders)(
  '%s, any commands in any order, with a barrier after each few',
  (via) => {
    it('are told by the paths of all files that then differ, with whether they were there before', async () => {
      const { root } = temporaryRoot(['a/a/a', 'a/b', 'b/a/c', 'c'])
      const journal = new Journal(100_000)
      const sink = new Recorder()
      sink.invalidate = (path, existed) => journal.note(path, existed)
      const { backend } = start(root, { via, options: { sink } })
      onTestFinished(() => backend.close())
      await settle({ backend, sink })
      let cursor = journal.head
      const check = async (commands: readonly string[]): Promise<void> => {
        const before = snapshot(root)
        const directories = directoriesIn(root)
        outside(root, commands.map((each) => `(${each}) 2>/dev/null || true`).join('\n'))
        expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
        const after = snapshot(root)
        const slice = journal.since(cursor)
        cursor = slice.head
        const told = new Map(slice.paths.map(({ path, existed }) => [path, existed]))
        const differing = [...new Set([...before.keys(), ...after.keys()])]
          .filter((path) => before.get(path) !== after.get(path))
          .toSorted()
        expect(differing.filter((path) => !told.has(path))).toEqual([])
        // Whether a file that was a directory was there before has no answer.
        const sure = differing.filter((path) => !directories.has(path))
        expect(sure.map((path) => [path, told.get(path)])).toEqual(
          sure.map((path) => [path, before.has(path)]),
        )
      }
      await fc.assert(
        fc.asyncProperty(stages, async (script) => {
          for (const commands of script) await check(commands)
        }),
        // Each run goes on with the tree of the last one, so that a smaller script would prove nothing.
        { numRuns: 40, endOnFailure: true },
      )
      expect(sink.faults).toEqual([])
    })
  },
)

describe.runIf(onLinux)('what the library says late', () => {
  it('does not make a file that came and went look like one that was there before', async () => {
    const { root } = temporaryRoot(['neighbour', 'witness'])
    const { backend, sink } = await startSettled(root)
    const fleeting = Array.from({ length: 200 }, (_, index) => join(root, `fleeting${index}`))
    outside(root, 'i=0; while [ $i -lt 200 ]; do : > fleeting$i; i=$((i+1)); done')
    // Once for the event, once more when the library has listed the directory.
    const listed = (): boolean => fleeting.every((path) => sink.of(path).length >= 2)
    await waitFor(listed, { timeoutMs: LIMIT_MS, describe: 'the new files' })
    outside(root, 'rm fleeting*')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    sink.told.length = 0
    outside(root, 'rm witness')
    const witness = (): readonly Told[] => sink.of(join(root, 'witness'))
    await waitFor(() => witness().length >= 2, {
      timeoutMs: LIMIT_MS,
      describe: 'the removal of the witness',
    })
    const misleading = sink.told.filter(({ path, existed }) => fleeting.includes(path) && existed !== false)
    expect(misleading.map(({ path }) => path).slice(0, 3)).toEqual([])
  })
})

describe.runIf(onLinux).each(contenders)('%s, starting', (via) => {
  it('tells of ready once and invalidates nothing', async () => {
    const { root } = temporaryRoot(['a', 'd/b', 'd/e/c', 'node_modules/x'])
    const { backend, sink } = await startSettled(root, { via })
    expect(sink.readies).toBe(1)
    expect(sink.told).toEqual([])
    expect(backend.watchedDirectories).toBe(3)
    expect(backend.name).toBe(via === 'chokidar' ? 'chokidar' : 'native')
  })

  it('passes no barrier before it is ready', async () => {
    const { root } = temporaryRoot(['a'])
    const { backend, sink } = start(root, { via })
    onTestFinished(() => backend.close())
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
    await settle({ backend, sink })
    expect(await backend.barrier(LIMIT_MS, never)).not.toBe('unclean')
  })

  it('makes its handles where it is told to', async () => {
    const { root } = temporaryRoot(['a'])
    let made = 0
    const { backend } = await startSettled(root, {
      via,
      options: {
        detached: (make) => {
          made += 1
          return make()
        },
      },
    })
    expect(made).toBeGreaterThan(0)
    const before = made
    outside(root, 'mkdir new')
    await backend.barrier(LIMIT_MS, never)
    expect(made).toBeGreaterThanOrEqual(before + (via === 'native' ? 0 : 1))
  })
})

describe.runIf(onLinux).each(contenders)('%s, ignored directories', (via) => {
  it('are silent, whatever happens to them or in them', async () => {
    const { root } = temporaryRoot(['a', 'node_modules/x', 'd/node_modules/y/z'])
    const { backend, sink } = await startSettled(root, { via })
    for (const script of [
      'echo y > node_modules/x; echo y > node_modules/new; rm d/node_modules/y/z',
      'mkdir node_modules/fresh; echo y > node_modules/fresh/a',
      'rm -r node_modules; mkdir node_modules; echo y > node_modules/x',
      'mkdir -p e/node_modules; echo y > e/node_modules/a; echo y > e/b',
      'mv e f',
    ]) {
      outside(root, script)
      expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    }
    expect(sink.told.map(({ path }) => path).filter((path) => path.includes('node_modules'))).toEqual([])
    // The silence is not that of a deaf watcher.
    expect(sink.of(join(root, 'e', 'b'))).not.toEqual([])
    expect(sink.of(join(root, 'f', 'b'))).not.toEqual([])
  })
})

describe.runIf(onLinux).each(contenders)('%s, the root', (via) => {
  it.each([
    ['removed', (root: string) => remove(root)],
    ['moved away', (root: string) => renameSync(root, `${root}-away`)],
    [
      'replaced',
      (root: string) => {
        renameSync(root, `${root}-away`)
        write(join(root, 'a'))
      },
    ],
  ])('when it is %s, no barrier is passed and the fault says so', async (_what, lose) => {
    const { root } = temporaryRoot(['a', 'd/b'])
    const { backend, sink } = await startSettled(root, { via })
    lose(root)
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
    expect(sink.faults.map(({ code }) => code)).toContain('root-lost')
  })

  it('when it is not there at the start, passes no barrier', async () => {
    const { root } = temporaryRoot([])
    remove(root)
    const { backend, sink } = start(root, { via })
    onTestFinished(() => backend.close())
    await waitFor(() => sink.calls > 0, { timeoutMs: LIMIT_MS, describe: 'any word of the backend' })
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
  })

  it('is watched again when it comes back, and nothing made meanwhile is missed', async () => {
    const { base, root } = temporaryRoot(['a', 'd/b'])
    const reported: WatchFault['code'][] = []
    const registry = new WatchRegistry({
      config: checkConfig({ watch: { restartDelayMs: 20, maxRestartDelayMs: 20 } }).watch,
      backend: factoryOf(via),
      detached: (make) => make(),
      report: (_root, { code }) => reported.push(code),
    })
    onTestFinished(() => registry.close())
    const reader = registry.join(root, true)
    const isLive = async (): Promise<unknown> =>
      waitFor(() => reader.coverage.kind === 'live', { timeoutMs: LIMIT_MS, describe: 'a live watcher' })
    await isLive()
    const away = join(base, 'away')
    renameSync(root, away)
    expect(await reader.barrier(LIMIT_MS, never)).toBe('unclean')
    expect(reader.coverage).toMatchObject({ kind: 'degraded', fault: { code: 'root-lost' } })
    write(join(away, 'd', 'b'), 'meanwhile\n')
    renameSync(away, root)
    await isLive()
    expect(reader.read().everything).toBe(true)
    outside(root, 'echo y > d/b')
    expect(await reader.barrier(LIMIT_MS, never)).toBe('clean')
    expect(reader.read().paths.map(({ path }) => path)).toContain(join(root, 'd', 'b'))
    expect(reported).toEqual(['root-lost'])
  })
})

describe.runIf(onLinux).each(contenders)('%s, closing', (via) => {
  it('leaves no handle and no file', async () => {
    const { base, root } = temporaryRoot(['a', 'd/b', 'd/e/c'])
    const temporary = join(base, 'tmp')
    mkdirSync(temporary)
    vi.stubEnv('TMPDIR', temporary)
    onTestFinished(() => {
      vi.unstubAllEnvs()
    })
    const before = kernelWatches()
    const started = start(root, { via })
    await settle(started)
    // Directories that get a handle of their own are closed too.
    outside(root, 'mkdir -p new/deep; echo y > new/deep/a; mv d moved')
    expect(await started.backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(kernelWatches()).toBeGreaterThan(before)
    expect(readdirSync(temporary)).toHaveLength(1)
    await started.backend.close()
    expect(kernelWatches()).toBe(before)
    expect(readdirSync(temporary)).toEqual([])
  })

  it('is not needed for directories that are gone: their handles are closed by then', async () => {
    const { base, root } = temporaryRoot(['a'])
    const { backend } = await startSettled(root, { via })
    const before = kernelWatches()
    outside(root, 'for d in a1 a2 a3 a4 a5 a6 a7 a8; do mkdir -p $d/deep; echo y > $d/deep/f; done')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(kernelWatches()).toBeGreaterThan(before)
    // What is only moved away still exists, so that the kernel forgets nothing by itself.
    outside(root, `rm -r a1 a2 a3 a4; mkdir '${base}/away'; mv a5 a6 a7 a8 '${base}/away'`)
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    await waitFor(() => kernelWatches() === before, {
      timeoutMs: LIMIT_MS,
      describe: () => `${before} watches, not ${kernelWatches()}`,
    })
  })

  it('ends every word to the sink', async () => {
    const { root } = temporaryRoot(['a', 'd/b'])
    const closed = await startSettled(root, { via })
    const witness = await startSettled(root, { via })
    // Begun before, so that events and listings are under way.
    outside(root, 'echo y > a; mkdir -p new/deep; echo y > new/deep/a; rm -r d')
    await closed.backend.close()
    const calls = closed.sink.calls
    outside(root, 'echo z > a; echo z > new/deep/a')
    expect(await witness.backend.barrier(LIMIT_MS, never)).toBe('clean')
    const told = (): boolean => witness.sink.of(join(root, 'd', 'b')).length >= 1
    await waitFor(told, { timeoutMs: LIMIT_MS, describe: 'the word on d/b' })
    outside(root, 'echo once more > a')
    expect(await witness.backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(closed.sink.calls).toBe(calls)
  })

  it('ends a barrier that waits, as not passed, and every later one', async () => {
    const { root } = temporaryRoot(['a'])
    const { backend } = await startSettled(root, { via })
    outside(root, 'mkdir -p new/deep; echo y > new/deep/a')
    const waiting = backend.barrier(LIMIT_MS, never)
    const closing = backend.close()
    expect(await waiting).toBe('unclean')
    await closing
    expect(await backend.barrier(LIMIT_MS, never)).toBe('unclean')
  })

  it('can come before the first scan is over, and twice', async () => {
    const { root } = temporaryRoot(['a', 'd/b', 'd/e/c'])
    const before = kernelWatches()
    const { backend, sink } = start(root, { via })
    await backend.close()
    await backend.close()
    expect(kernelWatches()).toBe(before)
    expect(sink.calls).toBe(0)
  })
})

describe('the barrier where events have no order', () => {
  const kinds = [
    ['polling', { options: { polling: true } }],
    ['chokidar', { kind: 'debounce' }],
  ] as const satisfies readonly (readonly [string, StartOptions])[]

  it('is what polling gets', () => {
    const options = (polling: boolean): BackendOptions => ({
      root: '/',
      sink: new Recorder(),
      ignored: () => true,
      maxDirectories: 1,
      first: () => [],
      debounceMs: 1,
      polling,
      pollIntervalMs: 1,
      detached: (make) => make(),
    })
    expect(defaultBarrierKind(options(true))).toBe('debounce')
    expect(defaultBarrierKind(options(false))).toBe(onLinux ? 'cookie' : 'debounce')
  })

  it.each(kinds)('with %s says "best-effort" and sees changes', async (name, options) => {
    const { root } = temporaryRoot(['a', 'd/b'])
    const { backend, sink } = await startSettled(root, options)
    expect(backend.name).toBe(name)
    writeFileSync(join(root, 'a'), 'another size\n')
    write(join(root, 'new', 'deep', 'c'))
    remove(join(root, 'd', 'b'))
    const expected = ['a', 'd/b', 'new/deep/c'].map((file) => join(root, file))
    await waitFor(
      async () => {
        expect(await backend.barrier(LIMIT_MS, never)).toBe('best-effort')
        return expected.every((path) => sink.of(path).length > 0)
      },
      { timeoutMs: LIMIT_MS, describe: () => `${expected.join(', ')}, not ${JSON.stringify(sink.told)}` },
    )
    expect(expected.map((path) => sink.of(path)[0]?.existed)).toEqual([true, true, false])
  })

  it.each(kinds)(
    'with %s ends at once for a caller who gives up, and when it is closed',
    async (_name, options) => {
      const { root } = temporaryRoot(['a'])
      // Silence that never comes: only the caller, or the end, can end the wait.
      const patient = {
        ...options,
        options: { ...('options' in options ? options.options : {}), debounceMs: 1e8 },
      }
      const { backend, sink } = start(root, patient)
      onTestFinished(() => backend.close())
      await waitFor(() => sink.readies > 0, { timeoutMs: LIMIT_MS, describe: 'the first scan' })
      const aborting = new AbortController()
      const waiting = backend.barrier(1e8, aborting.signal)
      await turn()
      aborting.abort()
      const bounded = { timeoutMs: LIMIT_MS, describe: 'the end of the wait' }
      expect(await within(waiting, bounded)).toBe('unclean')
      const last = backend.barrier(1e8, never)
      await within(backend.close(), bounded)
      expect(await within(last, bounded)).toBe('unclean')
    },
  )

  it('brings in a directory that git ignores no longer, without what is old in it', async () => {
    const { root } = temporaryRoot(['a', 'build/deep/old', 'build/x'])
    write(join(root, '.gitignore'), 'build/\n')
    const { backend, sink } = await startSettled(root, {
      options: { polling: true },
      rules: { respectGitignore: true },
    })
    expect(backend.watchedDirectories).toBe(1)
    write(join(root, '.gitignore'), '# nothing\n')
    const bounded = { timeoutMs: LIMIT_MS, describe: () => JSON.stringify(sink.told) }
    await waitFor(async () => {
      await backend.barrier(LIMIT_MS, never)
      return backend.watchedDirectories === 3
    }, bounded)
    write(join(root, 'build', 'deep', 'new'))
    await waitFor(async () => {
      await backend.barrier(LIMIT_MS, never)
      return sink.of(join(root, 'build/deep/new')).length > 0
    }, bounded)
    expect([...sink.of(join(root, 'build/deep/old')), ...sink.of(join(root, 'build/x'))]).toEqual([])
  })

  it('ends at the limit where it is never quiet', async () => {
    const { root } = temporaryRoot(['a'])
    const { backend, sink } = start(root, { kind: 'debounce', options: { debounceMs: 1e8 } })
    onTestFinished(() => backend.close())
    await waitFor(() => sink.readies > 0, { timeoutMs: LIMIT_MS, describe: 'the first scan' })
    const bounded = { timeoutMs: LIMIT_MS, describe: 'the end of the wait' }
    expect(await within(backend.barrier(20, never), bounded)).toMatch(/^(best-effort|unclean)$/)
  })
})
