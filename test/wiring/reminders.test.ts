import { describe, expect, it } from 'vitest'
import { boot, categories, edit, quiet, read, textOf, write } from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'

const stored = async () => {
  const harness = await boot({ files: { 'a.ts': 'one\n' }, persistence: true })
  return { harness, agent: await harness.agent('main') }
}

describe('a resumed session', () => {
  it('is reminded once when it had read files', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await agent.prompt()
    expect(categories(agent.told)).toEqual(['resume'])

    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
  })

  it('is reminded again after each resume', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await agent.turn(quiet)
    await harness.resume(agent)
    await agent.turn(quiet)

    expect(categories(agent.notices)).toEqual(['resume', 'resume'])
  })

  it('is reminded when its first request after the resume is steered or rejected, at the next one', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    const stop = harness.ctx.on('agent/pre-step', async () => ({ kind: 'reject' }), { prepend: true })
    expect(await agent.submit()).toBeUndefined()
    stop()
    expect(agent.notices).toEqual([])
    await agent.turn(quiet)

    expect(categories(agent.notices)).toEqual(['resume'])
  })

  it.each([
    ['nothing', quiet],
    ['only what is missing', read('missing.ts')],
    ['only what it was refused', edit('a.ts', 'one', 'two')],
  ])('is not reminded when it had read %s', async (_what, call) => {
    const { harness, agent } = await stored()
    await agent.turn(call)
    await harness.resume(agent, () => harness.write('a.ts', 'two\n'))
    await agent.turn(quiet)
    expect(agent.notices).toEqual([])

    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await agent.turn(quiet)
    expect(categories(agent.notices)).toEqual(['resume'])
  })

  it('is told of what it reads anew, like every other session', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await agent.turn(read('a.ts'))
    harness.write('a.ts', 'two\n')
    await agent.prompt()

    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "a.ts"')
    await agent.end()
  })
})

describe('a fresh session', () => {
  it('is reminded of nothing', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'), write('b.ts', 'b\n'))

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'b.ts')
  })
})

describe('the plugin mounted in the middle of a session', () => {
  it('reminds once when files were read before', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: false })
    const agent = await harness.agent('main')
    await agent.turn(read('a.ts'))
    await harness.mount()
    await agent.prompt()
    expect(categories(agent.told)).toEqual(['activation'])

    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
  })

  it('reminds in the open turn, too, and takes over from there', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: false })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    await harness.mount()
    await agent.call(read('a.ts'))
    expect(categories(agent.told)).toEqual(['activation'])

    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('reminds of nothing when nothing was read', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: false })
    const agent = await harness.agent('main')
    await agent.turn(quiet, read('missing.ts'))
    await harness.mount()
    await agent.turn(quiet, read('a.ts'))

    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'a.ts')
  })
})

describe('a reload with another configuration', () => {
  it('hands over what the sessions have seen: no reminder, and a change meanwhile is told', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.unmount()
    harness.write('a.ts', 'two\n')
    await harness.mount({ notice: { maxSteersPerTurn: 0 } })
    await agent.prompt()
    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('- modified "a.ts"')

    harness.write('a.ts', 'three\n')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('hands over what was told: it is not told again', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    harness.write('a.ts', 'two\n')
    await agent.turn()
    expect(agent.notices).toHaveLength(1)
    await harness.reload({ watch: { backend: 'off' } })
    await agent.turn(quiet)

    expect(agent.notices).toHaveLength(1)
  })

  it('in the middle of a turn loses nothing that is committed later', async () => {
    const { harness, agent } = await stored()
    await agent.prompt()
    await agent.call(read('a.ts'))
    await harness.reload()
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('keeps a reminder that was not told yet', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await harness.reload()
    await agent.turn(quiet)

    expect(categories(agent.notices)).toEqual(['resume'])
  })

  it('does not take for told what a compaction removed while the plugin was away', async () => {
    const harness = await boot({ files: { 'a.ts': 'line of a file\n'.repeat(200) }, compaction: true })
    const agent = await harness.agent('main')
    await agent.turn(read('a.ts'))
    harness.write('a.ts', 'changed\n')
    await agent.turn()
    expect(categories(agent.notices)).toEqual(['changes'])
    await harness.unmount()
    await harness.compact(agent)
    await harness.mount()
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('does not lose what a read commits while the plugin is away', async () => {
    const { harness, agent } = await stored()
    await agent.turn(read('a.ts'))
    await harness.unmount()
    harness.write('a.ts', 'two\n')
    await agent.turn(read('a.ts'))
    await harness.mount()
    await agent.turn(quiet)

    // Told or reminded of is both true enough; nothing may be claimed that the read has settled.
    expect(textOf(agent.notices)).not.toContain('- deleted')
    expect(agent.notices.length).toBeLessThanOrEqual(1)
    await agent.turn(read('a.ts'))
    await expectHearing(harness, agent, 'a.ts')
  })
})
