import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Ledger, sameSeen, type Observation, type Seen } from '../../src/ledger/ledger.ts'

const present = (version: string): Seen => ({ kind: 'present', version })

/** The target of an observation bears the name that tests follow it by. */
const seen = (key: string, target = key, version = 'v1'): Observation<string> => ({
  key,
  target,
  seen: present(version),
  tool: 'read',
})

const succeeded = (callId: string, parent?: symbol) => ({ failed: false, parent, callId })
const failed = (callId: string, parent?: symbol) => ({ failed: true, parent, callId })

const keysOf = (ledger: Ledger<string>): readonly string[] => [...ledger.entries()].map(({ key }) => key)

describe('sameSeen', () => {
  it.each([
    [present('1'), present('1'), true],
    [present('1'), present('2'), false],
    [present('1'), { kind: 'absent' }, false],
    [{ kind: 'absent' }, { kind: 'absent' }, true],
    [undefined, { kind: 'absent' }, false],
    [undefined, present('1'), false],
    [undefined, undefined, true],
  ] as const)('%j and %j: %s', (a, b, same) => {
    expect(sameSeen(a, b)).toBe(same)
    expect(sameSeen(b, a)).toBe(same)
  })
})

describe('Ledger', () => {
  it('commits after result, log and end of step, and not before', () => {
    const ledger = new Ledger<string>()
    const token = Symbol('read')
    ledger.stage(token, seen('a'))
    expect(ledger.settle(token, succeeded('call')).doubtful).toEqual([])
    expect(ledger.size).toBe(0)
    ledger.logged('call', 1)
    expect(ledger.get('a')).toBeUndefined()
    const { committed, doubtful } = ledger.stepEnded()
    expect(committed).toEqual([{ ...seen('a'), sequence: 1, resultSeq: 1, nested: false, alsoShown: [] }])
    expect(doubtful).toEqual([])
    expect(ledger.get('a')).toEqual({ ...seen('a'), sequence: 1, resultSeq: 1, nested: false, alsoShown: [] })
    expect(ledger.stepEnded()).toEqual({ committed: [], doubtful: [] })
  })

  it('doubts what a failed execution saw, at once', () => {
    const ledger = new Ledger<string>()
    const token = Symbol('write')
    ledger.stage(token, seen('a'))
    ledger.stage(token, seen('b'))
    expect(ledger.settle(token, failed('call')).doubtful).toEqual(['a', 'b'])
    ledger.logged('call', 1)
    expect(ledger.stepEnded()).toEqual({ committed: [], doubtful: [] })
  })

  it('doubts a result that is not in the log when its step ends', () => {
    const ledger = new Ledger<string>()
    const token = Symbol('read')
    ledger.stage(token, seen('a'))
    ledger.settle(token, succeeded('call'))
    expect(ledger.stepEnded()).toEqual({ committed: [], doubtful: ['a'] })
    // Too late: it was given up.
    ledger.logged('call', 1)
    expect(ledger.stepEnded()).toEqual({ committed: [], doubtful: [] })
  })

  it('doubts what an execution still holds when the turn ends', () => {
    const ledger = new Ledger<string>()
    const token = Symbol('read')
    ledger.stage(token, seen('a'))
    expect(ledger.stepEnded()).toEqual({ committed: [], doubtful: [] })
    expect(ledger.turnEnded()).toEqual(['a'])
    expect(ledger.settle(token, succeeded('call')).doubtful).toEqual([])
    ledger.logged('call', 1)
    expect(ledger.stepEnded().committed).toEqual([])
  })

  it('hands what a nested execution saw to the enclosing one', () => {
    const ledger = new Ledger<string>()
    const outer = Symbol('outer')
    const inner = Symbol('inner')
    ledger.stage(outer, seen('a'))
    ledger.stage(inner, seen('b'))
    expect(ledger.settle(inner, succeeded('inner', outer)).doubtful).toEqual([])
    // The log names the outermost call alone.
    ledger.logged('inner', 1)
    expect(ledger.stepEnded()).toEqual({ committed: [], doubtful: [] })
    expect(ledger.settle(outer, succeeded('outer')).doubtful).toEqual([])
    ledger.logged('outer', 1)
    expect(ledger.stepEnded().committed.map(({ key }) => key)).toEqual(['a', 'b'])
  })

  it('doubts what a successful nested execution saw when the enclosing one fails', () => {
    const ledger = new Ledger<string>()
    const outer = Symbol('outer')
    const inner = Symbol('inner')
    ledger.stage(inner, seen('b'))
    ledger.settle(inner, succeeded('inner', outer))
    expect(ledger.settle(outer, failed('outer')).doubtful).toEqual(['b'])
  })

  it('doubts only what failed when the enclosing execution succeeds all the same', () => {
    const ledger = new Ledger<string>()
    const outer = Symbol('outer')
    const inner = Symbol('inner')
    ledger.stage(outer, seen('a'))
    ledger.stage(inner, seen('b'))
    expect(ledger.settle(inner, failed('inner', outer)).doubtful).toEqual(['b'])
    ledger.settle(outer, succeeded('outer'))
    ledger.logged('outer', 1)
    expect(ledger.stepEnded()).toMatchObject({ committed: [{ key: 'a' }], doubtful: [] })
  })

  it('takes the latest of several observations, whatever the order of their results', () => {
    const ledger = new Ledger<string>()
    const first = Symbol('first')
    const second = Symbol('second')
    ledger.stage(first, seen('a', 'a', 'old'))
    ledger.stage(second, seen('a', 'a', 'new'))
    for (const [token, callId] of [
      [second, '2'],
      [first, '1'],
    ] as const) {
      ledger.settle(token, succeeded(callId))
      ledger.logged(callId, 1)
    }
    ledger.stepEnded()
    expect(ledger.get('a')?.seen).toEqual(present('new'))
  })

  it('lists entries in the order of commitment, the latest last', () => {
    const ledger = new Ledger<string>()
    for (const key of ['a', 'b', 'a']) {
      const token = Symbol(key)
      ledger.stage(token, seen(key))
      ledger.settle(token, succeeded(key))
      ledger.logged(key, 1)
      ledger.stepEnded()
    }
    expect(keysOf(ledger)).toEqual(['b', 'a'])
    expect([...ledger.entries()].map(({ sequence }) => sequence)).toEqual([2, 3])
    expect(ledger.size).toBe(2)
  })

  it('keeps the results of calls apart that bear the same id', () => {
    const ledger = new Ledger<string>()
    for (const key of ['a', 'b']) {
      const token = Symbol(key)
      ledger.stage(token, seen(key))
      ledger.settle(token, succeeded('same'))
    }
    ledger.logged('same', 1)
    expect(ledger.stepEnded().committed.map(({ key }) => key)).toEqual(['a', 'b'])
  })
})

/** Executions 0 to 5; 2 and 3 run inside 0 and 1, 4 runs inside 2, 5 inside 3. */
const PARENT: readonly (number | undefined)[] = [undefined, undefined, 0, 1, 2, 3]
const KEYS = ['a', 'b', 'c']

type Action =
  | { readonly kind: 'stage'; readonly execution: number; readonly key: string }
  | { readonly kind: 'settle'; readonly execution: number; readonly failed: boolean }
  | { readonly kind: 'log'; readonly execution: number }
  | { readonly kind: 'stepEnd' }
  | { readonly kind: 'turnEnd' }

const execution = fc.nat(PARENT.length - 1)

const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('stage' as const),
        execution,
        key: fc.constantFrom(...KEYS),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('settle' as const),
        execution,
        failed: fc.boolean(),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('log' as const), execution }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('stepEnd' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('turnEnd' as const) }) },
  ),
  { maxLength: 50 },
)

/** Where one observation stands: in the hands of an execution, waiting, or at its end. */
type Fate =
  | { readonly at: 'execution'; readonly execution: number }
  | { readonly at: 'log'; readonly execution: number }
  | { readonly at: 'step' }
  | { readonly at: 'committed' }
  | { readonly at: 'doubtful' }

interface Watched {
  readonly id: string
  readonly key: string
  fate: Fate
}

const callOf = (execution: number): string => `call-${execution}`

/** Plays the actions on a ledger and, beside it, on a list of what became of each observation. */
const play = (script: readonly Action[]): void => {
  const ledger = new Ledger<string>()
  const tokens = PARENT.map((_, index) => Symbol(`execution ${index}`))
  const watched: Watched[] = []
  const reported: string[] = []
  const committed: string[] = []
  const lastCommitted = new Map<string, string>()

  const tokenOf = (index: number): symbol => tokens[index] ?? Symbol('unknown')
  const move = (which: (fate: Fate) => boolean, to: Fate): readonly string[] => {
    const moved = watched.filter(({ fate }) => which(fate))
    for (const each of moved) each.fate = to
    return moved.map(({ id }) => id)
  }
  /** The logged ones of the open step, in the order in which they were staged. */
  const commitStep = (): readonly string[] => {
    for (const { key, id, fate } of watched) if (fate.at === 'step') lastCommitted.set(key, id)
    const ids = move((fate) => fate.at === 'step', { at: 'committed' })
    committed.push(...ids)
    return ids
  }

  for (const action of script) {
    switch (action.kind) {
      case 'stage': {
        const id = `${action.key}#${watched.length}`
        ledger.stage(tokenOf(action.execution), seen(action.key, id, id))
        watched.push({
          id,
          key: action.key,
          fate: { at: 'execution', execution: action.execution },
        })
        break
      }
      case 'settle': {
        const parent = PARENT[action.execution]
        const doubtful = ledger.settle(tokenOf(action.execution), {
          failed: action.failed,
          parent: parent === undefined ? undefined : tokenOf(parent),
          callId: callOf(action.execution),
        }).doubtful
        const held = (fate: Fate): boolean => fate.at === 'execution' && fate.execution === action.execution
        if (action.failed) {
          const ids = move(held, { at: 'doubtful' })
          expect(doubtful.toSorted()).toEqual(ids.toSorted())
        } else {
          expect(doubtful).toEqual([])
          if (parent !== undefined) move(held, { at: 'execution', execution: parent })
          else move(held, { at: 'log', execution: action.execution })
        }
        reported.push(...doubtful)
        break
      }
      case 'log':
        ledger.logged(callOf(action.execution), 1)
        move((fate) => fate.at === 'log' && fate.execution === action.execution, { at: 'step' })
        break
      case 'stepEnd': {
        const result = ledger.stepEnded()
        expect(result.committed.map(({ target }) => target)).toEqual(commitStep())
        const ids = move((fate) => fate.at === 'log', { at: 'doubtful' })
        expect(result.doubtful.toSorted()).toEqual(ids.toSorted())
        reported.push(...result.doubtful)
        break
      }
      case 'turnEnd': {
        const doubtful = ledger.turnEnded()
        commitStep()
        const ids = move((fate) => fate.at === 'log' || fate.at === 'execution', { at: 'doubtful' })
        expect(doubtful.toSorted()).toEqual(ids.toSorted())
        reported.push(...doubtful)
        break
      }
    }
  }

  // Nothing twice, nothing both ways, and what is neither is still under way.
  expect(new Set(reported).size).toBe(reported.length)
  expect(new Set(committed).size).toBe(committed.length)
  expect(committed.filter((id) => reported.includes(id))).toEqual([])
  const under = watched.filter(({ fate }) => ['execution', 'log', 'step'].includes(fate.at))
  expect(reported.length + committed.length + under.length).toBe(watched.length)
  for (const key of KEYS) expect(ledger.get(key)?.target).toBe(lastCommitted.get(key))
}

describe('any order of stages, results, log entries, steps and turns', () => {
  it('commits what succeeded outermost, was logged and saw its step end; the rest is doubted once', () => {
    fc.assert(fc.property(actions, play), { numRuns: 500 })
  })

  it('commits at the end of a turn what the open step has logged', () => {
    const ledger = new Ledger<string>()
    const token = Symbol('read')
    ledger.stage(token, seen('a'))
    ledger.settle(token, succeeded('call'))
    ledger.logged('call', 1)
    expect(ledger.turnEnded()).toEqual([])
    expect(ledger.get('a')).toMatchObject({ sequence: 1, resultSeq: 1, nested: false, alsoShown: [] })
  })
})
