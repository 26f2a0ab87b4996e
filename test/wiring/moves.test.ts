import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { boot, edit, quiet, read, shell, textOf, type TestAgent } from '../support/harness.ts'

const text = (name: string): string => `// ${name}\nexport const name = '${name}'\nexport const other = 1\n`
const FILES = { 'x/a.ts': text('a'), 'x/b.ts': text('b'), 'x/c.ts': text('c'), 'x/keep.ts': text('k') }

/** A session that has read files of a workspace. */
const withRead = async (files: Readonly<Record<string, string>>, used = Object.keys(files)) => {
  const harness = await boot({ files })
  const agent = await harness.agent('main')
  await harness.live()
  await agent.prompt()
  await agent.call(...used.map((path) => read(path)))
  const move = (from: string, to: string) => renameSync(harness.path(from), harness.path(to))
  return { harness, agent, move }
}

const next = async (agent: TestAgent): Promise<string> => {
  await agent.call(quiet)
  return textOf(agent.told)
}

describe('a moved directory', () => {
  it('hides no used file that was deleted on the way', async () => {
    const { harness, agent, move } = await withRead(FILES)
    move('x', 'y')
    rmSync(harness.path('y/c.ts'))
    const told = await next(agent)
    expect(told).toContain('- moved "x/" → "y/" (with 3 more paths)')
    expect(told).toContain('- deleted "x/c.ts"')
    await agent.end()
  })

  it('hides no used file that holds something else there', async () => {
    const { harness, agent, move } = await withRead(FILES)
    move('x', 'y')
    harness.write('y/c.ts', text('a person'))
    const told = await next(agent)
    expect(told).toContain('- moved "x/" → "y/"')
    expect(told).toContain('- deleted "x/c.ts"')
    expect(told).toContain('- created "y/c.ts"')
    await agent.end()
  })

  it('hides no used file that became a directory', async () => {
    const { harness, agent, move } = await withRead(FILES)
    move('x', 'y')
    rmSync(harness.path('y/c.ts'))
    harness.write('y/c.ts/inner.ts', 'inner\n')
    expect(await next(agent)).toContain('- deleted "x/c.ts"')
    await agent.end()
  })

  it('is not said of one that is still there: its files are told one by one', async () => {
    const { harness, agent, move } = await withRead(FILES)
    for (const directory of ['y', 'z']) mkdirSync(harness.path(directory))
    for (const [from, to] of [
      ['x/a.ts', 'y/a.ts'],
      ['x/b.ts', 'y/b.ts'],
      ['x/c.ts', 'z/c.ts'],
    ] as const)
      move(from, to)
    const told = await next(agent)
    expect(told).not.toContain('"x/"')
    for (const line of ['"x/a.ts" → "y/a.ts"', '"x/b.ts" → "y/b.ts"', '"x/c.ts" → "z/c.ts"']) {
      expect(told).toContain(`- moved ${line}`)
    }
    await agent.end()
  })

  it('is named by what moved, not by what is above it and stayed', async () => {
    const { harness, agent, move } = await withRead({
      'x/in/a.ts': text('a'),
      'x/in/b.ts': text('b'),
      'x/out.ts': text('o'),
    })
    mkdirSync(harness.path('z'))
    move('x/in', 'z/in')
    expect(await next(agent)).not.toContain('moved "x/" → "z/"')
    await agent.end()
  })

  it('swallows no unused file that was deleted or made on the way', async () => {
    const { harness, agent, move } = await withRead({ ...FILES, 'x/u.ts': text('u') }, Object.keys(FILES))
    move('x', 'y')
    rmSync(harness.path('y/u.ts'))
    harness.write('y/extra.ts', 'new\n')
    const told = await next(agent)
    expect(told).toContain('- deleted "x/u.ts"')
    expect(told).toContain('- created "y/extra.ts"')
    await agent.end()
  })
})

describe('a moved used file', () => {
  it('stays a used one under its new name: a change is shown, and its edit needs no new read', async () => {
    const { harness, agent, move } = await withRead({ 'a.ts': text('a') })
    move('a.ts', 'b.ts')
    expect(await next(agent)).toContain('- moved "a.ts" → "b.ts"')
    await agent.call(edit('b.ts', 'other = 1', 'other = 2'))
    harness.write('b.ts', text('a').replace('other = 1', 'other = 3'))
    const told = await next(agent)
    expect(told).toContain('Used by this session:\n- modified "b.ts"')
    expect(told).toContain('+export const other = 3')
    await agent.end()
  })

  it('moves on as one, and back', async () => {
    const { agent, move } = await withRead({ 'a.ts': text('a') })
    move('a.ts', 'b.ts')
    await next(agent)
    move('b.ts', 'c.ts')
    expect(await next(agent)).toContain('- moved "b.ts" → "c.ts"')
    move('c.ts', 'a.ts')
    expect(await next(agent)).toContain('- moved "c.ts" → "a.ts"')
    await agent.end()
  })

  it('of a moved directory stays one too', async () => {
    const { harness, agent, move } = await withRead(FILES)
    move('x', 'y')
    await next(agent)
    harness.write('y/b.ts', text('a person'))
    expect(await next(agent)).toContain('Used by this session:\n- modified "y/b.ts"')
    await agent.end()
  })

  it('that is never shown is not shown under its new name', async () => {
    const { harness, agent, move } = await withRead({ '.env': 'TOKEN=one\n' })
    move('.env', 'settings.txt')
    await next(agent)
    harness.write('settings.txt', 'TOKEN=hunter2\n')
    const told = await next(agent)
    expect(told).toContain('- modified "settings.txt"')
    expect(told).not.toContain('hunter2')
    await agent.end()
  })

  it('and a directory say when a command of the session may have moved them', async () => {
    const { agent } = await withRead({ 'c.ts': text('c'), 'd/a.ts': text('a'), 'd/b.ts': text('b') })
    await agent.call(shell('mv c.ts e.ts; mv d f'))
    const remark = 'while a command of this session ran, other writers are possible'
    const told = textOf(agent.told)
    expect(told).toContain(`- moved "c.ts" → "e.ts" (${remark})`)
    expect(told).toContain(`- moved "d/" → "f/" (with 2 more paths; ${remark})`)
    await agent.end()
  })
})
