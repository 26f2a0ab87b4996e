/**
 * When a failed watcher is started again, and what has gone wrong so far. No I/O, no clock of its own.
 *
 * @module dsh-live-workspace/watch/recovery
 */
import type { WatchFault } from './contract.ts'
import { restartDelay } from './coverage.ts'

/** Delays in ms. */
export interface RecoveryOptions {
  readonly restartDelayMs: number
  readonly maxRestartDelayMs: number
  /** Share of a delay that chance adds, in percent: many watchers do not start at the same moment. */
  readonly restartJitterPercent: number
  /** Restarts within {@link restartWindowMs}; a further one waits until the oldest is that old. */
  readonly maxRestarts: number
  readonly restartWindowMs: number
  /** Faults that are remembered. */
  readonly maxFaultHistory: number
}

/** One fault as it was, for the status. */
export interface PastFault {
  readonly code: WatchFault['code']
  readonly reason: string
  /** Time of the day in ms, for people. */
  readonly at: number
  /** How long it lasted in ms; `undefined` while it does. */
  readonly lastedMs: number | undefined
}

/** Restarts of one root. */
export class Recovery {
  readonly #options: RecoveryOptions
  readonly #random: () => number
  /** Times in ms by the monotonic clock at which restarts were due. */
  readonly #restarts: number[] = []
  readonly #past: PastFault[] = []
  #attempt = 0
  /** When the present fault began, by the monotonic clock. */
  #since: number | undefined

  /** @param random - from 0 to 1. */
  constructor(options: RecoveryOptions, random: () => number = Math.random) {
    this.#options = options
    this.#random = random
  }

  /** Faults so far, the oldest first; the first ones are forgotten. */
  get history(): readonly PastFault[] {
    return this.#past
  }

  /**
   * It failed.
   * @param now - time in ms by the monotonic clock.
   * @returns the delay in ms before the next start.
   */
  failed(fault: WatchFault, now: number): number {
    const latest = this.#past.at(-1)
    if (this.#since === undefined || latest?.code !== fault.code) {
      this.#end(now)
      this.#since = now
      this.#past.push({ code: fault.code, reason: fault.reason, at: Date.now(), lastedMs: undefined })
      if (this.#past.length > this.#options.maxFaultHistory) this.#past.shift()
    }
    const { restartDelayMs, maxRestartDelayMs, restartJitterPercent } = this.#options
    const plain = restartDelay(this.#attempt++, restartDelayMs, maxRestartDelayMs)
    const delay = Math.round(plain * (1 + (this.#random() * restartJitterPercent) / 100))
    return Math.max(delay, this.#untilAllowed(now, now + delay))
  }

  /** It works again. */
  succeeded(now: number): void {
    this.#attempt = 0
    this.#end(now)
  }

  #end(now: number): void {
    const latest = this.#past.at(-1)
    if (this.#since !== undefined && latest) {
      this.#past[this.#past.length - 1] = { ...latest, lastedMs: Math.round(now - this.#since) }
    }
    this.#since = undefined
  }

  /** A watcher that works for a moment each time must not scan the tree again and again. */
  #untilAllowed(now: number, due: number): number {
    const { maxRestarts, restartWindowMs } = this.#options
    const oldest = this.#restarts.length >= maxRestarts ? this.#restarts.shift() : undefined
    const at = oldest === undefined ? due : Math.max(due, oldest + restartWindowMs)
    this.#restarts.push(at)
    return at - now
  }
}
