/**
 * The thread that watches, one for the whole process: it lives as long as a root needs it.
 *
 * @module dsh-live-workspace/watch/native/thread
 */
import { Worker } from 'node:worker_threads'
import type { Letter, Report, Request } from './messages.ts'

/** The thread holds names of files and little else; a small young generation keeps it small. */
const MAX_YOUNG_MB = 8
/** Longest wait in ms for a thread that has nothing left to do. */
const END_LIMIT_MS = 2_000

/** The built file: beside this one, or in `lib/` when this is the source. */
const PROGRAM = import.meta.url.endsWith('.ts')
  ? new URL('../../../lib/watch/native/worker.js', import.meta.url)
  : new URL('worker.js', import.meta.url)

/** Whom the thread reports to about one root. */
export interface Tenant {
  /** A report, in order. */
  receive(report: Report): void
  /** The thread could not be started. */
  refused(error: unknown): void
  /** The thread ended while it was needed. */
  lost(error: unknown): void
}

type RootRequest = Exclude<Request, { kind: 'end' }>
type WithoutRoot<R> = R extends unknown ? Omit<R, 'root'> : never

/** A tenant's way to its engine. */
export interface Lease {
  send(request: WithoutRoot<RootRequest>): void
  /**
   * Nothing more is wanted. For the last one to leave it is awaited that the thread is gone.
   * @param closed - whether the engine has closed; a thread that hangs is left alone.
   */
  leave(closed: boolean): Promise<void>
}

/** One worker and its tenants. */
export class WatchThread {
  readonly #worker: Worker
  readonly #tenants = new Map<number, Tenant>()
  readonly #ended = Promise.withResolvers<void>()
  #next = 0
  #started = false
  #over = false

  /** @throws when the system gives no thread. */
  constructor(program: URL = PROGRAM) {
    // Not the options of this process: they may be for its own program alone.
    this.#worker = new Worker(program, {
      execArgv: [],
      stdin: false,
      resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_MB },
      name: 'dsh-live-workspace',
    })
    this.#worker.on('message', (letter: Letter) => {
      if ('started' in letter) this.#started = true
      else this.#tenants.get(letter.root)?.receive(letter.report)
    })
    this.#worker.on('error', (error) => this.#end(error))
    this.#worker.on('exit', (code) => this.#end(new Error(`the thread ended with code ${code}`)))
    // Last, since a listener for messages would hold the process again.
    this.#worker.unref()
  }

  /** Whether it takes no further tenant. */
  get over(): boolean {
    return this.#over
  }

  enter(tenant: Tenant): Lease {
    const root = this.#next++
    this.#tenants.set(root, tenant)
    return {
      send: (request) => this.#worker.postMessage({ ...request, root }),
      leave: async (closed) => {
        this.#tenants.delete(root)
        // Nobody is to come to a thread that hangs; to end it by force while it is busy would be worse.
        if (!closed) this.#over = true
        if (this.#tenants.size === 0 && !this.#over) await this.#close()
      },
    }
  }

  async #close(): Promise<void> {
    this.#over = true
    this.#worker.postMessage({ kind: 'end' } satisfies Request)
    const late = setTimeout(() => {
      // It has closed every watch: whatever holds it is not at work.
      void this.#worker.terminate()
    }, END_LIMIT_MS)
    await this.#ended.promise
    clearTimeout(late)
  }

  #end(error: unknown): void {
    this.#over = true
    this.#ended.resolve()
    for (const tenant of [...this.#tenants.values()]) {
      if (this.#started) tenant.lost(error)
      else tenant.refused(error)
    }
    this.#tenants.clear()
  }
}

let current: WatchThread | undefined

/** The thread of this process, started when it is needed. @throws when the system gives none. */
export const watchThread = (): WatchThread => {
  if (!current || current.over) current = new WatchThread()
  return current
}
