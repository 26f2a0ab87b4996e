/** Much that happens in a workspace is nobody's news, and costs a boundary next to nothing. */
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { git, gitEnvironment } from '../support/git.ts'
import { boot, type Harness, quiet, read, shell, type TestAgent, textOf } from '../support/harness.ts'

const run = promisify(execFile)

/** Somebody else runs a command, while the watcher hears what it does. */
const sh = async ({ workspace }: Harness, command: string) =>
  run('sh', ['-ec', command], { cwd: workspace, env: gitEnvironment })

const repository = async (files: Readonly<Record<string, string>>) => {
  const harness = await boot({ files, git: false })
  git(harness.workspace, 'init', '-q', '-b', 'main')
  git(harness.workspace, 'add', '-A')
  git(harness.workspace, 'commit', '-qm', 'one')
  const agent = await harness.agent('main')
  // What the bundle itself makes there must not be the news.
  mkdirSync(harness.path('../dsh-home'), { recursive: true })
  await agent.prompt()
  await agent.call(read('a.ts'))
  await harness.live()
  await agent.call(quiet)
  return { harness, agent }
}

/** Questions to the filesystem service that a step leads to. */
const costOf = async ({ probe }: Harness, agent: TestAgent, call = quiet): Promise<number> => {
  const before = probe.stats
  await agent.call(call)
  return probe.stats - before
}

describe('git commands that only look', () => {
  const looking = (times: number) =>
    `for i in $(seq ${times}); do git status --short; done; git log -1; git diff; git ls-files`

  it('are silent, a hundred of them, and cost no more than a quiet step', async () => {
    const { harness, agent } = await repository({ 'a.ts': 'one\n', 'b.ts': 'one\n' })
    const quietStep = await costOf(harness, agent)
    expect(quietStep).toBeGreaterThan(0)
    expect(await costOf(harness, agent, shell(looking(100)))).toBe(quietStep)
    await sh(harness, looking(3))
    expect(await costOf(harness, agent)).toBe(quietStep)
    expect(agent.notices).toEqual([])

    harness.write('b.ts', 'two\n')
    expect(await costOf(harness, agent)).toBeGreaterThan(quietStep)
    expect(textOf(agent.told)).toContain('- modified "b.ts"')
    await agent.end()
  })
})

describe('two thousand files in a directory that git ignores', () => {
  it('are silent, and not one of them is asked about', async () => {
    const { harness, agent } = await repository({ 'a.ts': 'one\n', '.gitignore': 'image_jobs/\n' })
    await sh(harness, 'mkdir image_jobs; cd image_jobs; seq -f frame-%.0f.png 2000 | xargs touch')
    // The used file is asked about, twice where the watcher was too busy to answer.
    expect(await costOf(harness, agent)).toBeLessThanOrEqual(2)
    expect(agent.notices).toEqual([])

    harness.write('frame.png', 'x\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Other files:\n- created "frame.png"')
    expect(textOf(agent.told)).not.toContain('image_jobs')
    await agent.end()
  })
})

describe('forty files that a person changes and the session has never used', () => {
  const names = Array.from({ length: 40 }, (_, n) => `app/part-${n % 4}/file-${n}.ts`)
  const files = Object.fromEntries(names.map((name) => [name, 'one\n']))

  it('are one line with their number and their directories', async () => {
    const { harness, agent } = await repository({ 'a.ts': 'one\n', ...files })
    for (const name of names) harness.write(name, 'two\n')
    await agent.call(quiet)
    expect(agent.told).toHaveLength(1)
    expect(textOf(agent.told).split('\n').slice(2, -2)).toEqual([
      '- 40 more paths: 10 in "app/part-0/", 10 in "app/part-1/", 10 in "app/part-2/", 10 in "app/part-3/"',
    ])
    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('leave room for a file that changed with them: beside a used one, or alone in its directory', async () => {
    const { harness, agent } = await repository({ 'a.ts': 'one\n', 'docs/plan.md': 'one\n', ...files })
    for (const name of [...names, 'docs/plan.md', 'beside.ts']) harness.write(name, 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told).split('\n').slice(2, -2)).toEqual([
      'Other files:',
      '- created "beside.ts"',
      '- modified "docs/plan.md"',
      '- 40 more paths: 10 in "app/part-0/", 10 in "app/part-1/", 10 in "app/part-2/", 10 in "app/part-3/"',
    ])
    await agent.end()
  })
})

describe('files that somebody else has made', () => {
  it("are told as none of the session's, to be left as they are", async () => {
    const { harness, agent } = await repository({ 'a.ts': 'one\n' })
    harness.write('feature/work.ts', 'somebody is at work here\n')
    await agent.call(shell('git status --short'))
    expect(textOf(agent.told)).toContain("outside this session's recorded file operations")
    expect(textOf(agent.told)).toContain('- created "feature/work.ts"')
    expect(textOf(agent.told)).toContain('Leave these changes as they are unless asked to undo them.')
    expect(textOf(agent.told)).toContain('carry on')
    await agent.end()
  })

  it('are not said to be left alone where a command of the session may have made them', async () => {
    const { agent } = await repository({ 'a.ts': 'one\n' })
    await agent.call(shell('mkdir out; echo x > out/x.js'))
    expect(textOf(agent.told)).toContain('- created "out/x.js"')
    expect(textOf(agent.told)).not.toContain('Leave these changes')
    await agent.end()
  })
})
