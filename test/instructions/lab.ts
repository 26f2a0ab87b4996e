import { Context } from '@deepseek-ai/cordis'
import { type Agent, AgentRegistry } from '@deepseek-ai/dsh-agent'
import { AgentLoop } from '@deepseek-ai/dsh-agent-loop'
import { LocalFileSystem } from '@deepseek-ai/dsh-fs-local'
import {
  CallId,
  createUserMessage,
  type GenerateOptions,
  LlmAdapter,
  LlmRuntime,
  type StreamChunk,
} from '@deepseek-ai/dsh-llm'
import { type Session, type SessionEvent, SessionId, SessionStore } from '@deepseek-ai/dsh-session'
import { SystemPrompt } from '@deepseek-ai/dsh-system-prompt'
import * as fsTools from '@deepseek-ai/dsh-tool-fs'
import { ToolRuntime } from '@deepseek-ai/dsh-tools'
import type { InstructionSource } from '../../src/instructions/protocol.ts'

/** What the model does in one request. */
export type Move = string | { readonly tool: string; readonly args: Record<string, unknown> }
/** A move, or what happens in the world right before it. */
export type Script = readonly (Move | (() => void | Promise<void>))[]

class ScriptedAdapter extends LlmAdapter {
  moves: (Move | (() => void | Promise<void>))[] = []
  #calls = 0

  override async *stream(_options: GenerateOptions): AsyncIterable<StreamChunk> {
    let move = this.moves.shift() ?? 'done'
    while (typeof move === 'function') {
      await move()
      move = this.moves.shift() ?? 'done'
    }
    if (typeof move === 'string') {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      yield { type: 'text-delta', index: 0, text: move }
      yield { type: 'block-end', index: 0, block: { type: 'text', text: move } }
      yield { type: 'finish', reason: { kind: 'stop' } }
      return
    }
    const id = CallId(`call-${++this.#calls}`)
    const block = { type: 'tool-call', id, name: move.tool, arguments: JSON.stringify(move.args) } as const
    yield { type: 'block-start', index: 0, blockType: 'tool-call' }
    yield { type: 'tool-call-delta', index: 0, id, name: move.tool, argumentsDelta: block.arguments }
    yield { type: 'block-end', index: 0, block }
    yield { type: 'finish', reason: { kind: 'tool-calls' } }
  }
}

/** An instruction message of the log. */
export interface Told {
  readonly text: string
  readonly source: InstructionSource
}

const toldOf = (event: SessionEvent): Told | undefined => {
  if (event.type !== 'user/message') return undefined
  const { source, content } = event.data
  if (source.kind !== 'agent-instructions') return undefined
  return { text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''), source }
}

/** An agent with real services and a scripted model, and the plugins of `mount`. */
export class Lab {
  readonly ctx: Context
  readonly agent: Agent
  /** Whether every step is rejected. */
  rejecting = false
  readonly #adapter: ScriptedAdapter

  private constructor(ctx: Context, agent: Agent, adapter: ScriptedAdapter) {
    this.ctx = ctx
    this.agent = agent
    this.#adapter = adapter
    ctx.on('agent/pre-step', async (_, next) => {
      const decision = await next()
      return this.rejecting ? { kind: 'reject' } : decision
    })
  }

  static async start(options: {
    readonly cwd: string
    readonly mount: (ctx: Context) => Promise<void>
    readonly seed?: readonly SessionEvent[]
    readonly id?: string
  }): Promise<Lab> {
    const ctx = new Context()
    await ctx.plugin(SystemPrompt, { includeRuntimeContext: false })
    await ctx.plugin(SessionStore)
    await ctx.plugin(AgentRegistry)
    await ctx.plugin(LlmRuntime)
    await ctx.plugin(ToolRuntime)
    await ctx.plugin(AgentLoop, { agents: [] })
    await ctx.plugin(LocalFileSystem, { cwd: options.cwd })
    await ctx.plugin(fsTools, {})
    await options.mount(ctx)
    const adapter = new ScriptedAdapter()
    ctx.llm.registerAdapter(['mock'], adapter)
    const { agent } = await ctx.agents.create({
      sessionId: SessionId(options.id ?? 'session-lab'),
      meta: { cwd: options.cwd },
      agentOptions: { provider: 'mock', model: 'mock-1' },
      ...(options.seed ? { seed: options.seed } : {}),
    })
    return new Lab(ctx, agent, adapter)
  }

  get session(): Session {
    return this.agent.session
  }

  /** One turn: a prompt and what the model does until it stops. */
  async turn(...script: Script): Promise<Told[]> {
    const from = this.session.events.length
    this.#adapter.moves = [...script]
    this.agent.followup(
      createUserMessage({ content: [{ type: 'text', text: 'go' }], source: { kind: 'user' } }),
    )
    await this.agent.whenIdle()
    return this.told(from)
  }

  /** Instruction messages of the log from an event number on. */
  told(from = 0): Told[] {
    return this.session.events.slice(from).flatMap((event) => toldOf(event) ?? [])
  }

  /** What compaction does: one message in the place of all that is visible. */
  compact(): void {
    const nodes = [...this.session.surface.nodes]
    const [start, end] = [nodes[0], nodes.at(-1)]
    if (start === undefined || end === undefined) return
    this.session.append(
      'user/message',
      createUserMessage({ content: [{ type: 'text', text: 'summary' }], source: { kind: 'user' } }),
      { surfaceOp: { op: 'replace', start, end }, sourceEventSeqs: nodes },
    )
  }

  async stop(): Promise<void> {
    await this.ctx.fiber.dispose()
  }
}
