/**
 * Whether the directory at a root's path is still the one that is watched.
 *
 * No watcher says that a parent was moved, a link on the way was turned, or another filesystem was
 * mounted over the root: its handles stay where they are. So the path itself is looked at.
 *
 * @module dsh-live-workspace/watch/root-identity
 */
import { realpathSync, statSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { answersAtOnce, filesystemOf } from './mounts.ts'

/** What the look has shown; `unknown` when no answer came in time. */
export type Identity = 'same' | 'other' | 'unknown'

interface Look {
  readonly dev: bigint
  readonly ino: bigint
  /** Inode numbers are used again at once; the time of birth is not. 0 where there is none. */
  readonly birthtimeNs: bigint
  readonly real: string
}

const differ = (a: Look, b: Look): boolean =>
  a.dev !== b.dev ||
  a.ino !== b.ino ||
  a.real !== b.real ||
  (a.birthtimeNs !== b.birthtimeNs && a.birthtimeNs > 0n && b.birthtimeNs > 0n)

/** Remembers one root. */
export class RootIdentity {
  readonly #root: string
  readonly #direct: boolean
  #known: Look | undefined
  /** An answer that is still to come: a filesystem that hangs is asked once. */
  #asking: Promise<Identity> | undefined

  /** @param root - absolute path. */
  constructor(root: string) {
    this.#root = root
    this.#direct = answersAtOnce(filesystemOf(root))
  }

  /** Remember what is there now. @returns whether it is a directory. */
  record(): boolean {
    this.#known = undefined
    try {
      const info = statSync(this.#root, { bigint: true })
      if (!info.isDirectory()) return false
      const { dev, ino, birthtimeNs } = info
      this.#known = { dev, ino, birthtimeNs, real: realpathSync.native(this.#root) }
      return true
    } catch {
      // Gone, or out of reach: both are told as a lost root, and tried again.
      return false
    }
  }

  /**
   * Whether what was remembered is still there. A local disk is asked at once; another filesystem
   * answers in its own time, perhaps never.
   */
  check(): Identity | Promise<Identity> {
    const known = this.#known
    if (!known) return 'unknown'
    if (this.#direct) return this.#checkNow(known)
    if (this.#asking) return 'unknown'
    this.#asking = this.#ask(known).finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  #checkNow(known: Look): Identity {
    try {
      const { dev, ino, birthtimeNs } = statSync(this.#root, { bigint: true })
      const real = realpathSync.native(this.#root)
      return differ(known, { dev, ino, birthtimeNs, real }) ? 'other' : 'same'
    } catch {
      return 'other'
    }
  }

  async #ask(known: Look): Promise<Identity> {
    try {
      const [{ dev, ino, birthtimeNs }, real] = await Promise.all([
        stat(this.#root, { bigint: true }),
        realpath(this.#root),
      ])
      return differ(known, { dev, ino, birthtimeNs, real }) ? 'other' : 'same'
    } catch {
      return 'other'
    }
  }
}
