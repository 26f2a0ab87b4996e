/**
 * The only file that knows the host's events: adopting agents, listening, folding, steering.
 *
 * @module dsh-live-workspace/host
 */
import { realpath } from 'node:fs/promises'
import type { Context } from '@deepseek-ai/cordis'
import type { Agent, PreStepDecision } from '@deepseek-ai/dsh-agent'
import type { FileSystem, FsObservation, FsTarget, FsVersion } from '@deepseek-ai/dsh-fs'
import { resolveDshHome } from '@deepseek-ai/dsh-home-paths'
import type { UserMessage } from '@deepseek-ai/dsh-llm'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import { Boundary, NOTHING } from './boundary.ts'
import type { Outcome } from './outcome.ts'
import { ToolRecorder } from './tools.ts'
import { settleCovered } from './conditions.ts'
import type { LiveWorkspaceConfig } from './config.ts'
import { loggedInstructions, reminderFor } from './history.ts'
import { InstructionRoom } from './instructions/room.ts'
import type { Reporter } from './log.ts'
import { fileResultsOf, isOpaqueTool } from './manifest/proof.ts'
import { SessionMemory } from './manifest/memory.ts'
import { ManifestStore } from './manifest/store.ts'
import { fold, instructionMessage, noticeMessage, pendingMessages } from './messages.ts'
import { locate } from './place.ts'
import { Deadline } from './revalidate.ts'
import { SessionState } from './session.ts'
import { ROOT_LOST } from './watch/faults.ts'
import type { WatchRegistry } from './watch/registry.ts'

/** What earlier instances knew of sessions that are still alive, for a reload of the configuration. */
const handedOver = new WeakMap<Session, { readonly state: SessionState; readonly seq: number }>()

/** Parts that the host's events drive. */
export interface HostParts {
  readonly config: LiveWorkspaceConfig
  readonly registry: WatchRegistry
  readonly reporter: Reporter
  /** Directory of what sessions have seen; without it nothing is remembered over a restart. */
  readonly manifests?: string
  /** Runs a function in a context that belongs to no agent. */
  readonly detached?: <T>(make: () => T) => T
}

/** Everything between the host's events and the rooms. */
export class Host {
  readonly #ctx: Context
  readonly #parts: HostParts
  readonly #boundary: Boundary
  readonly #tools: ToolRecorder
  readonly #states = new Map<Session, SessionState>()
  readonly #listeners: (() => void)[] = []
  readonly #attaching = new WeakMap<SessionState, Promise<void>>()
  readonly #memory: SessionMemory | undefined
  /** Ends the work that no boundary waits for. */
  readonly #ending = new AbortController()
  readonly #background = new Set<Promise<void>>()
  #closed = false

  constructor(ctx: Context, parts: HostParts) {
    this.#ctx = ctx
    this.#parts = parts
    this.#boundary = new Boundary(parts.config, () => {
      const fs = this.#fs()
      if (!fs) throw new Error('there is no filesystem service any more')
      return fs
    })
    this.#memory = this.#newMemory()
    this.#tools = new ToolRecorder(ctx, {
      ...parts,
      boundary: this.#boundary,
      stateOf: (session) => this.#states.get(session),
      adopt: (agent) => this.#adopt(agent),
    })
  }

  #newMemory(): SessionMemory | undefined {
    const { config, reporter, manifests, detached = (make) => make() } = this.#parts
    if (manifests === undefined || !config.resume.enabled) return undefined
    const report = (problem: string, remedy: string) => reporter.once(problem, remedy)
    return new SessionMemory({
      config: config.resume,
      racyWindowMs: config.notice.racyWindowMs,
      concurrency: config.notice.statConcurrency,
      store: new ManifestStore(manifests, config.resume, report),
      report,
      detached,
      fs: () => this.#fs(),
      living: (id) => {
        const living = [...this.#states].find(([session]) => String(session.id) === id)
        return living && { session: living[0], state: living[1] }
      },
    })
  }

  /** Register every listener and adopt the agents that live already. */
  start(): void {
    const ctx = this.#ctx
    const adopt = ({ agent }: { readonly agent: Agent }) =>
      this.#contain('adopting an agent', () => this.#adopt(agent))
    this.#listeners.push(
      ctx.on('agent/created', adopt),
      ctx.on('agent/session-start', adopt),
      ctx.on('agent/disposed', ({ agent }) =>
        this.#contain('leaving an agent', () => this.#leave(agent.session)),
      ),
      ...this.#tools.listen(),
      ctx.on('session/event', (session, event) =>
        this.#contain('following the session log', () => this.#logged(session, event)),
      ),
      // Prepended: the outermost listener sees what every other one has put into the batch.
      ctx.on('agent/pre-step', (payload, next) => this.#preStep(payload, next), { prepend: true }),
      ctx.on('agent/turn-stopping', (payload) => this.#turnStopping(payload), { prepend: true }),
    )
    for (const agent of ctx.agents.list()) this.#contain('adopting an agent', () => this.#adopt(agent))
    this.#memory?.tidy(async () => storedSessions(ctx))
  }

  /**
   * What is known of an agent's session, once its workspace was looked for.
   * @param signal - ends the wait.
   */
  async stateOf(agent: Agent, signal: AbortSignal): Promise<SessionState> {
    const state = this.#adopt(agent)
    await this.#attached(state, agent, signal)
    return state
  }

  /** Where it is kept what an agent's session has seen; `undefined` where nothing is kept. */
  manifestOf(agent: Agent): string | undefined {
    return this.#memory?.pathOf(String(agent.session.id))
  }

  /** Leave every session; nothing is told afterwards. */
  async close(): Promise<void> {
    this.#closed = true
    this.#ending.abort()
    for (const stop of this.#listeners.splice(0)) stop()
    for (const [session, state] of this.#states) {
      state.detach()
      handedOver.set(session, { state, seq: session.seq })
    }
    this.#states.clear()
    await Promise.all([this.#memory?.close(), ...this.#background, this.#parts.registry.close()])
  }

  #contain(where: string, work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#parts.reporter.contained(where, error)
    }
  }

  #fs(): FileSystem | undefined {
    return this.#ctx.get('fs')
  }

  #adopt(agent: Agent): SessionState {
    const { session } = agent
    const known = this.#states.get(session)
    if (known) return known
    const state = this.#takeOver(session) ?? this.#begin(session)
    this.#attaching.set(state, this.#attach(state, session.header.cwd))
    return state
  }

  #begin(session: Session): SessionState {
    const { maxKeptTextBytes, maxDigests } = this.#parts.config.notice
    const state = new SessionState(String(session.id), maxKeptTextBytes, maxDigests)
    this.#states.set(session, state)
    const reminder = reminderFor(session)
    if (this.#memory) this.#memory.begin(session, state, reminder)
    else if (reminder) state.reminders.add(reminder)
    state.surfaceGeneration = session.surface.replaceGeneration
    state.loggedInstructions.push(...loggedInstructions(session))
    state.instructions = this.#newRoom()
    state.instructions?.recall(state.loggedInstructions.map(({ source }) => source))
    return state
  }

  #newRoom(): InstructionRoom | undefined {
    const { config, reporter } = this.#parts
    if (config.instructions === false) return undefined
    const report = (problem: string, remedy: string) => reporter.once(problem, remedy)
    return new InstructionRoom(config.instructions, { dshHome: resolveDshHome(), report })
  }

  /** Continue where an earlier instance of the plugin stopped, with what the log says of the time between. */
  #takeOver(session: Session): SessionState | undefined {
    const earlier = handedOver.get(session)
    if (!earlier) return undefined
    handedOver.delete(session)
    earlier.state.disposed = false
    earlier.state.turn.fresh = true
    this.#states.set(session, earlier.state)
    // Its settings may be other ones now; what is in force it reads from the log.
    earlier.state.instructions = this.#newRoom()
    earlier.state.instructions?.recall(earlier.state.loggedInstructions.map(({ source }) => source))
    for (const { target } of earlier.state.ledger.entries()) {
      earlier.state.instructions?.touch(target.displayPath)
    }
    const { events } = session
    const { latest, opaque } = fileResultsOf(events, session.header.cwd ?? '/')
    // What was read meanwhile nobody of us has seen: from here on the log is ahead of the ledger.
    earlier.state.hasGap ||= [...latest.values(), ...opaque].some((seq) => seq >= earlier.seq)
    for (const event of events.slice(earlier.seq)) this.#logged(session, event)
    this.#memory?.takeOver(session, earlier.state)
    return earlier.state
  }

  /** Find the session's root and join its watcher. Never rejects. */
  async #attach(state: SessionState, cwd: string | undefined): Promise<void> {
    const fs = this.#fs()
    if (!fs) return
    try {
      const { place, local } = await locate(fs, cwd, this.#parts.config.watch.rootMarkers)
      if (this.#closed || state.disposed) return
      state.place = place
      state.reader = this.#parts.registry.join(place.root, local)
      state.indexAll(fs)
    } catch (error) {
      this.#parts.reporter.contained(`finding the workspace of ${cwd ?? 'a session without a cwd'}`, error)
    }
  }

  #leave(session: Session): void {
    const state = this.#states.get(session)
    if (!state) return
    this.#states.delete(session)
    state.disposed = true
    this.#memory?.leave(session, state)
    // The registry remembers what is still closing, so that disposing the plugin waits for it.
    void state.reader?.leave()
  }

  #logged(session: Session, event: SessionEvent): void {
    const state = this.#states.get(session)
    if (!state) return
    switch (event.type) {
      case 'turn/start':
        state.turnStarted()
        return
      case 'step/start':
        state.turn.stopping = false
        return
      case 'tool/call':
        state.ranOpaqueTool ||= isOpaqueTool(event.data.name)
        return
      case 'tool/result':
        // A replacing result is a pruned old one: it shows the model nothing new.
        if (event.surfaceOp === 'append')
          state.ledger.logged(String(event.data.message.source.callId), event.seq)
        return
      case 'step/end': {
        const { committed, doubtful } = state.ledger.stepEnded()
        if (!state.hasGap) state.followedTo = event.seq
        if (state.ranOpaqueTool) state.remember()
        state.ranOpaqueTool = false
        state.committed(committed, this.#fs())
        state.doubt(doubtful)
        return
      }
      case 'turn/end':
        state.doubt(state.ledger.turnEnded())
        return
      case 'user/message':
        if (event.data.source.kind === 'agent-instructions') {
          state.loggedInstructions.push({ seq: event.seq, source: event.data.source })
        }
        this.#told(session, state, event.data, event.seq)
        // Only so many states of unused files are remembered; a forgotten one could at worst be told again.
        state.receipts.trim(
          this.#parts.config.watch.maxJournalPaths,
          (key) => key.startsWith('notice:') || state.ledger.get(key) !== undefined,
        )
        if (typeof event.surfaceOp === 'object' && state.ledger.size > 0) state.reminders.add('compaction')
        return
      default:
    }
  }

  /** A message is in the log. */
  #told(session: Session, state: SessionState, { id }: UserMessage, seq: number): void {
    const { shown, moved } = settleCovered(state, state.receipts.settle(String(id), seq), seq)
    state.committed(moved, this.#fs())
    for (const { target, version } of shown) this.#renewGuard(session, target, version)
  }

  async #preStep(
    payload: { agent: Agent; messages: UserMessage[]; step: number; signal: AbortSignal },
    next: () => Promise<PreStepDecision>,
  ): Promise<PreStepDecision> {
    const decision = await next()
    if (decision.kind === 'reject' || payload.signal.aborted) return decision
    try {
      const { agent, signal, step } = payload
      const state = this.#adopt(agent)
      // Neither a first step nor one after the end of the turn happens without a message.
      if (decision.messages.length === 0 && (step === 1 || state.turn.stopping)) return decision
      const waiting = new Set([...decision.messages, ...pendingMessages(agent)].map(({ id }) => String(id)))
      state.receipts.withdrawExcept((id) => waiting.has(id))
      const sources = decision.messages.map(({ source }) => source)
      const outcome = await this.#examine(state, agent, signal, sources)
      if (this.#closed || state.disposed || signal.aborted) return decision
      const foreign = decision.messages.findLast(({ source }) => source.kind === 'agent-instructions')
      if (foreign) state.receipts.issue(String(foreign.id), outcome.toldByOthers)
      const messages = this.#issue(state, outcome)
      if (messages.length === 0) return decision
      return { kind: 'enter', messages: fold(decision.messages, payload.messages, messages) }
    } catch (error) {
      // What an abort has interrupted has not failed.
      if (!payload.signal.aborted) this.#parts.reporter.contained('preparing a notice', error)
      return decision
    }
  }

  async #turnStopping({ agent, signal }: { agent: Agent; signal: AbortSignal }): Promise<void> {
    try {
      const { verifyAtTurnStop, maxSteersPerTurn, turnStopScope } = this.#parts.config.notice
      const state = this.#adopt(agent)
      state.turn.stopping = true
      if (!verifyAtTurnStop || signal.aborted || state.turn.steers >= maxSteersPerTurn) return
      // What waits there causes a step anyway, and its pre-step tells everything.
      if (agent.inbox.nextStep.length > 0) return
      const waiting = new Set(pendingMessages(agent).map(({ id }) => String(id)))
      state.receipts.withdrawExcept((id) => waiting.has(id))
      const outcome = await this.#examine(state, agent, signal, undefined)
      const { notices, touchesUsed, touchesOthers } = outcome
      if (notices.length === 0) return
      const mayForOthers = touchesOthers && turnStopScope === 'workspace' && !state.turn.steeredForOthers
      if (!touchesUsed && !mayForOthers) return
      // Steering after an abort would start a new turn, so nothing may come between this and the call.
      if (this.#closed || state.disposed || signal.aborted || agent.inbox.nextStep.length > 0) return
      state.turn.steers += 1
      if (!touchesUsed) state.turn.steeredForOthers = true
      for (const message of this.#issue(state, outcome)) agent.steer(message)
    } catch (error) {
      if (!signal.aborted) this.#parts.reporter.contained('the check before the end of a turn', error)
    }
  }

  async #examine(
    state: SessionState,
    agent: Agent,
    signal: AbortSignal,
    entering: readonly unknown[] | undefined,
  ): Promise<Outcome> {
    const fs = this.#fs()
    if (!fs) return NOTHING
    await this.#followLink(state, signal)
    await this.#attached(state, agent, signal)
    const { surface } = agent.session
    const surfaceMoved = surface.replaceGeneration !== state.surfaceGeneration
    state.surfaceGeneration = surface.replaceGeneration
    let nodes: ReadonlySet<number> | undefined
    const outcome = await this.#boundary.examine(state, {
      fs,
      signal,
      entering,
      surfaceMoved,
      visible: (seq) => (nodes ??= new Set(surface.nodes)).has(seq),
      renewGuard: (target, version) => this.#renewGuard(agent.session, target, version),
    })
    state.turn.fresh = false
    this.#finishRecall(state, agent, fs)
    return outcome
  }

  /** Check, while the model works, what this boundary had no time for. */
  #finishRecall(state: SessionState, agent: Agent, fs: FileSystem): void {
    const { recall } = state
    if (this.#closed || !recall?.isOpen || recall.underWay) return
    recall.underWay = true
    const { detached = (make) => make() } = this.#parts
    const checked = detached(() =>
      this.#boundary.finishRecall(state, {
        fs,
        signal: this.#ending.signal,
        renewGuard: (target, version) => this.#renewGuard(agent.session, target, version),
      }),
    )
    const done = checked
      .catch((error: unknown) => this.#parts.reporter.contained('checking files of a resumed session', error))
      .finally(() => {
        recall.underWay = false
        this.#background.delete(done)
      })
    this.#background.add(done)
  }

  /** Only for content that was found equal: the host's guard takes the version as read by the session. */
  #renewGuard(session: Session, target: FsTarget, version: string): void {
    const agent = this.#ctx.agents.get(session.id)
    if (!agent) return
    // The host brands versions; this one came from its own `stat`.
    const observation: FsObservation = { kind: 'present', version: version as FsVersion }
    this.#contain('renewing the guard', () => this.#ctx.emit('fs/observed', target, observation, { agent }))
  }

  /** Wait for the session's root, but no longer than for anything else at a boundary. */
  async #attached(state: SessionState, agent: Agent, signal: AbortSignal): Promise<void> {
    if (state.place) return
    // The service may have come, or have failed, since the last try.
    const attaching = this.#attaching.get(state) ?? this.#attach(state, agent.session.header.cwd)
    const deadline = new Deadline(this.#parts.config.watch.maxWaitMs, signal)
    await Promise.race([attaching, deadline.reached])
    deadline.cancel()
    if (!deadline.expired) this.#attaching.delete(state)
  }

  /** A cwd behind a link is another directory once the link leads elsewhere. */
  async #followLink(state: SessionState, signal: AbortSignal): Promise<void> {
    const { place, reader } = state
    if (!place || place.lexical === place.real || reader?.coverage.kind === 'remote') return
    const deadline = new Deadline(this.#parts.config.watch.maxWaitMs, signal)
    const target = await Promise.race([realpath(place.lexical).catch(() => undefined), deadline.reached])
    deadline.cancel()
    // Where nothing is at the moment, the directory may come back.
    if (typeof target !== 'string' || target === place.real || state.place !== place) return
    state.moveAway()
    void reader?.leave()
    this.#parts.reporter.once(`${ROOT_LOST.reason} (${place.lexical})`, ROOT_LOST.remedy)
  }

  /** Messages of an outcome, each with its receipt. */
  #issue(state: SessionState, { instructions, notices }: Outcome): UserMessage[] {
    return [
      ...instructions.map(({ text, source, covered }) => ({
        message: instructionMessage(text, source),
        covered,
      })),
      ...notices.map((notice) => ({ message: noticeMessage(notice), covered: notice.covered })),
    ].map(({ message, covered }) => {
      state.receipts.issue(String(message.id), covered)
      return message
    })
  }
}

/** Ids of all stored sessions, where the host has a service that knows them. */
const storedSessions = async (ctx: Context): Promise<ReadonlySet<string> | undefined> => {
  // Not a package that this one depends on: only web and headless bring it along.
  const service: unknown = ctx.get('sessionPersistence')
  if (typeof service !== 'object' || service === null || !('list' in service)) return undefined
  if (typeof service.list !== 'function') return undefined
  const headers: unknown = await Reflect.apply(service.list, service, [])
  if (!Array.isArray(headers)) return undefined
  return new Set(headers.map((header: { readonly id?: unknown }) => String(header.id)))
}
