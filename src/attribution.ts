/**
 * Who changed a file, where that is known: another session of this process, or a command of this one.
 *
 * @module dsh-live-workspace/attribution
 */

/** A time span in ms of the process's monotonic clock; open while the command runs. */
interface Window {
  readonly startedAt: number
  endedAt: number | undefined
}

/** When a session's own commands ran. */
export class OwnCommands {
  readonly #most: number
  readonly #windows: Window[] = []

  /** @param most - windows remembered. */
  constructor(most: number) {
    this.#most = most
  }

  /** A command begins. @returns to be called at its end. */
  begin(now: number): (endedAt: number) => void {
    const window: Window = { startedAt: now, endedAt: undefined }
    this.#windows.push(window)
    if (this.#windows.length > this.#most) {
      // A job may run on while many commands come and go.
      const over = this.#windows.findIndex(({ endedAt }) => endedAt !== undefined)
      this.#windows.splice(Math.max(0, over), 1)
    }
    return (endedAt) => {
      window.endedAt = endedAt
    }
  }

  /** Whether at least one moment is known, and a command ran at every one. */
  ranAt(moments: readonly number[]): boolean {
    return (
      moments.length > 0 &&
      moments.every((moment) =>
        this.#windows.some(
          ({ startedAt, endedAt }) => startedAt <= moment && moment <= (endedAt ?? Infinity),
        ),
      )
    )
  }
}

/** A version that a session has written. */
export interface Writer {
  readonly session: string
  /** Version that it was based on; `absent` for a new file, `undefined` when not known. */
  readonly from: string | undefined
  readonly version: string
  /** Time in ms of the process's monotonic clock. */
  readonly at: number
}

/** Writes remembered of one target. */
const MAX_CHAIN = 16

/** The latest writes of each target by any session of this process. */
export class Writers {
  readonly #most: number
  readonly #latest = new Map<string, Writer[]>()

  /** @param most - targets remembered. */
  constructor(most: number) {
    this.#most = most
  }

  note(key: string, writer: Writer): void {
    const chain = [...(this.#latest.get(key) ?? []), writer].slice(-MAX_CHAIN)
    this.#latest.delete(key)
    this.#latest.set(key, chain)
    for (const oldest of this.#latest.keys()) {
      if (this.#latest.size <= this.#most) return
      this.#latest.delete(oldest)
    }
  }

  /**
   * Who alone made one version out of another.
   * @returns `undefined` when another writer, known or not, had a part in it.
   */
  between(key: string, from: string | undefined, version: string): Writer | undefined {
    if (from === undefined) return undefined
    const chain = this.#latest.get(key) ?? []
    const last = chain.findLast((writer) => writer.version === version)
    let step = last
    for (let steps = 0; step && step.session === last?.session && steps < MAX_CHAIN; steps += 1) {
      const base = step.from
      if (base === from) return last
      step = chain.findLast((writer) => writer.version === base)
    }
    return undefined
  }
}
