import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Receipts } from '../../src/ledger/receipts.ts'

const covering = (...states: readonly (readonly [string, number])[]) =>
  states.map(([key, state]) => ({ key, state }))

describe('Receipts', () => {
  it('takes a message on its way for the last word, and keeps it when the message is in the log', () => {
    const receipts = new Receipts<number>()
    expect(receipts.lastWord('a')).toBeUndefined()
    receipts.issue('m', covering(['a', 1]))
    expect(receipts.lastWord('a')).toBe(1)
    expect(receipts.lastWord('b')).toBeUndefined()
    expect([...receipts.travelling]).toEqual(['m'])
    expect(receipts.settle('m', 7)).toEqual(covering(['a', 1]))
    expect([...receipts.travelling]).toEqual([])
    expect(receipts.lastWord('a')).toBe(1)
  })

  it('has told nothing by a message that is neither in the log nor waiting', () => {
    const receipts = new Receipts<number>()
    receipts.issue('gone', covering(['a', 1], ['b', 1]))
    receipts.issue('waiting', covering(['c', 1]))
    receipts.withdrawExcept((id) => id === 'waiting')
    expect(receipts.lastWord('a')).toBeUndefined()
    expect(receipts.lastWord('b')).toBeUndefined()
    expect(receipts.lastWord('c')).toBe(1)
    expect(receipts.settle('gone', 7)).toEqual([])
    expect(receipts.lastWord('a')).toBeUndefined()
  })

  it('falls back to what was told before when a newer message is withdrawn', () => {
    const receipts = new Receipts<number>()
    receipts.issue('old', covering(['a', 1]))
    receipts.settle('old', 1)
    receipts.issue('new', covering(['a', 2]))
    expect(receipts.lastWord('a')).toBe(2)
    receipts.withdrawExcept(() => false)
    expect(receipts.lastWord('a')).toBe(1)
  })

  it('takes the newer of two messages on their way', () => {
    const receipts = new Receipts<number>()
    receipts.issue('old', covering(['a', 1]))
    receipts.issue('new', covering(['a', 2]))
    expect(receipts.lastWord('a')).toBe(2)
  })

  it('takes the last state of a key that one message covers twice', () => {
    const receipts = new Receipts<number>()
    receipts.issue('m', covering(['a', 1], ['a', 2]))
    expect(receipts.lastWord('a')).toBe(2)
    receipts.settle('m', 1)
    expect(receipts.lastWord('a')).toBe(2)
  })

  it('settles a message once, and none that is not its own', () => {
    const receipts = new Receipts<number>()
    receipts.issue('m', covering(['a', 1]))
    expect(receipts.settle('other', 1)).toEqual([])
    expect(receipts.settle('m', 2)).toHaveLength(1)
    expect(receipts.settle('m', 3)).toEqual([])
    // The second settling of it moved nothing: what counts is the event that told it.
    receipts.forgetInvisible((seq) => seq === 3)
    expect(receipts.lastWord('a')).toBeUndefined()
  })

  it('forgets what the model cannot see any more, but not what is on its way', () => {
    const receipts = new Receipts<number>()
    receipts.issue('1', covering(['a', 1]))
    receipts.settle('1', 1)
    receipts.issue('2', covering(['b', 1]))
    receipts.settle('2', 2)
    receipts.issue('3', covering(['c', 1]))
    receipts.forgetInvisible((seq) => seq === 2)
    expect(['a', 'b', 'c'].map((key) => receipts.lastWord(key))).toEqual([undefined, 1, 1])
  })

  it('forgets one key', () => {
    const receipts = new Receipts<number>()
    receipts.issue('m', covering(['a', 1], ['b', 1]))
    receipts.settle('m', 1)
    receipts.forget('a')
    expect(['a', 'b'].map((key) => receipts.lastWord(key))).toEqual([undefined, 1])
  })

  it('hands back all that a covered state carries', () => {
    const receipts = new Receipts<number, { key: string; state: number; path: string }>()
    receipts.issue('m', [{ key: 'a', state: 1, path: '/a' }])
    expect(receipts.settle('m', 1)).toEqual([{ key: 'a', state: 1, path: '/a' }])
  })

  it('trims the oldest first, and never what must stay', () => {
    const receipts = new Receipts<number>()
    for (const [seq, key] of ['a', 'b', 'c', 'd'].entries()) {
      receipts.issue(key, covering([key, seq]))
      receipts.settle(key, seq)
    }
    // Told again, so that it is not the oldest any more.
    receipts.issue('again', covering(['a', 9]))
    receipts.settle('again', 9)
    receipts.trim(2, (key) => key === 'b')
    expect(['a', 'b', 'c', 'd'].map((key) => receipts.lastWord(key))).toEqual([9, 1, undefined, undefined])
    receipts.trim(0, () => true)
    expect(receipts.lastWord('a')).toBe(9)
  })
})

type Action =
  | { readonly kind: 'issue'; readonly keys: readonly string[] }
  | { readonly kind: 'settle'; readonly which: number }
  | { readonly kind: 'withdraw'; readonly keep: readonly number[] }
  | { readonly kind: 'forget'; readonly key: string }
  | { readonly kind: 'hide'; readonly before: number }

const KEYS = ['a', 'b', 'c']

const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('issue' as const),
        keys: fc.subarray(KEYS, { minLength: 1 }),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle' as const), which: fc.nat(20) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('withdraw' as const), keep: fc.array(fc.nat(20)) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('forget' as const), key: fc.constantFrom(...KEYS) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('hide' as const), before: fc.nat(20) }) },
  ),
  { maxLength: 40 },
)

/** Plays the actions on receipts and, beside it, on plain lists of what travels and what was told. */
const play = (script: readonly Action[]): void => {
  const receipts = new Receipts<number>()
  let open: { readonly id: string; readonly number: number; readonly keys: readonly string[] }[] = []
  const told = new Map<string, { readonly state: number; readonly seq: number }>()
  let issued = 0
  let seq = 0
  for (const action of script) {
    switch (action.kind) {
      case 'issue': {
        const number = issued++
        open.push({ id: `m${number}`, number, keys: action.keys })
        // A state of its own for each message, so that none can pass for another.
        receipts.issue(
          `m${number}`,
          action.keys.map((key) => ({ key, state: number })),
        )
        break
      }
      case 'settle': {
        seq += 1
        const message = open.find(({ number }) => number === action.which)
        const keys = receipts.settle(`m${action.which}`, seq).map(({ key }) => key)
        expect(keys).toEqual(message?.keys ?? [])
        open = open.filter((each) => each !== message)
        for (const key of message?.keys ?? []) told.set(key, { state: action.which, seq })
        break
      }
      case 'withdraw':
        receipts.withdrawExcept((id) => action.keep.some((number) => id === `m${number}`))
        open = open.filter(({ number }) => action.keep.includes(number))
        break
      case 'forget':
        receipts.forget(action.key)
        told.delete(action.key)
        break
      case 'hide':
        receipts.forgetInvisible((at) => at > action.before)
        for (const [key, { seq: at }] of told) if (at <= action.before) told.delete(key)
        break
    }
    expect([...receipts.travelling]).toEqual(open.map(({ id }) => id))
    for (const key of KEYS) {
      const newest = open.findLast(({ keys }) => keys.includes(key))
      expect(receipts.lastWord(key)).toBe(newest?.number ?? told.get(key)?.state)
    }
  }
}

describe('any order of issuing, settling, withdrawing and hiding', () => {
  it('has as its last word the newest message on its way, else the newest told one still visible', () => {
    fc.assert(fc.property(actions, play), { numRuns: 500 })
  })
})
