/**
 * The host's real services in one process, with a scripted model, around this plugin.
 *
 * A test stands in for the model: each call of {@link TestAgent} runs the agent up to its next request
 * and hands control back, so that whatever the test does in between happens between two requests.
 */
import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Context, type Fiber, type Plugin } from '@deepseek-ai/cordis'
import { AgentRegistry, type Agent, type AgentHandle } from '@deepseek-ai/dsh-agent'
import { AgentLoop } from '@deepseek-ai/dsh-agent-loop'
import type { CompactionResult } from '@deepseek-ai/dsh-compaction'
import { BasicCompactionEngine } from '@deepseek-ai/dsh-compaction-basic'
import * as observationPolicy from '@deepseek-ai/dsh-fs-observation-policy'
import { CallId, createUserMessage, LlmRuntime, type Message } from '@deepseek-ai/dsh-llm'
import { SessionId, SessionStore, type Session } from '@deepseek-ai/dsh-session'
import { JsonlSessionPersistence } from '@deepseek-ai/dsh-session-persistence-jsonl'
import { SystemPrompt } from '@deepseek-ai/dsh-system-prompt'
import * as toolFs from '@deepseek-ai/dsh-tool-fs'
import { defineTool, ToolRuntime, type ToolRunContext } from '@deepseek-ai/dsh-tools'
import { onTestFinished, vi } from 'vitest'
import * as liveWorkspace from '../../src/index.ts'
import { WatchRegistry } from '../../src/watch/registry.ts'
import { FsProbe, probedFileSystem } from './probed-fs.ts'
import { type ModelRequest, type Reply, ScriptedAdapter, type ToolCall } from './scripted-adapter.ts'
import { ourMessages, type OurMessage, readEvent } from './session-log.ts'
import { waitFor, within } from './wait.ts'

export type { ModelRequest, ToolCall } from './scripted-adapter.ts'

const PROVIDER = 'scripted'
const MODEL = 'scripted-1'
const LIMIT_MS = 20_000

type Settings = Readonly<Record<string, unknown>>

/** Raw configuration of the plugin's row. */
export interface RawConfig extends Settings {
  readonly watch?: Settings
  readonly notice?: Settings
  readonly resume?: Settings
}

export interface HarnessOptions {
  /** Files of the workspace, by relative path. */
  readonly files?: Readonly<Record<string, string>>
  /** Raw configuration of the plugin; `false` leaves the plugin out until {@link Harness.mount}. */
  readonly config?: RawConfig | false
  /** Make an empty `.git`, so that the workspace is a project root. Default true. */
  readonly git?: boolean
  readonly compaction?: boolean
  readonly persistence?: boolean
  /** The filesystem service shows another machine's files. */
  readonly remote?: boolean
}

export interface AgentSetup {
  /** Relative to the workspace, or absolute. Default: the workspace. */
  readonly cwd?: string
  /** The agent that creates this one as its subagent. */
  readonly parent?: TestAgent
}

export const read = (path: string, range: { offset?: number; limit?: number } = {}): ToolCall => ({
  name: 'read',
  args: { file_path: path, ...range },
})
export const write = (path: string, content: string): ToolCall => ({
  name: 'write',
  args: { file_path: path, content },
})
export const edit = (path: string, oldString: string, newString: string): ToolCall => ({
  name: 'edit',
  args: { file_path: path, old_string: oldString, new_string: newString },
})
/** A command that the host does not observe. */
export const shell = (command: string): ToolCall => ({ name: 'shell', args: { command } })
export const quiet = shell('true')
/** Calls made by one outer call, as a code mode makes them; `fail` makes the outer one fail afterwards. */
export const batch = (calls: readonly ToolCall[], { fail = false } = {}): ToolCall => ({
  name: 'batch',
  args: { calls, fail },
})

/** One agent, and the model behind it. */
export class TestAgent {
  readonly name: string
  readonly requests: ModelRequest[] = []
  #handle: AgentHandle
  #waiting = Promise.withResolvers<void>()

  constructor(name: string, handle: AgentHandle) {
    this.name = name
    this.#handle = handle
  }

  get agent(): Agent {
    return this.#handle.agent
  }

  get session(): Session {
    return this.agent.session
  }

  /** The request that waits for an answer, or was answered last. */
  get request(): ModelRequest {
    const request = this.requests.at(-1)
    if (!request) throw new Error(`${this.name} has made no request`)
    return request
  }

  /** A user's message. @returns the request that it leads to, if any. */
  async submit(text = 'Go on.'): Promise<ModelRequest | undefined> {
    return this.#until(() => this.agent.followup(userMessage(text)))
  }

  /** A user's message that leads to a request. */
  async prompt(text?: string): Promise<ModelRequest> {
    return this.#expectRequest(await this.submit(text))
  }

  /** The model answers with these calls, which lead to a further request. */
  async call(...calls: readonly ToolCall[]): Promise<ModelRequest> {
    return this.#expectRequest(await this.answer({ calls }))
  }

  /** The model answers. @returns the next request, or `undefined` once the agent is idle. */
  async answer(reply: Reply): Promise<ModelRequest | undefined> {
    return this.#until(() => this.request.reply(reply))
  }

  /** The model gives its final answer. @returns the request that a notice has steered, if any. */
  async finish(text = 'Done.'): Promise<ModelRequest | undefined> {
    return this.answer({ text })
  }

  /** The model gives its final answer, and the turn ends with it. */
  async end(): Promise<void> {
    const request = await this.finish()
    if (request) throw new Error(`${this.name} was steered: ${textOf(toldIn(request, this))}`)
  }

  /** One whole turn without a steered step. */
  async turn(...calls: readonly ToolCall[]): Promise<void> {
    await this.prompt()
    for (const call of calls) await this.call(call)
    await this.end()
  }

  /** The user cancels the open turn. */
  async cancel(): Promise<void> {
    this.agent.cancel({ kind: 'user' })
    await this.idle()
  }

  async idle(): Promise<void> {
    await within(this.agent.whenIdle(), { timeoutMs: LIMIT_MS, describe: `${this.name} is idle` })
  }

  /** Everything that this plugin has told, as the session log holds it. */
  get notices(): readonly OurMessage[] {
    return ourMessages({ events: this.session.events.map(readEvent) })
  }

  /** What the latest request carried of ours for the first time. */
  get told(): readonly OurMessage[] {
    return toldIn(this.request, this)
  }

  async dispose(): Promise<void> {
    await this.#handle.dispose()
  }

  /** The same session, carried on by another agent. */
  adopt(handle: AgentHandle): void {
    this.#handle = handle
  }

  /** A request has reached the model. */
  arrived(request: ModelRequest): void {
    this.requests.push(request)
    this.#waiting.resolve()
  }

  /** Runs until the next request is there, or until nothing is left to do. */
  async #until(act: () => void): Promise<ModelRequest | undefined> {
    const before = this.requests.length
    this.#waiting = Promise.withResolvers()
    act()
    const limits = { timeoutMs: LIMIT_MS, describe: `a request of ${this.name}, or its end` }
    await within(Promise.race([this.#waiting.promise, this.agent.whenIdle()]), limits)
    return this.requests[before]
  }

  #expectRequest(request: ModelRequest | undefined): ModelRequest {
    if (!request) throw new Error(`${this.name} made no request: ${JSON.stringify(lastEnd(this.session))}`)
    return request
  }
}

/** What a request carried of ours that no earlier one did. */
export const toldIn = (request: ModelRequest, agent: TestAgent): readonly OurMessage[] => {
  const earlier = agent.requests.slice(0, agent.requests.indexOf(request))
  const known = new Set(earlier.flatMap(({ messages }) => messages.map(({ id }) => id)))
  const fresh = request.messages.filter(({ id }) => !known.has(id))
  return ourMessages({
    events: fresh.map((data, seq) => readEvent({ seq, type: 'user/message', data })),
  })
}

export const textOf = (notices: readonly OurMessage[]): string => notices.map(({ text }) => text).join('\n')
export const categories = (notices: readonly OurMessage[]): string[] =>
  notices.map(({ category }) => category)

/** Text of the tool results that a request carried. */
export const resultsIn = ({ messages }: { readonly messages: readonly Message[] }): string[] =>
  messages.flatMap(({ content }) =>
    content.flatMap((block) => (block.type === 'tool-result' ? [JSON.stringify(block.content)] : [])),
  )

const userMessage = (text: string) =>
  createUserMessage({ content: [{ type: 'text', text }], source: { kind: 'user' } })

const lastEnd = (session: Session) => session.events.findLast((event) => event.type === 'turn/end')?.data

/** A harness that is disposed at the end of the running test. */
export const boot = async (options?: HarnessOptions): Promise<Harness> => {
  const harness = await Harness.boot(options)
  onTestFinished(async () => harness.dispose())
  return harness
}

/** The composition. */
export class Harness {
  readonly ctx = new Context()
  readonly probe = new FsProbe()
  /** Real path of the workspace. */
  readonly workspace: string
  /** Directory of everything that this composition writes. */
  readonly base: string
  readonly agents = new Map<string, TestAgent>()
  /** Problems reported to the person who runs the host. */
  readonly errors: string[] = []
  readonly #fibers: Fiber[] = []
  readonly #dshHome = process.env['DSH_HOME']
  readonly #joins = vi.spyOn(WatchRegistry.prototype, 'join')
  #plugin: Fiber | undefined
  #expectedJoins = 0

  private constructor({ files = {}, git = true }: HarnessOptions) {
    this.base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-wiring-')))
    this.workspace = join(this.base, 'workspace')
    mkdirSync(this.workspace)
    if (git) mkdirSync(join(this.workspace, '.git'))
    for (const [path, text] of Object.entries(files)) this.write(path, text)
    process.env['DSH_HOME'] = join(this.base, 'dsh-home')
    this.ctx.logger.exporter({
      export: ({ type, args }) => {
        if (type === 'error') this.errors.push(args.map(String).join(' '))
      },
    })
  }

  static async boot(options: HarnessOptions = {}): Promise<Harness> {
    const harness = new Harness(options)
    try {
      await harness.#compose(options)
    } catch (error) {
      await harness.dispose()
      throw error
    }
    return harness
  }

  async #compose({
    config = {},
    compaction = false,
    persistence = false,
    remote = false,
  }: HarnessOptions): Promise<void> {
    const { ctx } = this
    await this.use(AgentRegistry)
    await this.use(SessionStore)
    await this.use(LlmRuntime)
    await this.use(SystemPrompt)
    await this.use(ToolRuntime)
    this.probe.remote = remote
    await this.use(probedFileSystem(this.probe), { cwd: this.workspace })
    await this.use(observationPolicy)
    await this.use(toolFs)
    await this.use({ name: 'test-tools', inject: ['tools'], apply: registerTools })
    if (persistence) {
      await this.use(JsonlSessionPersistence, { root: join(this.base, 'sessions'), compression: 'none' })
    }
    await this.use(AgentLoop)
    if (compaction) {
      await this.use(await hostPlugin('@deepseek-ai/dsh-compaction-basic', '@deepseek-ai/dsh-token-meter'))
      await this.use(BasicCompactionEngine, { auto: false })
    }
    ctx.llm.registerAdapter(
      [PROVIDER],
      new ScriptedAdapter((request) => {
        const agent = [...this.agents.values()].find(
          ({ session }) => String(session.id) === request.sessionId,
        )
        if (!agent) throw new Error(`a request of the unknown session ${request.sessionId}`)
        agent.arrived(request)
      }),
    )
    if (config !== false) await this.mount(config)
  }

  /** Load a plugin; it is disposed with the harness. */
  async use(plugin: Plugin, config: unknown = {}): Promise<Fiber> {
    const fiber = this.ctx.registry.plugin(plugin, config)
    this.#fibers.push(fiber)
    await fiber
    return fiber
  }

  /** Load this plugin. Boundaries may wait long: a busy machine must not decide what is told. */
  async mount(config: RawConfig = {}): Promise<void> {
    this.#expectedJoins = this.#joins.mock.calls.length + this.ctx.agents.list().length
    const patient = { ...config, watch: { maxWaitMs: LIMIT_MS / 2, ...config.watch } }
    const fiber = this.ctx.registry.plugin(liveWorkspace, patient)
    this.#plugin = fiber
    await fiber
  }

  /** Dispose this plugin alone. */
  async unmount(): Promise<void> {
    await this.#plugin?.dispose()
    this.#plugin = undefined
  }

  /** What an edit of the row's configuration does: dispose and apply while sessions live. */
  async reload(config: RawConfig = {}): Promise<void> {
    await this.unmount()
    await this.mount(config)
  }

  async agent(name: string, { cwd = '.', parent }: AgentSetup = {}): Promise<TestAgent> {
    const creator = parent ? parent.agent.ctx.agents : this.ctx.agents
    if (this.#plugin) this.#expectedJoins += 1
    const handle = await creator.create({
      sessionId: SessionId(`session-${name}`),
      meta: {
        cwd: resolve(this.workspace, cwd),
        ...(parent ? { origin: 'subagent' as const, parentSession: parent.session.id } : {}),
      },
      agentOptions: { provider: PROVIDER, model: MODEL },
    })
    const agent = new TestAgent(name, handle)
    this.agents.set(name, agent)
    return agent
  }

  /** End the session, run `offline`, and resume it in this process. */
  async resume(agent: TestAgent, offline: () => void = () => undefined): Promise<void> {
    const { id } = agent.session
    await agent.dispose()
    offline()
    await this.continued(agent, id)
  }

  /** Carry on a session that has ended. */
  async continued(agent: TestAgent, id: Session['id']): Promise<void> {
    if (this.#plugin) this.#expectedJoins += 1
    agent.adopt(
      await this.ctx.agents.resume({
        resumeSessionId: id,
        agentOptions: { provider: PROVIDER, model: MODEL },
      }),
    )
  }

  /** A new session that begins with the history of another one, up to and with this event. */
  async fork({ session }: TestAgent, name: string, boundary: number): Promise<TestAgent> {
    const seed = session.events.slice(0, boundary + 1)
    if (this.#plugin) this.#expectedJoins += 1
    const handle = await this.ctx.agents.create({
      sessionId: SessionId(`session-${name}`),
      seed,
      meta: { cwd: this.workspace, parentSession: session.id, seedLength: seed.length },
      agentOptions: { provider: PROVIDER, model: MODEL },
    })
    const agent = new TestAgent(name, handle)
    this.agents.set(name, agent)
    return agent
  }

  /** What a session has on disk, once everything up to now is written. */
  async remembered(id: Session['id']): Promise<string> {
    await this.reload()
    return readFileSync(join(this.base, 'dsh-home', 'live-workspace', 'v1', `${String(id)}.json`), 'utf8')
  }

  /** The user's `/compact` of an idle agent. */
  async compact({ agent }: TestAgent): Promise<CompactionResult> {
    const result = await this.ctx.compaction.compactNow(agent, new AbortController().signal)
    if (!result) throw new Error('nothing was compacted')
    return result
  }

  /**
   * Wait until the watchers of all sessions are live. Only changes of files that a session has used
   * need no watcher.
   */
  async live(): Promise<void> {
    await this.covered('live')
  }

  /** Wait until the watchers of all sessions are in this state. */
  async covered(kind: 'live' | 'degraded' | 'starting' | 'off' | 'remote'): Promise<void> {
    await waitFor(
      () => {
        const readers = this.#readers()
        return readers.length > 0 && readers.every(({ coverage }) => coverage.kind === kind)
      },
      {
        timeoutMs: LIMIT_MS,
        describe: () =>
          `coverage ${kind}: ${JSON.stringify(this.#readers().map(({ coverage }) => coverage))}`,
      },
    )
  }

  #readers() {
    const { results } = this.#joins.mock
    if (results.length < this.#expectedJoins) return []
    const readers = results.flatMap((result) => (result.type === 'return' ? [result.value] : []))
    // The sessions' latest readers; earlier ones belong to disposed sessions or instances.
    return readers.slice(-Math.max(1, this.ctx.agents.list().length))
  }

  /** Absolute path of a file of the workspace. */
  path(path: string): string {
    return resolve(this.workspace, path)
  }

  /** Somebody else writes a file. */
  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true })
    writeFileSync(this.path(path), text)
  }

  /** Somebody else's editor saves a file: a new inode, renamed into place. */
  save(path: string, text: string): void {
    const staged = join(this.base, 'editor-staging')
    writeFileSync(staged, text)
    renameSync(staged, this.path(path))
  }

  remove(path: string): void {
    rmSync(this.path(path), { recursive: true })
  }

  /** Dispose everything, this plugin first, and remove every file. */
  async dispose(): Promise<void> {
    this.probe.healAll()
    await this.unmount()
    for (const fiber of this.#fibers.toReversed()) await fiber.dispose()
    this.#joins.mockRestore()
    if (this.#dshHome === undefined) delete process.env['DSH_HOME']
    else process.env['DSH_HOME'] = this.#dshHome
    rmSync(this.base, { recursive: true, force: true })
  }
}

/** A package that the host brings along and that this one does not depend on. */
export const hostPlugin = async (dependent: string, name: string): Promise<Plugin> => {
  const from = createRequire(import.meta.url).resolve(dependent)
  const file = createRequire(from).resolve(name)
  // What a package exports by default is its plugin, by the host's convention.
  const module = (await import(pathToFileURL(file).href)) as { readonly default: Plugin }
  return module.default
}

const run = promisify(execFile)

const registerTools = (ctx: Context): void => {
  const output = {
    schema: { type: 'string' },
    render: (_args: unknown, value: string) => [{ type: 'text' as const, text: value }],
  } as const
  ctx.tools.register(
    defineTool({
      name: 'shell',
      description: 'Run a command.',
      parameters: { command: { type: 'string', required: true } },
      output,
      execute: async ({ command }, exec) => {
        const { stdout } = await run('sh', ['-c', command], { cwd: cwdOf(exec) })
        return stdout
      },
    }),
  )
  ctx.tools.register(
    defineTool({
      name: 'batch',
      description: 'Run several calls.',
      parameters: { calls: { type: 'json', required: true }, fail: { type: 'boolean' } },
      output,
      execute: async ({ calls, fail }, exec) => {
        for (const [index, { name, args }] of toolCalls(calls).entries()) {
          await ctx.tools.execute({
            callId: CallId(`${exec.callId}:${index}`),
            rootCallId: exec.rootCallId,
            name,
            arguments: args,
            parent: exec.token,
            signal: exec.signal,
            ...(exec.agent ? { agent: exec.agent } : {}),
          })
        }
        if (fail === true) throw new Error('the outer call failed')
        return 'done'
      },
    }),
  )
}

// Only `batch` above writes these arguments.
const toolCalls = (calls: unknown): readonly ToolCall[] => calls as readonly ToolCall[]

const cwdOf = ({ agent }: ToolRunContext): string => {
  const cwd = agent?.session.header.cwd
  if (cwd === undefined) throw new Error('a command needs the directory of a session')
  return cwd
}
