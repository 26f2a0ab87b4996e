import { describe, expect, it } from 'vitest'
import { boot, categories, quiet, read, shell, textOf } from '../support/harness.ts'
import { waitFor } from '../support/wait.ts'

const lastAnswer = async (notice: Record<string, unknown> = {}) => {
  const harness = await boot({ files: { 'used.ts': 'one\n', 'other.ts': 'one\n' }, config: { notice } })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('used.ts'))
  await harness.live()
  return { harness, agent }
}

const turns = ({ session }: { session: { events: readonly { type: string }[] } }): number =>
  session.events.filter(({ type }) => type === 'turn/start').length

describe('a change while the model gives its last answer', () => {
  it('leads to one more step, and the turn ends after it', async () => {
    const { harness, agent } = await lastAnswer()
    harness.write('used.ts', 'two\n')
    expect(await agent.finish()).toBeDefined()
    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('- modified "used.ts"')

    await agent.end()
    expect(turns(agent)).toBe(1)
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
  })

  it('leads to no step when nothing has changed', async () => {
    const { harness, agent } = await lastAnswer()
    await agent.end()

    expect(agent.requests).toHaveLength(2)
    await agent.prompt()
    harness.write('used.ts', 'two\n')
    expect(await agent.finish()).toBeDefined()
    await agent.end()
  })

  it.each([0, 1, 3])('leads to at most %i steps a turn, whatever keeps writing', async (maxSteersPerTurn) => {
    const { harness, agent } = await lastAnswer({ maxSteersPerTurn })
    for (let answer = 0; answer < maxSteersPerTurn; answer++) {
      harness.write('used.ts', `version ${answer}\n`)
      expect(await agent.finish()).toBeDefined()
      expect(textOf(agent.told)).toContain('- modified "used.ts"')
    }
    harness.write('used.ts', 'the last version\n')
    await agent.end()

    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(maxSteersPerTurn + 1)
  })

  it('leads to no step when the check is switched off; the next turn is told', async () => {
    const { harness, agent } = await lastAnswer({ verifyAtTurnStop: false })
    harness.write('used.ts', 'two\n')
    await agent.end()
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    await agent.end()
  })
})

describe('a change of a file that the session has not used', () => {
  it('leads to at most one more step a turn; further ones are told in the next turn', async () => {
    const { harness, agent } = await lastAnswer()
    harness.write('other.ts', 'two\n')
    expect(await agent.finish()).toBeDefined()
    expect(textOf(agent.told)).toContain('Other files:\n- modified "other.ts"')

    harness.write('other.ts', 'three\n')
    await agent.end()
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "other.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(2)
  })

  it('leads to one more step in every turn', async () => {
    const { harness, agent } = await lastAnswer()
    for (const version of ['two', 'three']) {
      harness.write('other.ts', `${version}\n`)
      expect(await agent.finish()).toBeDefined()
      await agent.end()
      await agent.prompt()
      expect(agent.told).toEqual([])
    }
    await agent.end()
  })

  it('leads to none in the scope "session", and is told in the next turn', async () => {
    const { harness, agent } = await lastAnswer({ turnStopScope: 'session' })
    harness.write('other.ts', 'two\n')
    await agent.end()
    await agent.prompt()

    expect(textOf(agent.told)).toContain('Other files:\n- modified "other.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it.each([
    ['workspace', 1],
    ['session', 0],
  ])('leads in the scope "%s" to %i steps a turn when a runner writes at its end', async (scope, steps) => {
    const { harness, agent } = await lastAnswer({ turnStopScope: scope })
    let runs = 0
    harness.ctx.on(
      'agent/turn-stopping',
      () => {
        harness.write('results.json', `{"run": ${++runs}}\n`)
        return undefined
      },
      { prepend: true },
    )
    for (let turn = 1; turn <= 3; turn++) {
      for (let step = 0; step < steps; step++) {
        expect(await agent.finish()).toBeDefined()
        expect(textOf(agent.told)).toContain('"results.json"')
      }
      await agent.end()
      expect(runs).toBe(turn * (steps + 1))
      await agent.prompt()
      expect(textOf(agent.told)).toContain('"results.json"')
    }
  })

  it('does not keep a used file from its own step', async () => {
    const { harness, agent } = await lastAnswer()
    harness.write('other.ts', 'two\n')
    expect(await agent.finish()).toBeDefined()
    harness.write('used.ts', 'two\n')
    harness.write('other.ts', 'three\n')
    expect(await agent.finish()).toBeDefined()

    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    expect(textOf(agent.told)).toContain('- modified "other.ts"')
    await agent.end()
  })
})

describe('a turn that does not end by itself', () => {
  it('is not steered after a cancellation during the check, and no new turn starts', async () => {
    const { harness, agent } = await lastAnswer()
    harness.write('used.ts', 'two\n')
    harness.probe.hangStat(harness.path('used.ts'))
    const finished = agent.finish()
    await waitFor(() => harness.probe.hanging > 0, { timeoutMs: 10_000, describe: 'the check is under way' })
    agent.agent.cancel({ kind: 'user' })
    expect(await finished).toBeUndefined()
    harness.probe.healAll()
    await agent.idle()
    expect(turns(agent)).toBe(1)
    expect(agent.agent.inbox.hasPending).toBe(false)
    expect(agent.notices).toEqual([])

    await agent.prompt()
    // The question that hung comes back in its own time; a step or a few pass until then.
    const told = () => textOf(agent.notices).includes('- modified "used.ts"')
    for (let step = 0; step < 50 && !told(); step++) await agent.call(quiet)
    expect(told()).toBe(true)
    await agent.end()
  })

  it('is not steered when the user cancels the last answer', async () => {
    const { harness, agent } = await lastAnswer()
    harness.write('used.ts', 'two\n')
    await agent.cancel()

    expect(turns(agent)).toBe(1)
    expect(agent.notices).toEqual([])
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    await agent.end()
  })
})

describe('an idle agent', () => {
  it('is never woken, whatever changes and whoever else works', async () => {
    const { harness, agent: idle } = await lastAnswer()
    const busy = await harness.agent('busy')
    await idle.end()
    const { seq } = idle.session
    await busy.prompt()
    harness.write('used.ts', 'two\n')
    for (let n = 0; n < 3; n++) await busy.call(shell(`echo ${n} >> other.ts`))
    expect(textOf(busy.notices)).toContain('used.ts')
    await busy.end()

    expect(idle.agent.status).toBe('idle')
    expect(idle.session.seq).toBe(seq)
    await idle.prompt()
    expect(textOf(idle.told)).toContain('Used by this session:\n- modified "used.ts"')
    await idle.end()
  })
})
