/**
 * What the thread that watches and the one that asks it say to each other.
 *
 * Each root has a number. Reports about one root arrive in the order in which they were made, so that an
 * answer to a barrier stands behind everything that it promises.
 *
 * @module dsh-live-workspace/watch/native/messages
 */
import type { BarrierOutcome, WatchFault } from '../contract.ts'
import type { SilenceRules } from '../silence.ts'

/** What an engine in another thread is made from. */
export interface RootOrder {
  /** Real path of the root. */
  readonly path: string
  readonly rules: SilenceRules
  readonly first: readonly string[]
  readonly maxDirectories: number
  readonly sliceMs: number | undefined
}

export type Request =
  | { readonly kind: 'open'; readonly root: number; readonly order: RootOrder }
  | { readonly kind: 'barrier'; readonly root: number; readonly id: number; readonly limitMs: number }
  /** Nothing that came before the answer to that barrier has changed the rules. */
  | { readonly kind: 'settled'; readonly root: number; readonly id: number }
  | {
      readonly kind: 'refresh'
      readonly root: number
      readonly rules: SilenceRules
      readonly first: readonly string[]
    }
  /** One batch of paths has been passed on. */
  | { readonly kind: 'taken'; readonly root: number }
  | { readonly kind: 'close'; readonly root: number }
  /** No root is left: the thread ends by itself. */
  | { readonly kind: 'end' }

/** What a root's engine has to say. */
export type Report =
  | {
      readonly kind: 'told'
      readonly paths: readonly string[]
      /** For each path, whether it was there before; as in `WatchSink.invalidate`. */
      readonly existed: readonly (boolean | undefined)[]
    }
  | { readonly kind: 'everything' }
  | { readonly kind: 'ready'; readonly directories: number }
  | { readonly kind: 'uncovered'; readonly fault: WatchFault; readonly directory: string | undefined }
  | { readonly kind: 'fault'; readonly fault: WatchFault }
  | {
      readonly kind: 'barrier'
      readonly id: number
      readonly outcome: BarrierOutcome
      readonly directories: number
    }
  | { readonly kind: 'closed' }

/** A message of the thread: that it runs, or a report about one root. */
export type Letter = { readonly started: true } | { readonly root: number; readonly report: Report }
