/**
 * The running instance, and its replacement when the settings change while sessions live.
 *
 * @module dsh-live-workspace/mount
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Context } from '@deepseek-ai/cordis'
import { resolveDshHome } from '@deepseek-ai/dsh-home-paths'
import type { LiveWorkspaceConfig } from './config.ts'
import { Host } from './host.ts'
import type { Reporter } from './log.ts'
import { backendFor } from './watch/backends.ts'
import { WatchRegistry } from './watch/registry.ts'

/** One instance with the settings that it was made from. */
export interface Instance {
  readonly config: LiveWorkspaceConfig
  readonly host: Host
}

/** Holds one instance at a time. */
export class Mount {
  readonly #ctx: Context
  readonly #reporter: Reporter
  /** A context that belongs to no agent: what is made in it outlives the agent that asked for it. */
  readonly #detached: <T>(make: () => T) => T
  #instance: Instance
  /** The settings that the latest replacement was asked for with. */
  #wanted: LiveWorkspaceConfig
  #replacing: Promise<void> = Promise.resolve()
  #closed = false

  /** Starts the first instance at once. */
  constructor(ctx: Context, config: LiveWorkspaceConfig, reporter: Reporter) {
    this.#ctx = ctx
    this.#reporter = reporter
    this.#detached = ctx.agents.withoutInitiator(() => AsyncLocalStorage.snapshot())
    this.#wanted = config
    this.#instance = this.#start(config)
  }

  /** The instance, once no replacement is under way. */
  async current(): Promise<Instance> {
    await this.#replacing
    return this.#instance
  }

  /**
   * Go on with other settings: the instance is closed, and its successor takes over what it knows of
   * each session. Equal settings change nothing. Never throws.
   */
  reconfigure(config: LiveWorkspaceConfig): void {
    if (this.#closed || isDeepStrictEqual(config, this.#wanted)) return
    this.#wanted = config
    this.#replacing = this.#replacing.then(async () => {
      try {
        await this.#instance.host.close()
        if (!this.#closed) this.#instance = this.#start(config)
      } catch (error) {
        this.#reporter.contained('applying changed settings', error)
      }
    })
  }

  /** Close the instance, and wait until nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#replacing
    await this.#instance.host.close()
  }

  #start(config: LiveWorkspaceConfig): Instance {
    const reporter = this.#reporter
    const registry = new WatchRegistry({
      config: config.watch,
      backend: backendFor(config.watch, {
        onNoThread: (detail) =>
          reporter.once(
            `no thread could be started for the native watcher (${detail}), so chokidar watches instead`,
            'raise the limits of this user for threads and memory, or set watch.backend to "chokidar"',
          ),
      }),
      detached: this.#detached,
      ownPaths: ownPaths(),
      report: (root, { reason, detail, remedy }) => reporter.once(`${reason} (${detail ?? root})`, remedy),
    })
    const manifests = join(resolveDshHome(), MANIFESTS)
    const parts = { config, registry, reporter, manifests, detached: this.#detached }
    const host = new Host(this.#ctx, parts)
    this.#detached(() => host.start())
    return { config, host }
  }
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
