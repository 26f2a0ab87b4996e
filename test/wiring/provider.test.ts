import { describe, expect, it } from 'vitest'
import { boot, categories, edit, quiet, read, textOf } from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'
import { waitFor } from '../support/wait.ts'

const used = async (watch: Record<string, unknown> = {}) => {
  const harness = await boot({ files: { 'a.ts': 'one\n', 'b.ts': 'one\n' }, config: { watch } })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('a.ts'), read('b.ts'))
  await harness.live()
  return { harness, agent, a: harness.path('a.ts') }
}

describe('a used file that the filesystem service cannot look at', () => {
  it('is told once, as not verified and never as deleted', async () => {
    const { harness, agent, a } = await used()
    harness.probe.failStat(a)
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Used by this session:\n- could not verify "a.ts"')

    await agent.call(quiet)
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
  })

  it('is told as it is once the service works again and the file has changed', async () => {
    const { harness, agent, a } = await used()
    harness.probe.failStat(a)
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    harness.probe.heal(a)
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')

    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(2)
  })

  it('is silent once the service works again and the file is as it was', async () => {
    const { harness, agent, a } = await used()
    await agent.end()
    harness.probe.failStat(a)
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- could not verify "a.ts"')
    harness.probe.heal(a)
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)

    expect(agent.notices).toHaveLength(1)
  })

  it('is told once for each failure that a success lies between', async () => {
    const { harness, agent, a } = await used()
    await agent.end()
    for (const expected of [1, 2]) {
      harness.probe.failStat(a)
      await agent.turn(quiet)
      expect(agent.notices).toHaveLength(expected)
      harness.probe.heal(a)
      await agent.turn(quiet)
    }
    expect(agent.notices).toHaveLength(2)
  })

  it('keeps the word of what was told before: a known change is not told again', async () => {
    const { harness, agent, a } = await used()
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
    harness.probe.failStat(a)
    await agent.turn(quiet)
    harness.probe.heal(a)
    await agent.turn(quiet)

    expect(agent.notices.filter(({ text }) => text.includes('- modified "a.ts"'))).toHaveLength(1)
  })

  it('does not keep other files from being told', async () => {
    const { harness, agent, a } = await used()
    harness.probe.failStat(a)
    harness.write('b.ts', 'two\n')
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- could not verify "a.ts"')
    expect(textOf(agent.told)).toContain('- modified "b.ts"')
    await agent.end()
  })

  it('ends a turn with at most one step for it', async () => {
    const { harness, agent, a } = await used()
    harness.probe.failStat(a)
    harness.write('a.ts', 'two\n')
    expect(await agent.finish()).toBeDefined()
    await agent.end()

    expect(categories(agent.notices)).toEqual(['changes'])
  })
})

describe('an edit of a file that the service cannot look at', () => {
  it('fails by itself, and nobody is asked to report it', async () => {
    const { harness, agent, a } = await used()
    harness.probe.failStat(a)
    await agent.call(edit('a.ts', 'one', 'two'))
    harness.probe.heal(a)
    await agent.cancel()

    expect(harness.errors).toEqual([])
  })
})

describe('a turn that is cancelled while a boundary reads instructions', () => {
  it('is not reported as a failure', async () => {
    const { harness, agent } = await used()
    harness.write('AGENTS.md', 'Be brief.\n')
    harness.probe.beforeCall = (method) => {
      if (method === 'streamText') agent.agent.cancel({ kind: 'user' })
    }
    expect(await agent.answer({ calls: [quiet] })).toBeUndefined()
    harness.probe.beforeCall = () => undefined

    expect(harness.errors).toEqual([])
  })
})

describe('a file that the session has not used and the service cannot look at', () => {
  it('is silent until the service can', async () => {
    const { harness, agent } = await used()
    const c = harness.path('c.ts')
    harness.probe.failStat(c)
    harness.write('c.ts', 'new\n')
    await agent.call(quiet)
    expect(agent.told).toEqual([])
    harness.probe.heal(c)
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('Other files:\n- created "c.ts"')
    await agent.end()
  })
})

describe('a service that does not answer', () => {
  it('does not hold up the step, nor what is known of other files', async () => {
    const { harness, agent, a } = await used({ maxWaitMs: 300 })
    harness.probe.hangStat(a)
    harness.write('b.ts', 'two\n')
    await agent.call(quiet)

    expect(harness.probe.hanging).toBeGreaterThan(0)
    expect(textOf(agent.told)).toContain('- modified "b.ts"')
    await agent.cancel()
  })

  it('is asked once, however many boundaries pass', async () => {
    const { harness, agent, a } = await used({ maxWaitMs: 300 })
    await agent.end()
    harness.probe.hangStat(a)
    await agent.turn(quiet, quiet, quiet)

    expect(harness.probe.hanging).toBe(1)
    expect(agent.notices.filter(({ text }) => text.includes('could not verify "a.ts"'))).toHaveLength(1)
  })

  it('is believed as soon as it answers: a change is told', async () => {
    const { harness, agent, a } = await used({ maxWaitMs: 300 })
    await agent.end()
    harness.write('a.ts', 'two\n')
    harness.probe.hangStat(a)
    await agent.turn(quiet)
    expect(textOf(agent.notices)).not.toContain('- modified "a.ts"')
    harness.probe.heal(a)
    await waitFor(() => harness.probe.hanging === 0, { timeoutMs: 5_000, describe: 'the answer' })
    await agent.prompt()

    // The question that hung comes back in its own time; a step or a few pass until then.
    const told = () => textOf(agent.notices).includes('- modified "a.ts"')
    for (let step = 0; step < 50 && !told(); step++) await agent.call(quiet)
    expect(told()).toBe(true)
    await agent.end()
  })

  it('costs nothing after it answered, when the file is as it was', async () => {
    const { harness, agent, a } = await used({ maxWaitMs: 300 })
    await agent.end()
    harness.probe.hangStat(a)
    await agent.turn(quiet)
    const told = agent.notices.length
    harness.probe.heal(a)
    await agent.turn(quiet)
    await agent.turn(quiet)

    expect(agent.notices).toHaveLength(told)
    await expectHearing(harness, agent, 'a.ts')
  })
})
