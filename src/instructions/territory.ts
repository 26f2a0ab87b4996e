/**
 * The directories in which a session's instruction files count, and how events find them.
 *
 * @module dsh-live-workspace/instructions/territory
 */
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import { unlessAborted } from './abort.ts'
import type { InstructionsConfig } from './config.ts'
import { chainTo, type Frame, isWithin, relativeTo, relativeWithin } from './frame.ts'
import { directoryId, GLOBAL_DIRECTORY, parseScope, relativeOf } from './protocol.ts'
import { type Directory, globalDirectory, projectDirectory, type Scope, scopesOf } from './scopes.ts'

/** What is needed to learn directories. */
export interface Explorer {
  readonly fs: FileSystem
  readonly signal: AbortSignal
  /** Whether an absolute path is ignored in the workspace. */
  readonly ignored: (absolutePath: string) => boolean
}

const DEFAULT_HOME = '.dsh'

const displayOf = (home: string): string =>
  resolve(home) === join(homedir(), DEFAULT_HOME) ? `~/${DEFAULT_HOME}` : '$DSH_HOME'

const realOf = async ({ fs, signal }: Explorer, path: string): Promise<string> => {
  try {
    return fs.processPath(await unlessAborted(fs.resolve(path, { signal }), signal))
  } catch {
    signal.throwIfAborted()
    // Only events need the real path; the files are looked for by the given one.
    return path
  }
}

/** Directories of one session. */
export class Territory {
  readonly #config: InstructionsConfig
  readonly #home: string
  #frame: Frame | undefined
  readonly #directories = new Map<string, Directory>()
  readonly #scopes = new Map<string, Scope>()
  readonly #keysByPath = new Map<string, Set<string>>()
  /** Known directories and everything between them and the root. */
  readonly #enclosing = new Set<string>()
  readonly #names: ReadonlySet<string>

  /** @param home - absolute path of the harness home. */
  constructor(config: InstructionsConfig, home: string) {
    this.#config = config
    this.#home = home
    this.#names = new Set([
      ...scopesOf(globalDirectory(home, home, '')).map(({ name }) => name),
      ...config.instructionFileCandidates,
      ...config.localInstructionFileCandidates,
    ])
  }

  get frame(): Frame | undefined {
    return this.#frame
  }

  /** All names that count anywhere. */
  get names(): ReadonlySet<string> {
    return this.#names
  }

  /** The user-global directory, those from the root to the cwd, then the others, none before its parents. */
  get directories(): readonly Directory[] {
    const ordered = new Set<Directory>()
    for (const [id, directory] of this.#directories) {
      if (!directory.chain) {
        // A log may speak of a directory before one around it was reached.
        for (let end = id.indexOf('/'); end >= 0; end = id.indexOf('/', end + 1)) {
          const outer = this.#directories.get(id.slice(0, end))
          if (outer) ordered.add(outer)
        }
      }
      ordered.add(directory)
    }
    return [...ordered]
  }

  /** All scopes, by key, in the order of their directories. */
  get scopes(): ReadonlyMap<string, Scope> {
    return this.#scopes
  }

  /**
   * Take a project as the one to follow; another one than before forgets all directories.
   * @returns the real paths of forgotten directories beside the chain.
   */
  async enter(frame: Frame, explorer: Explorer): Promise<string[]> {
    const chain = await Promise.all(
      chainTo(relativeWithin(frame.root, frame.cwd)).map(async (relative) => {
        const path = join(frame.root, relative)
        const real = await realOf(explorer, path)
        return projectDirectory(this.#config, { relative, path, real, chain: true, gated: false })
      }),
    )
    const home = globalDirectory(this.#home, await realOf(explorer, this.#home), displayOf(this.#home))
    const forgotten = this.directories.filter((directory) => !directory.chain).map(({ real }) => real)
    for (const map of [this.#directories, this.#scopes, this.#keysByPath]) map.clear()
    this.#enclosing.clear()
    this.#frame = frame
    for (const directory of [home, ...chain]) this.#add(directory)
    return forgotten
  }

  /** Learn the directories that scopes of a log speak of. */
  async learnScopes(scopes: Iterable<string>, explorer: Explorer): Promise<void> {
    for (const scope of scopes) {
      const id = parseScope(scope)?.directory
      if (id === undefined || id === GLOBAL_DIRECTORY || this.#directories.has(id)) continue
      const relative = relativeOf(id)
      const path = join(this.#frame?.root ?? '', relative)
      const real = await realOf(explorer, path)
      const gated = this.#isIgnored(relative, real, explorer)
      this.#add(projectDirectory(this.#config, { relative, path, real, chain: false, gated }))
    }
  }

  /**
   * Learn a directory that was reached, with all between the root and it.
   * @param path - absolute, by its given or its real spelling.
   * @returns whether all of it counts; ignored directories and those outside the project do not.
   */
  async learn(path: string, explorer: Explorer): Promise<boolean> {
    const frame = this.#frame
    const reached = frame && relativeTo(frame, path)
    if (!frame || reached === undefined) return false
    for (const relative of chainTo(reached)) {
      if (this.#directories.get(directoryId(relative))?.gated === false) continue
      const given = join(frame.root, relative)
      const real = await realOf(explorer, given)
      if (this.#isIgnored(relative, real, explorer)) return false
      const really = relativeTo(frame, real)
      // A link to another directory of the project: there the instructions have their one name.
      if (really !== undefined && really !== relative && isWithin(frame.realRoot, real)) {
        return this.learn(join(real, reached.slice(relative.length)), explorer)
      }
      this.#add(projectDirectory(this.#config, { relative, path: given, real, chain: false, gated: false }))
    }
    return true
  }

  #isIgnored(relative: string, real: string, { ignored }: Explorer): boolean {
    const frame = this.#frame
    if (this.#config.loadIgnoredDirectories || !frame) return false
    const cwd = relativeWithin(frame.root, frame.cwd)
    const below = cwd === '' || relative === cwd || relative.startsWith(`${cwd}/`)
    const own = below ? relative.slice(cwd.length) : relative
    if (own.split('/').includes('node_modules')) return true
    // Who works inside an ignored directory does not ignore it.
    return ignored(real) && !(below && ignored(join(frame.realRoot, cwd)))
  }

  #add(directory: Directory): void {
    this.#directories.set(directory.id, directory)
    for (const scope of scopesOf(directory)) {
      this.#scopes.set(scope.key, scope)
      this.index(scope.path, scope.key)
      this.index(join(directory.real, scope.name), scope.key)
    }
    const top = this.#frame?.realRoot ?? directory.real
    for (let path = directory.real; ; path = dirname(path)) {
      this.#enclosing.add(path)
      if (path === top || !isWithin(top, path)) break
    }
  }

  /** Events of a path concern a scope, for example because a link leads there. */
  index(path: string, key: string): void {
    const keys = this.#keysByPath.get(path)
    if (keys) keys.add(key)
    else this.#keysByPath.set(path, new Set([key]))
  }

  /** The scopes that an event of a path concerns. */
  keysAt(path: string): string[] {
    const keys = this.#keysByPath.get(path)
    if (keys) return [...keys]
    if (!this.#enclosing.has(path)) return []
    return this.directories
      .filter(({ real }) => isWithin(path, real))
      .flatMap((directory) => scopesOf(directory).map(({ key }) => key))
  }
}
