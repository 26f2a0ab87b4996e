/**
 * What git ignores in one work tree: gitignore(5), as `git check-ignore --no-index` judges it.
 *
 * The library `ignore` matches patterns. Which rule comes first, what belongs to which directory, and
 * that nothing below an ignored directory comes back, is decided here; so is what a nested repository
 * is: git shows it as one entry and never looks inside, therefore the rules from outside decide about
 * that entry, and its own rules (with the user's) about everything in it.
 *
 * @module dsh-live-workspace/watch/git-ignore
 */
import { constants, lstatSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { attempt, gitDirectoriesOf, readFile } from './git-directories.ts'
import { askGit } from './git-process.ts'
import { pathBytes, RuleFile } from './git-rules.ts'
/** Bounds, and where git's settings are looked for. */
export interface GitIgnoreOptions {
  /** Largest ignore file in bytes that is applied (git's own bound is 100 MiB). Default 256 KiB. */
  readonly maxFileBytes?: number
  /** Directories whose rules are kept in memory; beyond that they are read again. Default 100,000. */
  readonly maxDirectories?: number
  /** Longest wait in ms for `git config`; then git's defaults hold. Default 2,000. */
  readonly configTimeoutMs?: number
  /** Environment for `PATH`, `HOME`, `XDG_CONFIG_HOME` and git itself. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
}

const MAX_CONFIG_BYTES = 4 * 1024 * 1024

/** A rule file as it applies to a part of the tree. */
interface Rules {
  readonly file: RuleFile
  /** Length of the path that its patterns are relative to, one character per byte. */
  readonly baseLength: number
}

interface Directory {
  readonly ignored: boolean
  /** What decides about its entries, the strongest first. */
  readonly rules: readonly Rules[]
  /** Whether it has an ignore file or a repository of its own. */
  readonly own: boolean
}

const isIgnored = (rules: readonly Rules[], inside: string, isDirectory: boolean): boolean => {
  const path = isDirectory ? `${pathBytes(inside)}/` : pathBytes(inside)
  for (const { file, baseLength } of rules) {
    const verdict = file.verdict(path.slice(baseLength))
    if (verdict !== undefined) return verdict
  }
  return false
}

const parentOf = (inside: string): string => inside.slice(0, Math.max(0, inside.lastIndexOf('/')))

/** Git's settings that matter here, as plain data. */
export interface GitSettings {
  readonly ignoreCase: boolean
  /** Absolute path of the user's own ignore file, there or not. */
  readonly excludesFile: string
}

/** What git-config(1) takes for true. */
const TRUE = /^(true|yes|on|[+-]?0*[1-9]\d*)$/i

/**
 * Ask git once for `core.excludesFile` and `core.ignorecase`; a later change of these two is not seen.
 * @param root - real path of the work tree's root.
 * @returns the settings; without git, or when it does not answer in time, its defaults. Never rejects.
 */
export const readGitSettings = async (
  root: string,
  { env = process.env, configTimeoutMs = 2000 }: GitIgnoreOptions = {},
): Promise<GitSettings> => {
  const values = new Map<string, string>()
  const limits = { env, timeoutMs: configTimeoutMs, maxBytes: MAX_CONFIG_BYTES }
  const listed = await askGit(root, ['config', '-z', '--list'], limits)
  for (const entry of listed?.split('\0') ?? []) {
    const [key = '', ...value] = entry.split('\n')
    // A key without a value means true; of several values the last one holds.
    values.set(key, value.length === 0 ? 'true' : value.join('\n'))
  }
  const home = env['HOME'] ?? homedir()
  const users = values.get('core.excludesfile')?.replace(/^~(?=\/|$)/, () => home)
  const folds = values.get('core.ignorecase')
  return {
    // Without an answer, what `git init` finds out on the usual disks of the platform.
    ignoreCase: values.size > 0 ? TRUE.test(folds ?? '') : ['darwin', 'win32'].includes(process.platform),
    excludesFile: resolve(
      root,
      users ?? join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'git', 'ignore'),
    ),
  }
}

/** The ignore rules of one work tree. Files are read when they are first needed, and then remembered. */
export class GitIgnore {
  /** Real path of the work tree's root. */
  readonly root: string
  /** What another instance for the same root can be made from. */
  readonly settings: GitSettings
  readonly #maxFileBytes: number
  readonly #maxDirectories: number
  readonly #directories = new Map<string, Directory>()
  /** Ignore files that lie outside the tree, there or not: `info/exclude` and the user's. */
  readonly #outside = new Set<string>()
  readonly #refused = new Map<string, string>()
  #users: RuleFile | undefined

  constructor(root: string, settings: GitSettings, options: GitIgnoreOptions = {}) {
    this.root = root
    this.settings = settings
    this.#maxFileBytes = options.maxFileBytes ?? 256 * 1024
    this.#maxDirectories = options.maxDirectories ?? 100_000
    this.clear()
  }

  /**
   * The rules of a root with the settings that git has for it; see {@link readGitSettings}.
   * @param root - real path of the work tree's root. Without a repository there, `.gitignore` files and
   *   the user's excludes file apply all the same.
   */
  static async open(root: string, options: GitIgnoreOptions = {}): Promise<GitIgnore> {
    return new GitIgnore(root, await readGitSettings(root, options), options)
  }

  /**
   * Whether git ignores a path, tracked or not. A symbolic link is a file.
   * @param path - absolute path; outside the root nothing is ignored.
   * @returns the same as `git check-ignore --no-index`, with these exceptions: inside nested repositories
   *   their own rules hold, and a rule outside decides about the whole; what {@link refused} lists is
   *   not applied; with `core.ignorecase` a lone capital in brackets matches (in git it matches nothing);
   *   ignore files that a sparse checkout left out are not read from the index; names that are not UTF-8
   *   cannot be told apart. Never throws.
   */
  ignores(path: string, isDirectory: boolean): boolean {
    const inside = this.#inside(path)
    if (inside === undefined || inside === '') return false
    // A path that no system would accept can be too much for the stack.
    const ignored = attempt(() => {
      const parent = this.#directory(parentOf(inside))
      return parent.ignored || isIgnored(parent.rules, inside, isDirectory)
    })
    return ignored ?? false
  }

  /** Whether another work tree starts at this directory below the root: a submodule, a clone, a worktree. */
  isNestedRepository(directory: string): boolean {
    return Boolean(this.#inside(directory)) && gitDirectoriesOf(directory) !== undefined
  }

  /**
   * Something at this path was made, changed or removed.
   * @param path - absolute path of a file, of a directory, or of a `.git` entry.
   * @returns whether answers given before may be wrong now: the path is an ignore file that counts, a
   *   `.git` entry, or a directory that had one of these.
   */
  invalidate(path: string): boolean {
    if (this.#outside.has(path)) {
      this.clear()
      return true
    }
    const inside = this.#inside(path)
    if (inside === undefined) return false
    const parent = parentOf(inside)
    const name = inside.slice(parent === '' ? 0 : parent.length + 1)
    if (name !== '.git' && (this.settings.ignoreCase ? name.toLowerCase() : name) !== '.gitignore') {
      return this.#forget(inside)
    }
    if (attempt(() => this.#directory(parent).ignored)) return false
    this.#forget(parent)
    return true
  }

  /** Forget every file that was read: after missed events. */
  clear(): void {
    this.#directories.clear()
    this.#outside.clear()
    this.#refused.clear()
    this.#users = undefined
    this.#outside.add(this.settings.excludesFile)
  }

  /**
   * The files whose change matters, as far as they were met: every `.gitignore` that was read, and,
   * there or not, `info/exclude` and the user's excludes file, which lie outside the watched tree.
   */
  sources(): string[] {
    this.#directory('')
    const files = new Set(this.#outside)
    for (const { rules } of this.#directories.values()) for (const { file } of rules) files.add(file.path)
    return [...files]
  }

  /** Ignore files that were met so far and are there. */
  ruleFiles(): string[] {
    this.#directory('')
    const files = new Set<string>()
    for (const { rules } of this.#directories.values()) for (const { file } of rules) files.add(file.path)
    return [...files]
  }

  /** Ignore files that are not applied, or not as a whole, with the reason. */
  refused(): ReadonlyMap<string, string> {
    return this.#refused
  }

  /** Path relative to the root with `/`, `''` for the root; `undefined` outside. */
  #inside(path: string): string | undefined {
    const inside = relative(this.root, path)
    if (isAbsolute(inside) || inside === '..' || inside.startsWith(`..${sep}`)) return undefined
    return sep === '/' ? inside : inside.replaceAll(sep, '/')
  }

  #directory(inside: string): Directory {
    const known = this.#directories.get(inside)
    if (known) return known
    const parent = inside === '' ? undefined : this.#directory(parentOf(inside))
    const info = attempt(() => lstatSync(join(this.root, inside)))
    const ignored =
      parent !== undefined && (parent.ignored || isIgnored(parent.rules, inside, !info?.isSymbolicLink()))
    const directory =
      parent && (ignored || !info?.isDirectory())
        ? { ignored, rules: parent.rules, own: false }
        : this.#load(inside, parent?.rules)
    // What does not exist may come with files of its own.
    if (info) {
      if (this.#directories.size >= this.#maxDirectories) this.#directories.clear()
      this.#directories.set(inside, directory)
    }
    return directory
  }

  #load(inside: string, inherited: readonly Rules[] | undefined): Directory {
    const path = join(this.root, inside)
    const baseLength = inside === '' ? 0 : pathBytes(inside).length + 1
    const repository = gitDirectoriesOf(path)
    const outer =
      inherited && !repository
        ? inherited
        : [repository && this.#read(join(repository.commonDirectory, 'info', 'exclude')), this.#usersFile()]
            .filter((file) => file !== undefined)
            .map((file) => ({ file, baseLength }))
    if (repository) this.#outside.add(join(repository.commonDirectory, 'info', 'exclude'))
    // Git follows no link here: it could lead out of the tree.
    const file = this.#read(join(path, '.gitignore'), constants.O_NOFOLLOW)
    return {
      ignored: false,
      rules: file ? [{ file, baseLength }, ...outer] : outer,
      own: file !== undefined || repository !== undefined,
    }
  }

  #usersFile(): RuleFile | undefined {
    this.#users ??= this.#read(this.settings.excludesFile)
    return this.#users
  }

  #read(path: string, flags?: number): RuleFile | undefined {
    this.#refused.delete(path)
    const content = readFile(path, this.#maxFileBytes, flags)
    if (!content) return undefined
    if ('refused' in content) {
      this.#refused.set(path, content.refused)
      return undefined
    }
    const file = new RuleFile(path, content.bytes, this.settings.ignoreCase)
    if (file.leftOut > 0) this.#refused.set(path, `${file.leftOut} of its rules would take too long`)
    return file
  }

  /** @returns whether anything with rules of its own was forgotten. */
  #forget(inside: string): boolean {
    if (inside !== '' && !this.#directories.has(inside)) return false
    let own = false
    const below = inside === '' ? '' : `${inside}/`
    for (const [path, directory] of this.#directories) {
      if (path !== inside && !path.startsWith(below)) continue
      own ||= directory.own
      this.#directories.delete(path)
    }
    return own
  }
}
