/**
 * When the manifest of one session is written: after something was committed, never on the way of a step.
 *
 * @module dsh-live-workspace/manifest/keeper
 */
import type { FileMark, ManifestStore, Report } from './store.ts'

/** What a keeper works with. */
export interface KeeperParts {
  readonly store: Pick<ManifestStore, 'mark' | 'peek' | 'save'>
  readonly sessionId: string
  /** The plugin instance, opaque. */
  readonly writer: string
  readonly delayMs: number
  /** What was there is read before the first writing; the mark of that file, if there was one. */
  readonly loaded: Promise<FileMark | undefined>
  /** The text of now and the log event up to which it is complete; `undefined` when there is nothing to write. */
  readonly compose: () => { readonly text: string; readonly through: number } | undefined
  /** The log event up to which everything is complete now. */
  readonly through: () => number
  readonly report: Report
  /** Runs a function in a context that belongs to no agent. */
  readonly detached: <T>(make: () => T) => T
}

/** Writes the manifest of one session. */
export class Keeper {
  readonly #parts: KeeperParts
  #mark: FileMark | undefined
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #dirty = false
  #closed = false
  /** The log event up to which the file is complete. */
  #written: number | undefined

  constructor(parts: KeeperParts) {
    this.#parts = parts
    void parts.loaded.then(() => {
      this.#written ??= parts.through()
    })
  }

  /** Something was seen: it is written after the delay, with everything else up to then. */
  changed(): void {
    if (this.#closed) return
    this.#dirty = true
    if (this.#timer || this.#writing) return
    this.#timer = this.#parts.detached(() =>
      setTimeout(() => {
        this.#timer = undefined
        void this.#write()
      }, this.#parts.delayMs),
    )
    // A process that has nothing else to do ends by way of `close`.
    this.#timer.unref()
  }

  /** Write what is not written yet, and stop. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#writing
    await this.#parts.loaded
    // Steps in which nothing was seen are no reason to write, but the log is ahead of the file by them.
    if (this.#dirty || this.#parts.through() > (this.#written ?? -1)) await this.#write()
  }

  async #write(): Promise<void> {
    this.#dirty = false
    this.#writing = this.#save()
    await this.#writing
    this.#writing = undefined
    if (this.#dirty && !this.#closed) this.changed()
  }

  async #save(): Promise<void> {
    const { store, sessionId, compose, loaded } = this.#parts
    const read = await loaded
    this.#mark ??= read
    const composed = compose()
    if (!composed) return
    if (await this.#yields(composed.through)) return
    // The mark of a failed writing is unknown: before the next one it is looked at who has written.
    this.#mark = await store.save(sessionId, composed.text)
    this.#written = composed.through
  }

  /** Whether another process has written meanwhile, and is further than this one. */
  async #yields(through: number): Promise<boolean> {
    const { store, sessionId, writer, report } = this.#parts
    const mark = await store.mark(sessionId)
    if (mark === undefined || mark === this.#mark) return false
    const theirs = await store.peek(sessionId)
    if (!theirs || theirs.writer === writer || (theirs.through?.seq ?? -1) <= through) return false
    report(
      `two processes work on the session ${JSON.stringify(sessionId)}`,
      'end one of them; when the session is resumed, what only this one has seen counts as unknown',
    )
    return true
  }
}
