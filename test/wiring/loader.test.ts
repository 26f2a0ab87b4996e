/** The row as a profile mounts it: through the real loader, with rows that come, change and go. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Context } from '@deepseek-ai/cordis'
import { Loader } from '@deepseek-ai/cordis-plugin-loader'
import { SessionId } from '@deepseek-ai/dsh-session'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { categories, edit, read, TestAgent, textOf, write } from '../support/harness.ts'
import { ScriptedAdapter } from '../support/scripted-adapter.ts'

const OURS = new URL('../../src/index.ts', import.meta.url).href
const PROVIDER = 'scripted'

const require = createRequire(import.meta.url)
/** A package of the host, also one that only the command itself depends on. */
const packageOf = (name: string): string => {
  const command = createRequire(require.resolve('@deepseek-ai/dsh/package.json'))
  const base = createRequire(command.resolve('@deepseek-ai/dsh-base/package.json'))
  return pathToFileURL(base.resolve(`@deepseek-ai/${name}`)).href
}

const CORE = ['agent', 'session', 'llm', 'system-prompt', 'tools', 'tool-fs', 'agent-loop']
const FILES = ['fs-local', 'fs-observation-policy']

/** Rows of a loader, by name, and one agent whose model a test stands in for. */
class Rows {
  readonly ctx = new Context()
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-loader-')))
  readonly workspace = join(this.base, 'workspace')
  readonly errors: string[] = []
  readonly #ids = new Map<string, string>()
  readonly #agents: TestAgent[] = []

  static async load(names: readonly string[]): Promise<Rows> {
    const rows = new Rows()
    mkdirSync(join(rows.workspace, '.git'), { recursive: true })
    vi.stubEnv('DSH_HOME', join(rows.base, 'dsh-home'))
    rows.ctx.logger.exporter({
      export: ({ type, args }) => {
        if (type === 'error') rows.errors.push(args.map(String).join(' '))
      },
    })
    const loader = rows.ctx.plugin(Loader)
    await loader
    onTestFinished(async () => {
      for (const agent of rows.#agents) await agent.dispose()
      await loader.dispose()
      vi.unstubAllEnvs()
      rmSync(rows.base, { recursive: true })
    })
    for (const name of names) await rows.add(name)
    await rows.ctx.loader.await()
    rows.ctx.llm.registerAdapter(
      [PROVIDER],
      new ScriptedAdapter((request) =>
        rows.#agents.find(({ session }) => String(session.id) === request.sessionId)?.arrived(request),
      ),
    )
    return rows
  }

  /** @param config - of the row; the filesystem's own default is the workspace. */
  async add(name: string, config: Record<string, unknown> = {}): Promise<void> {
    const given = name === 'fs-local' ? { cwd: this.workspace, ...config } : config
    const id = await this.ctx.loader.create({
      name: name === 'ours' ? OURS : packageOf(`dsh-${name}`),
      config: given,
    })
    this.#ids.set(name, id)
  }

  #id(name: string): string {
    const id = this.#ids.get(name)
    if (id === undefined) throw new Error(`there is no row ${name}`)
    return id
  }

  async change(name: string, options: { config?: unknown; disabled?: boolean }): Promise<void> {
    await this.ctx.loader.update(this.#id(name), options)
    await this.ctx.loader.await()
  }

  async remove(name: string): Promise<void> {
    await this.ctx.loader.remove(this.#id(name))
  }

  async agent(): Promise<TestAgent> {
    const handle = await this.ctx.agents.create({
      sessionId: SessionId('session-main'),
      meta: { cwd: this.workspace },
      agentOptions: { provider: PROVIDER, model: 'scripted-1' },
    })
    const agent = new TestAgent('main', handle)
    this.#agents.push(agent)
    return agent
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.workspace, name), text)
  }
}

/** A call that reads nothing which changes. */
const look = read('untouched.ts')

const withReadFile = async (names: readonly string[]) => {
  const rows = await Rows.load(names)
  rows.write('a.ts', 'one\n')
  rows.write('untouched.ts', 'one\n')
  const agent = await rows.agent()
  await agent.prompt()
  await agent.call(read('a.ts'), look)
  return { rows, agent }
}

const tellsChanges = async ({ rows, agent }: Awaited<ReturnType<typeof withReadFile>>): Promise<void> => {
  rows.write('a.ts', 'two\n')
  await agent.call(look)
  expect(categories(agent.told)).toEqual(['changes'])
  expect(textOf(agent.told)).toContain('- modified "a.ts"')
  await agent.call(edit('a.ts', 'two', 'three'), write('b.ts', 'b\n'))
  await agent.end()
  expect(agent.notices).toHaveLength(1)
  expect(rows.errors).toEqual([])
}

describe('the row among those of a profile', () => {
  it.each([
    ['after all others', [...CORE, ...FILES, 'ours']],
    ['before all others', ['ours', ...FILES, ...CORE]],
    ['with commands', [...CORE, ...FILES, 'commands', 'ours']],
    ['with settings', ['settings-file', ...CORE, ...FILES, 'ours']],
    ['with both, which come later', ['ours', ...CORE, ...FILES, 'commands', 'settings-file']],
  ])('works: %s', async (_what, names) => {
    await tellsChanges(await withReadFile(names))
  })
})

describe('without a filesystem service', () => {
  it('mounts, lets every step go on, and works as soon as there is one', async () => {
    const rows = await Rows.load([...CORE, 'ours'])
    rows.write('a.ts', 'one\n')
    rows.write('untouched.ts', 'one\n')
    const agent = await rows.agent()
    await agent.prompt()
    await agent.call(look)
    expect(agent.notices).toEqual([])

    for (const name of FILES) await rows.add(name)
    await rows.ctx.loader.await()
    await agent.call(read('a.ts'), look)
    await tellsChanges({ rows, agent })
  })

  it('goes on where the service is taken away in the middle of a turn, and comes back', async () => {
    const { rows, agent } = await withReadFile([...CORE, ...FILES, 'ours'])
    await rows.remove('fs-local')
    rows.write('a.ts', 'while it was away\n')
    await agent.call(look)
    expect(agent.notices).toEqual([])
    await rows.add('fs-local')
    await rows.ctx.loader.await()
    await agent.call(look)

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
    expect(rows.errors.filter((error) => error.includes('dsh-live-workspace'))).toEqual([])
  })
})

describe('a row that changes while a turn runs', () => {
  it('goes on with its new settings and what the session has seen', async () => {
    const { rows, agent } = await withReadFile([...CORE, ...FILES, 'ours'])
    await rows.change('ours', { config: { notice: { showHunks: false } } })
    rows.write('a.ts', 'two\n')
    await agent.call(look)
    expect(categories(agent.told)).toEqual(['changes'])
    expect(textOf(agent.told)).toMatch(/- modified "a\.ts"\n[^ ]/)

    await rows.change('ours', { config: {} })
    await agent.call(look)
    await agent.end()
    expect(agent.notices).toHaveLength(1)
    expect(rows.errors).toEqual([])
  })

  it('keeps its old settings where the new ones are refused, and says so', async () => {
    const { rows, agent } = await withReadFile([...CORE, ...FILES, 'ours'])
    const refused = rows.change('ours', { config: { notice: { maxNoticePaths: 0 } } })
    await expect(refused).rejects.toThrow('notice.maxNoticePaths is 0; allowed: a whole number from 1')
    rows.write('a.ts', 'two\n')
    await agent.call(look)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('is silent once it is removed, and the turn ends', async () => {
    const { rows, agent } = await withReadFile([...CORE, ...FILES, 'ours'])
    await rows.remove('ours')
    rows.write('a.ts', 'two\n')
    await agent.call(look)
    await agent.end()

    expect(agent.notices).toEqual([])
    expect(rows.errors).toEqual([])
  })

  it('tells what changed while it was switched off, once', async () => {
    const { rows, agent } = await withReadFile([...CORE, ...FILES, 'ours'])
    await rows.change('ours', { disabled: true })
    rows.write('a.ts', 'two\n')
    await agent.call(look)
    expect(agent.notices).toEqual([])
    await rows.change('ours', { disabled: false })
    await agent.call(look)
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.call(look)
    await agent.end()

    expect(agent.notices).toHaveLength(1)
  })
})
