import type { Context } from '@deepseek-ai/cordis'
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import { createUserMessage, type UserMessage } from '@deepseek-ai/dsh-llm'
import type { Session } from '@deepseek-ai/dsh-session'
import type { InstructionsConfig } from '../../src/instructions/config.ts'
import { InstructionRoom } from '../../src/instructions/room.ts'
import * as bundle from '../../src/index.ts'
import { configured } from './conversation.ts'

/** Settings that both loaders know. */
export type LoaderConfig = Partial<Omit<InstructionsConfig, 'dshHome'>>

/** What a loader is mounted with. */
export interface LoaderOptions {
  readonly home: string
  readonly config: LoaderConfig
}

export type Mount = (ctx: Context, options: LoaderOptions) => Promise<void>

// Not written as an import: its types give the source kind another shape than ours.
const STOCK: string = '@deepseek-ai/dsh-agent-instructions'

/** The loader that the host ships. */
export const mountStock: Mount = async (ctx, { home, config }) => {
  const stock = (await import(STOCK)) as Parameters<Context['registry']['plugin']>[0]
  await ctx.registry.plugin(stock, { maxBytes: 65_536, ...config, dshHome: home })
}

interface Followed {
  readonly room: InstructionRoom
  staged: string[]
}

/** The room, with as little around it as it takes: touches by observation, one look at each pre-step. */
export const mountRoom: Mount = async (ctx, { home, config }) => {
  const followed = new WeakMap<Session, Followed>()
  const of = (session: Session): Followed => {
    const known = followed.get(session)
    if (known) return known
    const room = new InstructionRoom(configured(config), { dshHome: home, report: () => undefined })
    room.recall(session.events.flatMap((event) => (event.type === 'user/message' ? [event.data.source] : [])))
    const made = { room, staged: [] }
    followed.set(session, made)
    return made
  }
  const visible = ({ surface, events }: Session): unknown[] =>
    surface.nodes.flatMap((seq) => {
      const event = events[seq]
      return event?.type === 'user/message' ? [event.data.source] : []
    })
  const fold = (
    batch: readonly UserMessage[],
    claimed: readonly UserMessage[],
    ours: readonly UserMessage[],
  ) => {
    const at = batch.findLastIndex(
      (message) => claimed.includes(message) || message.source.kind === 'agent-instructions',
    )
    return batch.toSpliced(at + 1, 0, ...ours)
  }

  ctx.on('fs/observed', (target, _, actor) => {
    const exec: { agent?: { session: Session } } | undefined = actor
    if (exec?.agent) of(exec.agent.session).staged.push(target.displayPath, ctx.fs.processPath(target))
  })
  ctx.on('tools/result', ({ agent }, { isError }) => {
    if (isError && agent) of(agent.session).staged = []
    return undefined
  })
  ctx.on('session/event', (session, event) => {
    if (event.type !== 'step/end') return
    const { room, staged } = of(session)
    for (const path of staged.splice(0)) room.touch(path)
  })
  ctx.on(
    'agent/pre-step',
    async ({ agent, messages, step, signal }, next) => {
      const decision = await next()
      if (decision.kind === 'reject' || (step === 1 && decision.messages.length === 0)) return decision
      const { session } = agent
      const fs: FileSystem | undefined = ctx.get('fs')
      if (!fs) return decision
      const told = await of(session).room.compose({
        fs,
        cwd: session.header.cwd ?? process.cwd(),
        signal,
        visible: visible(session),
        entering: decision.messages.map(({ source }) => source),
        live: false,
        ignored: () => false,
      })
      const ours = told.map(({ text, source }) =>
        createUserMessage({ content: [{ type: 'text', text }], source }),
      )
      return { kind: 'enter', messages: fold(decision.messages, messages, ours) }
    },
    { prepend: true },
  )
}

/** The whole bundle, without a watcher. */
export const mountBundle: Mount = async (ctx, { home, config }) => {
  const row = { watch: { backend: 'off' }, instructions: { ...config, dshHome: home } }
  await ctx.registry.plugin(bundle, bundle.Config(row))
}

/** Both, as in a host whose presets bring the shipped loader along. */
export const mountBoth: Mount = async (ctx, options) => {
  await mountRoom(ctx, options)
  await mountStock(ctx, options)
}
