import { LocalJobRegistry } from '@deepseek-ai/dsh-jobs-local'
import { describe, expect, it } from 'vitest'
import { boot, quiet, read, textOf } from '../support/harness.ts'
import { waitFor } from '../support/wait.ts'

const REMARK = 'while a command of this session ran'

const withJobs = async () => {
  const harness = await boot({ files: { 'a.ts': 'one\n', 'b.ts': 'one\n' } })
  await harness.use(LocalJobRegistry)
  harness.ctx.jobs.attachController('test')
  const agent = await harness.agent('main')
  await harness.live()
  await agent.turn(read('a.ts'), read('b.ts'))
  await agent.prompt()
  const start = (kind: 'bash' | 'subagent') => {
    const done = Promise.withResolvers<{ status: 'completed' }>()
    const id = harness.ctx.jobs.start({
      kind,
      label: 'build',
      owner: agent.agent,
      run: () => ({ cancel: () => done.resolve({ status: 'completed' }), done: done.promise }),
    })
    return async () => {
      done.resolve({ status: 'completed' })
      await harness.ctx.jobs.wait(id, 10_000, agent.agent)
    }
  }
  return { harness, agent, start }
}

describe('a background job of the session', () => {
  it('is named as a possible writer of what changes while it runs, and not afterwards', async () => {
    const { harness, agent, start } = await withJobs()
    const end = start('bash')
    harness.write('a.ts', 'by the job\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toMatch(new RegExp(`- modified "a\\.ts" .*${REMARK}`))
    await end()
    // Its last events may still be on their way: a boundary lets them come.
    await agent.call(quiet)
    harness.write('b.ts', 'by a person\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "b.ts"')
    expect(textOf(agent.told)).not.toContain(REMARK)
    await agent.end()
  })

  it('that was running before a reload of the settings is followed again', async () => {
    const { harness, agent, start } = await withJobs()
    const end = start('bash')
    await harness.reload()
    await harness.live()
    harness.write('a.ts', 'by the job\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain(REMARK)
    await end()
    await agent.end()
  })

  it('of another agent is that agent’s own matter', async () => {
    const { harness, agent, start } = await withJobs()
    const end = start('subagent')
    harness.write('a.ts', 'by a person\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    expect(textOf(agent.told)).not.toContain(REMARK)
    await end()
    await agent.end()
  })

  it('that fails to be listed costs nothing but the remark', async () => {
    const { harness, agent, start } = await withJobs()
    harness.ctx.jobs.list = () => {
      throw new Error('no list')
    }
    const end = start('bash')
    await waitFor(() => harness.errors.some((line) => line.includes('following background jobs')), {
      timeoutMs: 10_000,
      describe: 'the failure is reported',
    })
    harness.write('a.ts', 'by the job\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await end()
    await agent.end()
  })
})
