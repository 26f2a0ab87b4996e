/**
 * Which paths of a root are nobody's news: ignored by name or by git, or of another repository.
 *
 * @module dsh-live-workspace/watch/silence
 */
import { basename, dirname, sep } from 'node:path'
import { GitIgnore, type GitSettings, readGitSettings } from './git-ignore.ts'
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

/** The rules of one root as plain data, from which another thread makes the same rules. */
export interface SilenceRules {
  readonly options: SilenceOptions
  /** What git said of itself; absent while it has not been asked, or is not to be. */
  readonly git: GitSettings | undefined
}

/** Rules in force, for status. */
export interface RulesInForce {
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
  readonly #names: ReadonlySet<string>
  #git: GitIgnore | undefined
  /** Whether a directory is the root of another repository. */
  readonly #foreign = new Map<string, boolean>()

  constructor(options: SilenceOptions) {
    this.#options = options
    this.#names = new Set(options.ignoredDirectories)
    // A session may work inside the harness's home; then only the parts below it are silent.
    this.#own = options.ownPaths.filter((path) => path !== options.root && isWithin(options.root, path))
  }

  /** The same rules as another instance has. */
  static from({ options, git }: SilenceRules): Silence {
    const silence = new Silence(options)
    if (git) silence.#git = silence.#gitIgnore(git)
    return silence
  }

  /** What {@link Silence.from} needs. */
  get rules(): SilenceRules {
    return { options: this.#options, git: this.#git?.settings }
  }

  /** Read git's settings. Until then, and without git, only names count. */
  async open(): Promise<void> {
    const { root, respectGitignore, gitTimeoutMs } = this.#options
    if (!respectGitignore) return
    this.#git = this.#gitIgnore(await readGitSettings(root, { configTimeoutMs: gitTimeoutMs }))
  }

  #gitIgnore(settings: GitSettings): GitIgnore {
    const { root, maxIgnoreFileBytes, maxIgnoreDirectories } = this.#options
    return new GitIgnore(root, settings, {
      maxFileBytes: maxIgnoreFileBytes,
      maxDirectories: maxIgnoreDirectories,
    })
  }

  /** Files elsewhere whose change matters to the rules. */
  get sources(): readonly string[] {
    return this.#git?.sources() ?? []
  }

  /** Ignore files that are not applied, with the reason. */
  get refused(): ReadonlyMap<string, string> {
    return this.#git?.refused() ?? new Map<string, string>()
  }

  /** What is in force now. */
  get inForce(): RulesInForce {
    const refused = Array.from(this.#git?.refused() ?? [], ([path, why]) => ({ path, why }))
    return { files: this.#git?.ruleFiles() ?? [], refused, own: this.#own }
  }

  /**
   * Something changed at this path, which may be a rule.
   * @returns whether answers given before may be wrong now.
   */
  noticed(path: string): boolean {
    if (this.#git?.invalidate(path) !== true) return false
    this.#foreign.clear()
    return true
  }

  /** Events were missed: every rule is read again. */
  forget(): void {
    this.#git?.clear()
    this.#foreign.clear()
  }

  /** Whether a path goes unwatched because of a name on its way, or because it is the harness's own. */
  unwatched(path: string): boolean {
    const { root } = this.#options
    if (path === root) return false
    if (this.#own.some((own) => isWithin(own, path))) return true
    if (this.#names.has(basename(path))) return true
    const inside = isWithin(root, path) ? path.slice(root.length) : path
    return inside.split(sep).some((segment) => this.#names.has(segment))
  }

  /** Whether a directory gets no watch: git ignores it, too. Nothing in it can be taken out of that. */
  prunes(directory: string): boolean {
    return this.unwatched(directory) || this.#git?.ignores(directory, true) === true
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
