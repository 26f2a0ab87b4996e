import { setTimeout as pause } from 'node:timers/promises'

export interface WaitOptions {
  readonly timeoutMs: number
  /** What was waited for; a function is called at the time-out, so that it can say how far things got. */
  readonly describe: string | (() => string)
}

const POLL_MS = 10

const explain = ({ timeoutMs, describe }: WaitOptions): Error =>
  new Error(`not within ${timeoutMs} ms: ${typeof describe === 'string' ? describe : describe()}`)

/** Resolves with the condition's first truthy value, or fails with the description. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions,
): Promise<Exclude<T, false | 0 | '' | null | undefined>> {
  const deadline = performance.now() + options.timeoutMs
  for (;;) {
    const value = await condition()
    if (isMet(value)) return value
    if (performance.now() >= deadline) throw explain(options)
    await pause(POLL_MS)
  }
}

function isMet<T>(value: T): value is Exclude<T, false | 0 | '' | null | undefined> {
  return Boolean(value)
}

/** Bounds a promise that something else has to settle. */
export async function within<T>(promise: Promise<T>, options: WaitOptions): Promise<T> {
  const timer = new AbortController()
  const expired = pause(options.timeoutMs, undefined, { signal: timer.signal }).then(() => {
    throw explain(options)
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    timer.abort()
    expired.catch(() => undefined)
  }
}

export interface Gate {
  readonly passed: Promise<void>
  open(): void
}

/** Orders two actors: one waits for `passed` until the other calls `open`. */
export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { passed: promise, open: resolve }
}
