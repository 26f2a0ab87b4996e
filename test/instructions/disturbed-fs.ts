import type { FsInfo, FsPathInfo, FsTarget } from '@deepseek-ai/dsh-fs'
import { LocalFileSystem } from '@deepseek-ai/dsh-fs-local'

type Hook = (path: string) => void | Promise<void>

/** What the filesystem service was asked, and how it is disturbed. */
export class Disturbance {
  /** Questions of any kind. */
  asked = 0
  readonly reads: string[] = []
  /** Paths that every question fails for. */
  readonly failing = new Set<string>()
  /** Runs before the first chunk of a text is handed out, and after the last. */
  beforeText: Hook = () => undefined
  afterText: Hook = () => undefined
  /** Questions that never return. */
  readonly hanging = new Set<string>()

  async ask(path: string): Promise<void> {
    this.asked += 1
    if (this.failing.has(path)) throw new Error('the disk is on fire')
    if (this.hanging.has(path)) await new Promise(() => undefined)
  }
}

/** The local filesystem service, counted and disturbed. */
export const disturbedFileSystem = (disturbance: Disturbance) =>
  class DisturbedFileSystem extends LocalFileSystem {
    override async resolve(path: string, opts?: { cwd?: string; signal?: AbortSignal }): Promise<FsTarget> {
      await disturbance.ask(path)
      return super.resolve(path, opts)
    }

    override async stat(target: FsTarget, signal?: AbortSignal): Promise<FsInfo | undefined> {
      await disturbance.ask(this.processPath(target))
      return super.stat(target, signal)
    }

    override async lstat(
      path: string,
      opts?: { cwd?: string },
      signal?: AbortSignal,
    ): Promise<FsPathInfo | undefined> {
      await disturbance.ask(path)
      return super.lstat(path, opts, signal)
    }

    override async streamText(target: FsTarget, signal?: AbortSignal): Promise<AsyncIterable<string>> {
      const path = this.processPath(target)
      await disturbance.ask(path)
      disturbance.reads.push(path)
      const chunks = await super.streamText(target, signal)
      return (async function* disturbed() {
        await disturbance.beforeText(path)
        yield* chunks
        await disturbance.afterText(path)
      })()
    }
  }
