/**
 * Handles on directories, one for each.
 *
 * @module dsh-live-workspace/watch/handles
 */
import { type FSWatcher, watch } from 'node:fs'
import { codeOf } from '../errors.ts'

/** Makes a handle on a directory; another one only in tests. */
export type Subscribe = (
  directory: string,
  onEvent: (event: string, name: string | null) => void,
) => Pick<FSWatcher, 'close' | 'on'>

/** How the system does it. */
export const subscribeNatively: Subscribe = (directory, onEvent) =>
  watch(directory, { persistent: false }, onEvent)

export interface HandlesOptions {
  readonly detached: <T>(make: () => T) => T
  readonly subscribe?: Subscribe | undefined
  /** An event of a handle. */
  readonly onRaw: (event: string, name: string | null, details: { readonly watchedPath: string }) => void
  /** A handle reports nothing any more. */
  readonly onFailed: (directory: string, error: unknown) => void
}

/** The handles of one root. */
export class Handles {
  readonly #options: HandlesOptions
  readonly #subscribe: Subscribe
  readonly #handles = new Map<string, Pick<FSWatcher, 'close'>>()
  /** Handles beyond which the system gave no further one. */
  #systemLimit = Infinity

  constructor(options: HandlesOptions) {
    this.#options = options
    this.#subscribe = options.subscribe ?? subscribeNatively
  }

  get size(): number {
    return this.#handles.size
  }

  /** Whether the system gave no further handle when there were as many. */
  get isFull(): boolean {
    return this.size >= this.#systemLimit
  }

  has(directory: string): boolean {
    return this.#handles.has(directory)
  }

  /**
   * Make a handle on what is at a path now; an older one may be on a directory that is not there any more.
   * @throws what the system says.
   */
  renew(directory: string): void {
    try {
      const handle = this.#options.detached(() =>
        this.#subscribe(directory, (event, name) =>
          this.#options.onRaw(event, name, { watchedPath: directory }),
        ),
      )
      handle.on('error', (error) => this.#options.onFailed(directory, error))
      this.release(directory)
      this.#handles.set(directory, handle)
    } catch (error) {
      if (codeOf(error) === 'ENOSPC') this.#systemLimit = Math.min(this.#systemLimit, this.size)
      throw error
    }
  }

  release(directory: string): void {
    this.#handles.get(directory)?.close()
    this.#handles.delete(directory)
  }

  close(): void {
    for (const handle of this.#handles.values()) handle.close()
    this.#handles.clear()
  }
}
