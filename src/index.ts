/**
 * A bundle for the DeepSeek Harness that keeps an agent's picture of its workspace true.
 *
 * @module dsh-live-workspace
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import { resolveDshHome } from '@deepseek-ai/dsh-home-paths'
import type { LiveWorkspaceConfig } from './config.ts'
import { Host } from './host.ts'
import { Reporter } from './log.ts'
import { backendFor } from './watch/backends.ts'
import { WatchRegistry } from './watch/registry.ts'

export { Config, type LiveWorkspaceConfig } from './config.ts'
export type { InstructionSource } from './instructions/protocol.ts'
export type { NoticeSource } from './messages.ts'

/** Name of the plugin in the host's diagnostics. */
export const name = 'live-workspace'

/** Services that must exist. The filesystem is asked for at each use, so that the row mounts without one. */
export const inject = ['agents']

/**
 * Mount the plugin.
 * @param ctx - context of the row.
 * @param config - the configuration as `Config` resolves it.
 */
export const apply = (ctx: Context, config: LiveWorkspaceConfig): void => {
  const reporter = new Reporter(ctx)
  // A context that belongs to no agent: what is made in it outlives the agent that asked for it.
  const detached = ctx.agents.withoutInitiator(() => AsyncLocalStorage.snapshot())
  const registry = new WatchRegistry({
    config: config.watch,
    backend: backendFor(config.watch, {
      onNoThread: (detail) =>
        reporter.once(
          `no thread could be started for the native watcher (${detail}), so chokidar watches instead`,
          'raise the limits of this user for threads and memory, or set watch.backend to "chokidar"',
        ),
    }),
    detached,
    ownPaths: ownPaths(),
    report: (root, { reason, detail, remedy }) => reporter.once(`${reason} (${detail ?? root})`, remedy),
  })
  const manifests = join(resolveDshHome(), MANIFESTS)
  const host = new Host(ctx, { config, registry, reporter, manifests, detached })
  ctx.effect(() => () => host.close(), 'live-workspace: sessions and watchers')
  host.start()
}

/** What sessions have seen, below the home of the harness; the number is that of the layout. */
const MANIFESTS = join('live-workspace', 'v1')

/** Where the harness and this bundle write while they run: nothing there is ever news to a session. */
const ownPaths = (): string[] => {
  const home = resolveDshHome()
  try {
    const real = realpathSync(home)
    return [real, join(real, 'sessions'), join(real, 'live-workspace')]
  } catch {
    // It is not there yet; it will have no link on its way then.
    return [home, join(home, 'sessions'), join(home, 'live-workspace')]
  }
}
