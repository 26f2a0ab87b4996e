/**
 * A bundle for the DeepSeek Harness that keeps an agent's picture of its workspace true.
 *
 * @module dsh-live-workspace
 */
import type { Context } from '@deepseek-ai/cordis'
import type z from '@deepseek-ai/schemastery'
import { registerCommands } from './commands.ts'
import { type LiveWorkspaceConfig, schemaReporting } from './config.ts'
import { messageOf } from './errors.ts'
import { Reporter } from './log.ts'
import { Mount } from './mount.ts'
import { followSettings } from './settings.ts'

export type { LiveWorkspaceConfig } from './config.ts'
export type { InstructionSource } from './instructions/protocol.ts'
export type { NoticeSource } from './messages.ts'

/** Name of the plugin in the host's diagnostics. */
export const name = 'live-workspace'

/** Services that must exist. The filesystem is asked for at each use, so that the row mounts without one. */
export const inject = ['agents']

/** Reporters of the rows that run in this process. */
const running = new Set<Reporter>()

/** The schema of a row. Once the row runs, only the host's log says that an edit of it is wrong, so we say it too. */
export const Config: z<unknown, LiveWorkspaceConfig> = schemaReporting((error) => {
  for (const reporter of running) {
    reporter.once(
      `an edit of this plugin's configuration is not applied: ${messageOf(error)}`,
      'correct the value; until then the last good settings stay in force',
    )
  }
})

/**
 * Mount the plugin.
 * @param ctx - context of the row.
 * @param config - the configuration as `Config` resolves it.
 */
export const apply = (ctx: Context, config: LiveWorkspaceConfig): void => {
  const reporter = new Reporter(ctx)
  const mount = new Mount(ctx, config, reporter)
  ctx.effect(() => {
    running.add(reporter)
    return async () => {
      running.delete(reporter)
      await mount.close()
    }
  }, 'live-workspace: sessions and watchers')
  const settings = followSettings(ctx, config, { mount, reporter })
  registerCommands(ctx, async () => {
    const { host, config: inForce } = await mount.current()
    return {
      config: inForce,
      settings: settings(),
      stateOf: (agent, signal) => host.stateOf(agent, signal),
      manifestOf: (agent) => host.manifestOf(agent),
    }
  })
}
