import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { Comparison, type ComparisonOptions } from '../../src/watch/comparison.ts'
import { type Disk, diskFor } from '../../src/watch/disk.ts'
import { gate } from '../support/wait.ts'

let root: string

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-comparison-')))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
})

const write = (path: string, text = 'x\n'): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

interface Scene {
  readonly comparison: Comparison
  readonly gone: readonly string[]
  /** What was told since the last call, relative to the root, as `+new`, `~changed` or removed. */
  readonly told: () => readonly string[]
}

const scene = (options: Partial<ComparisonOptions> = {}): Scene => {
  const told: string[] = []
  const gone: string[] = []
  const comparison = new Comparison({
    disk: diskFor(root),
    silent: (path) => basename(path) === 'node_modules',
    onChange: (path, existed) => told.push(`${existed ? '~' : '+'}${relative(root, path)}`),
    onGone: (part) => gone.push(relative(root, part)),
    maxFiles: 1_000,
    sliceMs: 8,
    ...options,
  })
  onTestFinished(() => comparison.close())
  return { comparison, gone, told: () => told.splice(0).toSorted() }
}

describe('a comparison', () => {
  it('tells nothing at the first look, and then what is new, changed and gone', async () => {
    for (const path of ['part/a', 'part/b', 'part/deep/er/c', 'part/node_modules/x', 'beside/d']) write(path)
    const { comparison, told } = scene()
    comparison.setParts([join(root, 'part')], undefined)
    expect(await comparison.run(true)).toBe(true)
    expect(told()).toEqual([])
    expect(comparison.size).toBe(3)

    write('part/a', 'other, and longer\n')
    rmSync(join(root, 'part/b'))
    write('part/new/e')
    write('part/node_modules/x', 'silent\n')
    write('beside/d', 'not compared\n')
    expect(await comparison.run(true)).toBe(true)
    expect(told()).toEqual(['+part/new/e', '~part/a', '~part/b'])
    await comparison.run(true)
    expect(told()).toEqual([])
  })

  it('notices a file that was replaced by one of the same size, and a directory that became a file', async () => {
    for (const path of ['part/a', 'part/d/b']) write(path)
    const { comparison, told } = scene()
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    write('staged', 'y\n')
    renameSync(join(root, 'staged'), join(root, 'part/a'))
    rmSync(join(root, 'part/d'), { recursive: true })
    write('part/d')
    await comparison.run(true)
    expect(told()).toEqual(['+part/d', '~part/a', '~part/d/b'])
  })

  it('tells at the first look what is newer than the moment from which nobody watched', async () => {
    const { comparison, told } = scene()
    write('part/old')
    comparison.setParts([join(root, 'part')], Date.now() + 60_000)
    await comparison.run(true)
    expect(told()).toEqual([])
    write('other/young')
    comparison.setParts([join(root, 'part'), join(root, 'other')], Date.now() - 60_000)
    await comparison.run(true)
    expect(told()).toEqual(['+other/young'])
  })

  it('tells a part that vanished file by file, and that it is gone', async () => {
    write('part/a')
    const { comparison, told, gone } = scene()
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    rmSync(join(root, 'part'), { recursive: true })
    await comparison.run(true)
    expect(told()).toEqual(['~part/a'])
    expect(gone).toEqual(['part'])
  })

  it('follows no link: a loop has an end, and what lies outside is not looked at', async () => {
    write('part/a')
    write('outside/b')
    symlinkSync('..', join(root, 'part/loop'))
    symlinkSync(join(root, 'outside'), join(root, 'part/out'))
    const { comparison, told } = scene()
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    expect(comparison.size).toBe(3)
    write('outside/b', 'changed and longer\n')
    await comparison.run(true)
    expect(told()).toEqual([])
  })

  it('has a bound on files, says so, and calls nothing gone that it did not reach', async () => {
    for (let index = 0; index < 20; index += 1) write(`part/f${index}`)
    const { comparison, told } = scene({ maxFiles: 10 })
    comparison.setParts([join(root, 'part')], undefined)
    expect(await comparison.run(true)).toBe(false)
    expect(comparison.complete).toBe(false)
    await comparison.run(true)
    expect(told()).toEqual([])
  })

  it('calls nothing gone of a directory that cannot be listed at the moment', async () => {
    write('part/d/a')
    const real = diskFor(root)
    let broken = false
    const disk: Disk = {
      entry: (path) => real.entry(path),
      list: (directory) =>
        broken && basename(directory) === 'd' ? Promise.reject(new Error('no')) : real.list(directory),
    }
    const { comparison, told } = scene({ disk })
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    broken = true
    write('part/d/a', 'changed meanwhile\n')
    await comparison.run(true)
    expect(told()).toEqual([])
    broken = false
    await comparison.run(true)
    expect(told()).toEqual(['~part/d/a'])
  })

  it('begins after the call: whoever asks during a look gets one that sees what happened before', async () => {
    write('part/a')
    const real = diskFor(root)
    const hold = gate()
    let holding = false
    const disk: Disk = {
      entry: async (path) => {
        const info = await real.entry(path)
        if (holding) await hold.passed
        return info
      },
      list: (directory) => real.list(directory),
    }
    const { comparison, told } = scene({ disk })
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    holding = true
    const first = comparison.run(true)
    // The running look has seen the file already.
    await new Promise((resolve) => setImmediate(resolve))
    write('part/a', 'changed after that\n')
    const [second, third] = [comparison.run(true), comparison.run(true)]
    expect(second).toBe(third)
    hold.open()
    await first
    expect(told()).toEqual([])
    await second
    expect(told()).toEqual(['~part/a'])
  })

  it('that is not to be thorough does not follow at once on a long one', async () => {
    write('part/a')
    const { comparison } = scene()
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    expect(await comparison.run(false)).toBe(false)
  })

  it('ends when it is closed, and tells nothing more', async () => {
    for (let index = 0; index < 50; index += 1) write(`part/d${index}/f`)
    const { comparison, told } = scene({ sliceMs: 0 })
    comparison.setParts([join(root, 'part')], undefined)
    await comparison.run(true)
    for (let index = 0; index < 50; index += 1) write(`part/d${index}/f`, 'changed\n')
    const look = comparison.run(true)
    await comparison.close()
    expect(await look).toBe(false)
    expect(told()).toEqual([])
  })
})
