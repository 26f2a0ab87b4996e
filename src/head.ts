/**
 * Where git's HEAD stood when a session was last told.
 *
 * @module dsh-live-workspace/head
 */
import { basename } from 'node:path'
import {
  describeHeadMove,
  type HeadMove,
  headSources,
  type HeadState,
  ledBack,
  readHead,
} from './notice/git-head.ts'
import type { RootReader } from './watch/registry.ts'

/** How git changed the work tree although HEAD is where it was: it moved there and back, or by a stash. */
export type Detour = 'head' | 'stash'

/** Follows HEAD for one session. */
export class HeadWatch {
  #known: HeadState | undefined
  #next: HeadState | undefined
  #sources: ReadonlySet<string> = new Set()
  #complete = false
  #dirty = true
  /** Time in ms of the latest event of a file that HEAD depends on. */
  movedAt = 0
  readonly #detours = new Set<Detour>()

  /** An event named a path. @param at - time in ms by the process's monotonic clock. */
  noticed(path: string, at: number): void {
    if (!this.#sources.has(path)) return
    this.#dirty = true
    this.movedAt = at
    if (basename(path) === 'stash') this.#detours.add('stash')
  }

  /** Detours since the last call. */
  takeDetours(): ReadonlySet<Detour> {
    const taken = new Set(this.#detours)
    this.#detours.clear()
    return taken
  }

  /** Anything may have changed. */
  doubt(): void {
    this.#dirty = true
  }

  /**
   * What HEAD has done since it was last told; reads nothing while no event came.
   * @param root - real path of the work tree's root.
   * @param live - whether every event since the last look has come.
   */
  async look(root: string, reader: RootReader | undefined, live: boolean): Promise<HeadMove | undefined> {
    if (live && this.#complete && !this.#dirty && !this.#next) return undefined
    this.#dirty = false
    const now = await readHead(root)
    const sources = await headSources(root)
    this.#sources = new Set(sources)
    const followed = reader?.follow({ directories: [], names: [], files: sources })
    this.#complete = followed?.complete ?? false
    if (followed?.added) this.#dirty = true
    const move = describeHeadMove(this.#known, now)
    if (move) this.#next = now
    else {
      if (ledBack(this.#known, now)) this.#detours.add('head')
      this.#accept(now)
    }
    return move
  }

  /** The move was told, or is not worth a word. */
  settle(): void {
    if (this.#next) this.#accept(this.#next)
  }

  #accept(state: HeadState | undefined): void {
    this.#known = state
    this.#next = undefined
  }
}
