import { describe, expect, it } from 'vitest'
import { boot, categories, quiet, read, textOf } from '../support/harness.ts'

const changedFile = async () => {
  const harness = await boot({ files: { 'a.ts': 'one\n' } })
  const agent = await harness.agent('main')
  await agent.turn(read('a.ts'))
  return { harness, agent }
}

describe('a change is told', () => {
  it('once, in the request after it', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "a.ts"')

    for (let n = 0; n < 5; n++) await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
  })

  it('at the first request of the next turn, when it happened between turns', async () => {
    const { harness, agent } = await changedFile()
    harness.save('a.ts', 'two\n')
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('also of a file that nobody has used, when it was written in the moment before', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    await harness.live()
    for (let n = 0; n < 10; n++) {
      const stop = harness.ctx.on(
        'agent/pre-step',
        async (_payload, next) => {
          harness.write(`new-${n}.ts`, 'new\n')
          return next()
        },
        { prepend: true },
      )
      await agent.call(read('a.ts'))
      stop()
      expect(textOf(agent.told)).toContain(`- created "new-${n}.ts"`)
    }
    await agent.end()
  })

  it('again for a newer version, and not for what the agent read meanwhile', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    harness.write('a.ts', 'three\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')

    harness.write('a.ts', 'four\n')
    await agent.call(read('a.ts'))
    expect(agent.told).toEqual([])
    await agent.end()
    expect(agent.notices).toHaveLength(2)
  })

  it('as a deletion and as a creation', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    harness.remove('a.ts')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- deleted "a.ts"')
    await agent.call(quiet)
    expect(agent.told).toEqual([])
    harness.write('a.ts', 'back\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- created "a.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(2)
  })

  it('with a source that every client can show', async () => {
    const { harness, agent } = await changedFile()
    harness.write('a.ts', 'two\n')
    await agent.prompt()
    const event = agent.session.events.find(({ seq }) => seq === agent.notices[0]?.seq)

    expect(event?.data).toMatchObject({
      source: {
        kind: 'plugin',
        plugin: 'dsh-live-workspace',
        form: 'notice',
        category: 'changes',
        summary: 'modified "a.ts"',
      },
    })
    await agent.end()
  })

  it('after what the user says, in the same request', async () => {
    const { harness, agent } = await changedFile()
    harness.write('a.ts', 'two\n')
    const request = await agent.prompt('What now?')
    const [user, notice] = request.messages.slice(-2)

    expect(user?.source.kind).toBe('user')
    expect(notice?.source).toMatchObject({ plugin: 'dsh-live-workspace' })
    await agent.end()
  })
})

describe('nothing is consumed', () => {
  const toldOnceAfterwards = async ({ harness, agent }: Awaited<ReturnType<typeof changedFile>>) => {
    expect(agent.notices).toEqual([])
    await agent.prompt()
    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
    expect(harness.errors).toEqual([])
  }

  it.each([
    ['inside', false],
    ['outside', true],
  ])('when a listener %s of ours rejects the step', async (_where, prepend) => {
    const { harness, agent } = await changedFile()
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        await next()
        return { kind: 'reject' }
      },
      { prepend },
    )
    harness.write('a.ts', 'two\n')
    expect(await agent.submit()).toBeUndefined()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })

  it('when a later step of the turn is rejected', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    const stop = harness.ctx.on('agent/pre-step', async () => ({ kind: 'reject' }), { prepend: true })
    harness.write('a.ts', 'two\n')
    expect(await agent.answer({ calls: [quiet] })).toBeUndefined()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })

  it('when the first step is empty and no request is made', async () => {
    const { harness, agent } = await changedFile()
    harness.write('a.ts', 'two\n')
    // A wake whose message is gone again still opens a turn.
    const stop = harness.ctx.on('agent/inbox/inserted', ({ message }) => {
      agent.agent.inbox.remove(message.id)
    })
    expect(await agent.submit()).toBeUndefined()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })

  it('when somebody outside of ours takes the message out of the batch', async () => {
    const { harness, agent } = await changedFile()
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (payload, next) => {
        await next()
        return { kind: 'enter', messages: payload.messages }
      },
      { prepend: true },
    )
    harness.write('a.ts', 'two\n')
    await agent.prompt()
    expect(agent.told).toEqual([])
    await agent.cancel()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })

  it('nor does a file that keeps changing wait, when no word of it has come through', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: { notice: { showHunks: false } } })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (payload, next) => {
        await next()
        return { kind: 'enter', messages: payload.messages }
      },
      { prepend: true },
    )
    for (let n = 0; n < 4; n++) {
      harness.write('a.ts', `lost ${n}\n`)
      await agent.call(quiet)
      expect(agent.told).toEqual([])
    }
    stop()
    harness.write('a.ts', 'the last text\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('when the turn is aborted between the fold and the log', async () => {
    const { harness, agent } = await changedFile()
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        const decision = await next()
        agent.agent.cancel({ kind: 'user' })
        return decision
      },
      { prepend: true },
    )
    harness.write('a.ts', 'two\n')
    expect(await agent.submit()).toBeUndefined()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })

  it('when a steered message was claimed and its step then aborted', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        const decision = await next()
        agent.agent.cancel({ kind: 'user' })
        return decision
      },
      { prepend: true },
    )
    harness.write('a.ts', 'two\n')
    expect(await agent.finish()).toBeUndefined()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })

  it('of a file that nobody has used, when a steered message was claimed and its step then aborted', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    await harness.live()
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        const decision = await next()
        agent.agent.cancel({ kind: 'user' })
        return decision
      },
      { prepend: true },
    )
    harness.write('new.ts', 'new\n')
    expect(await agent.finish()).toBeUndefined()
    stop()
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- created "new.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('when a steered message is thrown out of the inbox', async () => {
    const { harness, agent } = await changedFile()
    await agent.prompt()
    const stop = harness.ctx.on('agent/inbox/inserted', ({ message }) => {
      if (message.source.kind === 'plugin') agent.agent.inbox.remove(message.id)
    })
    harness.write('a.ts', 'two\n')
    expect(await agent.finish()).toBeUndefined()
    stop()

    await toldOnceAfterwards({ harness, agent })
  })
})
