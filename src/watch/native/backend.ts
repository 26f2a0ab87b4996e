/**
 * The native backend: the engine in a thread of its own, for Linux.
 *
 * @module dsh-live-workspace/watch/native/backend
 */
import { messageOf } from '../../errors.ts'
import { chokidarBackend } from '../chokidar.ts'
import type { BackendFactory, BackendOptions, BarrierOutcome, WatchBackend } from '../contract.ts'
import { THREAD_LOST } from '../faults.ts'
import { NATIVE } from '../platform.ts'
import type { Report } from './messages.ts'
import { type Lease, type WatchThread, watchThread } from './thread.ts'

/** Time in ms for which reports are passed on before the event loop turns. */
const SLICE_MS = 8
const CLOSE_LIMIT_MS = 5_000

/** What the backend needs from its surroundings. */
export interface NativeParts {
  /** Called when no thread is to be had, and chokidar watches instead. */
  readonly onNoThread: (detail: string) => void
  /** Another thread, for tests. */
  readonly thread?: () => WatchThread
  /** Longest wait in ms for an engine to close: it may be asking a filesystem that does not answer. */
  readonly closeLimitMs?: number
}

class NativeBackend implements WatchBackend {
  readonly #options: BackendOptions
  readonly #parts: NativeParts
  readonly #sliceMs: number
  readonly #barriers = new Map<number, (outcome: BarrierOutcome) => void>()
  readonly #closing = Promise.withResolvers<void>()
  #ending: Promise<void> | undefined
  #lease: Lease | undefined
  /** What watches where no thread is to be had. */
  #substitute: WatchBackend | undefined
  #inbox: Report[] = []
  #passing = false
  #directories = 0
  #refreshes = 0
  #next = 0
  #opened = false
  #ready = false
  #engineClosed = false
  #gone = false
  #closed = false

  constructor(options: BackendOptions, parts: NativeParts) {
    this.#options = options
    this.#parts = parts
    this.#sliceMs = options.sliceMs ?? SLICE_MS
    try {
      const thread = options.detached(parts.thread ?? watchThread)
      this.#lease = thread.enter({
        receive: (report) => this.#receive(report),
        refused: (error) => this.#replace(error),
        lost: (error) => this.#lost(error),
      })
    } catch (error) {
      this.#replace(error)
      return
    }
    void (options.prepared ?? Promise.resolve()).then(() => this.#open())
  }

  get name(): string {
    return this.#substitute?.name ?? NATIVE
  }

  get watchedDirectories(): number {
    return this.#substitute?.watchedDirectories ?? this.#directories
  }

  refresh(): void {
    if (this.#substitute) this.#substitute.refresh()
    if (!this.#opened || this.#closed || this.#gone) return
    this.#refreshes += 1
    const { rules, first } = this.#order()
    this.#lease?.send({ kind: 'refresh', rules, first })
  }

  async barrier(limitMs: number, signal: AbortSignal): Promise<BarrierOutcome> {
    if (this.#substitute) return this.#substitute.barrier(limitMs, signal)
    const deadline = performance.now() + limitMs
    // What happened before everything was subscribed to has gone by.
    const ready = this.#ready
    for (;;) {
      const refreshes = this.#refreshes
      const id = this.#next++
      const outcome = await this.#ask(id, deadline - performance.now(), signal)
      // What came before the answer has changed the rules: what they bring in belongs to it.
      if (outcome === 'clean' && refreshes !== this.#refreshes) continue
      if (outcome === 'clean' && !this.#closed && !this.#gone) this.#lease?.send({ kind: 'settled', id })
      return ready ? outcome : 'unclean'
    }
  }

  close(): Promise<void> {
    return (this.#ending ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#closed = true
    this.#inbox = []
    for (const settle of [...this.#barriers.values()]) settle('unclean')
    if (this.#substitute) await this.#substitute.close()
    else if (this.#opened && !this.#gone) {
      this.#lease?.send({ kind: 'close' })
      const late = setTimeout(() => this.#closing.resolve(), this.#parts.closeLimitMs ?? CLOSE_LIMIT_MS)
      await this.#closing.promise
      clearTimeout(late)
    } else this.#engineClosed = true
    await this.#lease?.leave(this.#engineClosed)
  }

  #open(): void {
    if (this.#closed || this.#gone) return
    this.#opened = true
    this.#lease?.send({ kind: 'open', order: this.#order() })
  }

  #order() {
    const { root, rules, first, maxDirectories, sliceMs } = this.#options
    if (!rules) throw new Error('another thread needs rules that it can be sent')
    return { path: root, rules: rules(), first: first(), maxDirectories, sliceMs }
  }

  #ask(id: number, limitMs: number, signal: AbortSignal): Promise<BarrierOutcome> {
    if (!this.#opened || this.#closed || this.#gone || signal.aborted || limitMs <= 0)
      return Promise.resolve('unclean')
    return new Promise((resolve) => {
      const settle = (outcome: BarrierOutcome) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        this.#barriers.delete(id)
        resolve(outcome)
      }
      const giveUp = () => settle('unclean')
      // Holds the process for the length of one wait: the thread does not.
      const timer = setTimeout(giveUp, limitMs)
      signal.addEventListener('abort', giveUp, { once: true })
      this.#barriers.set(id, settle)
      this.#lease?.send({ kind: 'barrier', id, limitMs })
    })
  }

  #receive(report: Report): void {
    if (report.kind === 'closed') {
      this.#engineClosed = true
      this.#closing.resolve()
    }
    if (this.#closed) return
    this.#inbox.push(report)
    if (!this.#passing) this.#pass()
  }

  /** Pass on what has come, in order, in slices. */
  #pass(): void {
    const until = performance.now() + this.#sliceMs
    this.#passing = false
    let passed = 0
    for (const report of this.#inbox) {
      passed += 1
      this.#handle(report)
      if (this.#closed) return
      if (performance.now() >= until) break
    }
    this.#inbox.splice(0, passed)
    if (this.#inbox.length === 0) return
    this.#passing = true
    setImmediate(() => this.#pass())
  }

  #handle(report: Report): void {
    const { sink } = this.#options
    switch (report.kind) {
      case 'told':
        for (const [index, path] of report.paths.entries()) sink.invalidate(path, report.existed[index])
        this.#lease?.send({ kind: 'taken' })
        return
      case 'everything':
        sink.invalidateAll()
        return
      case 'ready':
        this.#directories = report.directories
        this.#ready = true
        sink.ready()
        return
      case 'uncovered':
        sink.uncovered(report.fault, report.directory)
        return
      case 'fault':
        sink.fault(report.fault)
        return
      case 'barrier':
        this.#directories = report.directories
        this.#barriers.get(report.id)?.(report.outcome)
        return
      case 'closed':
    }
  }

  /** No thread: chokidar needs none. */
  #replace(error: unknown): void {
    this.#gone = true
    if (this.#closed) return
    this.#parts.onNoThread(messageOf(error))
    for (const settle of [...this.#barriers.values()]) settle('unclean')
    this.#substitute = this.#options.detached(() => chokidarBackend(this.#options))
  }

  #lost(error: unknown): void {
    this.#gone = true
    this.#closing.resolve()
    for (const settle of [...this.#barriers.values()]) settle('unclean')
    if (!this.#closed) this.#options.sink.fault({ ...THREAD_LOST, detail: messageOf(error) })
  }
}

/** Makes backends that watch in a thread of their own. They need `rules` in their options. */
export const nativeBackend =
  (parts: NativeParts): BackendFactory =>
  (options) =>
    new NativeBackend(options, parts)
