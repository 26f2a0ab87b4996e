/**
 * Reading contents for the ledger: what an observation saw, and what is there now.
 *
 * @module dsh-live-workspace/contents
 */
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import pLimit, { type LimitFunction } from 'p-limit'
import { type Content, type ContentLimits, readContent } from './ledger/content.ts'
import type { Deadline } from './revalidate.ts'
import type { SessionState } from './session.ts'

/** Reads contents of one plugin instance, bounded in size and concurrency. */
export class Contents {
  readonly #fs: () => FileSystem
  readonly #limits: ContentLimits
  readonly #limit: LimitFunction

  constructor(fs: () => FileSystem, limits: ContentLimits, concurrency: number) {
    this.#fs = fs
    this.#limits = limits
    this.#limit = pLimit(concurrency)
  }

  /** Begin to read what an observation saw, so that a later version can be compared with it. */
  capture(state: SessionState, key: string, target: FsTarget, version: string): void {
    if (state.shelf.at(key, version) || state.captures.get(key)?.version === version) return
    const done = this.#read(target, version).then((content) => {
      if (state.captures.get(key)?.done === done) state.captures.delete(key)
      if (!content) return
      state.shelf.put(key, content)
      state.remember()
    })
    state.captures.set(key, { version, done, hangs: false })
  }

  /**
   * Wait for the reading of a target that is under way: a service that hangs is not asked twice.
   * @returns `settled` when there is none any more, `late` when it outlasts this boundary, `hangs` when
   *   it has outlasted an earlier one.
   */
  async underWay(
    state: SessionState,
    key: string | undefined,
    deadline: Deadline,
  ): Promise<'settled' | 'late' | 'hangs'> {
    const capture = key === undefined ? undefined : state.captures.get(key)
    if (!capture) return 'settled'
    if (capture.hangs) return 'hangs'
    await Promise.race([capture.done, deadline.reached])
    if (!deadline.expired) return 'settled'
    // An abort says nothing about the service.
    capture.hangs = !deadline.aborted
    return 'late'
  }

  /** What the session saw at this version, if it could be read then. */
  async seen(
    state: SessionState,
    key: string,
    version: string,
    deadline: Deadline,
  ): Promise<Content | undefined> {
    await Promise.race([state.captures.get(key)?.done, deadline.reached])
    return state.shelf.at(key, version)
  }

  /** What is there now, read anew although the version did not move. */
  async again(target: FsTarget, version: string, deadline: Deadline): Promise<Content | undefined> {
    return Promise.race([this.#read(target, version), deadline.reached.then(() => undefined)])
  }

  /** What is there now, if it still is this version; read once for a version. */
  async now(
    state: SessionState,
    key: string,
    target: FsTarget,
    version: string,
    deadline: Deadline,
  ): Promise<Content | undefined> {
    const known = state.latest.at(key, version)
    if (known) return known
    // Kept also when it comes too late for this boundary: the next one finds it.
    const reading = this.#read(target, version).then((content) => {
      if (content) state.latest.put(key, content)
      return content
    })
    return Promise.race([reading, deadline.reached.then(() => undefined)])
  }

  async #read(target: FsTarget, version: string): Promise<Content | undefined> {
    try {
      return await this.#limit(() => readContent(this.#fs(), target, version, this.#limits, undefined))
    } catch {
      // Unreadable, too large or gone: there is nothing to compare with, and the change is told as such.
      return undefined
    }
  }
}
