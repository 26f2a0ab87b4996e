import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { onTestFinished } from 'vitest'
import { Lab, type Script, type Told } from './lab.ts'
import type { LoaderConfig, Mount } from './loaders.ts'
import { makeSandbox, type Sandbox } from './sandbox.ts'

export interface WorldOptions {
  readonly files?: Readonly<Record<string, string>>
  readonly config?: LoaderConfig
  /** Relative to the project. */
  readonly cwd?: string
}

/** One session under one loader, on a project of its own. */
export class World {
  readonly #sandbox: Sandbox = makeSandbox()
  readonly #options: WorldOptions
  readonly #mount: Mount
  #lab: Lab | undefined
  #config: LoaderConfig
  #seed: readonly SessionEvent[] = []
  /** What was told in each turn. */
  readonly turns: Told[][] = []

  constructor(mount: Mount, options: WorldOptions) {
    this.#mount = mount
    this.#options = options
    this.#config = options.config ?? {}
    for (const [path, text] of Object.entries(options.files ?? {})) this.write(path, text)
    onTestFinished(async () => {
      await this.#lab?.stop()
      this.#sandbox.remove()
    })
  }

  path(relative: string): string {
    return join(this.#sandbox.project, relative)
  }

  write(relative: string, text: string | Uint8Array): void {
    mkdirSync(dirname(this.path(relative)), { recursive: true })
    writeFileSync(this.path(relative), text)
  }

  directory(relative: string): void {
    mkdirSync(this.path(relative), { recursive: true })
  }

  remove(relative: string): void {
    rmSync(this.path(relative), { recursive: true })
  }

  link(relative: string, target: string): void {
    mkdirSync(dirname(this.path(relative)), { recursive: true })
    symlinkSync(target, this.path(relative))
  }

  mode(relative: string, mode: number): void {
    chmodSync(this.path(relative), mode)
  }

  writeGlobal(text: string): void {
    writeFileSync(join(this.#sandbox.home, 'AGENTS.md'), text)
  }

  removeGlobal(): void {
    rmSync(join(this.#sandbox.home, 'AGENTS.md'))
  }

  async #running(): Promise<Lab> {
    this.#lab ??= await Lab.start({
      cwd: join(this.#sandbox.project, this.#options.cwd ?? ''),
      mount: async (ctx) => this.#mount(ctx, { home: this.#sandbox.home, config: this.#config }),
      ...(this.#seed.length > 0 ? { seed: this.#seed } : {}),
    })
    return this.#lab
  }

  /** One turn; what it told is kept. */
  async turn(...script: Script): Promise<Told[]> {
    const told = await (await this.#running()).turn(...script)
    this.turns.push(told)
    return told
  }

  async compact(): Promise<void> {
    ;(await this.#running()).compact()
  }

  /** Every step is rejected from now on, or none. */
  async reject(whether: boolean): Promise<void> {
    ;(await this.#running()).rejecting = whether
  }

  /** The process ends, and another one continues the session, perhaps with other settings or another loader. */
  async restart({ config, mount }: { config?: LoaderConfig; mount?: Mount } = {}): Promise<void> {
    const lab = await this.#running()
    this.#seed = lab.session.events
    await lab.stop()
    this.#config = config ?? this.#config
    this.#lab = await Lab.start({
      cwd: join(this.#sandbox.project, this.#options.cwd ?? ''),
      mount: async (ctx) => (mount ?? this.#mount)(ctx, { home: this.#sandbox.home, config: this.#config }),
      seed: this.#seed,
    })
  }
}

export const read = (path: string) => ({ tool: 'read', args: { file_path: path } })
export const write = (path: string, content: string) => ({
  tool: 'write',
  args: { file_path: path, content },
})
export const edit = (path: string, from: string, to: string) => ({
  tool: 'edit',
  args: { file_path: path, old_string: from, new_string: to },
})
