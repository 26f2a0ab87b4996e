/**
 * Sessions of the real services on one real workspace, each with an oracle that judges after every
 * boundary.
 */
import { rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { Agent, PreStepDecision } from '@deepseek-ai/dsh-agent'
import type { UserMessage } from '@deepseek-ai/dsh-llm'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import type { ToolExecution } from '@deepseek-ai/dsh-tools'
import {
  batch,
  edit,
  Harness,
  quiet,
  read,
  shell,
  type TestAgent,
  type ToolCall,
  write,
} from '../support/harness.ts'
import { ourMessages, readEvent } from '../support/session-log.ts'
import { codeOf } from '../../src/errors.ts'
import type { WatchFault } from '../../src/watch/contract.ts'
import type { Cancellation, Deed, Disturbance, Tool } from './deeds.ts'
import { realAt, signatureAt, stateAt } from './disk.ts'
import { type Observation, SessionOracle } from './oracle.ts'
import { Workspace } from './workspace.ts'

/** What a resumed session is held to know. */
export type AfterResume = 'nothing but a reminder' | 'everything'

export interface WorldOptions {
  readonly template: string
  readonly sessions: number
  readonly notice: {
    readonly maxNoticeBytes: number
    readonly maxNoticePaths: number
    readonly showHunks: boolean
  }
  readonly afterResume: AfterResume
  /** Make the watcher of every root report a fault. */
  readonly breakWatchers: (fault: WatchFault) => void
}

const FAULT: WatchFault = { code: 'error', reason: 'the watcher was broken by a test', remedy: 'none' }

/** One session, what has been seen of its log, and its open disturbance. */
interface Member {
  readonly agent: TestAgent
  readonly oracle: SessionOracle
  waiting: boolean
  /** Steps that changes have caused in the open turn. */
  steers: number
  /** Number of the first event that was not looked at. */
  next: number
  disturbance: Disturbance | undefined
  disturbed: boolean
  cancel: Cancellation | undefined
  meanwhile: (() => void) | undefined
  readonly staged: Map<symbol, Observation[]>
  readonly awaitingLog: Map<string, Observation[]>
  awaitingStepEnd: { readonly observation: Observation; readonly seq: number }[]
}

const MAX_STEERS = 3

export class World {
  readonly #harness: Harness
  readonly #workspace: Workspace
  readonly #options: WorldOptions
  readonly #members: Member[] = []
  readonly #failing = new Set<string>()
  readonly #disposers: (() => unknown)[] = []

  private constructor(harness: Harness, workspace: Workspace, options: WorldOptions) {
    this.#harness = harness
    this.#workspace = workspace
    this.#options = options
  }

  /** The services of any number of worlds, one after the other. */
  static async host(): Promise<Harness> {
    return Harness.boot({ git: false, compaction: true, persistence: true, config: false })
  }

  /** @param number - tells this world from all others of the same host. */
  static async make(harness: Harness, number: number, options: WorldOptions): Promise<World> {
    const root = join(harness.base, `world-${number}`)
    const workspace = new Workspace(options.template, root, join(harness.base, 'staging'))
    const world = new World(harness, workspace, options)
    harness.errors.length = 0
    await harness.mount(configOf(options))
    world.#listen()
    for (let index = 0; index < options.sessions; index++) await world.#join(index, `${number}-${index}`)
    return world
  }

  async #join(index: number, name: string): Promise<void> {
    const { root } = this.#workspace
    const cwd = index === 1 ? this.#workspace.path('app') : root
    const agent = await this.#harness.agent(name, { cwd })
    const oracle = new SessionOracle({ root, cwd, ...this.#options.notice })
    this.#members.push({
      agent,
      oracle,
      waiting: false,
      steers: 0,
      next: 0,
      disturbance: undefined,
      disturbed: false,
      cancel: undefined,
      meanwhile: undefined,
      staged: new Map(),
      awaitingLog: new Map(),
      awaitingStepEnd: [],
    })
  }

  #memberOf(agent: Agent | undefined): Member | undefined {
    return this.#members.find((member) => agent !== undefined && member.agent.agent === agent)
  }

  #listen(): void {
    const { ctx } = this.#harness
    this.#disposers.push(
      ctx.on('tools/result', (exec, { isError }) => {
        this.#result(exec, isError)
        return undefined
      }),
      ctx.on('session/event', (session, event) => {
        const member = this.#members.find(({ agent }) => agent.session === session)
        if (member) follow(member, event)
      }),
      ctx.on('tools/execute', async (exec, next) => {
        const member = this.#memberOf(exec.agent)
        if (member?.cancel === 'before the tool') {
          member.cancel = undefined
          member.agent.agent.cancel({ kind: 'user' })
        }
        return next()
      }),
      ctx.on('agent/inbox/inserted', ({ agent, message }) => {
        const member = this.#memberOf(agent)
        if (member?.disturbance !== 'empty' || message.source.kind !== 'user') return
        member.disturbance = undefined
        member.disturbed = true
        agent.inbox.remove(message.id)
      }),
    )
    this.#intercept()
  }

  /** Whoever is prepended last is the outermost, so this is repeated whenever the plugin is mounted. */
  #intercept(): void {
    const { ctx } = this.#harness
    this.#disposers.push(
      ctx.on('agent/pre-step', (payload, next) => this.#preStep(payload, next), { prepend: true }),
    )
  }

  async #preStep(
    { agent, messages }: { agent: Agent; messages: UserMessage[] },
    next: () => Promise<PreStepDecision>,
  ): Promise<PreStepDecision> {
    const member = this.#memberOf(agent)
    const how = member?.disturbance
    if (!member || how === undefined || how === 'empty') return next()
    member.disturbance = undefined
    member.disturbed = true
    const decision = await next()
    if (how === 'abort') agent.cancel({ kind: 'user' })
    return how === 'reject' ? { kind: 'reject' } : how === 'strip' ? { kind: 'enter', messages } : decision
  }

  /** What a tool saw, by what is on the disk when it is done. */
  #result(exec: Readonly<ToolExecution>, failed: boolean): void {
    const member = this.#memberOf(exec.agent)
    if (!member) return
    const observations = (member.staged.get(exec.token) ?? []).map((seen) => ({ ...seen, nested: true }))
    member.staged.delete(exec.token)
    const { file_path: path } = exec.arguments as { file_path?: string }
    if (path !== undefined && ['read', 'write', 'edit'].includes(exec.name)) {
      const name = this.#absolute(member, path)
      const real = realAt(name)
      if (exec.name !== 'read') member.oracle.wrote(real)
      const seen: Observation = {
        name,
        real,
        content: stateAt(name),
        signature: signatureAt(name),
        nested: false,
      }
      observations.push(seen)
    }
    if (!failed) {
      if (exec.parent === undefined) member.awaitingLog.set(String(exec.callId), observations)
      else member.staged.set(exec.parent, [...(member.staged.get(exec.parent) ?? []), ...observations])
    }
    member.meanwhile?.()
    member.meanwhile = undefined
    if (member.cancel !== 'after the tool') return
    member.cancel = undefined
    member.agent.agent.cancel({ kind: 'user' })
  }

  #absolute({ agent }: Member, path: string): string {
    return resolve(agent.session.header.cwd ?? '', path)
  }

  #member(index: number): Member {
    const member = this.#members[index]
    if (!member) throw new Error(`there is no session ${index}`)
    return member
  }

  /** Whether a deed makes sense now. */
  can(deed: Deed): boolean {
    switch (deed.kind) {
      case 'finish':
      case 'cancel':
        return this.#member(deed.session).waiting
      case 'compact':
      case 'resume': {
        const { agent, waiting } = this.#member(deed.session)
        // A session without a turn was never stored.
        return !waiting && agent.requests.length > 0
      }
      case 'disturb':
        return this.#member(deed.session).disturbance === undefined
      case 'heal':
        return this.#failing.size > 0
      default:
        return true
    }
  }

  async do(deed: Deed): Promise<void> {
    const others = this.#members.filter((_, index) => !('session' in deed) || index !== deed.session)
    const before = others.map(({ agent }) => agent.session.seq)
    await this.#do(deed)
    for (const [index, { agent }] of others.entries()) {
      if (agent.session.seq !== before[index]) throw new Error(`${agent.name} was woken by ${deed.kind}`)
    }
  }

  async #do(deed: Deed): Promise<void> {
    switch (deed.kind) {
      case 'outside':
        this.#workspace.act(deed.outside)
        return
      case 'step': {
        const member = this.#member(deed.session)
        if (!member.waiting) return this.#prompt(member)
        member.cancel = deed.cancel
        const { meanwhile } = deed
        member.meanwhile = meanwhile && (() => this.#workspace.act(meanwhile))
        const calls = deed.tools.map((tool) => this.#callOf(member, tool))
        await this.#boundary(member, false, async () => member.agent.answer({ calls }))
        member.cancel = undefined
        member.meanwhile = undefined
        return
      }
      case 'finish':
        return this.#finish(this.#member(deed.session))
      case 'cancel': {
        const member = this.#member(deed.session)
        await member.agent.cancel()
        member.waiting = false
        this.#fresh(member)
        return
      }
      case 'compact':
        return this.#compact(this.#member(deed.session))
      case 'resume':
        return this.#resume(this.#member(deed.session))
      case 'disturb':
        this.#member(deed.session).disturbance = deed.how
        return
      case 'fail': {
        const path = realAt(this.#workspace.path(deed.path))
        this.#failing.add(path)
        this.#harness.probe.failStat(path)
        return
      }
      case 'slow':
        this.#harness.probe.delayStat(realAt(this.#workspace.path(deed.path)), SLOW_MS)
        return
      case 'heal':
        this.#failing.clear()
        this.#harness.probe.healAll()
        return
      case 'reload':
        for (const { oracle } of this.#members) oracle.distrust()
        await this.#harness.reload(configOf(this.#options))
        this.#intercept()
        return
      case 'break the watcher':
        for (const { oracle } of this.#members) oracle.distrust()
        this.#options.breakWatchers(FAULT)
        return
      case 'trust':
        await this.#harness.live()
        for (const { oracle } of this.#members) oracle.trust()
        return
      default:
        throw new Error(`unknown deed ${String(deed satisfies never)}`)
    }
  }

  async #prompt(member: Member): Promise<void> {
    await this.#boundary(member, true, async () => member.agent.submit(LONG_PROMPT))
  }

  async #finish(member: Member): Promise<void> {
    const maySteer = member.steers < MAX_STEERS
    const request = await this.#boundary(member, false, async () => member.agent.finish(), maySteer)
    if (request) member.steers += 1
  }

  /** Run up to the next request, or to the end of the turn, and judge what was told. */
  async #boundary(
    member: Member,
    fresh: boolean,
    act: () => Promise<unknown>,
    endMaySteer?: boolean,
  ): Promise<boolean> {
    const request = (await act()) !== undefined
    const cancelled = member.disturbed
    member.disturbed = false
    member.waiting = request
    if (!request) member.steers = 0
    const messages = this.#fresh(member)
    const { agent, oracle } = member
    const ended = !request && endMaySteer !== undefined
    // A steered message is claimed before anybody can take it out.
    if ((cancelled && !(request && messages.length > 0)) || (!request && !ended)) {
      if (messages.length > 0 && !request)
        throw new Error(`told although no step was entered: ${messages[0]?.text}`)
      oracle.lost()
      return request
    }
    const nodes = new Set(agent.session.surface.nodes)
    oracle.judge({
      kind: request ? 'request' : 'end of the turn',
      fresh: fresh || endMaySteer !== undefined,
      messages,
      visible: (seq) => nodes.has(seq),
      failing: this.#failing,
      maySteer: endMaySteer ?? true,
    })
    return request
  }

  /** Messages of ours that came into the log since the last look. */
  #fresh(member: Member) {
    const { session } = member.agent
    const events = session.events.slice(member.next).map(readEvent)
    member.next = session.events.length
    return ourMessages({ events })
  }

  #callOf(member: Member, tool: Tool): ToolCall {
    if (tool.tool === 'quiet') return quiet
    const cwd = member.agent.session.header.cwd ?? ''
    const shownPath = (path: string) => relative(cwd, this.#workspace.path(path))
    const path = shownPath(tool.path)
    switch (tool.tool) {
      case 'read':
        return read(path)
      case 'write':
        return write(path, this.#workspace.freshText())
      case 'edit':
        return edit(path, 'head\n', `head\nedited ${this.#workspace.freshText().length}\n`)
      case 'shell':
        return shell(
          `test ! -f ${path} || printf '%s' 'by a command ${this.#workspace.freshText()}' > ${path}`,
        )
      case 'batch': {
        const text = this.#workspace.freshText()
        return batch([read(path), write(shownPath(tool.other), text)], { fail: tool.fails })
      }
      default:
        throw new Error(`unknown tool ${String(tool satisfies never)}`)
    }
  }

  async #compact(member: Member): Promise<void> {
    const { agent } = member.agent
    try {
      await this.#harness.ctx.compaction.compactNow(agent, new AbortController().signal)
    } catch (error) {
      // There may be nothing that a summary would make shorter.
      if (codeOf(error) !== 'summary') throw error
    }
    this.#fresh(member)
  }

  async #resume(member: Member): Promise<void> {
    await this.#harness.resume(member.agent)
    member.next = member.agent.session.events.length
    if (this.#options.afterResume === 'everything') member.oracle.distrust()
    else member.oracle.forgetAll()
  }

  /** A last turn of every session, in which nothing may be missing; then everything is taken down. */
  async end(): Promise<void> {
    for (const member of this.#members) {
      member.disturbance = undefined
      if (!member.waiting) await this.#prompt(member)
      for (let step = 0; member.waiting && step <= MAX_STEERS; step++) await this.#finish(member)
      if (member.waiting) throw new Error(`${member.agent.name} does not come to an end`)
    }
    const unexpected = this.#harness.errors.filter((error) => !error.includes(FAULT.reason))
    if (unexpected.length > 0) throw new Error(`reported: ${unexpected.join('; ')}`)
  }

  /** Leave the host as it was. */
  async dispose(): Promise<void> {
    this.#harness.probe.healAll()
    await this.#harness.unmount()
    for (const dispose of this.#disposers) dispose()
    for (const { agent } of this.#members) {
      await agent.dispose()
      this.#harness.agents.delete(agent.name)
    }
    rmSync(this.#workspace.root, { recursive: true })
  }
}

const SLOW_MS = 3
/** Longer than the summary of a compaction. */
const LONG_PROMPT = 'Go on with what you do. '.repeat(40)

const configOf = ({ notice }: WorldOptions) => ({
  watch: { backend: 'chokidar', restartDelayMs: 1, maxRestartDelayMs: 1 },
  notice,
})

/** Results count once they are in the log and their step is over. */
const follow = (member: Member, event: SessionEvent): void => {
  if (event.type === 'tool/result' && event.surfaceOp === 'append') {
    const callId = String(event.data.message.source.callId)
    const observations = member.awaitingLog.get(callId) ?? []
    member.awaitingLog.delete(callId)
    if (event.data.message.content[0].isError === true) return
    for (const observation of observations) member.awaitingStepEnd.push({ observation, seq: event.seq })
  }
  if (event.type !== 'step/end' && event.type !== 'turn/end') return
  for (const { observation, seq } of member.awaitingStepEnd) member.oracle.commit(observation, seq)
  member.awaitingStepEnd = []
  member.awaitingLog.clear()
  if (event.type === 'turn/end') member.staged.clear()
}
