/**
 * What committed observations held: digests, and the text of small files.
 *
 * Contents are read through the filesystem service, and only count when the version was the expected
 * one before and after the reading: then they are of one moment.
 *
 * @module dsh-live-workspace/ledger/content
 */
import { createHash } from 'node:crypto'
import type { FileSystem, FsTarget } from '@deepseek-ai/dsh-fs'

/** Content of one version of one target. */
export interface Content {
  readonly version: string
  /** Time in ms, by the process's monotonic clock, at which the reading began. */
  readonly readAt: number
  /** SHA-256 of the bytes, hexadecimal. */
  readonly digest: string
  /** Size in bytes. */
  readonly size: number
  /** The bytes as text: only for a small file, and `undefined` for anything but valid UTF-8 without NUL. */
  readonly text: string | undefined
}

/** Bounds of reading, in bytes. */
export interface ContentLimits {
  /** A larger file has no digest. */
  readonly maxDigestBytes: number
  /** A larger file has a digest, but its text is not kept. */
  readonly maxTextBytes: number
}

const textOf = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // Not UTF-8: there is no text to show, only a digest.
    return undefined
  }
}

/**
 * Read one version of a target.
 * @param version - the version that the content must be of.
 * @returns `undefined` when the target is another version by now, is no file, or is too large.
 * @throws what the filesystem service throws.
 */
export const readContent = async (
  fs: FileSystem,
  target: FsTarget,
  version: string,
  limits: ContentLimits,
  signal: AbortSignal | undefined,
): Promise<Content | undefined> => {
  const readAt = performance.now()
  const before = await fs.stat(target, signal)
  if (before?.type !== 'file' || String(before.version) !== version) return undefined
  if (before.size !== undefined && before.size > limits.maxDigestBytes) return undefined
  const bytes = await fs.readBytes(target, signal, limits.maxDigestBytes)
  const after = await fs.stat(target, signal)
  if (!after || String(after.version) !== version) return undefined
  return {
    version,
    readAt,
    digest: createHash('sha256').update(bytes).digest('hex'),
    size: bytes.byteLength,
    text: bytes.byteLength <= limits.maxTextBytes ? textOf(bytes) : undefined,
  }
}

/** Contents of one session, the texts within a budget of bytes, the oldest dropped first. Pure. */
export class ContentShelf {
  readonly #contents = new Map<string, Content>()
  readonly #maxTotalBytes: number
  readonly #maxEntries: number
  #textBytes = 0

  /**
   * @param maxTotalBytes - bytes of all kept texts.
   * @param maxEntries - contents kept, with or without text.
   */
  constructor(maxTotalBytes: number, maxEntries: number) {
    this.#maxTotalBytes = maxTotalBytes
    this.#maxEntries = maxEntries
  }

  get(key: string): Content | undefined {
    return this.#contents.get(key)
  }

  /** Content of a target at exactly this version. */
  at(key: string, version: string): Content | undefined {
    const content = this.#contents.get(key)
    return content?.version === version ? content : undefined
  }

  put(key: string, content: Content): void {
    this.drop(key)
    this.#contents.set(key, content)
    this.#textBytes += weight(content)
    for (const [oldest, { text }] of this.#contents) {
      if (this.#contents.size > this.#maxEntries) this.drop(oldest)
      else if (this.#textBytes <= this.#maxTotalBytes) return
      else if (text !== undefined) this.forgetText(oldest)
    }
  }

  /** The bytes are the same under a new version. */
  renew(key: string, version: string): void {
    const content = this.#contents.get(key)
    if (content) this.#contents.set(key, { ...content, version })
  }

  /** Keep the digest, drop the text. */
  forgetText(key: string): void {
    const content = this.#contents.get(key)
    if (!content) return
    this.#textBytes -= weight(content)
    this.#contents.set(key, { ...content, text: undefined })
  }

  drop(key: string): void {
    const content = this.#contents.get(key)
    if (!content) return
    this.#textBytes -= weight(content)
    this.#contents.delete(key)
  }
}

const weight = ({ text, size }: Content): number => (text === undefined ? 0 : size)
