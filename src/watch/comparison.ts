/**
 * Finds out what changed where no event comes from, by looking at everything there and comparing.
 *
 * Done on demand, at boundaries, and never by a timer. One look serves all sessions of the root; what it
 * finds goes into the journal like an event. Only paths that the rules of the root do not silence are
 * looked at. It lists and stats in slices, so that nothing of it holds the event loop.
 *
 * @module dsh-live-workspace/watch/comparison
 */
import { join } from 'node:path'
import type { Dirent } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Disk } from './disk.ts'
import { isWithin } from './root.ts'

/** How much older than the moment in question a new entry may look: coarse clocks, tick by tick. */
const CLOCK_GRAIN_MS = 50

/** What a comparison needs of its root. */
export interface ComparisonOptions {
  readonly disk: Disk
  /** Whether a path is nobody's news. */
  readonly silent: (path: string, isDirectory: boolean) => boolean
  readonly onChange: (path: string, existed: boolean) => void
  /** A part is not there any more. */
  readonly onGone: (part: string) => void
  /** Files that are compared; what lies beyond is not. */
  readonly maxFiles: number
  /** Time in ms after which a look lets the event loop turn. */
  readonly sliceMs: number
}

interface Part {
  /** Path → what it looked like. */
  files: Map<string, string>
  /** The part was looked at once. */
  known: boolean
  /** Changes from this time of the day on are news already at the first look; in ms. */
  readonly newSince: number | undefined
}

/** Compares the parts of one root. */
export class Comparison {
  readonly #options: ComparisonOptions
  readonly #parts = new Map<string, Part>()
  #running: Promise<boolean> | undefined
  /** A look that begins after the running one: whoever asks now needs one that begins now. */
  #next: Promise<boolean> | undefined
  #sliceStartedAt = 0
  #lastMs = 0
  #endedAt = -Infinity
  #complete = true
  #closed = false

  constructor(options: ComparisonOptions) {
    this.#options = options
  }

  /** Whether the latest look reached everything. */
  get complete(): boolean {
    return this.#complete
  }

  /** Files that are kept in mind. */
  get size(): number {
    let size = 0
    for (const { files } of this.#parts.values()) size += files.size
    return size
  }

  /**
   * What to compare from now on; parts that stay are kept.
   * @param newSince - in a new part, changes from this time of the day on are news; `undefined` when
   *   nobody has watched it before.
   */
  setParts(directories: readonly string[], newSince: number | undefined): void {
    const wanted = new Set(directories)
    for (const part of this.#parts.keys()) if (!wanted.has(part)) this.#parts.delete(part)
    for (const part of wanted) {
      if (!this.#parts.has(part)) this.#parts.set(part, { files: new Map(), known: false, newSince })
    }
  }

  /**
   * Look at everything, beginning now or after the look that is under way.
   * @param thorough - also when the last look was long and has just ended; otherwise looks take at most
   *   about a tenth of the time.
   * @returns settles when it is done: whether everything was reached. Never rejects.
   */
  run(thorough: boolean): Promise<boolean> {
    if (this.#parts.size === 0 || this.#closed) return Promise.resolve(true)
    if (!thorough && performance.now() - this.#endedAt < this.#lastMs * 9) return Promise.resolve(false)
    if (!this.#running) return this.#start()
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#start()
    })
    return this.#next
  }

  /** End a look that is under way; it tells nothing more. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
  }

  #start(): Promise<boolean> {
    const startedAt = performance.now()
    const running = this.#look().finally(() => {
      this.#endedAt = performance.now()
      this.#lastMs = this.#endedAt - startedAt
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }

  async #look(): Promise<boolean> {
    this.#sliceStartedAt = performance.now()
    let left = this.#options.maxFiles
    let complete = true
    for (const [directory, part] of this.#parts) {
      const found = await this.#lookAt(directory, left)
      if (this.#closed) return false
      // Given up meanwhile, with everything that was known of it.
      if (this.#parts.get(directory) !== part) continue
      left -= found.files.size
      complete &&= found.complete
      this.#tell(part, found)
      part.files = found.files
      part.known = true
      if (found.gone) this.#options.onGone(directory)
    }
    this.#complete = complete
    return complete
  }

  #tell(part: Part, { files, born, unread, complete }: Found): void {
    const { onChange } = this.#options
    if (!part.known) {
      if (part.newSince === undefined) return
      const since = part.newSince - CLOCK_GRAIN_MS
      for (const [path, ctimeMs] of born) if (ctimeMs >= since) onChange(path, false)
      return
    }
    for (const [path, look] of files) {
      const before = part.files.get(path)
      if (before !== look) onChange(path, before !== undefined)
    }
    for (const [path, look] of part.files) {
      if (files.has(path)) continue
      // What could not be listed this time is not gone.
      if (!complete || unread.some((directory) => isWithin(directory, path))) files.set(path, look)
      else onChange(path, true)
    }
  }

  async #lookAt(part: string, most: number): Promise<Found> {
    const found: Found = { files: new Map(), born: new Map(), unread: [], complete: true, gone: false }
    const { disk, silent } = this.#options
    const open = [part]
    for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
      await this.#breathe()
      if (this.#closed) return found
      const entries = await this.#list(directory, found, part)
      for (const entry of entries) {
        const path = join(directory, entry.name)
        if (silent(path, entry.isDirectory())) continue
        if (entry.isDirectory()) {
          open.push(path)
          continue
        }
        if (found.files.size >= most) {
          found.complete = false
          return found
        }
        await this.#breathe()
        const info = await disk.entry(path).catch(() => undefined)
        if (!info) continue
        found.files.set(path, `${info.ino} ${info.size} ${info.mtimeMs} ${info.ctimeMs}`)
        found.born.set(path, info.ctimeMs)
      }
    }
    return found
  }

  async #list(directory: string, found: Found, part: string): Promise<readonly Dirent[]> {
    try {
      return await this.#options.disk.list(directory)
    } catch {
      const info = await this.#options.disk.entry(directory).catch(() => 'unknown' as const)
      if (info === undefined || (info !== 'unknown' && !info.isDirectory())) {
        // Gone, or a file by now, while it was being looked at.
        if (directory === part) found.gone = true
      } else {
        found.unread.push(directory)
      }
      return []
    }
  }

  async #breathe(): Promise<void> {
    if (performance.now() - this.#sliceStartedAt < this.#options.sliceMs) return
    await nextTurn()
    this.#sliceStartedAt = performance.now()
  }
}

interface Found {
  readonly files: Map<string, string>
  readonly born: Map<string, number>
  /** Directories that could not be listed. */
  readonly unread: string[]
  complete: boolean
  gone: boolean
}
