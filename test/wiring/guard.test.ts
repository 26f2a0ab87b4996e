/** The harness's read-before-write guard, in situations in which nothing that the session saw has changed. */
import { execFile } from 'node:child_process'
import { copyFileSync, readFileSync, utimesSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  boot,
  edit,
  type HarnessOptions,
  quiet,
  read,
  resultsIn,
  type TestAgent,
  textOf,
  write,
} from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'
import { git } from '../support/git.ts'

const ORIGINAL = 'export const a = 1\nexport const b = 1\n'
const REFUSED = /changed since/

const readFile = async (text = ORIGINAL, options: HarnessOptions = {}) => {
  const harness = await boot({ files: { 'a.ts': text }, ...options })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('a.ts'))
  await harness.live()
  return { harness, agent, path: harness.path('a.ts') }
}

const lastResult = ({ request }: TestAgent): string => resultsIn(request).at(-1) ?? ''

/** The model edits a file without a word of ours and without a refusal. */
const expectEdit = async (agent: TestAgent, path: string, before: string, after: string) => {
  const told = agent.notices.length
  await agent.call(edit('a.ts', before, after))
  expect(lastResult(agent)).not.toMatch(REFUSED)
  expect(readFileSync(path, 'utf8')).toContain(after)
  await agent.call(quiet)
  expect(textOf(agent.notices.slice(told))).toBe('')
}

const touch = (path: string, seconds: number) => {
  const time = new Date(1_700_000_000_000 + seconds * 1_000)
  utimesSync(path, time, time)
}

describe('a file with the line ends of Windows', () => {
  it('is edited without a word, keeps them, and only a real change of it is told', async () => {
    const { harness, agent, path } = await readFile(ORIGINAL.replaceAll('\n', '\r\n'))
    await expectEdit(agent, path, 'a = 1', 'a = 2')
    touch(path, 0)
    await expectEdit(agent, path, 'a = 2', 'a = 3')
    expect(readFileSync(path, 'utf8')).toBe(ORIGINAL.replace('a = 1', 'a = 3').replaceAll('\n', '\r\n'))
    harness.write('a.ts', readFileSync(path, 'utf8').replace('b = 1', 'b = 2'))
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "a.ts" (+1 −1 lines)\n')
    expect(textOf(agent.told)).not.toContain('line endings')
    await agent.end()
  })
})

describe('the time of a file that moves again by itself after an own write', () => {
  it('is no news after a whole write, and after an edit', async () => {
    const { harness, agent, path } = await readFile()
    await agent.call(write('a.ts', ORIGINAL.replace('a = 1', 'a = 2')))
    touch(path, 1)
    await expectEdit(agent, path, 'a = 2', 'a = 3')
    touch(path, 2)
    await agent.call(quiet)
    touch(path, 3)
    await expectEdit(agent, path, 'a = 3', 'a = 4')
    await agent.call(write('new.ts', 'new\n'))
    touch(harness.path('new.ts'), 4)
    await agent.call(write('new.ts', 'newer\n'))
    expect(lastResult(agent)).not.toMatch(REFUSED)
    expect(readFileSync(harness.path('new.ts'), 'utf8')).toBe('newer\n')
    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'a.ts')
  })
})

describe('a file that is put away and brought back', () => {
  it('by git stash is no news, and the next edit passes', async () => {
    const harness = await boot({ files: { 'a.ts': ORIGINAL }, git: false })
    const { workspace } = harness
    git(workspace, 'init', '-q', '-b', 'main')
    git(workspace, 'add', '-A')
    git(workspace, 'commit', '-qm', 'one')
    harness.write('a.ts', ORIGINAL.replace('b = 1', 'b = 2'))
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    await harness.live()
    for (const round of [1, 2]) {
      git(workspace, 'stash', '-q')
      expect(readFileSync(harness.path('a.ts'), 'utf8')).toContain('b = 1')
      git(workspace, 'stash', 'pop', '-q')
      await expectEdit(agent, harness.path('a.ts'), `a = ${round}`, `a = ${round + 1}`)
    }
    await expectHearing(harness, agent, 'a.ts')
  })

  const run = promisify(execFile)

  it('between two requests is no news with the same bytes, and one change with others', async () => {
    const { harness, agent, path } = await readFile()
    copyFileSync(path, `${harness.base}/copy`)
    const replace = async () =>
      run('sh', ['-ec', `rm a.ts; sleep .05; cp ${harness.base}/copy a.ts`], { cwd: harness.workspace })
    await replace()
    await expectEdit(agent, path, 'a = 1', 'a = 2')
    harness.write(`${harness.base}/copy`, 'something else\n')
    await replace()
    await agent.call(quiet)
    expect(agent.told).toHaveLength(1)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    expect(textOf(agent.told)).not.toMatch(/deleted|created/)
    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })
})

describe('a compaction', () => {
  // Long enough that its summary is shorter.
  const LONG =
    ORIGINAL + Array.from({ length: 120 }, (_, n) => `// line ${n} of a file that is long\n`).join('')

  it('leaves an unchanged file editable without reading it again', async () => {
    const { harness, agent, path } = await readFile(LONG, { compaction: true })
    await agent.end()
    await harness.compact(agent)
    await agent.prompt()
    await expectEdit(agent, path, 'a = 1', 'a = 2')
    await expectHearing(harness, agent, 'a.ts')
  })

  it('leaves it editable after a touch, too', async () => {
    const { harness, agent, path } = await readFile(LONG, { compaction: true })
    await agent.end()
    await harness.compact(agent)
    touch(path, 0)
    await agent.prompt()
    await expectEdit(agent, path, 'a = 1', 'a = 2')
    await expectHearing(harness, agent, 'a.ts')
  })
})

describe('a file that was told to be changed, forty steps ago', () => {
  const later = async (text: string) => {
    const { harness, agent, path } = await readFile()
    harness.write('a.ts', text)
    await agent.call(quiet)
    expect(agent.told).toHaveLength(1)
    for (let step = 0; step < 40; step++) await agent.call(quiet)
    return { agent, path }
  }

  it('cannot be edited without reading it, when the change was not shown', async () => {
    const text = ORIGINAL + 'one line of very many\n'.repeat(400)
    const { agent, path } = await later(text)
    await agent.call(edit('a.ts', 'a = 1', 'a = 2'))
    expect(lastResult(agent)).toMatch(REFUSED)
    expect(readFileSync(path, 'utf8')).toBe(text)
    await agent.call(read('a.ts'))
    await agent.call(edit('a.ts', 'a = 1', 'a = 2'))
    expect(readFileSync(path, 'utf8')).toBe(text.replace('a = 1', 'a = 2'))
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('can be edited as if it had been read, when the whole change was shown', async () => {
    const { agent, path } = await later(ORIGINAL.replace('b = 1', 'b = 2'))
    await agent.call(edit('a.ts', 'a = 1', 'a = 2'))
    expect(readFileSync(path, 'utf8')).toBe('export const a = 2\nexport const b = 2\n')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })
})
