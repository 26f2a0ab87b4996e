import { cpSync, renameSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { boot, type Harness, quiet, read, type TestAgent, write } from '../support/harness.ts'
import { command, commandText, withCommands } from '../support/services.ts'

const withAgent = async (
  files: Readonly<Record<string, string>>,
  config: Record<string, Record<string, unknown> | false> = {},
): Promise<{ harness: Harness; agent: TestAgent }> => {
  const harness = await boot({ files, config: config as Record<string, Record<string, unknown>> })
  await withCommands(harness)
  return { harness, agent: await harness.agent('main') }
}

const json = async (harness: Harness, agent: TestAgent, name: string): Promise<unknown> =>
  JSON.parse(await commandText(harness, agent, `/${name} --json`))

describe('/workspace', () => {
  it('shows root, coverage, watcher, files seen, what waits and what was told', async () => {
    const { harness, agent } = await withAgent({
      'a.ts': 'one\n',
      'b.ts': 'one\n',
      'out/x.js': 'one\n',
      '.gitignore': 'out/\n',
    })
    await agent.prompt()
    await harness.live()
    await agent.call(read('a.ts'))
    await agent.call(write('c.ts', 'one\n'))
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)
    harness.write('b.ts', 'two\n')
    harness.write('out/x.js', 'two\n')
    const status = await json(harness, agent, 'workspace')

    expect(status).toMatchObject({
      format: 1,
      session: 'session-main',
      root: harness.workspace,
      directory: harness.workspace,
      coverage: { kind: 'live' },
      settings: { source: 'row' },
      ignored: { directories: ['.git', 'node_modules'], git: true, files: [harness.path('.gitignore')] },
      seen: [
        { path: 'c.ts', state: 'present', tool: 'write', outdated: false },
        { path: 'a.ts', state: 'present', tool: 'read' },
      ],
      told: [{ category: 'changes', visible: true }],
    })
    const text = await commandText(harness, agent, '/workspace')
    expect(text).toMatch(/^Watcher: \w+, \d+ director(y|ies)$/m)
    expect(text).toMatch(/^Last wait: 0 s ago, [\d.]+ ms, /m)
    expect(text).toMatch(/^ {2}0 s ago {2}changes: .*a\.ts/m)
    await agent.call(read('b.ts'))
    await agent.end()
  })

  it('names what waits for the next request, without ignored files and without taking it', async () => {
    const { harness, agent } = await withAgent({ 'a.ts': 'one\n', 'out/x.js': '1\n', '.gitignore': 'out/\n' })
    await agent.prompt()
    await harness.live()
    harness.write('a.ts', 'two\n')
    harness.write('out/x.js', 'two\n')
    let text = ''
    await expect
      .poll(async () => (text = await commandText(harness, agent, '/workspace')), { timeout: 10_000 })
      .toContain('Waiting for the next request:\n  "a.ts"')
    expect(text).not.toContain('x.js')
    await agent.call(quiet)

    expect(agent.told.map(({ text: told }) => told).join()).toContain('"a.ts"')
    expect(await commandText(harness, agent, '/workspace')).toContain('Waiting for the next request: nothing')
    await agent.end()
  })

  it('says why watching is limited, and what helps', async () => {
    const { harness, agent } = await withAgent(
      {},
      { watch: { restartDelayMs: 3_600_000, maxRestartDelayMs: 3_600_000 } },
    )
    await agent.prompt()
    await harness.live()
    renameSync(harness.workspace, `${harness.workspace}.old`)
    cpSync(`${harness.workspace}.old`, harness.workspace, { recursive: true })
    await agent.call(quiet)
    const text = await commandText(harness, agent, '/workspace')

    expect(text).toMatch(/^Watching: degraded, /)
    expect(text).toContain('the workspace directory was moved, replaced or removed')
    expect(text).toContain('Remedy: put the directory back')
    await agent.end()
  })

  it('before the first request it knows the root', async () => {
    const { harness, agent } = await withAgent({})
    const text = await commandText(harness, agent, '/workspace')

    expect(text).toContain(`Root: "${harness.workspace}"`)
    expect(text).toContain('Last wait: none yet')
    expect(text).toContain('Files seen: none')
  })
})

describe('/instructions', () => {
  it('shows what is in force, what is not and why, and which names were looked for', async () => {
    const { harness, agent } = await withAgent(
      {
        'AGENTS.md': 'Root rule.\n',
        'CLAUDE.md': 'Root rule.\n',
        'agents.md': 'Never used.\n',
        'sub/AGENTS.md': 'Sub rule.\n',
        'sub/CLAUDE.md': 'x'.repeat(300),
        'sub/a.ts': '1\n',
      },
      { instructions: { maxSourceBytes: 200 } },
    )
    expect(await commandText(harness, agent, '/instructions')).toContain('not looked at yet')
    await agent.prompt()
    await agent.call(read('sub/a.ts'))
    const text = await commandText(harness, agent, '/instructions')

    expect(text).toMatch(/^Instruction files: 2 in force, 3 not, as of the last request\n/)
    expect(text).toMatch(
      / {2}"AGENTS\.md" {2}11 bytes, sha1 [0-9a-f]{10}, loaded \d+ s ago with the baseline, from the project root/,
    )
    expect(text).toMatch(
      / {2}"sub\/AGENTS\.md" {2}10 bytes, sha1 [0-9a-f]{10}, loaded \d+ s ago, the session has used this directory/,
    )
    expect(text).toContain('  "CLAUDE.md"  repeats "AGENTS.md"')
    expect(text).toContain('  "sub/CLAUDE.md"  not used: more than 200 bytes')
    expect(text).toContain('  "agents.md"  not used: wrong letter case, the name is "AGENTS.md"')
    expect(text).toContain('"AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md" in "sub/"')
    expect(await json(harness, agent, 'instructions')).toMatchObject({
      format: 1,
      state: 'on',
      files: [
        { path: harness.path('AGENTS.md'), state: 'in-force', loaded: { action: 'set', baseline: true } },
        { state: 'duplicate', duplicateOf: 'AGENTS.md' },
        { path: harness.path('sub/AGENTS.md'), state: 'in-force', loaded: { baseline: false } },
        { state: 'refused' },
      ],
      wrongCase: [{ path: 'agents.md', candidate: 'AGENTS.md' }],
    })
    await agent.end()
  })

  it('says that a replaced text was replaced, and by which digest', async () => {
    const { harness, agent } = await withAgent({ 'AGENTS.md': 'First.\n' })
    await agent.prompt()
    await harness.live()
    const before = await json(harness, agent, 'instructions')
    harness.write('AGENTS.md', 'Second.\n')
    await agent.call(quiet)
    const after = await json(harness, agent, 'instructions')

    expect(before).toMatchObject({ files: [{ loaded: { action: 'set' } }] })
    expect(after).toMatchObject({ files: [{ bytes: 8, loaded: { action: 'replace', baseline: false } }] })
    await agent.end()
  })

  it('says when it is switched off', async () => {
    const { harness, agent } = await withAgent({ 'AGENTS.md': 'First.\n' }, { instructions: false })
    expect(await commandText(harness, agent, '/instructions')).toContain('switched off')
  })
})

describe('both commands', () => {
  it.each(['workspace', 'instructions'])(
    '/%s refuses what it does not know, and says what is allowed',
    async (name) => {
      const { harness, agent } = await withAgent({})
      for (const rest of ['--jsn', 'src', '--json --json']) {
        expect(await command(harness, agent, `/${name} ${rest}`)).toEqual({
          kind: 'error',
          text: `/${name} does not know "${rest}"; allowed: nothing, or --json`,
        })
      }
      expect((await command(harness, agent, `/${name}   --json  `)).kind).toBe('success')
    },
  )

  it('tell the model nothing', async () => {
    const { harness, agent } = await withAgent({ 'a.ts': '1\n' })
    await agent.turn(read('a.ts'))
    await commandText(harness, agent, '/workspace')
    await commandText(harness, agent, '/instructions')
    const request = await agent.prompt()

    expect(JSON.stringify(request.messages)).not.toContain('Watching:')
    expect(JSON.stringify(request.messages)).not.toContain('Looked for:')
    await agent.end()
  })

  it('go with the plugin', async () => {
    const { harness, agent } = await withAgent({})
    const names = () => harness.ctx.commands.list(agent.agent).map(({ name }) => name)
    expect(names()).toEqual(['instructions', 'workspace'])
    await harness.unmount()
    expect(names()).toEqual([])
  })
})
