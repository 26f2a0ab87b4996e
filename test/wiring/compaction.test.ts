import { describe, expect, it } from 'vitest'
import { boot, categories, edit, quiet, read, resultsIn, type TestAgent, textOf } from '../support/harness.ts'

// Long enough that its summary is shorter.
const LONG = Array.from({ length: 120 }, (_, line) => `line ${line} of a file that is long\n`).join('')

const reader = async () => {
  const harness = await boot({ files: { 'a.ts': LONG, 'b.ts': LONG }, compaction: true })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('a.ts'))
  return { harness, agent }
}

const compactions = ({ notices }: TestAgent) => notices.filter(({ category }) => category === 'compaction')

describe('after a compaction', () => {
  it('a session that has read files is reminded once, without names', async () => {
    const { harness, agent } = await reader()
    await agent.end()
    await harness.compact(agent)
    await agent.prompt()
    expect(categories(agent.told)).toEqual(['compaction'])
    expect(textOf(agent.told)).not.toContain('a.ts')

    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(compactions(agent)).toHaveLength(1)
  })

  it('a session that has read nothing is not reminded', async () => {
    const harness = await boot({ files: { 'a.ts': LONG }, compaction: true })
    const agent = await harness.agent('main')
    await agent.prompt(LONG)
    await agent.call(quiet)
    await agent.end()
    await harness.compact(agent)
    await agent.turn(quiet)
    expect(agent.notices).toEqual([])

    await agent.turn(read('a.ts'))
    await harness.compact(agent)
    await agent.turn(quiet)
    expect(categories(agent.notices)).toEqual(['compaction'])
  })

  it('each further compaction has its own reminder', async () => {
    const { harness, agent } = await reader()
    await agent.end()
    await harness.compact(agent)
    await agent.turn(read('b.ts'))
    await harness.compact(agent)
    await agent.turn(quiet)

    expect(compactions(agent)).toHaveLength(2)
  })

  it('what was told, is still true and can no longer be seen, is told again once', async () => {
    const { harness, agent } = await reader()
    harness.write('a.ts', 'changed\n')
    await agent.call(quiet)
    expect(categories(agent.told)).toEqual(['changes'])
    await agent.end()
    await harness.compact(agent)

    await agent.prompt()
    expect(categories(agent.told).toSorted()).toEqual(['changes', 'compaction'])
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(3)
  })

  it('what was told and has been read since is not told again', async () => {
    const { harness, agent } = await reader()
    harness.write('a.ts', 'changed\n')
    await agent.call(quiet)
    await agent.call(read('a.ts'))
    await agent.end()
    await harness.compact(agent)
    await agent.turn(quiet)

    expect(categories(agent.notices)).toEqual(['changes', 'compaction'])
  })

  it('a change of a file that the session read before is still told', async () => {
    const { harness, agent } = await reader()
    await agent.end()
    await harness.compact(agent)
    await agent.turn(quiet)
    harness.write('a.ts', 'changed\n')
    await agent.prompt()

    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "a.ts"')
    await agent.end()
  })

  it('no line of a file is shown that the session cannot see any more, until it has read it again', async () => {
    const { harness, agent } = await reader()
    harness.write('a.ts', LONG.replace('line 5 ', 'line five '))
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('+line five ')
    await agent.end()
    await harness.compact(agent)
    await agent.turn(quiet)
    harness.write('a.ts', LONG.replace('line 6 ', 'line six '))
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "a.ts"\n')
    expect(textOf(agent.told)).not.toMatch(/line (?:five|5|six|6) /)
    expect(textOf(agent.told)).toContain('read a file again before you rely on it')

    await agent.call(read('a.ts'))
    harness.write('a.ts', LONG.replace('line 7 ', 'line seven '))
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('+line seven ')
    await agent.end()
  })

  it('an unchanged file is edited without a new read', async () => {
    const { harness, agent } = await reader()
    await agent.end()
    await harness.compact(agent)
    await agent.prompt()
    const request = await agent.call(edit('a.ts', 'line 1 of', 'line one of'))

    expect(resultsIn(request).at(-1)).not.toContain('Error')
    await agent.end()
  })

  it('no lines are shown of what changed in a text that is gone from the conversation', async () => {
    const { harness, agent } = await reader()
    await agent.end()
    await harness.compact(agent)
    harness.write('a.ts', LONG.replace('line 5 of', 'line five of'))
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    expect(textOf(agent.told)).not.toContain('line five')
    await agent.end()
  })

  it('in the middle of a turn, the reminder comes with the very next request', async () => {
    const { harness, agent } = await reader()
    harness.write('a.ts', 'changed\n')
    await agent.call(quiet)
    let due = true
    harness.ctx.on('agent/pre-step', async (_payload, next) => {
      if (due) {
        due = false
        const { nodes } = agent.session.surface
        const [start, end] = [nodes[0], nodes.at(-1)]
        if (start === undefined || end === undefined) throw new Error('nothing to compact')
        await harness.ctx.compaction.compactRegion(start, end, agent.agent)
      }
      return next()
    })
    await agent.call(quiet)

    expect(categories(agent.told).toSorted()).toEqual(['changes', 'compaction'])
    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(3)
  })
})

describe('pruning an old tool result', () => {
  it('is not a compaction: nothing is reminded of and nothing is told again', async () => {
    const { harness, agent } = await reader()
    harness.write('b.ts', LONG)
    await agent.call(read('b.ts'))
    harness.write('a.ts', 'changed\n')
    await agent.call(quiet)
    expect(agent.told).toHaveLength(1)

    const { surface } = agent.session
    const { replaceGeneration } = surface
    for (const seq of surface.nodes) prune(agent, seq)
    expect(surface.replaceGeneration).toBeGreaterThan(replaceGeneration)
    await agent.call(quiet)
    expect(agent.told).toEqual([])
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('commits nothing: what the session saw last stays what it saw last', async () => {
    const { harness, agent } = await reader()
    for (const seq of agent.session.surface.nodes) prune(agent, seq)
    harness.write('a.ts', 'changed\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })
})

/** What the host's pruner does to a long result, event by event. */
const prune = ({ session }: TestAgent, seq: number): void => {
  const event = session.events[seq]
  if (event?.type !== 'tool/result') return
  const [block] = event.data.message.content
  session.append(
    'tool/result',
    {
      ...event.data,
      message: {
        ...event.data.message,
        content: [{ ...block, content: [{ type: 'text', text: 'pruned' }] }],
      },
    },
    { surfaceOp: { op: 'replace', start: seq, end: seq }, sourceEventSeqs: [seq] },
  )
}
