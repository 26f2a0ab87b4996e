import { type FsDirEntry, type FsInfo, type FsPathInfo, type FsTarget, FsVersion } from '@deepseek-ai/dsh-fs'
import { LocalFileSystem } from '@deepseek-ai/dsh-fs-local'
import { setTimeout as pause } from 'node:timers/promises'
import { gate, type Gate } from './wait.ts'

type Fault =
  | { readonly kind: 'throw'; readonly message: string }
  | { readonly kind: 'hang'; readonly gate: Gate }
  | { readonly kind: 'slow'; readonly delayMs: number }

/** What the filesystem service does with single files, and what it was asked. */
export class FsProbe {
  readonly #faults = new Map<string, Fault>()
  readonly #stats = new Map<string, number>()
  #hanging = 0
  #resolves = 0
  /** The files seem to be elsewhere: versions say nothing of this machine's disk. */
  remote = false
  /** Runs before every call of the service; what it throws is what the service throws. */
  beforeCall: (method: string, path: string) => void = () => undefined
  /** What the service says instead of the truth. */
  distort: (path: string, info: FsInfo | undefined) => FsInfo | undefined = (_path, info) => info

  /** Every `stat` of this real path fails until {@link heal}. */
  failStat(path: string, message = 'the disk is on fire'): void {
    this.#faults.set(path, { kind: 'throw', message })
  }

  /** Every `stat` of this real path hangs until {@link heal}. */
  hangStat(path: string): void {
    this.#faults.set(path, { kind: 'hang', gate: gate() })
  }

  /** Every `stat` of this real path takes this much longer until {@link heal}. */
  delayStat(path: string, delayMs: number): void {
    this.#faults.set(path, { kind: 'slow', delayMs })
  }

  heal(path: string): void {
    const fault = this.#faults.get(path)
    this.#faults.delete(path)
    if (fault?.kind === 'hang') fault.gate.open()
  }

  healAll(): void {
    for (const path of this.#faults.keys()) this.heal(path)
  }

  /** How often this real path was asked for. */
  statsOf(path: string): number {
    return this.#stats.get(path) ?? 0
  }

  /** How often any path was asked for. */
  get stats(): number {
    let sum = 0
    for (const count of this.#stats.values()) sum += count
    return sum
  }

  /** How often any path was resolved. */
  get resolves(): number {
    return this.#resolves
  }

  resolved(): void {
    this.#resolves += 1
  }

  /** Calls that hang at this moment. */
  get hanging(): number {
    return this.#hanging
  }

  async beforeStat(path: string): Promise<void> {
    this.#stats.set(path, this.statsOf(path) + 1)
    const fault = this.#faults.get(path)
    if (fault === undefined) return
    if (fault.kind === 'throw') throw new Error(fault.message)
    if (fault.kind === 'slow') {
      await pause(fault.delayMs)
      return
    }
    this.#hanging += 1
    await fault.gate.passed
    this.#hanging -= 1
  }
}

/** The local filesystem service, seen and disturbed by a probe. */
export const probedFileSystem = (probe: FsProbe) =>
  class ProbedFileSystem extends LocalFileSystem {
    override async resolve(path: string, opts?: { cwd?: string; signal?: AbortSignal }): Promise<FsTarget> {
      probe.resolved()
      probe.beforeCall('resolve', path)
      return super.resolve(path, opts)
    }

    override async stat(target: FsTarget, signal?: AbortSignal): Promise<FsInfo | undefined> {
      probe.beforeCall('stat', this.processPath(target))
      await probe.beforeStat(this.processPath(target))
      const info = probe.distort(this.processPath(target), await super.stat(target, signal))
      if (!info || !probe.remote) return info
      return { ...info, version: FsVersion(`elsewhere ${String(info.version).replaceAll(':', ' ')}`) }
    }

    override async lstat(
      path: string,
      opts?: { cwd?: string },
      signal?: AbortSignal,
    ): Promise<FsPathInfo | undefined> {
      probe.beforeCall('lstat', path)
      return super.lstat(path, opts, signal)
    }

    override async readBytes(
      target: FsTarget,
      signal: AbortSignal | undefined,
      maxBytes: number,
    ): Promise<Uint8Array> {
      probe.beforeCall('readBytes', this.processPath(target))
      return super.readBytes(target, signal, maxBytes)
    }

    override async streamText(target: FsTarget, signal?: AbortSignal): Promise<AsyncIterable<string>> {
      probe.beforeCall('streamText', this.processPath(target))
      return super.streamText(target, signal)
    }

    override async listDir(target: FsTarget, signal?: AbortSignal): Promise<FsDirEntry[]> {
      probe.beforeCall('listDir', this.processPath(target))
      return super.listDir(target, signal)
    }
  }
