import { beforeEach, describe, expect, it } from 'vitest'
import { quiet, textOf } from '../support/harness.ts'
import { coverageTexts, provesAttention, setLimit, using } from './scene.ts'

const PLENTY = 100_000
const LIMIT = 'the limit of file watches of this user is used up'
/** The system's limit, and not our share of it, is what ends the watching. */
const all = { watchLimitPercent: 100 }

beforeEach(() => setLimit('max_inotify_watches', PLENTY))

describe('the limit of watches', () => {
  it('reached by the first scan: said once, used files told', async () => {
    setLimit('max_inotify_watches', 40)
    const { harness, agent } = await using(100, { ...all, backend: 'native' })
    await harness.live()
    await agent.call(quiet)
    await provesAttention(harness, agent)
    await provesAttention(harness, agent, 'd99/f.ts')
    expect(coverageTexts(agent)).toEqual([expect.stringContaining(LIMIT)])
    await agent.end()

    // Wherever the watches ended: somewhere among these is a file that no event tells of.
    for (let index = 0; index < 100; index += 1) harness.write(`d${index}/f.ts`, 'changed\n')
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "d99/f.ts"')
    expect(textOf(agent.told)).toMatch(/- \d+ more paths/)
    await agent.end()
    expect(coverageTexts(agent)).toHaveLength(1)
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain('sysctl fs.inotify.max_user_watches=524288')
  })

  it('reached by the first scan of chokidar: said once, used files told, healed when there is room', async () => {
    setLimit('max_inotify_watches', 40)
    const { harness, agent } = await using(100, { ...all, backend: 'chokidar' })
    await harness.covered('degraded')
    await agent.call(quiet)
    await provesAttention(harness, agent)
    await provesAttention(harness, agent, 'd99/f.ts')
    expect(coverageTexts(agent)).toEqual([expect.stringContaining(LIMIT)])

    harness.write('used.ts', 'in the gap\n')
    setLimit('max_inotify_watches', PLENTY)
    await harness.live()
    await agent.call(quiet)
    expect(textOf(agent.notices)).toContain('in the gap')
    await provesAttention(harness, agent, 'd99/f.ts')
    await agent.end()
    await agent.turn(quiet)
    expect(coverageTexts(agent)).toHaveLength(2)
    expect(coverageTexts(agent)[1]).toContain('followed completely again')
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain('sysctl fs.inotify.max_user_watches=524288')
  })

  it('reached later, by new directories: the same, and files in them are told once they are used', async () => {
    const { harness, agent } = await using(20, { ...all, backend: 'native' })
    await harness.live()
    setLimit('max_inotify_watches', 30)
    for (let index = 0; index < 60; index += 1) harness.write(`new${index}/f.ts`, 'one\n')
    await agent.call(quiet)
    await provesAttention(harness, agent, 'new59/f.ts')
    await provesAttention(harness, agent)
    await agent.end()
    expect(coverageTexts(agent)).toEqual([expect.stringContaining(LIMIT)])
    expect(harness.errors).toHaveLength(1)
  })
})
