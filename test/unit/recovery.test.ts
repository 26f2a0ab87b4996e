import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WatchFault } from '../../src/watch/contract.ts'
import { directoryCap } from '../../src/watch/limits.ts'
import { Recovery, type RecoveryOptions } from '../../src/watch/recovery.ts'

const fault: WatchFault = { code: 'error', reason: 'broken', remedy: 'none' }
const other: WatchFault = { code: 'root-lost', reason: 'gone', remedy: 'none' }
const options: RecoveryOptions = {
  restartDelayMs: 100,
  maxRestartDelayMs: 1_000,
  restartJitterPercent: 20,
  maxRestarts: 1_000,
  restartWindowMs: 10_000,
  maxFaultHistory: 3,
}

describe('the delay before a restart', () => {
  it('doubles up to the longest, and chance adds no more than its share', () => {
    const least = new Recovery(options, () => 0)
    const most = new Recovery(options, () => 1)
    const delays = (recovery: Recovery) => Array.from({ length: 5 }, () => recovery.failed(fault, 0))
    expect(delays(least)).toEqual([100, 200, 400, 800, 1_000])
    expect(delays(most)).toEqual([120, 240, 480, 960, 1_200])
  })

  it('begins anew after a success', () => {
    const recovery = new Recovery(options, () => 0)
    recovery.failed(fault, 0)
    recovery.failed(fault, 100)
    recovery.succeeded(300)
    expect(recovery.failed(fault, 400)).toBe(100)
  })

  it('never lets more restarts happen within the window than allowed, whatever succeeds in between', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ lives: fc.nat(50), works: fc.boolean() }), { maxLength: 200 }),
        fc.integer({ min: 1, max: 8 }),
        (rounds, maxRestarts) => {
          const recovery = new Recovery({ ...options, maxRestarts })
          const starts: number[] = []
          let now = 0
          for (const { lives, works } of rounds) {
            now += recovery.failed(fault, now)
            starts.push(now)
            if (works) recovery.succeeded(now)
            now += lives
          }
          const apart = starts.slice(maxRestarts).map((later, index) => later - (starts[index] ?? later))
          expect(apart.filter((ms) => ms < options.restartWindowMs)).toEqual([])
        },
      ),
    )
  })
})

describe('the history of faults', () => {
  it('has one entry for a fault however often a restart fails, with how long it lasted', () => {
    const recovery = new Recovery(options, () => 0)
    recovery.failed(fault, 10)
    recovery.failed(fault, 20)
    expect(recovery.history).toMatchObject([{ code: 'error', lastedMs: undefined }])
    recovery.succeeded(60)
    expect(recovery.history).toMatchObject([{ code: 'error', lastedMs: 50 }])
  })

  it('has another entry when the reason changes, and forgets the oldest', () => {
    const recovery = new Recovery(options, () => 0)
    for (const each of [fault, other, fault, other]) recovery.failed(each, 5)
    expect(recovery.history.map(({ code }) => code)).toEqual(['root-lost', 'error', 'root-lost'])
  })
})

describe('directoryCap', () => {
  it.each([
    [100_000, 60, 192_536, 100_000],
    [100_000, 60, 8_192, 4_915],
    [100_000, 60, Infinity, 100_000],
    [10, 60, 8_192, 10],
    [10, 1, 1, 1],
  ])('of %d with %d %% of %d: %d', (most, percent, limit, cap) => {
    expect(directoryCap(most, percent, limit)).toBe(cap)
  })
})
