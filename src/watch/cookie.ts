/**
 * A fence in the event queue of this process.
 *
 * On Linux every `fs.watch` handle of one loop shares one inotify queue, and the kernel queues a
 * record inside the writer's own system call. So when the event of a file that we made has arrived,
 * every event from before it has been delivered too. The file may lie anywhere; a private temporary
 * directory disturbs nobody. (The same method as the query cookies of watchman and of git's
 * filesystem monitor.)
 *
 * @module dsh-live-workspace/watch/cookie
 */
import {
  closeSync,
  type FSWatcher,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  unlinkSync,
  watch,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../errors.ts'

const PREFIX = 'dsh-live-workspace-'
/** A process of another namespace may be alive though we cannot see it; a day later that is unlikely. */
const LEFTOVER_AGE_MS = 86_400_000

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return codeOf(error) === 'ESRCH'
  }
}

/** Directories of processes that could not remove them: they were killed. */
const removeLeftovers = (home: string): void => {
  try {
    for (const name of readdirSync(home)) {
      const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split('-')[0]) : NaN
      if (!Number.isInteger(pid) || !isGone(pid)) continue
      const path = join(home, name)
      if (Date.now() - statSync(path).mtimeMs > LEFTOVER_AGE_MS)
        rmSync(path, { recursive: true, force: true })
    }
  } catch {
    // Tidiness is no reason to fail: another user's, or gone meanwhile.
  }
}

/** One private directory, one handle, any number of waiting fences. */
export class CookieFence {
  readonly #directory: string
  readonly #watcher: FSWatcher
  readonly #waiting = new Map<string, (passed: boolean) => void>()
  /** Cookies that were made and whose event has not come, the oldest first. */
  readonly #outstanding = new Set<string>()
  readonly #onEvent: () => void
  readonly #onLost: () => void
  #next = 0

  /**
   * @param onEvent - called for each event of the queue that is ours.
   * @param onLost - called when a later cookie came before an earlier one: the queue has lost events.
   * @throws when the temporary directory cannot be made or watched.
   */
  constructor(onEvent: () => void = () => undefined, onLost: () => void = () => undefined) {
    this.#onEvent = onEvent
    this.#onLost = onLost
    const home = realpathSync(tmpdir())
    removeLeftovers(home)
    this.#directory = mkdtempSync(join(home, `${PREFIX}${process.pid}-`))
    try {
      this.#watcher = watch(this.#directory, { persistent: false }, (_event, name) => {
        this.#onEvent()
        if (name !== null) this.#arrived(name)
      })
      // No cookie comes any more, so that no barrier is passed.
      this.#watcher.on('error', () => this.giveUp())
    } catch (error) {
      rmSync(this.#directory, { recursive: true, force: true })
      throw error
    }
  }

  /**
   * Wait until the queue has passed this moment.
   * @param limitMs - longest wait in ms.
   * @param signal - ends the wait at once.
   * @returns whether the queue did pass; `false` when the wait ended otherwise. Never rejects.
   */
  pass(limitMs: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      // A name of its own for each fence: equal adjacent records would be merged by the kernel.
      const name = `${process.pid}-${this.#next++}`
      const settle = (passed: boolean) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        this.#waiting.delete(name)
        resolve(passed)
      }
      const giveUp = () => settle(false)
      // Holds the process for the length of one wait: nothing else may be left that does.
      const timer = setTimeout(giveUp, limitMs)
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.set(name, settle)
      try {
        const path = join(this.#directory, name)
        closeSync(openSync(path, 'wx'))
        this.#outstanding.add(name)
        unlinkSync(path)
      } catch {
        // No room or no permission for a cookie: the caller treats the barrier as not passed.
        settle(false)
      }
    })
  }

  #arrived(name: string): void {
    // The removal of a cookie comes after its making.
    if (!this.#outstanding.has(name)) return
    let lost = false
    for (const earlier of this.#outstanding) {
      this.#outstanding.delete(earlier)
      if (earlier === name) break
      lost = true
    }
    if (lost) this.#onLost()
    this.#waiting.get(name)?.(true)
  }

  /** The queue has lost events, as somebody else found out: what waits is not passed. */
  giveUp(): void {
    this.#outstanding.clear()
    for (const settle of [...this.#waiting.values()]) settle(false)
  }

  /** Close the handle, remove the directory and end every wait as not passed. */
  close(): void {
    this.#watcher.close()
    rmSync(this.#directory, { recursive: true, force: true })
    this.giveUp()
  }
}
