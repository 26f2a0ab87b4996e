import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { checkConfig } from '../../src/config.ts'
import { isWithin } from '../../src/watch/root.ts'
import { WatchRegistry } from '../../src/watch/registry.ts'
import { waitFor } from '../support/wait.ts'
import {
  contenders,
  factoryOf,
  kernelWatches,
  LIMIT_MS,
  never,
  outside,
  type Started,
  startSettled,
  temporaryRoot,
  write,
} from '../support/watching.ts'

const onLinux = process.platform === 'linux'
const git = { respectGitignore: true }

describe.runIf(onLinux).each(contenders)('%s, what git ignores', (via) => {
  it('gets no watch: the watched directories are exactly those that are not ignored', async () => {
    const { root } = temporaryRoot([
      'a',
      'src/a/b',
      'build/deep/x',
      'build/keep/y',
      'src/out/z',
      'other/out/z',
      'node_modules/p/q/r',
      'src/node_modules/s/t',
      'src/build/u',
    ])
    write(join(root, '.gitignore'), '/build/\n!/build/keep/\n')
    write(join(root, 'src', '.gitignore'), 'out/\nbuild\n!build\n')
    const before = kernelWatches()
    const { backend, sink } = await startSettled(root, { via, rules: git })
    const watched = ['.', 'src', 'src/a', 'src/build', 'other', 'other/out']
    expect(backend.watchedDirectories).toBe(watched.length)
    // One more for the cookies of the barrier.
    expect(kernelWatches() - before).toBe(watched.length + 1)
    outside(root, 'echo y > build/deep/x; echo y > build/keep/new; echo y > src/out/z; echo y > other/out/z')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect([...new Set(sink.told.map(({ path }) => path))]).toEqual([join(root, 'other/out/z')])
  })

  it('is watched when git does not count', async () => {
    const { root } = temporaryRoot(['a', 'build/deep/x'])
    write(join(root, '.gitignore'), 'build/\n')
    const { backend } = await startSettled(root, { via, rules: { respectGitignore: false } })
    expect(backend.watchedDirectories).toBe(3)
  })

  it('is still told where it is a file in a watched directory', async () => {
    const { root } = temporaryRoot(['a.log'])
    write(join(root, '.gitignore'), '*.log\n')
    const { backend, sink } = await startSettled(root, { via, rules: git })
    outside(root, 'echo y > a.log')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'a.log'))).not.toEqual([])
  })

  it('gets no watch either when it is made later', async () => {
    const { root } = temporaryRoot(['a'])
    write(join(root, '.gitignore'), 'build/\n')
    const { backend } = await startSettled(root, { via, rules: git })
    const before = kernelWatches()
    outside(root, 'mkdir -p build/deep; echo y > build/deep/x')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(kernelWatches()).toBe(before)
    expect(backend.watchedDirectories).toBe(1)
  })
})

describe.runIf(onLinux).each(contenders)('%s, rules that change while it watches', (via) => {
  it('take the watches from what is ignored from now on', async () => {
    const { root } = temporaryRoot(['a', 'build/deep/x', 'src/b'])
    const { backend, sink } = await startSettled(root, { via, rules: git })
    expect(backend.watchedDirectories).toBe(4)
    outside(root, "echo 'build/' > .gitignore")
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    await waitFor(
      async () => {
        await backend.barrier(LIMIT_MS, never)
        return backend.watchedDirectories === 2
      },
      { timeoutMs: LIMIT_MS, describe: () => `2 watches, not ${backend.watchedDirectories}` },
    )
    sink.told.length = 0
    outside(root, 'echo y > build/deep/x; echo y > src/b')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'build/deep/x'))).toEqual([])
    expect(sink.of(join(root, 'src/b'))).not.toEqual([])
  })

  it('give watches to what is ignored no longer, and tell what changed there at the same time', async () => {
    const { root } = temporaryRoot(['a', 'build/deep/x', 'build/deep/old'])
    write(join(root, '.gitignore'), 'build/\n')
    const { backend, sink } = await startSettled(root, { via, rules: git })
    expect(backend.watchedDirectories).toBe(1)
    outside(root, ': > .gitignore; echo y > build/deep/x; echo y > build/new')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(backend.watchedDirectories).toBe(3)
    expect(sink.of(join(root, 'build/deep/x'))).not.toEqual([])
    expect(sink.of(join(root, 'build/new'))).not.toEqual([])
    expect(sink.of(join(root, 'build/deep/old'))).toEqual([])
    sink.told.length = 0
    outside(root, 'echo z > build/deep/old; mkdir build/more; echo z > build/more/x')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(sink.of(join(root, 'build/deep/old'))[0]).toMatchObject({ existed: true })
    expect(sink.of(join(root, 'build/more/x'))[0]).toMatchObject({ existed: false })
  })

  it('may come with a repository that is made or removed', async () => {
    const { root } = temporaryRoot(['.git/HEAD', 'lib/x', 'lib/deep/y'])
    const registry = new WatchRegistry({
      config: checkConfig({}).watch,
      backend: factoryOf(via),
      detached: (make) => make(),
      report: (_root, fault) => {
        throw new Error(fault.reason)
      },
    })
    onTestFinished(() => registry.close())
    const reader = registry.join(root, true)
    await waitFor(() => reader.coverage.kind === 'live', { timeoutMs: LIMIT_MS, describe: 'a live watcher' })
    const silent = () => ['lib/x', 'lib/deep/y'].map((path) => reader.ignores(join(root, path), false))
    expect(silent()).toEqual([false, false])
    outside(root, 'mkdir lib/.git; echo "ref: refs/heads/main" > lib/.git/HEAD')
    expect(await reader.barrier(LIMIT_MS, never)).toBe('clean')
    expect(silent()).toEqual([true, true])
    outside(root, 'rm -r lib/.git')
    expect(await reader.barrier(LIMIT_MS, never)).toBe('clean')
    expect(silent()).toEqual([false, false])
    expect(reader.read().paths.filter(({ path }) => path.includes('.git'))).toEqual([])
  })
})

describe.runIf(onLinux).each(contenders)('%s, directories that come first', (via) => {
  it('are watched where everything around them is ignored, as long as they come first', async () => {
    const { root } = temporaryRoot([
      'a',
      'node_modules/p/x',
      'node_modules/p/q/y',
      'node_modules/r/z',
      'build/b/c',
    ])
    write(join(root, '.gitignore'), 'build/\n')
    let first = [join(root, 'node_modules/p'), join(root, 'build/b')]
    const { backend, sink } = await startSettled(root, { via, rules: git, options: { first: () => first } })
    expect(backend.watchedDirectories).toBe(5)
    outside(
      root,
      'echo y > node_modules/p/x; echo y > node_modules/p/q/y; echo y > node_modules/r/z; echo y > build/b/c',
    )
    outside(root, 'echo y > node_modules/p/new')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect([...new Set(sink.told.map(({ path }) => path))].toSorted()).toEqual(
      ['build/b/c', 'node_modules/p/new', 'node_modules/p/x'].map((path) => join(root, path)),
    )
    first = [join(root, 'node_modules/r')]
    backend.refresh()
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(backend.watchedDirectories).toBe(3)
    sink.told.length = 0
    outside(root, 'echo z > node_modules/p/x; echo z > node_modules/r/z; echo z > build/b/c')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect([...new Set(sink.told.map(({ path }) => path))]).toEqual([join(root, 'node_modules/r/z')])
  })

  it('are watched when there are too many directories, and the rest is named', async () => {
    const directories = Array.from({ length: 30 }, (_, index) => `d${index}/sub`)
    const { root } = temporaryRoot(directories.map((directory) => `${directory}/f`))
    const first = [join(root, 'd29/sub'), join(root, 'd17/sub')]
    const { backend, sink } = await startSettled(root, {
      via,
      options: { first: () => first, maxDirectories: 10 },
    })
    expect(backend.watchedDirectories).toBeGreaterThanOrEqual(10)
    expect(backend.watchedDirectories).toBeLessThanOrEqual(14)
    const uncovered = sink.uncoveredParts.map(({ directory }) => directory)
    expect(uncovered).not.toContain(undefined)
    expect(new Set(sink.uncoveredParts.map(({ fault }) => fault.code))).toEqual(new Set(['watch-limit']))
    const files = directories.map((directory) => join(root, directory, 'f'))
    const isNamed = (path: string) => uncovered.some((part) => part !== undefined && isWithin(part, path))
    outside(root, 'for d in d*; do echo y > $d/sub/f; done')
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    const told = new Set(sink.told.map(({ path }) => path))
    expect(files.filter((path) => !told.has(path) && !isNamed(path))).toEqual([])
    for (const directory of first) expect(told).toContain(join(directory, 'f'))
    expect(files.filter((path) => !told.has(path)).length).toBeGreaterThan(10)
  })
})

describe.runIf(onLinux).each(contenders)('%s, links', (via) => {
  it('are told as files and never followed, in circles or out of the tree', async () => {
    const { base, root } = temporaryRoot(['a', 'd/b'])
    mkdirSync(join(base, 'elsewhere', 'deep'), { recursive: true })
    symlinkSync('..', join(root, 'd', 'up'))
    symlinkSync(join(base, 'elsewhere'), join(root, 'd', 'out'))
    const { backend, sink } = await startSettled(root, { via })
    expect(backend.watchedDirectories).toBe(2)
    outside(
      root,
      `echo y > '${base}/elsewhere/deep/x'; ln -s . d/self; rm d/out; ln -s ../../elsewhere d/out`,
    )
    expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
    expect(backend.watchedDirectories).toBe(2)
    expect([...new Set(sink.told.map(({ path }) => path))].toSorted()).toEqual(
      ['d/out', 'd/self'].map((path) => join(root, path)),
    )
  })
})

/**
 * A barrier after which nothing may be missing.
 * @returns `told` when every path was named; `everything` when so much came at once that a loss had to be
 *   suspected, and the whole root was put in doubt; `open` when neither is so.
 */
const honestBarrier = async ({ backend, sink }: Started): Promise<'told' | 'everything' | 'open'> => {
  const alls = sink.alls
  let outcome = await backend.barrier(LIMIT_MS, never)
  if (outcome === 'clean' && sink.alls === alls) return 'told'
  if (outcome !== 'clean') outcome = await backend.barrier(LIMIT_MS, never)
  return outcome === 'clean' && sink.alls > alls ? 'everything' : 'open'
}

const spread = (count: number) => Array.from({ length: count }, (_, index) => `d${index % 50}/f${index}`)

describe.runIf(onLinux).each(['native', 'native on this thread'] as const)(
  '%s, many changes at once',
  (via) => {
    it('misses none of 2,000 files that git checks out, each time', async () => {
      const files = spread(2_000)
      const { root } = temporaryRoot(files)
      const run = 'git -c user.name=t -c user.email=t@example.invalid -c init.defaultBranch=one'
      outside(
        root,
        `exec > /dev/null; ${run} init -q; git add -A; ${run} commit -qm one; git checkout -qb two; for f in d*/f*; do echo two > $f; done; git rm -qf d0/f0; mkdir n; echo n > n/n; git add -A; ${run} commit -qm two`,
      )
      const { backend, sink } = await startSettled(root, { via, rules: git })
      const changed = [...files, 'n/n'].map((file) => join(root, file))
      for (let round = 0; round < 3; round += 1) {
        sink.told.length = 0
        outside(root, `git checkout -q ${round % 2 === 0 ? 'one' : 'two'}`)
        const outcome = await honestBarrier({ backend, sink })
        const told = new Set(sink.told.map(({ path }) => path))
        const missing = outcome === 'everything' ? [] : changed.filter((path) => !told.has(path))
        expect([outcome === 'open', missing]).toEqual([false, []])
      }
    }, 90_000)

    it('misses none of 12,000 files that are made while the loop of this thread stands still', async () => {
      const { root } = temporaryRoot(['d/neighbour'])
      const { backend, sink } = await startSettled(root, { via })
      outside(root, "seq 12000 | sed 's|^|d/f|' | xargs touch; mkdir -p d/late/deep; echo y > d/late/deep/x")
      const missing = () => {
        const told = new Set(sink.told.map(({ path }) => path))
        const made = readdirSync(join(root, 'd')).filter((name) => name.startsWith('f'))
        expect(made).toHaveLength(12_000)
        return [...made.map((name) => join(root, 'd', name)), join(root, 'd/late/deep/x')].filter(
          (path) => !told.has(path),
        )
      }
      const outcome = await honestBarrier({ backend, sink })
      expect([outcome === 'open', outcome === 'everything' ? [] : missing()]).toEqual([false, []])
      outside(root, 'echo z > d/late/deep/x')
      sink.told.length = 0
      expect(await backend.barrier(LIMIT_MS, never)).toBe('clean')
      expect(sink.of(join(root, 'd/late/deep/x'))).not.toEqual([])
    })
  },
)
