import { afterEach, describe, expect, it } from 'vitest'
import { categories, edit, Harness, quiet, read, textOf, write } from '../support/harness.ts'

let harness: Harness

afterEach(async () => harness.dispose())

describe('what a session has seen', () => {
  it('is not told back to it: its own writes are silent', async () => {
    harness = await Harness.boot({ files: { 'a.ts': 'one\n' } })
    const agent = await harness.agent('main')
    await agent.prompt()
    await harness.live()
    await agent.call(read('a.ts'))
    await agent.call(edit('a.ts', 'one', 'two'))
    await agent.call(write('deep/er/new.ts', 'new\n'))
    await agent.call(quiet)
    await agent.end()

    expect(agent.notices).toEqual([])
    expect(harness.errors).toEqual([])
  })

  it('is told to be out of date once, in the next request', async () => {
    harness = await Harness.boot({ files: { 'a.ts': 'one\n' } })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)

    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })
})
