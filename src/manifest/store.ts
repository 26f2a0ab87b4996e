/**
 * Manifest files on disk: bounded reading, atomic writing, setting aside, removing what nobody needs.
 *
 * Nothing here throws because of what is on the disk: a file that cannot be used or written is reported
 * once, with what helps, and the session goes on without it.
 *
 * @module dsh-live-workspace/manifest/store
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@deepseek-ai/dsh-atomic-write'
import { codeOf, messageOf } from '../errors.ts'
import { decodeManifest, type Manifest } from './format.ts'
import { isManifest, isSetAside, isUnfinished, manifestName, setAsideName } from './names.ts'

/** Bounds of the directory. */
export interface StoreLimits {
  /** Size in bytes of one file. */
  readonly maxManifestBytes: number
  readonly maxSessions: number
  readonly maxSetAside: number
  /** Time in ms after which what belongs to no session any more is removed. */
  readonly keepMs: number
  /** Time in ms after which an unfinished file is removed. */
  readonly unfinishedMs: number
}

/** Tells the person who runs the host: each problem once. */
export type Report = (problem: string, remedy: string) => void

/** Who a manifest has to belong to. */
export interface Owner {
  readonly id: string
  readonly createdAt: number
}

/** What is known of a file: as long as it is the same, nobody else has written it. */
export type FileMark = string

/** What was found for a session. */
export type Found =
  | { readonly kind: 'none' }
  | { readonly kind: 'manifest'; readonly manifest: Manifest; readonly mark: FileMark }
  /** There was something, but nothing that can be used. */
  | { readonly kind: 'unusable' }

const markOf = (info: { readonly ino: number; readonly size: number; readonly mtimeMs: number }): FileMark =>
  `${info.ino}:${info.size}:${info.mtimeMs}`

/** Not on every platform: there a link is followed, and what it leads to is checked like everything else. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
const NO_WAIT = constants.O_NONBLOCK ?? 0

type Raw =
  | { readonly kind: 'text'; readonly text: string; readonly mark: FileMark }
  | { readonly kind: 'unusable'; readonly reason: string }

/** Files of one directory. */
export class ManifestStore {
  readonly #directory: string
  readonly #limits: StoreLimits
  readonly #report: Report

  /** @param directory - where the files are; made when the first one is written. */
  constructor(directory: string, limits: StoreLimits, report: Report) {
    this.#directory = directory
    this.#limits = limits
    this.#report = report
  }

  /** Path of a session's file. */
  pathOf(sessionId: string): string {
    return join(this.#directory, manifestName(sessionId))
  }

  /** Read what is remembered of a session; what is not usable is set aside. Never rejects. */
  async load(owner: Owner): Promise<Found> {
    const path = this.pathOf(owner.id)
    try {
      const raw = await this.#read(path)
      if (raw.kind === 'unusable') return await this.#setAside(owner.id, raw.reason)
      const decoded = decodeManifest(raw.text)
      if (decoded.kind === 'unusable') return await this.#setAside(owner.id, decoded.reason)
      const { manifest } = decoded
      if (manifest.session !== owner.id || manifest.createdAt !== owner.createdAt) {
        return await this.#setAside(owner.id, 'it belongs to another session')
      }
      return { kind: 'manifest', manifest, mark: raw.mark }
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return { kind: 'none' }
      this.#report(
        `what a session had seen cannot be read from ${path} (${messageOf(error)})`,
        'make the file readable for the user who runs the host; until then resumed sessions get a general reminder',
      )
      return { kind: 'unusable' }
    }
  }

  /** What is on the disk by another writer, without setting anything aside; `undefined` for nothing usable. */
  async peek(sessionId: string): Promise<Manifest | undefined> {
    try {
      const raw = await this.#read(this.pathOf(sessionId))
      const decoded = raw.kind === 'text' ? decodeManifest(raw.text) : undefined
      return decoded?.kind === 'manifest' ? decoded.manifest : undefined
    } catch {
      // Nothing there, or nothing that can be read: then there is nothing to be careful with.
      return undefined
    }
  }

  /** The mark of a session's file, or `undefined` where there is none. */
  async mark(sessionId: string): Promise<FileMark | undefined> {
    try {
      return markOf(await lstat(this.pathOf(sessionId)))
    } catch {
      // Not there, or not to be asked: the writing that follows shows which.
      return undefined
    }
  }

  /**
   * Replace a session's file. Never rejects.
   * @returns the mark of what was written, or `undefined` when it could not be written.
   */
  async save(sessionId: string, text: string): Promise<FileMark | undefined> {
    try {
      await writeFileAtomic(this.pathOf(sessionId), text, { mode: 0o600, dirMode: 0o700 })
      return await this.mark(sessionId)
    } catch (error) {
      this.#report(
        `what sessions have seen cannot be written to ${this.#directory} (${messageOf(error)})`,
        'make room there, or make it writable for the user who runs the host; until then sessions resumed later get a general reminder',
      )
      return undefined
    }
  }

  /**
   * Remove what nobody needs: unfinished files, kept unusable ones beyond their number, manifests of
   * sessions that no longer exist, and those used longest ago beyond the number of sessions.
   * @param existing - ids of all sessions, or `undefined` where nobody can say.
   * @param now - time of the day in ms.
   */
  async tidy(existing: () => Promise<ReadonlySet<string> | undefined>, now: number): Promise<void> {
    try {
      const { keepMs, maxSessions, unfinishedMs } = this.#limits
      const names = await this.#names()
      for (const name of names.filter(isUnfinished)) {
        const at = await this.#changedAt(name)
        if (at !== undefined && now - at > unfinishedMs) await this.#remove(name)
      }
      await this.#boundSetAside(names)
      const found: { name: string; at: number }[] = []
      for (const name of names.filter(isManifest)) {
        const at = await this.#changedAt(name)
        if (at !== undefined) found.push({ name, at })
      }
      const byAge = found.toSorted((a, b) => b.at - a.at)
      for (const { name } of byAge.splice(maxSessions)) await this.#remove(name)
      const old = byAge.filter(({ at }) => now - at > keepMs)
      if (old.length === 0) return
      const ids = await existing()
      const living = new Set([...(ids ?? [])].map(manifestName))
      for (const { name } of old) if (!living.has(name)) await this.#remove(name)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return
      this.#report(
        `old files in ${this.#directory} cannot be removed (${messageOf(error)})`,
        'remove them by hand; they do no harm',
      )
    }
  }

  async #names(): Promise<string[]> {
    return readdir(this.#directory)
  }

  async #changedAt(name: string): Promise<number | undefined> {
    try {
      return (await lstat(join(this.#directory, name))).mtimeMs
    } catch (error) {
      // Another process has removed it.
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  }

  async #remove(name: string): Promise<void> {
    const path = join(this.#directory, name)
    try {
      await rm(path, { force: true })
    } catch (error) {
      if (codeOf(error) !== 'EISDIR' && codeOf(error) !== 'ERR_FS_EISDIR') throw error
      // A directory with something in it is not ours: it stays.
      await rmdir(path).catch(() => undefined)
    }
  }

  async #boundSetAside(names: readonly string[]): Promise<void> {
    const kept = names.filter(isSetAside)
    const times = new Map<string, number>()
    for (const name of kept) times.set(name, Number(/-(\d+)-[^-]*$/.exec(name)?.[1] ?? 0))
    const newest = kept.toSorted((a, b) => (times.get(b) ?? 0) - (times.get(a) ?? 0))
    for (const name of newest.slice(this.#limits.maxSetAside)) await this.#remove(name)
  }

  /** @throws what the system says when there is no file, or none that may be read. */
  async #read(path: string): Promise<Raw> {
    let handle
    try {
      handle = await open(path, constants.O_RDONLY | NO_FOLLOW | NO_WAIT)
    } catch (error) {
      if (codeOf(error) === 'ELOOP') return { kind: 'unusable', reason: 'it is a link' }
      if (codeOf(error) === 'EISDIR') return { kind: 'unusable', reason: 'it is no file' }
      if (codeOf(error) === 'ENXIO') return { kind: 'unusable', reason: 'it is no file' }
      throw error
    }
    try {
      const info = await handle.stat()
      if (!info.isFile()) return { kind: 'unusable', reason: 'it is no file' }
      const { maxManifestBytes } = this.#limits
      if (info.size > maxManifestBytes)
        return { kind: 'unusable', reason: `it is larger than ${maxManifestBytes} bytes` }
      // It may grow meanwhile: never more than the bound is read.
      const buffer = Buffer.alloc(info.size)
      let length = 0
      while (length < buffer.length) {
        const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
        if (bytesRead === 0) break
        length += bytesRead
      }
      return { kind: 'text', text: buffer.toString('utf8', 0, length), mark: markOf(info) }
    } finally {
      await handle.close()
    }
  }

  async #setAside(sessionId: string, reason: string): Promise<Found> {
    const path = this.pathOf(sessionId)
    const name = setAsideName(manifestName(sessionId), Date.now(), randomBytes(3).toString('hex'))
    const kept = join(this.#directory, name)
    const consequence = 'the resumed session gets a general reminder'
    try {
      await rename(path, kept)
      this.#report(
        `what a session had seen cannot be used: ${reason}; the file was kept as ${kept}`,
        `none is needed, ${consequence}; look at the file, or remove it`,
      )
      await this.#boundSetAside(await this.#names())
    } catch (error) {
      this.#report(
        `what a session had seen cannot be used: ${reason}; and ${path} cannot be set aside (${messageOf(error)})`,
        `remove it; ${consequence}`,
      )
    }
    return { kind: 'unusable' }
  }
}
