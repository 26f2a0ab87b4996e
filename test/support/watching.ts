/** Backends in real directories, changed by another process, and everything that they say. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type BarrierKind, chokidarBackend, defaultBarrierKind } from '../../src/watch/chokidar.ts'
import type {
  BackendFactory,
  BackendOptions,
  WatchBackend,
  WatchFault,
  WatchSink,
} from '../../src/watch/contract.ts'
import { type NativeParts, nativeBackend } from '../../src/watch/native/backend.ts'
import { type EngineParts, nativeEngine } from '../../src/watch/native/engine.ts'
import { Silence, type SilenceOptions } from '../../src/watch/silence.ts'
import { waitFor } from './wait.ts'

export const LIMIT_MS = 10_000
export const never = new AbortController().signal

/** How much older than a barrier a file has to be, so that its own making is not taken for a change. */
export const SETTLED_MS = 100

export interface Told {
  readonly path: string
  readonly existed: boolean | undefined
}

/** Everything that a backend has said. */
export class Recorder implements WatchSink {
  readonly told: Told[] = []
  readonly faults: WatchFault[] = []
  readonly uncoveredParts: { readonly fault: WatchFault; readonly directory: string | undefined }[] = []
  readies = 0
  alls = 0

  readonly noThread: string[] = []
  onInvalid: (path: string) => void = () => undefined

  invalidate(path: string, existed: boolean | undefined): void {
    this.told.push({ path, existed })
    this.onInvalid(path)
  }
  invalidateAll(): void {
    this.alls += 1
  }
  ready(): void {
    this.readies += 1
  }
  uncovered(fault: WatchFault, directory?: string): void {
    this.uncoveredParts.push({ fault, directory })
  }
  fault(fault: WatchFault): void {
    this.faults.push(fault)
  }

  of(path: string): readonly Told[] {
    return this.told.filter((each) => each.path === path)
  }

  /** Number of calls of any kind. */
  get calls(): number {
    return this.told.length + this.faults.length + this.uncoveredParts.length + this.readies + this.alls
  }
}

export const makeBase = (): string => realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-backend-')))

export const remove = (path: string): void => rmSync(path, { recursive: true, force: true })

export const write = (path: string, content = 'x\n'): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

/**
 * Another process changes files. The loop of this one does not turn in between, so that nothing of the
 * change has been noticed when the call returns.
 */
export const outside = (cwd: string, script: string): void => {
  execFileSync('/bin/sh', ['-ec', script], { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
}

export interface Started {
  readonly backend: WatchBackend
  readonly sink: Recorder
}

/** What is tested: the library, the engine on this thread, and the engine in a thread of its own. */
export const contenders = ['chokidar', 'native on this thread', 'native'] as const
export type Contender = (typeof contenders)[number]

export interface StartOptions {
  readonly via?: Contender
  readonly kind?: BarrierKind
  readonly options?: Partial<BackendOptions>
  /** Parts of the native backends that a test replaces. */
  readonly engine?: EngineParts
  readonly native?: Partial<NativeParts>
  /** Rules beside the name `node_modules`. */
  readonly rules?: Partial<SilenceOptions>
}

const ruleOptions = (root: string, rules: Partial<SilenceOptions>): SilenceOptions => ({
  root,
  ignoredDirectories: ['.git', 'node_modules'],
  ownPaths: [],
  respectGitignore: false,
  maxIgnoreFileBytes: 100_000,
  maxIgnoreDirectories: 10_000,
  gitTimeoutMs: LIMIT_MS,
  ...rules,
})

export const start = (
  root: string,
  { via = 'chokidar', kind, options = {}, rules = {}, engine = {}, native = {} }: StartOptions = {},
): Started => {
  const sink = new Recorder()
  const silence = new Silence(ruleOptions(root, rules))
  const all: BackendOptions = {
    root,
    sink,
    ignored: (path, isDirectory) => (isDirectory ? silence.prunes(path) : silence.unwatched(path)),
    maxDirectories: 100_000,
    first: () => [],
    prepared: silence.open(),
    rules: () => silence.rules,
    debounceMs: 50,
    polling: false,
    pollIntervalMs: 20,
    detached: (make) => make(),
    ...options,
  }
  const backends: Readonly<Record<Contender, () => WatchBackend>> = {
    chokidar: () => chokidarBackend(all, kind ?? defaultBarrierKind(all)),
    'native on this thread': () => nativeEngine(all, engine),
    native: () => nativeBackend({ onNoThread: (detail) => sink.noThread.push(detail), ...native })(all),
  }
  const backend = backends[via]()
  // What a root does when its rules change.
  sink.onInvalid = (path) => {
    if (silence.noticed(path)) backend.refresh()
  }
  return { backend, sink }
}

export const factoryOf = (via: Contender): BackendFactory => {
  if (via === 'chokidar') return chokidarBackend
  return via === 'native' ? nativeBackend({ onNoThread: () => undefined }) : nativeEngine
}

/** Ready, and everything that was made before is old. */
export const settle = async ({ backend, sink }: Started): Promise<void> => {
  await waitFor(() => sink.readies > 0, { timeoutMs: LIMIT_MS, describe: 'the first scan' })
  const madeBefore = Date.now()
  await waitFor(() => Date.now() > madeBefore + SETTLED_MS, { timeoutMs: LIMIT_MS, describe: 'the clock' })
  await backend.barrier(LIMIT_MS, never)
}

export const startSettled = async (root: string, options?: StartOptions): Promise<Started> => {
  const started = start(root, options)
  onTestFinished(() => started.backend.close())
  await settle(started)
  return started
}

export const temporaryRoot = (files: readonly string[]): { readonly base: string; readonly root: string } => {
  const base = makeBase()
  onTestFinished(() => remove(base))
  const root = join(base, 'root')
  mkdirSync(root)
  for (const file of files) write(join(root, file))
  return { base, root }
}

/** Directories and files that this process has asked the kernel to watch. */
export const kernelWatches = (): number => {
  let count = 0
  for (const fd of readdirSync('/proc/self/fdinfo')) {
    const path = `/proc/self/fdinfo/${fd}`
    // The listing has a descriptor of its own, which is gone by now.
    if (existsSync(path)) count += readFileSync(path, 'utf8').match(/^inotify wd:/gm)?.length ?? 0
  }
  return count
}
