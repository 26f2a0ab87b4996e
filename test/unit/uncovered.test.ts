import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WatchFault } from '../../src/watch/contract.ts'
import { isWithin } from '../../src/watch/root.ts'
import { UncoveredParts } from '../../src/watch/uncovered.ts'

const fault: WatchFault = { code: 'watch-limit', reason: 'too many', remedy: 'fewer' }
const parts = (most = 100) => new UncoveredParts('/r', most)

describe('the parts that are not watched', () => {
  it('are none at first', () => {
    const none = parts()
    expect(none.isWhole).toBe(true)
    expect(none.list).toEqual({ directories: [], unknown: false, fault: undefined })
    expect(none.has('/r/a')).toBe(false)
  })

  it('hold everything below them, and nothing beside', () => {
    const some = parts()
    expect(some.add(fault, '/r/a/b')).toBe(true)
    expect(['/r/a/b', '/r/a/b/c/d'].map((path) => some.has(path))).toEqual([true, true])
    expect(['/r/a', '/r/a/bc', '/r', '/x'].map((path) => some.has(path))).toEqual(Array(4).fill(false))
    expect(some.list.fault).toBe(fault)
  })

  it('name a directory once, by the outermost', () => {
    const some = parts()
    some.add(fault, '/r/a/b')
    some.add(fault, '/r/a/c')
    expect(some.add(fault, '/r/a/b/x')).toBe(false)
    expect(some.add(fault, '/r/a')).toBe(true)
    expect(some.list.directories).toEqual(['/r/a'])
  })

  it('are everything when nobody knows which', () => {
    const some = parts()
    expect(some.add(fault, undefined)).toBe(true)
    expect(some.add(fault, undefined)).toBe(false)
    expect(some.has('/r/a')).toBe(true)
    expect(some.isWhole).toBe(false)
    some.clear()
    expect(some.isWhole).toBe(true)
  })

  it('end with their last directory', () => {
    const some = parts()
    some.add(fault, '/r/a')
    some.remove('/r/b')
    expect(some.isWhole).toBe(false)
    some.remove('/r/a')
    expect(some.list).toEqual({ directories: [], unknown: false, fault: undefined })
  })

  it('are never more than allowed, and never less than what was said', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => `/r/${names.join('/')}`)
    fc.assert(
      fc.property(fc.array(path, { maxLength: 30 }), fc.integer({ min: 1, max: 5 }), (paths, most) => {
        const some = parts(most)
        for (const each of paths) some.add(fault, each)
        const { directories } = some.list
        expect(directories.length).toBeLessThanOrEqual(most)
        for (const each of paths) expect(some.has(each)).toBe(true)
        for (const one of directories) {
          expect(directories.filter((other) => isWithin(one, other))).toEqual([one])
        }
      }),
    )
  })
})
