/** The host's real services with one agent in them, whose model answers at once, and a watch in hand. */
import { Context, type Fiber, type Plugin } from '@deepseek-ai/cordis'
import { AgentRegistry, type Agent } from '@deepseek-ai/dsh-agent'
import { AgentLoop } from '@deepseek-ai/dsh-agent-loop'
import { LocalFileSystem } from '@deepseek-ai/dsh-fs-local'
import * as observationPolicy from '@deepseek-ai/dsh-fs-observation-policy'
import { createUserMessage, LlmRuntime } from '@deepseek-ai/dsh-llm'
import { SessionId, SessionStore } from '@deepseek-ai/dsh-session'
import { JsonlSessionPersistence } from '@deepseek-ai/dsh-session-persistence-jsonl'
import { SystemPrompt } from '@deepseek-ai/dsh-system-prompt'
import * as toolFs from '@deepseek-ai/dsh-tool-fs'
import { defineTool, ToolRuntime } from '@deepseek-ai/dsh-tools'
import { Host } from '../../src/host.ts'
import { Reporter } from '../../src/log.ts'
import { WatchRegistry } from '../../src/watch/registry.ts'
import { type ModelRequest, ScriptedAdapter, type ToolCall } from '../support/scripted-adapter.ts'
import { waitFor, within } from '../support/wait.ts'
import { backendOf, config, type Mode } from './watching.ts'

const LIMIT_MS = 60_000

/** A call that does nothing, so that a further step follows. */
const nothing: ToolCall = { name: 'nothing', args: {} }

/** What a run needs besides. */
export interface BenchExtra {
  readonly cwd?: string
  readonly plugin?: Plugin
  readonly settings?: unknown
  /** Begin at once instead of waiting for the first scan. */
  readonly atOnce?: boolean
  /** Where sessions are kept; the plugin remembers what they saw in `manifests`, if that is given. */
  readonly stored?: { readonly sessions: string; readonly manifests?: string; readonly resume?: boolean }
}

export class BenchHost {
  readonly #ctx = new Context()
  readonly #fibers: Fiber[] = []
  readonly #arrivals: ModelRequest[] = []
  #arrived = Promise.withResolvers<ModelRequest>()
  #agent: Agent | undefined
  #preStepMs = Number.NaN
  #told: string[] = []

  /**
   * @param root - workspace of the agent.
   * @param extra - a cwd below the root, and a plugin beside ours.
   * @param mode - what ends the plugin's wait; without it the plugin is left out.
   */
  static async boot(root: string, mode: Mode | undefined, extra: BenchExtra = {}): Promise<BenchHost> {
    const host = new BenchHost()
    await host.#compose(root, mode, extra)
    return host
  }

  async #compose(
    root: string,
    mode: Mode | undefined,
    { cwd = root, plugin, settings, stored, atOnce = false }: BenchExtra,
  ): Promise<void> {
    const ctx = this.#ctx
    await this.#use(AgentRegistry)
    await this.#use(SessionStore)
    await this.#use(LlmRuntime)
    await this.#use(SystemPrompt)
    await this.#use(ToolRuntime)
    await this.#use(LocalFileSystem, { cwd: root })
    await this.#use(observationPolicy)
    await this.#use(toolFs)
    await this.#use({ name: 'bench-tool', inject: ['tools'], apply: registerNothing })
    if (stored) await this.#use(JsonlSessionPersistence, { root: stored.sessions, compression: 'none' })
    await this.#use(AgentLoop)
    ctx.llm.registerAdapter(
      ['scripted'],
      new ScriptedAdapter((request) => {
        this.#arrivals.push(request)
        this.#arrived.resolve(request)
      }),
    )
    if (mode) await this.#mount(root, mode, atOnce, stored?.manifests)
    if (plugin) await this.#use(plugin, settings)
    // Prepended last, so that everything else happens within its `next()`.
    ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        const startedAt = performance.now()
        const decision = await next()
        this.#preStepMs = performance.now() - startedAt
        const messages = decision.kind === 'enter' ? decision.messages : []
        this.#told = messages
          .filter(({ source }) => source.kind === 'plugin')
          .map(({ content }) => JSON.stringify(content))
        return decision
      },
      { prepend: true },
    )
    const sessionId = SessionId(`bench-${mode ?? 'bare'}`)
    const agentOptions = { provider: 'scripted', model: 'scripted-1' }
    const { agent } = stored?.resume
      ? await ctx.agents.resume({ resumeSessionId: sessionId, agentOptions })
      : await ctx.agents.create({ sessionId, meta: { cwd }, agentOptions })
    this.#agent = agent
  }

  /** What the bundle's own `apply` does, with the end of the wait chosen. */
  async #mount(root: string, mode: Mode, atOnce: boolean, manifests: string | undefined): Promise<void> {
    const faults: string[] = []
    const apply = (ctx: Context): void => {
      const registry = new WatchRegistry({
        config: config.watch,
        backend: backendOf(mode),
        detached: (make) => make(),
        report: (_root, { reason, detail }) => faults.push(`${reason}: ${detail ?? ''}`),
      })
      const reader = registry.join(root, true)
      this.#live = () => reader.coverage.kind === 'live'
      const host = new Host(ctx, {
        config,
        registry,
        reporter: new Reporter(ctx),
        ...(manifests === undefined ? {} : { manifests }),
      })
      ctx.effect(() => () => host.close(), 'bench: sessions and watchers')
      host.start()
    }
    await this.#use({ name: 'bench-live-workspace', inject: ['agents'], apply })
    if (atOnce) return
    await waitFor(() => this.#live(), {
      timeoutMs: LIMIT_MS,
      describe: () => `the watcher of ${root}: ${faults.join('; ')}`,
    })
  }

  #live: () => boolean = () => true

  async #use(plugin: Plugin, settings: unknown = {}): Promise<void> {
    const fiber = this.#ctx.registry.plugin(plugin, settings)
    this.#fibers.push(fiber)
    await fiber
  }

  /** What the last pre-step told the model. */
  get told(): readonly string[] {
    return this.#told
  }

  /** The user's message opens a turn. @returns the time in ms of the first pre-step. */
  async open(): Promise<number> {
    return this.#step(() =>
      this.#running.followup(
        createUserMessage({ content: [{ type: 'text', text: 'Go on.' }], source: { kind: 'user' } }),
      ),
    )
  }

  /** The model answers with these calls. @returns the time in ms of the pre-step that follows. */
  async call(calls: readonly ToolCall[] = [nothing]): Promise<number> {
    return this.#step(() => this.#arrivals.at(-1)?.reply({ calls }))
  }

  /** The model says something, and again where a change keeps the turn going, until it ends. */
  async end(): Promise<void> {
    const idle = () => this.#running.whenIdle().then(() => false)
    for (let goesOn = true; goesOn;) {
      this.#arrived = Promise.withResolvers()
      this.#arrivals.at(-1)?.reply({ text: 'Done.' })
      goesOn = await within(Promise.race([this.#arrived.promise.then(() => true), idle()]), {
        timeoutMs: LIMIT_MS,
        describe: 'the end of a turn',
      })
    }
  }

  async dispose(): Promise<void> {
    for (const fiber of this.#fibers.toReversed()) await fiber.dispose()
  }

  get #running(): Agent {
    if (!this.#agent) throw new Error('there is no agent yet')
    return this.#agent
  }

  async #step(act: () => void): Promise<number> {
    this.#arrived = Promise.withResolvers()
    this.#preStepMs = Number.NaN
    act()
    await within(this.#arrived.promise, { timeoutMs: LIMIT_MS, describe: 'the request of a step' })
    return this.#preStepMs
  }
}

const registerNothing = (ctx: Context): void => {
  ctx.tools.register(
    defineTool({
      name: 'nothing',
      description: 'Do nothing.',
      parameters: {},
      output: { schema: { type: 'string' }, render: (_args, value) => [{ type: 'text', text: value }] },
      execute: async () => Promise.resolve('done'),
    }),
  )
}
