/**
 * What a watcher stands on: the filesystem, whether it reports changes, and the directory itself.
 *
 * @module dsh-live-workspace/watch/ground
 */
import type { WatchConfig } from '../config.ts'
import type { WatchFault } from './contract.ts'
import { ROOT_LOST, unreportedOn } from './faults.ts'
import { filesystemOf, matchesType } from './mounts.ts'
import { probe, type ProbeResult, type ProbeSystem } from './probe.ts'
import { type Identity, RootIdentity } from './root-identity.ts'

/** What the ground needs of its surroundings. */
export interface GroundOptions {
  /** Real path of the root. */
  readonly root: string
  readonly config: Pick<WatchConfig, 'backend' | 'silentFilesystems' | 'probeEvents' | 'probeTimeoutMs'>
  readonly detached: <T>(make: () => T) => T
  /** Ends a probe. */
  readonly signal: AbortSignal
  readonly probeSystem: ProbeSystem | undefined
}

/** The ground of one root. */
export class Ground {
  readonly #options: GroundOptions
  readonly #identity: RootIdentity
  #probed: ProbeResult | undefined

  constructor(options: GroundOptions) {
    this.#options = options
    this.#identity = new RootIdentity(options.root)
  }

  /** What the latest probe has shown. */
  get probed(): ProbeResult | undefined {
    return this.#probed
  }

  /** Whether the root is still the directory that {@link enter} has met. */
  check(): Identity | Promise<Identity> {
    return this.#identity.check()
  }

  /** Look at what is there now. @returns why it cannot be watched. */
  enter(): WatchFault | undefined {
    const { root, config } = this.#options
    // Asked first, because it is the one question that never hangs.
    const type = config.backend === 'polling' ? undefined : filesystemOf(root)
    if (type !== undefined && matchesType(type, config.silentFilesystems)) return unreportedOn(type)
    return this.#identity.record() ? undefined : ROOT_LOST
  }

  /** Find out whether changes are reported; twice, before they count as not. Never rejects. */
  probe(): ProbeResult | Promise<ProbeResult> {
    const { root, config, detached, signal, probeSystem } = this.#options
    if (!config.probeEvents || config.backend === 'polling') {
      return this.#found({ kind: 'skipped', reason: 'it is switched off' })
    }
    const once = () => detached(() => probe(root, config.probeTimeoutMs, signal, probeSystem))
    const first = once()
    if (!(first instanceof Promise)) return this.#found(first)
    return first
      .then((result) => (result.kind === 'silent' ? once() : result))
      .then((result) => this.#found(result))
  }

  #found(result: ProbeResult): ProbeResult {
    this.#probed = result
    return result
  }
}
