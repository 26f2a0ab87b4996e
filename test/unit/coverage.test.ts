import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WatchFault } from '../../src/watch/contract.ts'
import { type Coverage, nextCoverage, restartDelay } from '../../src/watch/coverage.ts'

const older: WatchFault = { code: 'watch-limit', reason: 'older', remedy: 'r' }
const newer: WatchFault = { code: 'root-lost', reason: 'newer', remedy: 'r' }

const starting: Coverage = { kind: 'starting' }
const live: Coverage = { kind: 'live' }
const degraded: Coverage = { kind: 'degraded', fault: older }
const degradedAnew: Coverage = { kind: 'degraded', fault: newer }
const remote: Coverage = { kind: 'remote' }
const off: Coverage = { kind: 'off' }

const started = { kind: 'started' } as const
const ready = { kind: 'ready' } as const
const fault = { kind: 'fault', fault: newer } as const

describe('nextCoverage', () => {
  it.each([
    [starting, started, starting],
    [starting, ready, live],
    [starting, fault, degradedAnew],
    [live, started, starting],
    [live, ready, live],
    [live, fault, degradedAnew],
    // A watcher that has only started again proves nothing.
    [degraded, started, degraded],
    [degraded, ready, live],
    [degraded, fault, degradedAnew],
    [remote, started, remote],
    [remote, ready, remote],
    [remote, fault, remote],
    [off, started, off],
    [off, ready, off],
    [off, fault, off],
  ] as const)('%j after %j: %j', (state, event, next) => {
    expect(nextCoverage(state, event)).toEqual(next)
  })
})

describe('restartDelay', () => {
  it('doubles up to the longest', () => {
    expect([0, 1, 2, 3, 4, 5].map((attempt) => restartDelay(attempt, 100, 1_000))).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ])
  })

  it('never shrinks, and stays a delay that a timer can hold', () => {
    const delay = fc.integer({ min: 1, max: 86_400_000 })
    fc.assert(
      fc.property(fc.nat(1_000_000), delay, delay, (attempt, a, b) => {
        const [first, longest] = a < b ? [a, b] : [b, a]
        const now = restartDelay(attempt, first, longest)
        expect(now).toBeGreaterThanOrEqual(first)
        expect(now).toBeLessThanOrEqual(longest)
        expect(restartDelay(attempt + 1, first, longest)).toBeGreaterThanOrEqual(now)
      }),
    )
  })
})
