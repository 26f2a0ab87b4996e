import { describe, expect, it } from 'vitest'
import {
  batch,
  boot,
  categories,
  edit,
  type Harness,
  quiet,
  read,
  type TestAgent,
  textOf,
  write,
} from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'
import { waitFor } from '../support/wait.ts'

const usedFile = async (
  config?: Record<string, unknown>,
): Promise<{ harness: Harness; agent: TestAgent }> => {
  const harness = await boot({ files: { 'a.ts': 'one\n' }, ...(config ? { config } : {}) })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('a.ts'))
  return { harness, agent }
}

describe('what a session did itself', () => {
  it('is silent: reads, edits, and new files in new directories', async () => {
    const { harness, agent } = await usedFile()
    await harness.live()
    await agent.call(edit('a.ts', 'one', 'two'))
    await agent.call(write('deep/er/new.ts', 'new\n'))
    await agent.call(edit('deep/er/new.ts', 'new', 'newer'), edit('a.ts', 'two', 'three'))
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)

    expect(agent.notices).toEqual([])
    expect(harness.errors).toEqual([])
    await expectHearing(harness, agent, 'deep/er/new.ts')
  })

  it('is silent for any number of edits in a row', async () => {
    const { harness, agent } = await usedFile()
    await harness.live()
    for (let n = 0; n < 20; n++) await agent.call(write('a.ts', `edit ${n}\n`))
    await agent.end()

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'a.ts')
  })

  it('does not hide what somebody else writes right after it', async () => {
    const { harness, agent } = await usedFile()
    harness.ctx.on('tools/result', ({ name }) => {
      if (name === 'edit') harness.write('a.ts', 'overwritten\n')
      return undefined
    })
    await agent.call(edit('a.ts', 'one', 'two'))

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
  })

  it('is silent when a file is read in pieces', async () => {
    const harness = await boot({ files: { 'long.txt': 'line\n'.repeat(500) } })
    const agent = await harness.agent('main')
    await agent.turn(
      read('long.txt', { offset: 1, limit: 10 }),
      read('long.txt', { offset: 200, limit: 10 }),
      quiet,
    )

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'long.txt')
  })
})

describe('a result that the model did not get', () => {
  it('commits nothing when the outermost call fails: the change is told', async () => {
    const { harness, agent } = await usedFile()
    harness.write('a.ts', 'two\n')
    await agent.call(batch([read('a.ts')], { fail: true }))

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('commits no write either when the outermost call fails: the file holds what nobody has seen', async () => {
    const { agent } = await usedFile()
    await agent.call(batch([write('a.ts', 'two\n')], { fail: true }))

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('commits nested calls when the outermost one succeeds', async () => {
    const { harness, agent } = await usedFile()
    harness.write('a.ts', 'two\n')
    await agent.call(batch([read('a.ts'), write('b.ts', 'b\n')]))
    expect(agent.told).toEqual([])

    harness.write('b.ts', 'somebody else\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "b.ts"')
    await agent.end()
  })

  it('commits nested calls two levels deep', async () => {
    const { harness, agent } = await usedFile()
    harness.write('a.ts', 'two\n')
    await agent.call(batch([batch([read('a.ts')])]))
    expect(agent.told).toEqual([])

    harness.write('a.ts', 'three\n')
    await agent.call(batch([batch([read('a.ts')], { fail: true })]))
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('commits nothing when the call was cancelled in its body', async () => {
    const { harness, agent } = await usedFile()
    harness.write('a.ts', 'two\n')
    harness.probe.hangStat(harness.path('a.ts'))
    const answer = agent.answer({ calls: [read('a.ts')] })
    await waitFor(() => harness.probe.hanging > 0, { timeoutMs: 10_000, describe: 'the read is under way' })
    agent.agent.cancel({ kind: 'user' })
    harness.probe.healAll()
    expect(await answer).toBeUndefined()

    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('leaves a file that was only ever read without success unused', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: { watch: { backend: 'off' } } })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(batch([read('a.ts')], { fail: true }), read('missing.ts'))
    harness.write('a.ts', 'two\n')
    harness.write('missing.ts', 'here now\n')
    await agent.call(quiet)
    await agent.end()

    expect(agent.notices).toEqual([])
    await agent.turn(read('a.ts'))
    await expectHearing(harness, agent, 'a.ts')
    expect(textOf(agent.notices)).not.toContain('missing.ts')
  })
})

describe('a result in the log of an aborted step', () => {
  const abortedAfterRead = async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' } })
    const agent = await harness.agent('main')
    await agent.prompt()
    const stop = harness.ctx.on('tools/result', () => {
      agent.agent.cancel({ kind: 'user' })
      return undefined
    })
    expect(await agent.answer({ calls: [read('a.ts')] })).toBeUndefined()
    stop()
    return { harness, agent }
  }

  it('counts as seen, since the model sees it later: no word when nothing changed', async () => {
    const { harness, agent } = await abortedAfterRead()
    await agent.turn(quiet)

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'a.ts')
  })

  it('counts as seen: a change is told in the next turn', async () => {
    const { harness, agent } = await abortedAfterRead()
    harness.write('a.ts', 'two\n')
    await agent.prompt()

    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })
})
