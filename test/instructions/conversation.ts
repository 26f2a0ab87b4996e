import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Context } from '@deepseek-ai/cordis'
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import { onTestFinished } from 'vitest'
import { instructions, type InstructionsConfig } from '../../src/instructions/config.ts'
import { InstructionRoom } from '../../src/instructions/room.ts'
import type { InstructionMessage, InstructionView } from '../../src/instructions/view.ts'
import { Disturbance, disturbedFileSystem } from './disturbed-fs.ts'
import { makeSandbox, type Sandbox } from './sandbox.ts'

/** The defaults of the room, with some settings changed. */
export const configured = (changes: Partial<InstructionsConfig> = {}): InstructionsConfig => ({
  dshHome: instructions.dshHome(''),
  projectRootMarkers: instructions.projectRootMarkers(null),
  maxBytes: instructions.maxBytes(null),
  maxSourceBytes: instructions.maxSourceBytes(null),
  maxPassBytes: instructions.maxPassBytes(null),
  instructionFileCandidates: instructions.instructionFileCandidates(null),
  localInstructionFileCandidates: instructions.localInstructionFileCandidates(null),
  candidateSelection: instructions.candidateSelection(null),
  loadIgnoredDirectories: instructions.loadIgnoredDirectories(null),
  ...changes,
})

export interface ConversationOptions {
  readonly config?: Partial<InstructionsConfig>
  /** Relative to the project, or absolute. */
  readonly cwd?: string
  readonly live?: boolean
  readonly ignored?: (path: string) => boolean
}

/** A project on disk, a room, and what the model can see. */
export class Conversation {
  readonly sandbox: Sandbox
  readonly disturbance: Disturbance
  readonly fs: FileSystem
  readonly reports: string[] = []
  room: InstructionRoom
  visible: InstructionMessage[] = []
  live: boolean
  otherLoader = false
  readonly #options: ConversationOptions

  private constructor(
    sandbox: Sandbox,
    fs: FileSystem,
    disturbance: Disturbance,
    options: ConversationOptions,
  ) {
    this.sandbox = sandbox
    this.fs = fs
    this.disturbance = disturbance
    this.live = options.live ?? false
    this.#options = options
    this.room = this.#makeRoom(options.config ?? {})
  }

  /** @param files - of the project, by relative path. */
  static async start(
    files: Readonly<Record<string, string>> = {},
    options: ConversationOptions = {},
  ): Promise<Conversation> {
    const sandbox = makeSandbox()
    onTestFinished(() => sandbox.remove())
    for (const [path, text] of Object.entries(files)) sandbox.write(path, text)
    const disturbance = new Disturbance()
    const ctx = new Context()
    await ctx.plugin(disturbedFileSystem(disturbance), { cwd: sandbox.project })
    return new Conversation(sandbox, ctx.fs, disturbance, options)
  }

  #makeRoom(config: Partial<InstructionsConfig>): InstructionRoom {
    return new InstructionRoom(configured(config), {
      dshHome: this.sandbox.home,
      report: (problem) => {
        if (!this.reports.includes(problem)) this.reports.push(problem)
      },
    })
  }

  /** A new process continues the session. */
  resume(config: Partial<InstructionsConfig> = this.#options.config ?? {}): void {
    this.room = this.#makeRoom(config)
  }

  path(relative: string): string {
    return join(this.sandbox.project, relative)
  }

  /** Write a file; in live conversations the watcher says so. */
  write(relative: string, text: string | Uint8Array): void {
    const path = this.path(relative)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    if (this.live) this.room.suspect(path)
  }

  writeGlobal(text: string): void {
    const path = join(this.sandbox.home, 'AGENTS.md')
    writeFileSync(path, text)
    if (this.live) this.room.suspect(path)
  }

  remove(relative: string): void {
    const path = this.path(relative)
    rmSync(path, { recursive: true })
    if (this.live) this.room.suspect(path)
  }

  move(from: string, to: string): void {
    renameSync(this.path(from), this.path(to))
    if (!this.live) return
    this.room.suspect(this.path(from))
    this.room.suspect(this.path(to))
  }

  link(relative: string, target: string): void {
    const path = this.path(relative)
    mkdirSync(dirname(path), { recursive: true })
    symlinkSync(target, path)
    if (this.live) this.room.suspect(path)
  }

  view(more: Partial<InstructionView> = {}): InstructionView {
    return {
      fs: this.fs,
      cwd: join(this.sandbox.project, this.#options.cwd ?? ''),
      signal: new AbortController().signal,
      visible: this.visible.map(({ source }) => source),
      entering: [],
      live: this.live,
      ignored: this.#options.ignored ?? (() => false),
      otherLoader: this.otherLoader,
      ...more,
    }
  }

  /** A boundary at which everything that is told becomes visible. */
  async step(more: Partial<InstructionView> = {}): Promise<readonly InstructionMessage[]> {
    const told = await this.room.compose(this.view(more))
    this.visible.push(...told)
    return told
  }

  /** A file was reached by a tool, and the next boundary follows. */
  async touch(...relative: string[]): Promise<readonly InstructionMessage[]> {
    for (const path of relative) this.room.touch(this.path(path))
    return this.step()
  }

  /** Steps until nothing more is told. */
  async settle(): Promise<InstructionMessage[]> {
    const all: InstructionMessage[] = []
    for (;;) {
      const told = await this.step()
      if (told.length === 0) return all
      all.push(...told)
    }
  }

  /** Everything visible is summarized away. */
  compact(): void {
    this.visible = []
  }
}

/** Transitions in one line each. */
export const changesOf = (messages: readonly InstructionMessage[]): string[] =>
  messages.flatMap(({ source }) =>
    source.changes.map(
      ({ action, scope }) => `${source.baseline ? 'baseline ' : ''}${action} ${scope.replace('\0', ':')}`,
    ),
  )

export const textOf = (messages: readonly InstructionMessage[]): string =>
  messages.map(({ text }) => text).join('\n')
