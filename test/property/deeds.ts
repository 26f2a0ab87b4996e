/** What can happen in a workspace: everything that the random runs are made of. */
import * as fc from 'fast-check'

/** Files that exist in the beginning; `link` leads to `v1`. */
export const FILES = ['a.ts', 'b.ts', 'd/x.ts', 'd/y.ts', 'app/m.ts', 'v1/x.ts', 'v2/x.ts'] as const
const NAMES = [...FILES, 'link/x.ts', 'e/x.ts', 'new.ts', 'p/q/z.ts'] as const
/** Names that a rename of somebody else uses: no directory has one of them. */
const RENAMED = ['a.ts', 'b.ts', 'd/x.ts', 'c.ts', 'd/z.ts'] as const

/** Somebody else's doing. */
export type Outside =
  | {
      readonly act: 'create' | 'modify' | 'append' | 'truncate' | 'touch' | 'chmod' | 'delete' | 'replace'
      readonly path: string
    }
  | { readonly act: 'put back'; readonly path: string }
  | { readonly act: 'rename'; readonly path: string; readonly to: string }
  | { readonly act: 'move directory' | 'retarget' | 'checkout' }

/** One tool call. */
export type Tool =
  | { readonly tool: 'read' | 'write' | 'edit' | 'shell'; readonly path: string }
  | { readonly tool: 'batch'; readonly path: string; readonly other: string; readonly fails: boolean }
  | { readonly tool: 'quiet' }

/** What somebody does to the next step that is about to enter. */
export type Disturbance = 'reject' | 'empty' | 'abort' | 'strip'

/** When a turn is cancelled in the middle of a call. */
export type Cancellation = 'before the tool' | 'after the tool'

export type Deed =
  | { readonly kind: 'outside'; readonly outside: Outside }
  | {
      readonly kind: 'step'
      readonly session: number
      readonly tools: readonly Tool[]
      /** Somebody else acts as soon as the first result is there. */
      readonly meanwhile: Outside | undefined
      readonly cancel: Cancellation | undefined
    }
  | { readonly kind: 'finish' | 'cancel' | 'compact' | 'resume'; readonly session: number }
  | { readonly kind: 'disturb'; readonly session: number; readonly how: Disturbance }
  | { readonly kind: 'fail' | 'slow'; readonly path: string }
  | { readonly kind: 'heal' | 'reload' | 'break the watcher' | 'trust' }

const name = fc.constantFrom(...NAMES)
const used = fc.constantFrom(...FILES, 'link/x.ts' as const)

const outside: fc.Arbitrary<Outside> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      act: fc.constantFrom(
        'create' as const,
        'modify' as const,
        'append' as const,
        'truncate' as const,
        'touch' as const,
        'chmod' as const,
        'delete' as const,
        'replace' as const,
      ),
      path: name,
    }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('put back' as const), path: used }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('rename' as const),
      path: fc.constantFrom(...RENAMED),
      to: fc.constantFrom(...RENAMED),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constantFrom('move directory' as const, 'retarget' as const, 'checkout' as const),
    }),
  },
)

const tool: fc.Arbitrary<Tool> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ tool: fc.constant('read' as const), path: used }) },
  {
    weight: 5,
    arbitrary: fc.record({
      tool: fc.constantFrom('write' as const, 'edit' as const, 'shell' as const),
      path: name,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      tool: fc.constant('batch' as const),
      path: used,
      other: name,
      fails: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ tool: 'quiet' } as const) },
)

const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 1 })

/** @param sessions - how many there are. */
export const deedFor = (sessions: number): fc.Arbitrary<Deed> => {
  const session = fc.nat({ max: sessions - 1 })
  return fc.oneof(
    { weight: 10, arbitrary: fc.record({ kind: fc.constant('outside' as const), outside }) },
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant('step' as const),
        session,
        tools: fc.array(tool, { minLength: 1, maxLength: 2 }),
        meanwhile: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, rarely(outside)),
        cancel: fc.oneof(
          { weight: 12, arbitrary: fc.constant(undefined) },
          fc.constantFrom('before the tool' as const, 'after the tool' as const),
        ),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('finish' as const), session }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom('cancel' as const, 'compact' as const, 'resume' as const),
        session,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('disturb' as const),
        session,
        how: fc.constantFrom('reject' as const, 'empty' as const, 'abort' as const, 'strip' as const),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constantFrom('fail' as const, 'slow' as const),
        path: used,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom(
          'heal' as const,
          'reload' as const,
          'break the watcher' as const,
          'trust' as const,
        ),
      }),
    },
  )
}
