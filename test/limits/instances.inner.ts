import { beforeEach, describe, expect, it } from 'vitest'
import { quiet, textOf } from '../support/harness.ts'
import { coverageTexts, provesAttention, setLimit, using } from './scene.ts'

const PLENTY = 1_000

beforeEach(() => setLimit('max_inotify_instances', PLENTY))

describe('the limit of watcher instances', () => {
  it('used up from the start: said once, used files told, healed when there is one', async () => {
    setLimit('max_inotify_instances', 0)
    const { harness, agent } = await using(10)
    await harness.covered('degraded')
    await agent.call(quiet)
    await provesAttention(harness, agent)
    await provesAttention(harness, agent, 'd9/f.ts')
    expect(coverageTexts(agent)).toEqual([expect.stringContaining('the limit of watcher instances')])

    harness.write('used.ts', 'in the gap\n')
    setLimit('max_inotify_instances', PLENTY)
    await harness.live()
    await agent.call(quiet)
    expect(textOf(agent.notices)).toContain('in the gap')
    await provesAttention(harness, agent)
    await agent.end()
    await agent.turn(quiet)
    expect(coverageTexts(agent)).toHaveLength(2)
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain('sysctl fs.inotify.max_user_instances')
  })
})
