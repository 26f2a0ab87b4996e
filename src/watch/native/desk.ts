/**
 * Serves the requests of another thread: one engine for each root.
 *
 * @module dsh-live-workspace/watch/native/desk
 */
import { faultOf } from '../faults.ts'
import { Silence } from '../silence.ts'
import { nativeEngine, type NativeWatch } from './engine.ts'
import type { Letter, Report, Request, RootOrder } from './messages.ts'
import { Outbox } from './outbox.ts'

const never = new AbortController().signal

interface Served {
  readonly engine: NativeWatch | undefined
  /** What ends the interval of a barrier that was answered; the other thread may have more to say first. */
  readonly settling: Map<number, () => void>
  readonly outbox: Outbox
  /** Replaced as a whole when the rules change. */
  silence: Silence
  first: readonly string[]
}

/** All roots of one thread. */
export class Desk {
  readonly #post: (letter: Letter) => void
  readonly #roots = new Map<number, Served>()

  constructor(post: (letter: Letter) => void) {
    this.#post = post
  }

  /** Do what is asked for; answers go through `post`. */
  async serve(request: Exclude<Request, { kind: 'end' }>): Promise<void> {
    if (request.kind === 'open') {
      this.#open(request.root, request.order)
      return
    }
    const served = this.#roots.get(request.root)
    if (!served) return
    const { engine, outbox } = served
    switch (request.kind) {
      case 'taken':
        outbox.taken()
        return
      case 'settled':
        served.settling.get(request.id)?.()
        // Older ones were given up.
        for (const id of served.settling.keys()) if (id <= request.id) served.settling.delete(id)
        return
      case 'refresh':
        served.silence = Silence.from(request.rules)
        served.first = request.first
        engine?.refresh()
        return
      case 'barrier': {
        const examination = await engine?.examine(request.limitMs, never)
        const outcome = examination?.outcome ?? 'unclean'
        if (examination && outcome === 'clean') served.settling.set(request.id, examination.settle)
        outbox.flush()
        const directories = engine?.watchedDirectories ?? 0
        this.#report(request.root, { kind: 'barrier', id: request.id, outcome, directories })
        return
      }
      case 'close':
        this.#roots.delete(request.root)
        await engine?.close()
        outbox.close()
        this.#report(request.root, { kind: 'closed' })
    }
  }

  #report(root: number, report: Report): void {
    this.#post({ root, report })
  }

  #open(root: number, { path, rules, first, maxDirectories, sliceMs }: RootOrder): void {
    const outbox = new Outbox(
      (report) => this.#report(root, report),
      () => served.engine?.watchedDirectories ?? 0,
    )
    const served: { -readonly [K in keyof Served]: Served[K] } = {
      engine: undefined,
      outbox,
      settling: new Map(),
      silence: Silence.from(rules),
      first,
    }
    this.#roots.set(root, served)
    try {
      served.engine = nativeEngine({
        root: path,
        sink: outbox,
        ignored: (entry, isDirectory) =>
          isDirectory ? served.silence.prunes(entry) : served.silence.unwatched(entry),
        maxDirectories,
        first: () => served.first,
        debounceMs: 0,
        polling: false,
        pollIntervalMs: 0,
        ...(sliceMs === undefined ? {} : { sliceMs }),
        detached: (make) => make(),
      })
    } catch (error) {
      outbox.fault(faultOf(error))
    }
  }
}
