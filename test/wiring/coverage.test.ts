import { cpSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { boot, categories, type Harness, quiet, read, type TestAgent, textOf } from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'
import { waitFor } from '../support/wait.ts'

const NEVER = 3_600_000

const watched = async (watch: Record<string, unknown> = {}) => {
  const harness = await boot({ files: { 'used.ts': 'one\n', 'other.ts': 'one\n' }, config: { watch } })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('used.ts'))
  return { harness, agent }
}

/** Another directory in the place of the workspace, with the same files in it. */
const replaceWorkspace = ({ workspace }: Harness): void => {
  renameSync(workspace, `${workspace}.old`)
  cpSync(`${workspace}.old`, workspace, { recursive: true, preserveTimestamps: true })
}

const coverageLines = ({ notices }: TestAgent) => notices.filter(({ category }) => category === 'coverage')

describe('a watcher that cannot be trusted any more', () => {
  it('is told once, and used files are still told', async () => {
    const { harness, agent } = await watched({ restartDelayMs: NEVER, maxRestartDelayMs: NEVER })
    await harness.live()
    replaceWorkspace(harness)
    await agent.call(quiet)
    expect(coverageLines(agent).map(({ text }) => text)).toEqual([
      expect.stringContaining('Workspace changes cannot be followed completely at the moment'),
    ])
    await agent.call(read('used.ts'))

    harness.write('used.ts', 'two\n')
    await agent.call(quiet)
    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toContain('- modified "used.ts"')

    harness.write('other.ts', 'two\n')
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(textOf(agent.notices)).not.toContain('other.ts')
    expect(coverageLines(agent)).toHaveLength(1)
    expect(harness.errors).toHaveLength(1)
    expect(harness.errors[0]).toContain('Remedy:')
  })

  it('is told once as working again, and then follows files that the session has not used', async () => {
    const { harness, agent } = await watched({ restartDelayMs: 500, maxRestartDelayMs: 500 })
    await harness.live()
    renameSync(harness.workspace, `${harness.workspace}.away`)
    await agent.call(read('/nowhere'))
    expect(coverageLines(agent)).toHaveLength(1)
    renameSync(`${harness.workspace}.away`, harness.workspace)
    await harness.live()
    await agent.call(quiet)
    expect(categories(agent.told)).toContain('coverage')
    expect(textOf(agent.told)).toContain('followed completely again')

    harness.write('other.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Other files:\n- modified "other.ts"')
    await agent.end()
    await agent.turn(quiet)
    expect(coverageLines(agent)).toHaveLength(2)
  })

  it('is told to every session of the root', async () => {
    const { harness, agent } = await watched({ restartDelayMs: NEVER, maxRestartDelayMs: NEVER })
    const other = await harness.agent('other')
    await other.prompt()
    await harness.live()
    replaceWorkspace(harness)
    await agent.call(quiet)
    await other.call(quiet)

    expect(coverageLines(agent)).toHaveLength(1)
    expect(coverageLines(other)).toHaveLength(1)
    await agent.end()
    await other.end()
  })
})

describe('a workspace that is moved away and back', () => {
  it('is never "every file deleted"', async () => {
    const { harness, agent } = await watched({ restartDelayMs: 20, maxRestartDelayMs: 20 })
    await harness.live()
    renameSync(harness.workspace, `${harness.workspace}.away`)
    await agent.call(read('/nowhere'))
    await agent.call(read('/nowhere'))
    expect(textOf(agent.notices)).not.toMatch(/deleted|used\.ts/)

    renameSync(`${harness.workspace}.away`, harness.workspace)
    await harness.live()
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)
    expect(textOf(agent.notices)).not.toMatch(/deleted|created|modified/)
    await expectHearing(harness, agent, 'used.ts')
  })

  it('stays lost while it is away, however often the watcher tries', async () => {
    const { harness, agent } = await watched({ restartDelayMs: 1, maxRestartDelayMs: 1 })
    await harness.live()
    renameSync(harness.workspace, `${harness.workspace}.away`)
    for (let step = 0; step < 5; step++) await agent.call(read('/nowhere'))

    expect(textOf(coverageLines(agent))).not.toContain('completely again')
    expect(coverageLines(agent)).toHaveLength(1)
    await agent.end()
  })

  it('is told file by file when it comes back without them', async () => {
    const { harness, agent } = await watched({ restartDelayMs: NEVER, maxRestartDelayMs: NEVER })
    await harness.live()
    rmSync(harness.workspace, { recursive: true })
    await agent.call(read('/nowhere'))
    expect(textOf(agent.notices)).not.toContain('used.ts')
    mkdirSync(harness.workspace)
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- deleted "used.ts"')
    await agent.end()
  })
})

describe('while the first scan runs', () => {
  it('used files are told', async () => {
    const { harness, agent } = await watched()
    harness.write('used.ts', 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    expect(coverageLines(agent)).toEqual([])
    await agent.end()
  })
})

describe('a cwd that does not exist', () => {
  it('fails no step, and used files are told', async () => {
    const harness = await boot({ files: { 'a.ts': 'one\n' } })
    const agent = await harness.agent('main', { cwd: 'later' })
    await agent.prompt()
    await agent.call(read(harness.path('a.ts')))
    harness.write('a.ts', 'two\n')
    await agent.call(read(harness.path('missing.ts')))

    expect(textOf(agent.told)).toContain('- modified "')
    await agent.end()
    expect(harness.errors).toEqual([])
  })
})

describe('the backend "off"', () => {
  it('tells used files and nothing else', async () => {
    const { harness, agent } = await watched({ backend: 'off' })
    await harness.covered('off')
    harness.write('used.ts', 'two\n')
    harness.write('other.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    expect(textOf(agent.told)).not.toContain('other.ts')

    harness.save('used.ts', 'three\n')
    expect(await agent.finish()).toBeDefined()
    expect(textOf(agent.told)).toContain('- modified "used.ts"')
    await agent.end()
    expect(coverageLines(agent)).toEqual([])
  })
})

describe('the backend "polling"', () => {
  it('tells used files at once, and other files after a scan', async () => {
    const { harness, agent } = await watched({ backend: 'polling', pollIntervalMs: 20 })
    await harness.live()
    harness.write('used.ts', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "used.ts"')

    harness.write('other.ts', 'two\n')
    await waitFor(
      async () => {
        await agent.call(quiet)
        return agent.told.length > 0
      },
      { timeoutMs: 15_000, describe: 'the other file is told' },
    )
    expect(textOf(agent.told)).toContain('- modified "other.ts"')
    await agent.end()
    expect(coverageLines(agent)).toEqual([])
  })
})

describe('directories named in "ignoredDirectories"', () => {
  it('are silent, except for files in them that the session has used', async () => {
    const harness = await boot({
      files: { 'node_modules/dep/index.js': 'one\n', 'node_modules/dep/other.js': 'one\n' },
    })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('node_modules/dep/index.js'))
    await harness.live()
    harness.write('node_modules/dep/other.js', 'two\n')
    harness.write('.git/index', 'two\n')
    await agent.call(quiet)
    expect(agent.told).toEqual([])

    harness.write('node_modules/dep/index.js', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "node_modules/dep/index.js"')
    expect(textOf(agent.told)).not.toContain('other.js')
    await agent.end()
  })
})

describe('a repository inside of the workspace that its rules ignore', () => {
  it('is silent, except for files in it that the session has used', async () => {
    const harness = await boot({
      files: {
        '.gitignore': 'vendor/\n',
        'vendor/sub/.git/HEAD': 'ref: refs/heads/main\n',
        'vendor/sub/x.c': 'one\n',
        'vendor/sub/y.c': 'one\n',
      },
    })
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('vendor/sub/x.c'))
    await harness.live()
    harness.write('vendor/sub/y.c', 'two\n')
    harness.write('vendor/sub/new.c', 'new\n')
    await agent.call(quiet)
    expect(agent.told).toEqual([])

    harness.write('vendor/sub/x.c', 'two\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Used by this session:\n- modified "vendor/sub/x.c"')
    expect(textOf(agent.told)).not.toMatch(/y\.c|new\.c/)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })
})
