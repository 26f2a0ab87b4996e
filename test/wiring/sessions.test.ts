import { describe, expect, it } from 'vitest'
import { boot, categories, edit, quiet, read, shell, textOf, write } from '../support/harness.ts'

const two = async () => {
  const harness = await boot({ files: { 'shared.ts': 'v1\n', 'own.ts': 'own\n' } })
  const first = await harness.agent('first')
  const second = await harness.agent('second')
  await first.prompt()
  await second.prompt()
  await harness.live()
  await first.call(read('shared.ts'))
  await second.call(read('shared.ts'))
  return { harness, first, second }
}

describe('two sessions in one workspace', () => {
  it('the writer is silent, the other one is told and cannot overwrite', async () => {
    const { first, second } = await two()
    await first.call(edit('shared.ts', 'v1', 'v2'))
    expect(first.told).toEqual([])

    await second.call(edit('shared.ts', 'v1', 'v3'))
    expect(textOf(second.told)).toContain('Used by this session:\n- modified "shared.ts"')

    await second.call(read('shared.ts'))
    expect(second.told).toEqual([])
    await second.call(edit('shared.ts', 'v2', 'v3'))
    expect(second.told).toEqual([])

    await first.call(quiet)
    expect(textOf(first.told)).toContain('- modified "shared.ts"')
    await first.end()
    await second.end()
    expect(first.notices).toHaveLength(1)
    expect(second.notices).toHaveLength(1)
  })

  it('is told that its edit is gone when the other one writes its old copy back by a command', async () => {
    const { first, second } = await two()
    await first.call(edit('shared.ts', 'v1', 'v2'))
    await second.call(write('shared.ts', 'v1\n'))
    expect(textOf(second.told)).toContain('  -v1\n  +v2\n')
    await first.call(quiet)
    expect(first.told).toEqual([])

    await second.call(shell('printf "v1\\n" > shared.ts'))
    await first.call(quiet)
    expect(textOf(first.told)).toContain(
      'Used by this session:\n- no longer holds what this session wrote, but what was there before: "shared.ts"',
    )
    await first.call(quiet)
    await first.end()
    expect(first.notices).toHaveLength(1)
    await second.end()
  })

  it('the other one is told of a new file, without a word about how it was written', async () => {
    const { first, second } = await two()
    await first.call(write('sub/new.ts', 'new\n'))
    await second.call(quiet)

    expect(textOf(second.told)).toContain('Other files:\n- created "sub/new.ts"')
    expect(textOf(second.told)).not.toContain('tmp')
    await second.call(quiet)
    await second.end()
    await first.end()
    expect(first.notices).toEqual([])
    expect(second.notices).toHaveLength(1)
  })

  it('each is told for itself: what one was told is not taken from the other', async () => {
    const { harness, first, second } = await two()
    harness.write('shared.ts', 'somebody else\n')
    await first.call(quiet)
    await first.call(quiet)
    await first.end()
    await second.call(quiet)
    await second.end()

    expect(categories(first.notices)).toEqual(['changes'])
    expect(categories(second.notices)).toEqual(['changes'])
  })

  it('goes on for the other one when one of them ends', async () => {
    const { harness, first, second } = await two()
    await first.end()
    await first.dispose()
    harness.write('own.ts', 'somebody else\n')
    await second.call(quiet)

    expect(textOf(second.told)).toContain('Other files:\n- modified "own.ts"')
    await second.end()
  })

  it('a session that begins after a change is not told of it', async () => {
    const { harness, first, second } = await two()
    for (let round = 0; round < 5; round++) {
      harness.write(`round-${round}.ts`, 'new\n')
      await first.call(quiet)
      expect(first.told).toHaveLength(1)
      const late = await harness.agent(`late-${round}`)
      await late.turn(quiet, quiet, quiet)
      expect(textOf(late.notices)).toBe('')
    }
    await first.end()
    await second.cancel()
  })

  it('does not tell one session of a root about another root', async () => {
    const harness = await boot({ files: { 'a/.git/HEAD': '', 'b/.git/HEAD': '', 'b/x.ts': 'x\n' } })
    const inA = await harness.agent('in-a', { cwd: 'a' })
    const inB = await harness.agent('in-b', { cwd: 'b' })
    await inA.prompt()
    await inB.prompt()
    await harness.live()
    harness.write('b/x.ts', 'y\n')
    await inB.call(quiet)
    await inA.call(quiet)
    await inA.end()
    await inB.end()

    expect(inA.notices).toEqual([])
    expect(textOf(inB.notices)).toContain('- modified "x.ts"')
  })
})

describe('a subagent', () => {
  it('inherits nothing that its parent has seen', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' }, config: { watch: { backend: 'off' } } })
    const parent = await harness.agent('parent')
    await parent.prompt()
    await parent.call(read('a.ts'))
    const child = await harness.agent('child', { parent })
    harness.write('a.ts', 'two\n')
    await child.turn(quiet)
    expect(child.notices).toEqual([])

    await parent.call(quiet)
    expect(textOf(parent.told)).toContain('- modified "a.ts"')
    await parent.end()
  })

  it('tells its parent by what it writes, and hears of what its parent writes', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n', 'b.ts': 'one\n' } })
    const parent = await harness.agent('parent')
    await parent.prompt()
    await parent.call(read('a.ts'))
    const child = await harness.agent('child', { parent })
    await child.prompt()
    await child.call(read('a.ts'), read('b.ts'))
    await child.call(edit('a.ts', 'one', 'two'))
    expect(child.told).toEqual([])

    await parent.call(read('b.ts'))
    expect(textOf(parent.told)).toContain('- modified "a.ts"')
    await parent.call(edit('b.ts', 'one', 'two'))
    await child.call(quiet)
    expect(textOf(child.told)).toContain('- modified "b.ts"')
    await child.end()
    await parent.end()
    expect(parent.notices).toHaveLength(1)
    expect(child.notices).toHaveLength(1)
  })
})
