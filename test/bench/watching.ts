/** The watcher as a session meets it: registry, journal and backend, with a chosen end of the wait. */
import { checkConfig } from '../../src/config.ts'
import { chokidarBackend } from '../../src/watch/chokidar.ts'
import type { BackendFactory } from '../../src/watch/contract.ts'
import { nativeBackend } from '../../src/watch/native/backend.ts'
import { type RootReader, WatchRegistry } from '../../src/watch/registry.ts'
import { waitFor } from '../support/wait.ts'

/** The native backend; chokidar with its exact barrier, or with the wait for silence that it replaces. */
export const modes = ['native', 'cookie', 'debounce'] as const
export type Mode = (typeof modes)[number]

/** The defaults of the bundle: 75 ms of silence, 500 ms at the longest. */
export const config = checkConfig({})

export const modeNames: Readonly<Record<Mode, string>> = {
  native: 'native',
  cookie: 'exact barrier',
  debounce: `debounce ${config.watch.debounceMs}/${config.watch.maxWaitMs} ms`,
}

export const backendOf = (mode: Mode): BackendFactory =>
  mode === 'native'
    ? nativeBackend({
        onNoThread: (detail) => {
          throw new Error(`no thread: ${detail}`)
        },
      })
    : (options) => chokidarBackend(options, mode)

const READY_LIMIT_MS = 60_000

export interface Watching {
  readonly reader: RootReader
  /** What the watcher complained about; empty in a good run. */
  readonly faults: readonly string[]
  /** Time in ms until the whole tree was watched. */
  readonly readyMs: number
  close(): Promise<void>
}

/** Start watching and wait until all of the root is watched. @param limitMs - longest wait in ms. */
export const watchTree = async (
  root: string,
  mode: Mode,
  limitMs: number = READY_LIMIT_MS,
): Promise<Watching> => {
  const faults: string[] = []
  const registry = new WatchRegistry({
    config: config.watch,
    backend: backendOf(mode),
    detached: (make) => make(),
    report: (_root, { code, reason, detail }) => faults.push(`${code}: ${detail ?? reason}`),
  })
  const startedAt = performance.now()
  const reader = registry.join(root, true)
  await waitFor(() => reader.coverage.kind === 'live', {
    timeoutMs: limitMs,
    describe: () => `watching ${root}: ${reader.coverage.kind} ${faults.join('; ')}`,
  })
  const readyMs = Math.round(performance.now() - startedAt)
  return { reader, faults, readyMs, close: async () => registry.close() }
}
