/**
 * The directories that are watched before all others: those of files that sessions use and follow.
 *
 * @module dsh-live-workspace/watch/preferences
 */
import { isWithin } from './root.ts'

/** Directories of one root, by reader. */
export class Preferences {
  readonly #root: string
  readonly #directories = new Map<object, Set<string>>()

  constructor(root: string) {
    this.#root = root
  }

  /** Every directory once. */
  get all(): readonly string[] {
    return [...new Set([...this.#directories.values()].flatMap((directories) => [...directories]))]
  }

  /** @returns those of the directories that are within the root and new to this reader. */
  add(reader: object, directories: readonly string[]): readonly string[] {
    const known = this.#directories.get(reader) ?? new Set()
    this.#directories.set(reader, known)
    const news = directories.filter((directory) => !known.has(directory) && isWithin(this.#root, directory))
    for (const directory of news) known.add(directory)
    return news
  }

  leave(reader: object): void {
    this.#directories.delete(reader)
  }
}
