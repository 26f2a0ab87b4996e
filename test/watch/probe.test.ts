import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { probe, type ProbeSystem } from '../../src/watch/probe.ts'

const never = new AbortController().signal
const LIMIT_MS = 10_000

let root: string

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-probe-')))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
})

/** Takes every watch and never says anything. */
const deaf = (): ProbeSystem & { closed: number } => {
  const system = {
    closed: 0,
    watch: () => ({
      close: () => {
        system.closed += 1
      },
    }),
  }
  return system
}

describe('the probe', () => {
  it.each(['.git', '.git/info'])('hears its own file in %s, and leaves nothing behind', async (place) => {
    mkdirSync(join(root, place), { recursive: true })
    expect(await probe(root, LIMIT_MS, never)).toEqual({ kind: 'heard' })
    expect(readdirSync(join(root, place))).toEqual([])
  })

  it('is silent where no event comes, and releases its handle', async () => {
    mkdirSync(join(root, '.git'))
    const system = deaf()
    expect(await probe(root, 1, never, system)).toEqual({ kind: 'silent' })
    expect(system.closed).toBe(1)
  })

  it('takes a blocked loop for no silence', async () => {
    mkdirSync(join(root, '.git'))
    const result = probe(root, 1, never)
    const until = performance.now() + 50
    while (performance.now() < until);
    expect(await result).toEqual({ kind: 'heard' })
  })

  it('is skipped at once without a repository directory', () => {
    expect(probe(root, 1, never)).toMatchObject({ kind: 'skipped' })
    // That of a worktree is a file.
    writeFileSync(join(root, '.git'), 'gitdir: elsewhere\n')
    expect(probe(root, 1, never)).toMatchObject({ kind: 'skipped' })
  })

  it('is skipped where no handle is to be had', () => {
    mkdirSync(join(root, '.git'))
    const system: ProbeSystem = {
      watch: () => {
        throw new Error('no more handles')
      },
    }
    expect(probe(root, 1, never, system)).toEqual({ kind: 'skipped', reason: 'no more handles' })
    expect(readdirSync(join(root, '.git'))).toEqual([])
  })

  it('ends when the watcher is closed', async () => {
    mkdirSync(join(root, '.git'))
    const ending = new AbortController()
    const result = probe(root, 3_600_000, ending.signal, deaf())
    ending.abort()
    expect(await result).toMatchObject({ kind: 'skipped' })
  })
})
