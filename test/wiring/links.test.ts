import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { boot, edit, quiet, read, textOf, write } from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'

describe('a cwd that is a link', () => {
  it('is followed, and its files are told by the names that the session uses', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n', 'lib/b.ts': 'one\n' } })
    const link = join(harness.base, 'link')
    symlinkSync(harness.workspace, link)
    const agent = await harness.agent('main', { cwd: link })
    await agent.prompt()
    await agent.call(read('a.ts'))
    await harness.live()
    await agent.call(edit('a.ts', 'one', 'two'))
    expect(agent.told).toEqual([])

    harness.write('a.ts', 'three\n')
    harness.write('lib/b.ts', 'two\n')
    harness.write('new.ts', 'new\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "a.ts"')
    expect(textOf(agent.told)).toContain('- modified "lib/b.ts"')
    expect(textOf(agent.told)).toContain('- created "new.ts"')
    expect(textOf(agent.told)).not.toContain(harness.base)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('shares the watcher and the words with a session in the directory itself', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' } })
    const link = join(harness.base, 'link')
    symlinkSync(harness.workspace, link)
    const linked = await harness.agent('linked', { cwd: link })
    const direct = await harness.agent('direct')
    await linked.prompt()
    await direct.prompt()
    await linked.call(read('a.ts'))
    await direct.call(read('a.ts'))
    await direct.call(edit('a.ts', 'one', 'two'))
    await linked.call(quiet)

    expect(textOf(linked.told)).toContain('Used by this session:\n- modified "a.ts"')
    await linked.end()
    await direct.end()
    expect(direct.notices).toEqual([])
  })
})

describe('a used file behind a link', () => {
  const linked = async (config: Record<string, unknown> = {}) => {
    const harness = await boot({ files: { 'v1/x.ts': 'one\n', 'v2/x.ts': 'two\n' }, config })
    symlinkSync('v1', harness.path('current'))
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('current/x.ts'))
    return { harness, agent }
  }

  it('is told by the name that the session used, when the file itself changes', async () => {
    const { harness, agent } = await linked()
    harness.write('v1/x.ts', 'changed\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "current/x.ts"')
    await agent.end()
  })

  it.each([['chokidar'], ['off']])(
    'is told once when the link leads elsewhere (backend %s)',
    async (backend) => {
      const { harness, agent } = await linked({ watch: { backend } })
      rmSync(harness.path('current'))
      symlinkSync('v2', harness.path('current'))
      await agent.call(quiet)
      expect(textOf(agent.told)).toContain('- modified "current/x.ts"')

      await agent.call(quiet)
      await agent.end()
      await agent.turn(quiet)
      expect(agent.notices.filter(({ text }) => text.includes('current/x.ts'))).toHaveLength(1)
    },
  )

  it('is known by what it led to last: read again after the link was moved, nothing is told', async () => {
    const { harness, agent } = await linked()
    rmSync(harness.path('current'))
    symlinkSync('v2', harness.path('current'))
    await agent.call(read('current/x.ts'))
    expect(agent.told).toEqual([])

    harness.write('v2/x.ts', 'changed\n')
    await agent.call(quiet)
    expect(textOf(agent.told).match(/"current\/x\.ts"/g)).toHaveLength(1)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('is told by the name of the link also beside the cwd, since the file behind it is as it was', async () => {
    const harness = await boot({ files: { 'v1/x.ts': 'one\n', 'v2/x.ts': 'two\n', 'app/m.ts': 'm\n' } })
    symlinkSync('v1', harness.path('current'))
    const agent = await harness.agent('main', { cwd: 'app' })
    await agent.prompt()
    await agent.call(read('../current/x.ts'))
    rmSync(harness.path('current'))
    symlinkSync('v2', harness.path('current'))
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- modified "../current/x.ts"')
    expect(textOf(agent.told)).not.toContain('v1/x.ts')
    await agent.end()
  })

  it('is silent when the session writes through the link', async () => {
    const { harness, agent } = await linked()
    await harness.live()
    await agent.call(edit('current/x.ts', 'one', 'uno'))
    await agent.call(read('current/x.ts'))
    await agent.end()

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'v1/x.ts', 'current/x.ts')
  })

  it('is told when the file that a link names is replaced', async () => {
    const harness = await boot({ files: { 'real.ts': 'one\n' } })
    symlinkSync('real.ts', harness.path('alias.ts'))
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('alias.ts'))
    await harness.live()
    harness.save('real.ts', 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "alias.ts"')
    expect(textOf(agent.told).match(/- modified/g)).toHaveLength(1)
    await agent.end()
  })

  it('is deleted when the link is removed', async () => {
    const { harness, agent } = await linked()
    rmSync(harness.path('current'))
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- deleted "current/x.ts"')
    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })
})

describe('a used file outside the workspace', () => {
  it('is told by its absolute path', async () => {
    const harness = await boot()
    const outside = join(harness.base, 'outside.md')
    writeFileSync(outside, 'one\n')
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read(outside))
    await harness.live()
    writeFileSync(outside, 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain(`Used by this session:\n- modified "${outside}"`)
    await agent.end()
  })

  it('is told at every boundary even when many files are used', async () => {
    const names = Array.from({ length: 10 }, (_, n) => `f${n}.ts`)
    const harness = await boot({
      files: Object.fromEntries(names.map((name) => [name, 'x\n'])),
      config: { watch: { sweepBudget: 0 } },
    })
    const outside = join(harness.base, 'outside.md')
    writeFileSync(outside, 'one\n')
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read(outside), ...names.map((name) => read(name)))
    await harness.live()
    await agent.call(quiet)
    writeFileSync(outside, 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain(`- modified "${outside}"`)
    await agent.end()
  })
})

describe('a cwd below the root', () => {
  const nested = async () => {
    const harness = await boot({ files: { 'packages/app/a.ts': 'one\n', 'packages/lib/l.ts': 'one\n' } })
    const agent = await harness.agent('main', { cwd: 'packages/app' })
    await agent.prompt()
    await agent.call(read('../lib/l.ts'))
    await harness.live()
    return { harness, agent }
  }

  it('is told of used and other files of the root, relative to the cwd', async () => {
    const { harness, agent } = await nested()
    harness.write('packages/lib/l.ts', 'two\n')
    harness.write('packages/lib/other.ts', 'new\n')
    harness.write('README.md', 'new\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "../lib/l.ts"')
    expect(textOf(agent.told)).toContain('- created "../lib/other.ts"')
    expect(textOf(agent.told)).toContain('- created "../../README.md"')
    expect(textOf(agent.told)).not.toContain(harness.base)
    await agent.end()
  })

  it('is silent about its own writes beside the cwd', async () => {
    const { harness, agent } = await nested()
    await agent.call(edit('../lib/l.ts', 'one', 'two'), write('../new/n.ts', 'new\n'))
    await agent.call(quiet)
    await agent.end()

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'packages/new/n.ts', '../new/n.ts')
  })

  it('of a workspace without a root marker is the root itself', async () => {
    const harness = await boot({
      git: false,
      files: { 'packages/app/a.ts': 'one\n', 'packages/lib/l.ts': 'one\n' },
    })
    const agent = await harness.agent('main', { cwd: 'packages/app' })
    await agent.prompt()
    await agent.call(read('../lib/l.ts'))
    await harness.live()
    harness.write('packages/lib/other.ts', 'new\n')
    harness.write('packages/app/new.ts', 'new\n')
    harness.write('packages/lib/l.ts', 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- created "new.ts"')
    expect(textOf(agent.told)).toContain(`- modified "${harness.path('packages/lib/l.ts')}"`)
    expect(textOf(agent.told)).not.toContain('other.ts')
    await agent.end()
  })
})

describe('directories that appear below each other at once', () => {
  it('do not hide the file in the deepest one', async () => {
    const harness = await boot()
    const agent = await harness.agent('main')
    await agent.prompt()
    await harness.live()
    mkdirSync(harness.path('deep/er/est'), { recursive: true })
    harness.write('deep/er/est/file.ts', 'new\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- created "deep/er/est/file.ts"')
    await agent.end()
  })
})
