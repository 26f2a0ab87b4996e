/** The watcher as a session meets it: registry, journal and backend, with a chosen end of the wait. */
import { checkConfig } from '../../src/config.ts'
import { chokidarBackend } from '../../src/watch/chokidar.ts'
import { type RootReader, WatchRegistry } from '../../src/watch/registry.ts'
import { waitFor } from '../support/wait.ts'

/** The same backend with its exact barrier, or with the wait for silence that it replaces. */
export const modes = ['cookie', 'debounce'] as const
export type Mode = (typeof modes)[number]

/** The defaults of the bundle: 75 ms of silence, 500 ms at the longest. */
export const config = checkConfig({})

export const modeNames: Readonly<Record<Mode, string>> = {
  cookie: 'exact barrier',
  debounce: `debounce ${config.watch.debounceMs}/${config.watch.maxWaitMs} ms`,
}

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
    backend: (options) => chokidarBackend(options, mode),
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
