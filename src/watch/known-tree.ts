/**
 * The names that a watcher has seen below its root.
 *
 * It answers two questions that an event does not: was this path there before, and which files went
 * with a directory. Pure: no I/O.
 *
 * @module dsh-live-workspace/watch/known-tree
 */
import { basename, dirname, join } from 'node:path'
import { isWithin } from './root.ts'

interface Directory {
  /** Inode number when the directory was last looked at; equal numbers alone prove nothing. */
  ino: number
  readonly files: Set<string>
  readonly directories: Set<string>
}

/** Directories and file names, by absolute path. */
export class KnownTree {
  readonly #directories = new Map<string, Directory>()
  /** Directories whose parent is not known: the root, and what was heard of before its parent. */
  readonly #tops = new Set<string>()

  /** Number of known directories. */
  get directoryCount(): number {
    return this.#directories.size
  }

  hasFile(path: string): boolean {
    return this.#directories.get(dirname(path))?.files.has(basename(path)) ?? false
  }

  hasDirectory(path: string): boolean {
    return this.#directories.has(path)
  }

  /** Inode number of a known directory. */
  inodeOf(path: string): number | undefined {
    return this.#directories.get(path)?.ino
  }

  /** Names of the files directly in a known directory. */
  filesIn(path: string): ReadonlySet<string> {
    return this.#directories.get(path)?.files ?? new Set()
  }

  /** Names of the directories directly in a known directory. */
  directoriesIn(path: string): ReadonlySet<string> {
    return this.#directories.get(path)?.directories ?? new Set()
  }

  /** @param ino - inode number; a known directory takes the new one. */
  addDirectory(path: string, ino: number): void {
    const known = this.#directories.get(path)
    if (known) {
      known.ino = ino
      return
    }
    const directories = new Set<string>()
    for (const top of this.#tops) {
      if (dirname(top) !== path || top === path) continue
      directories.add(basename(top))
      this.#tops.delete(top)
    }
    this.#directories.set(path, { ino, files: new Set(), directories })
    const parent = this.#directories.get(dirname(path))
    if (parent && dirname(path) !== path) parent.directories.add(basename(path))
    else this.#tops.add(path)
  }

  addFile(path: string): void {
    const directory = dirname(path)
    if (!this.#directories.has(directory)) this.addDirectory(directory, 0)
    this.#directories.get(directory)?.files.add(basename(path))
  }

  /** @returns whether the file was known. */
  removeFile(path: string): boolean {
    return this.#directories.get(dirname(path))?.files.delete(basename(path)) ?? false
  }

  /**
   * Forget a directory and everything in it.
   * @returns the paths of the files and of the directories that were known in it, itself included.
   */
  removeDirectory(path: string): { files: string[]; directories: string[] } {
    const files: string[] = []
    const directories: string[] = []
    const visit = (directory: string) => {
      const known = this.#directories.get(directory)
      if (!known) return
      this.#directories.delete(directory)
      directories.push(directory)
      for (const name of known.files) files.push(join(directory, name))
      for (const name of known.directories) visit(join(directory, name))
    }
    visit(path)
    this.#tops.delete(path)
    for (const top of this.#tops) {
      if (!isWithin(path, top)) continue
      this.#tops.delete(top)
      visit(top)
    }
    this.#directories.get(dirname(path))?.directories.delete(basename(path))
    return { files, directories }
  }
}
