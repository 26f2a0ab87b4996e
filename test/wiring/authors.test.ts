import { renameSync } from 'node:fs'
import { LocalJobRegistry } from '@deepseek-ai/dsh-jobs-local'
import { describe, expect, it } from 'vitest'
import { boot, quiet, read, shell, textOf } from '../support/harness.ts'

const REMARK = 'command of this session ran'

const withRead = async (files: Readonly<Record<string, string>>) => {
  const harness = await boot({ files })
  const agent = await harness.agent('main')
  await harness.live()
  await agent.prompt()
  await agent.call(...Object.keys(files).map((path) => read(path)))
  const move = (from: string, to: string) => renameSync(harness.path(from), harness.path(to))
  return { harness, agent, move }
}

describe('a command of the session is not named as a possible writer', () => {
  it.each(['touch a.ts', 'chmod +x a.ts', 'echo more >> a.ts'])(
    'of what a person wrote before "%s"',
    async (command) => {
      const { harness, agent } = await withRead({ 'a.ts': 'one\n' })
      harness.write('a.ts', 'by a person\n')
      await agent.call(shell(command))
      expect(textOf(agent.told)).toContain('- modified "a.ts"')
      expect(textOf(agent.told)).not.toContain(REMARK)
      await agent.end()
    },
  )

  it('of a directory that was made anew before it', async () => {
    const { harness, agent, move } = await withRead({ 'x/a.ts': 'one\n', 'x/b.ts': 'two\n' })
    move('x', 'y')
    harness.write('x/fresh.ts', 'fresh\n')
    harness.write('x/a.ts', 'again\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('"x/a.ts"')
    expect(textOf(agent.told)).not.toContain(REMARK)
    await agent.end()
  })

  it('of directories that were swapped before it', async () => {
    const { agent, move } = await withRead({ 'x/a.ts': 'of x\n', 'y/a.ts': 'of y\n' })
    move('x', 't')
    move('y', 'x')
    move('t', 'y')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('"x/a.ts"')
    expect(textOf(agent.told)).not.toContain(REMARK)
    await agent.end()
  })
})

describe('commands of the session', () => {
  it('are named as possible writers of what several of them changed in one step', async () => {
    const { agent } = await withRead({ 'a.ts': 'one\n' })
    await agent.call(shell('echo two >> a.ts'), shell('echo three >> a.ts'))
    expect(textOf(agent.told)).toContain(`while a ${REMARK}, other writers are possible`)
    await agent.end()
  })
})

describe('an unused file that grows at each step', () => {
  it('is told at growing distances, and once where the turn ends', async () => {
    const { harness, agent } = await withRead({ 'a.ts': 'one\n' })
    let tellings = 0
    for (let n = 0; n < 12; n++) {
      harness.write('server.log', 'line\n'.repeat(n + 1))
      await agent.call(quiet)
      if (textOf(agent.told).includes('"server.log"')) tellings += 1
    }
    expect(tellings).toBeGreaterThanOrEqual(3)
    expect(tellings).toBeLessThanOrEqual(6)
    harness.write('server.log', 'last\n')
    expect(await agent.finish()).toBeDefined()
    expect(textOf(agent.told)).toMatch(/- modified "server\.log" \(keeps changing, \d+ states? in between\)/)
    harness.write('server.log', 'after the last\n')
    await agent.end()
  })
})

describe('what a command of the session may have done', () => {
  it('keeps no turn going', async () => {
    const { harness, agent } = await withRead({ 'a.ts': 'one\n' })
    await harness.use(LocalJobRegistry)
    harness.ctx.jobs.attachController('test')
    const done = Promise.withResolvers<{ status: 'completed' }>()
    harness.ctx.jobs.start({
      kind: 'bash',
      label: 'build',
      owner: agent.agent,
      run: () => ({ cancel: () => done.resolve({ status: 'completed' }), done: done.promise }),
    })
    harness.write('out.js', 'built\n')
    await agent.end()
    await agent.prompt()
    expect(textOf(agent.told)).toContain('"out.js"')
    done.resolve({ status: 'completed' })
    await agent.cancel()
  })
})
