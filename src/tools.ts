/**
 * What a session's tools do with files: staging of observations, results, commands, and the intents of
 * mutations. Listens to the host's `fs/*` and `tools/*` events.
 *
 * @module dsh-live-workspace/tools
 */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { FsObservation, FsTarget, FsVersion } from '@deepseek-ai/dsh-fs'
import type { Session } from '@deepseek-ai/dsh-session'
import type { ToolExecution, ToolExecutionResult } from '@deepseek-ai/dsh-tools'
import type { Boundary } from './boundary.ts'
import type { LiveWorkspaceConfig } from './config.ts'
import type { ExecutionToken, Seen } from './ledger/ledger.ts'
import { followJobs } from './jobs.ts'
import type { Reporter } from './log.ts'
import { Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'

/** Tools of the host that change a file. */
const WRITING_TOOLS = new Set(['write', 'edit', 'str_replace_editor'])

/** What the recorder works for and with. */
export interface ToolRecorderParts {
  readonly config: LiveWorkspaceConfig
  readonly reporter: Reporter
  readonly boundary: Boundary
  readonly stateOf: (session: Session) => SessionState | undefined
  readonly adopt: (agent: Agent) => SessionState
}

/** Records what tools see and do. */
export class ToolRecorder {
  readonly #ctx: Context
  readonly #parts: ToolRecorderParts
  /** What each session's tools met last, by target, committed or not. */
  readonly #met = new WeakMap<SessionState, Map<string, string>>()

  constructor(ctx: Context, parts: ToolRecorderParts) {
    this.#ctx = ctx
    this.#parts = parts
  }

  /** Register every listener, as effects of the context. @returns what ends each of them earlier. */
  listen(): (() => void)[] {
    const ctx = this.#ctx
    return [
      followJobs(ctx, { ...this.#parts, drain: (state) => this.#drain(state) }),
      ctx.on('fs/observed', (target, observation, actor) =>
        this.#contain('recording an observation', () => this.#observed(target, observation, actor)),
      ),
      ctx.on('tools/result', (exec, result) => {
        this.#contain('recording a result', () => this.#result(exec, result))
        return undefined
      }),
      // Around the execution itself: waiting for a person's approval is not part of a command.
      ctx.on('tools/execute', (exec, next) => this.#execute(exec, next), { prepend: true }),
      // Prepended: the policy that answers these does not ask further listeners.
      ctx.on(
        'fs/edit-intent',
        async (target, actor, next) => {
          const intent = await next()
          return intent && { ...intent, version: await this.#sameContent(target, actor, intent.version) }
        },
        { prepend: true },
      ),
      ctx.on(
        'fs/write-intent',
        async (target, actor, next) => {
          const intent = await next()
          if (intent?.kind !== 'replaceIfVersion') return intent
          return { ...intent, version: await this.#sameContent(target, actor, intent.version) }
        },
        { prepend: true },
      ),
    ]
  }

  #observed(target: FsTarget, observation: FsObservation, actor: object | undefined): void {
    // The host hands the execution through this event as an opaque object.
    const exec: Partial<ToolExecution> | undefined = actor
    if (!exec?.agent || exec.token === undefined) return
    const seen: Seen =
      observation.kind === 'present'
        ? { kind: 'present', version: String(observation.version) }
        : { kind: 'absent' }
    const state = this.#parts.adopt(exec.agent)
    const key = String(target.targetKey)
    const met = this.#met.get(state) ?? new Map<string, string>()
    this.#met.set(state, met)
    const from = met.get(key) ?? (WRITING_TOOLS.has(exec.name ?? '') ? 'absent' : undefined)
    met.set(key, seen.kind === 'present' ? seen.version : 'absent')
    state.ledger.stage(tokenOf(exec.token), { key, target, seen, from, tool: exec.name ?? '' })
  }

  async #execute(
    exec: { readonly name: string; readonly agent?: Agent },
    next: () => Promise<ToolExecutionResult>,
  ): Promise<ToolExecutionResult> {
    const state = exec.agent && this.#parts.stateOf(exec.agent.session)
    if (!state || !this.#parts.config.notice.commandTools.includes(exec.name)) return next()
    // Without it what others did before could not be told from what the command does.
    if (!(await this.#drain(state))) return next()
    const end = state.ownCommands.begin(performance.now())
    try {
      return await next()
    } finally {
      await this.#drain(state)
      end(performance.now())
    }
  }

  /** Let the events from before this moment arrive. @returns whether they have. */
  async #drain(state: SessionState): Promise<boolean> {
    const { debounceMs } = this.#parts.config.watch
    const passed = await state.reader?.barrier(debounceMs, new AbortController().signal)
    return passed !== undefined && passed !== 'unclean'
  }

  #result(exec: Readonly<ToolExecution>, result: Readonly<ToolExecutionResult>): void {
    const state = exec.agent && this.#parts.stateOf(exec.agent.session)
    if (!state) return
    const { doubtful, kept } = state.ledger.settle(tokenOf(exec.token), {
      failed: result.isError,
      parent: exec.parent === undefined ? undefined : tokenOf(exec.parent),
      callId: String(exec.callId),
    })
    state.doubt(doubtful)
    for (const { key, target, seen, from, tool } of kept) {
      if (seen.kind !== 'present') continue
      const { version } = seen
      if (WRITING_TOOLS.has(tool)) {
        state.noteOwnWrite(key, version)
        this.#parts.boundary.writers.note(key, { session: state.id, from, version, at: performance.now() })
      }
      this.#parts.boundary.contents.capture(state, key, target, version)
    }
  }

  /** The version that a mutation may be based on: the one there now, if it holds what was observed. */
  async #sameContent(target: FsTarget, actor: object | undefined, version: FsVersion): Promise<FsVersion> {
    const exec: Partial<ToolExecution> | undefined = actor
    const state = exec?.agent && this.#parts.stateOf(exec.agent.session)
    if (!state) return version
    const deadline = new Deadline(
      this.#parts.config.watch.maxWaitMs,
      exec.signal ?? new AbortController().signal,
    )
    try {
      const [key, { contents }] = [String(target.targetKey), this.#parts.boundary]
      // Where the service fails, the tool meets the same failure and says so.
      const stat = this.#ctx
        .get('fs')
        ?.stat(target)
        .catch(() => undefined)
      const info = await Promise.race([stat, deadline.reached])
      if (info?.type !== 'file' || info.version === version) return version
      const before = await contents.seen(state, key, String(version), deadline)
      const now = before && (await contents.now(state, key, target, String(info.version), deadline))
      return now && now.digest === before.digest ? info.version : version
    } catch (error) {
      this.#parts.reporter.contained('comparing a file before an edit', error)
      return version
    } finally {
      deadline.cancel()
    }
  }

  #contain(where: string, work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#parts.reporter.contained(where, error)
    }
  }
}

/** Tokens are symbols today and opaque by contract. */
const tokenOf = (token: ToolExecution['token']): ExecutionToken => token
