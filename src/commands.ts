/**
 * The status commands, where the host has commands at all. Their text reaches the person, never the model.
 *
 * @module dsh-live-workspace/commands
 */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { CommandDefinition } from '@deepseek-ai/dsh-commands'
import { quotePath } from './notice/escape.ts'
import { instructionsStatus } from './status/instructions.ts'
import { renderInstructions } from './status/render-instructions.ts'
import { renderWorkspace } from './status/render-workspace.ts'
import { workspaceStatus, type WorkspaceStatus } from './status/workspace.ts'
import type { LiveWorkspaceConfig } from './config.ts'
import type { SessionState } from './session.ts'

/** What the commands ask of the running instance. */
export interface StatusSource {
  readonly config: LiveWorkspaceConfig
  readonly settings: WorkspaceStatus['settings']
  /** What is known of an agent's session, once its workspace was looked for. */
  stateOf(agent: Agent, signal: AbortSignal): Promise<SessionState>
  /** Where the durable state of an agent's session is kept, if it is. */
  manifestOf(agent: Agent): string | undefined
}

/** Size in bytes up to which a wrong argument is repeated. */
const MAX_ECHO_BYTES = 80

type Format = 'text' | 'json'

/** @returns the format asked for, or `undefined` for anything that is not allowed. */
const formatOf = (rawInput: string): Format | undefined => {
  const words = rawInput.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) return 'text'
  return words.length === 1 && words[0] === '--json' ? 'json' : undefined
}

const definition = <Status>(
  name: string,
  description: string,
  collect: (agent: Agent, signal: AbortSignal) => Promise<Status>,
  render: (status: Status, now: number) => string,
): CommandDefinition => ({
  name,
  description,
  input: { hint: '--json' },
  handler: async ({ agent, rawInput, signal }) => {
    const format = formatOf(rawInput)
    if (!format) {
      return {
        kind: 'error',
        text: `/${name} does not know ${quotePath(rawInput.trim(), MAX_ECHO_BYTES)}; allowed: nothing, or --json`,
      }
    }
    const status = await collect(agent, signal)
    const text = format === 'json' ? JSON.stringify(status, null, 2) : render(status, Date.now())
    return { kind: 'success', text }
  },
})

/**
 * Register the commands for as long as both the host's command service and the plugin are there.
 * @param source - the running instance; asked for at each use, because settings replace it.
 */
export const registerCommands = (ctx: Context, source: () => Promise<StatusSource>): void => {
  ctx.inject(['commands'], (inner) => {
    inner.commands.register(
      definition(
        'workspace',
        'Show what is known of the workspace: watching, files seen, changes told',
        async (agent, signal) => {
          const running = await source()
          const state = await running.stateOf(agent, signal)
          const { settings, config } = running
          const manifest = running.manifestOf(agent)
          return workspaceStatus({ state, session: agent.session, watch: config.watch, settings, manifest })
        },
        renderWorkspace,
      ),
    )
    inner.commands.register(
      definition(
        'instructions',
        'Show which instruction files are in force, and why others are not',
        async (agent, signal) => {
          const state = await (await source()).stateOf(agent, signal)
          return instructionsStatus({
            room: state.instructions,
            session: agent.session,
            fs: inner.get('fs'),
            signal,
          })
        },
        renderInstructions,
      ),
    )
  })
}
