/**
 * The truth about targets, through the filesystem service: bounded in concurrency and in time.
 *
 * @module dsh-live-workspace/revalidate
 */
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'
import pLimit, { type LimitFunction } from 'p-limit'
import { messageOf, saysAbsent } from './errors.ts'
import type { Now } from './notice/classify.ts'

/** What the service says when it answers. */
export type KnownNow = Exclude<Now, { readonly kind: 'unverified' }>

/** What became of one question. */
export type Answer =
  | { readonly kind: 'known'; readonly target: FsTarget | undefined; readonly now: KnownNow }
  /** The service threw. */
  | { readonly kind: 'failed'; readonly target: FsTarget | undefined; readonly reason: string }
  /** No answer within the time of this boundary. */
  | { readonly kind: 'late'; readonly target: FsTarget | undefined }

/** What is asked about: a target, or a path that is still to be resolved. */
export type Question = { readonly target: FsTarget } | { readonly path: string }

/** The moment from which a boundary waits for nothing any more. */
export class Deadline {
  /** Settles at the deadline, or when the signal aborts. */
  readonly reached: Promise<void>
  readonly #signal: AbortSignal
  #expired = false
  #cancel: () => void = () => undefined

  constructor(limitMs: number, signal: AbortSignal) {
    this.#signal = signal
    this.reached = new Promise((resolve) => {
      const expire = () => {
        this.#expired = true
        this.#cancel()
        resolve()
      }
      const timer = setTimeout(expire, limitMs)
      signal.addEventListener('abort', expire, { once: true })
      this.#cancel = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', expire)
      }
      if (signal.aborted) expire()
    })
  }

  get expired(): boolean {
    return this.#expired
  }

  /** Whether the signal ended it, which says nothing about who was waited for. */
  get aborted(): boolean {
    return this.#signal.aborted
  }

  /** Release the timer of a boundary that ended in time. */
  cancel(): void {
    this.#cancel()
  }
}

/** Asks one filesystem service. */
export class Revalidator {
  readonly #fs: Pick<FileSystem, 'resolve' | 'stat'>
  readonly #limit: LimitFunction
  readonly #maxHanging: number
  /** Questions that outlived their boundary: not asked again until the service returns. */
  readonly #hanging = new Set<string>()
  /** Questions left under way by a boundary that was aborted, or that had little time for them. */
  readonly #abandoned = new Map<string, Promise<unknown>>()

  /**
   * @param concurrency - questions under way at the same time.
   * @param maxHanging - unanswered questions after which no further one is asked: each keeps a thread of
   *   the process, and there are four.
   */
  constructor(fs: Pick<FileSystem, 'resolve' | 'stat'>, concurrency: number, maxHanging: number) {
    this.#fs = fs
    this.#maxHanging = maxHanging
    this.#limit = pLimit(concurrency)
  }

  /** Ask about one target. Never rejects. */
  async ask(question: Question, deadline: Deadline): Promise<Answer> {
    const id = 'target' in question ? `=${question.target.targetKey}` : `?${question.path}`
    const late: Answer = { kind: 'late', target: 'target' in question ? question.target : undefined }
    if (this.#abandoned.has(id)) await this.#returned(id, deadline)
    if (deadline.expired) return late
    if (this.#hanging.has(id) || this.#hanging.size >= this.#maxHanging) {
      return { kind: 'failed', target: late.target, reason: 'no answer' }
    }
    // Behind others it has less than the whole boundary.
    const waits = this.#limit.activeCount + this.#limit.pendingCount >= this.#limit.concurrency
    let underWay = false
    // An answer under way is never shared: it may be of a moment before this boundary.
    const answer = this.#limit(async () => {
      if (deadline.expired) return late
      underWay = true
      const found = await this.#look(question)
      underWay = false
      this.#hanging.delete(id)
      this.#abandoned.delete(id)
      return found
    })
    const first = await Promise.race([answer, deadline.reached.then(() => late)])
    // Only who outlasts a whole boundary hangs; an abort says nothing about the service.
    if (underWay && (deadline.aborted || waits)) this.#abandoned.set(id, answer)
    else if (underWay) this.#hanging.add(id)
    return first
  }

  /** At most one question about a target is under way: what an abort has left behind is waited for. */
  async #returned(id: string, deadline: Deadline): Promise<void> {
    const abandoned = this.#abandoned.get(id)
    if (!abandoned) return
    await Promise.race([abandoned, deadline.reached])
    if (!deadline.expired || deadline.aborted || !this.#abandoned.delete(id)) return
    this.#hanging.add(id)
  }

  async #look(question: Question): Promise<Answer> {
    let target: FsTarget | undefined
    try {
      target = 'target' in question ? question.target : await this.#fs.resolve(question.path)
      const info = await this.#fs.stat(target)
      const now: KnownNow = info
        ? { kind: 'present', version: String(info.version), type: info.type }
        : { kind: 'absent' }
      return { kind: 'known', target, now }
    } catch (error) {
      // Below something that is no directory there is nothing to resolve.
      if (saysAbsent(error)) return { kind: 'known', target, now: { kind: 'absent' } }
      return { kind: 'failed', target, reason: messageOf(error) }
    }
  }
}
