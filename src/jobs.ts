/**
 * Background jobs of sessions: while one runs, what changes may be its work.
 *
 * @module dsh-live-workspace/jobs
 */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { JobSnapshot } from '@deepseek-ai/dsh-jobs'
import type { Session } from '@deepseek-ai/dsh-session'
import type { Reporter } from './log.ts'
import type { SessionState } from './session.ts'

/** What is needed to follow jobs. */
export interface JobsParts {
  readonly reporter: Reporter
  readonly stateOf: (session: Session) => SessionState | undefined
  /** Lets the events from before this moment arrive. */
  readonly drain: (state: SessionState) => Promise<unknown>
}

/** A subagent's writes are those of its own session. */
const isCommand = ({ kind }: JobSnapshot): boolean => kind !== 'subagent'

const isOver = ({ status }: JobSnapshot): boolean => status !== 'running' && status !== 'stopping'

/** Jobs count from a moment of the wall clock; windows are of the monotonic one. */
const monotonic = (epochMs: number): number => performance.now() - Math.max(0, Date.now() - epochMs)

/**
 * Follow the background jobs of every session, for as long as the host has a service for them.
 * Registers effects of the context; never throws into the service.
 * @returns ends it earlier.
 */
export const followJobs = (ctx: Context, { reporter, stateOf, drain }: JobsParts): (() => void) => {
  const fiber = ctx.inject(['jobs'], (scope) => {
    /** Ends of the windows of jobs that run, by session and job. */
    const open = new Map<SessionState, Map<string, (endedAt: number) => void>>()
    const follow = (owner: Agent | undefined) => {
      const state = owner && stateOf(owner.session)
      if (!state) return
      const known = open.get(state) ?? new Map<string, (endedAt: number) => void>()
      for (const job of scope.jobs.list(owner).filter(isCommand)) {
        const id = String(job.id)
        const end = known.get(id)
        if (!isOver(job) && !end) known.set(id, state.ownCommands.begin(monotonic(job.startedAt)))
        if (!isOver(job) || !end) continue
        known.delete(id)
        void drain(state).then(() => end(performance.now()))
      }
      if (known.size > 0) open.set(state, known)
      else open.delete(state)
    }
    const contained = (owner: Agent | undefined) => {
      try {
        follow(owner)
      } catch (error) {
        reporter.contained('following background jobs', error)
      }
    }
    scope.effect(() => scope.jobs.onJobsChanged(contained), 'live-workspace: background jobs')
    scope.effect(
      () => () => {
        for (const ends of open.values()) for (const end of ends.values()) end(performance.now())
        open.clear()
      },
      'live-workspace: windows of background jobs',
    )
    for (const agent of ctx.agents.list()) contained(agent)
  })
  return () => void fiber.dispose()
}
