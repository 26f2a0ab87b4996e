/**
 * Which paths of a root are nobody's news: ignored by name or by git, or of another repository.
 *
 * @module dsh-live-workspace/watch/silence
 */
import { basename, dirname, sep } from 'node:path'
import { GitIgnore } from './git-ignore.ts'
import { isWithin } from './root.ts'

/** What is silent in a root. */
export interface SilenceOptions {
  /** Real path of the root. */
  readonly root: string
  /** Names of directories, at any depth. */
  readonly ignoredDirectories: readonly string[]
  /** Absolute paths that are silent with everything below: the harness's own files. */
  readonly ownPaths: readonly string[]
  /** Whether git's ignore rules count. */
  readonly respectGitignore: boolean
  /** Largest ignore file in bytes that is applied. */
  readonly maxIgnoreFileBytes: number
  /** Directories whose rules are kept in memory. */
  readonly maxIgnoreDirectories: number
  /** Longest wait in ms for git's settings. */
  readonly gitTimeoutMs: number
}

/** Rules in force, for status. */
export interface SilenceRules {
  /** Files of git's rules that were read so far. Absolute paths. */
  readonly files: readonly string[]
  /** Such files that are not applied, or not as a whole. */
  readonly refused: readonly { readonly path: string; readonly why: string }[]
  /** Absolute paths of the harness's own files below the root. */
  readonly own: readonly string[]
}

/** The rules of one root. */
export class Silence {
  readonly #options: SilenceOptions
  readonly #own: readonly string[]
  #git: GitIgnore | undefined
  /** Whether a directory is the root of another repository. */
  readonly #foreign = new Map<string, boolean>()

  constructor(options: SilenceOptions) {
    this.#options = options
    // A session may work inside the harness's home; then only the parts below it are silent.
    this.#own = options.ownPaths.filter((path) => path !== options.root && isWithin(options.root, path))
  }

  /** Read git's settings. Until then, and without git, only names count. */
  async open(): Promise<void> {
    const { root, respectGitignore, maxIgnoreFileBytes, maxIgnoreDirectories, gitTimeoutMs } = this.#options
    if (!respectGitignore) return
    this.#git = await GitIgnore.open(root, {
      maxFileBytes: maxIgnoreFileBytes,
      maxDirectories: maxIgnoreDirectories,
      configTimeoutMs: gitTimeoutMs,
    })
  }

  /** Files elsewhere whose change matters to the rules. */
  get sources(): readonly string[] {
    return this.#git?.sources() ?? []
  }

  /** What is in force now. */
  get rules(): SilenceRules {
    const refused = Array.from(this.#git?.refused() ?? [], ([path, why]) => ({ path, why }))
    return { files: this.#git?.ruleFiles() ?? [], refused, own: this.#own }
  }

  /** Something changed at this path, which may be a rule. */
  noticed(path: string): void {
    if (this.#git?.invalidate(path) === true || basename(path) === '.git') this.#foreign.clear()
  }

  /** Events were missed: every rule is read again. */
  forget(): void {
    this.#git?.clear()
    this.#foreign.clear()
  }

  /** Whether a path is not even watched. */
  unwatched(path: string): boolean {
    const { root, ignoredDirectories } = this.#options
    if (path === root) return false
    if (ignoredDirectories.includes(basename(path)) || this.#own.some((own) => isWithin(own, path)))
      return true
    const inside = isWithin(root, path) ? path.slice(root.length) : path
    return inside.split(sep).some((segment) => ignoredDirectories.includes(segment))
  }

  /** Whether a change of a path is no news to a session that has not used it. */
  silent(path: string, isDirectory: boolean): boolean {
    if (!isWithin(this.#options.root, path)) return false
    return this.unwatched(path) || this.#git?.ignores(path, isDirectory) === true || this.#isForeign(path)
  }

  #isForeign(path: string): boolean {
    if (!this.#git) return false
    for (let directory = dirname(path); directory !== this.#options.root; directory = dirname(directory)) {
      if (!isWithin(this.#options.root, directory)) return false
      const foreign = this.#foreign.get(directory) ?? this.#git.isNestedRepository(directory)
      if (this.#foreign.size >= this.#options.maxIgnoreDirectories) this.#foreign.clear()
      this.#foreign.set(directory, foreign)
      if (foreign) return true
    }
    return false
  }
}
