/**
 * How much the watcher of one root can be trusted. Pure.
 *
 * @module dsh-live-workspace/watch/coverage
 */
import type { WatchFault } from './contract.ts'

/**
 * - `starting`: the first scan runs; a slow one is not a failure.
 * - `live`: every change below the root reaches the journal.
 * - `degraded`: changes may be missed; used files are checked at each boundary instead.
 * - `remote`: the files are not on this machine's disk.
 * - `off`: watching is switched off by configuration.
 */
export type Coverage =
  | { readonly kind: 'starting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'degraded'; readonly fault: WatchFault }
  | { readonly kind: 'remote' }
  | { readonly kind: 'off' }

export type CoverageEvent =
  | { readonly kind: 'started' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'fault'; readonly fault: WatchFault }

/** The state after an event. A degraded root stays degraded until a watcher is ready again. */
export const nextCoverage = (state: Coverage, event: CoverageEvent): Coverage => {
  if (state.kind === 'remote' || state.kind === 'off') return state
  switch (event.kind) {
    case 'started':
      return state.kind === 'degraded' ? state : { kind: 'starting' }
    case 'ready':
      return { kind: 'live' }
    case 'fault':
      return { kind: 'degraded', fault: event.fault }
  }
}

/**
 * Delay before a restart.
 * @param attempt - restarts since the watcher was last live, from 0.
 * @param firstMs - delay in ms before the first one.
 * @param longestMs - longest delay in ms.
 */
export const restartDelay = (attempt: number, firstMs: number, longestMs: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 30))

/** A state in one word; a degraded one by its fault. */
export const coverageWord = (
  coverage: Coverage | undefined,
): Exclude<Coverage['kind'], 'degraded'> | WatchFault['code'] | undefined =>
  coverage?.kind === 'degraded' ? coverage.fault.code : coverage?.kind
