/** The parts of README.md that are commands and examples, and a copy of the repository to run them in. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { checkout, dshBin, installEnv, type ScratchHome } from './dsh.ts'
import { run, runSuccessfully, type Outcome } from './process.ts'

const COMMAND_TIMEOUT_MS = 180_000

export const readme = readFileSync(join(checkout, 'README.md'), 'utf8')

/** Blocks of a language, each with the name in the comment before it. */
const blocks = (language: string): readonly { readonly name: string | undefined; readonly text: string }[] =>
  Array.from(
    readme.matchAll(new RegExp(`(?:<!-- (\\S+) -->\\n\\n)?\`\`\`${language}\\n([^]*?)\\n\`\`\``, 'g')),
    ([, name, text = '']) => ({ name, text }),
  )

/** Command blocks in their order; those without a comment are named by their text. */
export const commandBlocks = blocks('sh').map(({ name, text }) => ({ name: name ?? text, text }))

export const commandBlock = (name: string): string => named(commandBlocks, name)

export const example = (name: string): string => named(blocks('text'), name)

/** The settings that switch the plugin off and the harness's own loader on. */
export const switchedOff = (): string => {
  const found = blocks('yaml').find(({ text }) => text.includes('disabled: true'))
  if (!found) throw new Error('README.md does not say how to switch the plugin off')
  return `${found.text}\n`
}

const named = (
  all: readonly { readonly name: string | undefined; readonly text: string }[],
  name: string,
) => {
  const found = all.find((block) => block.name === name)
  if (!found) throw new Error(`README.md has no block "${name}"`)
  return found.text
}

/** A repository with the files of this checkout as they are, committed or not. */
export async function cloneCheckout(folder: string): Promise<string> {
  const clone = join(folder, 'dsh-live-workspace')
  const git = async (cwd: string, ...args: string[]): Promise<string> =>
    runSuccessfully({ file: 'git', args, cwd, env: process.env, timeoutMs: COMMAND_TIMEOUT_MS })
  const listed = await git(checkout, 'ls-files', '-z', '--cached', '--others', '--exclude-standard')
  for (const name of listed.split('\0').filter((each) => each !== '')) {
    mkdirSync(dirname(join(clone, name)), { recursive: true })
    cpSync(join(checkout, name), join(clone, name))
  }
  await git(clone, 'init', '--quiet')
  await git(clone, 'add', '--all')
  await git(
    clone,
    '-c',
    'user.name=test',
    '-c',
    'user.email=test@localhost',
    'commit',
    '--quiet',
    '-m',
    'Copy',
  )
  return clone
}

/** Runs a block in a shell in which `dsh` is there. */
export interface Shell {
  run(block: string, options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv }): Promise<Outcome>
  /** The same for a block that has to succeed. */
  succeed(
    block: string,
    options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
  ): Promise<Outcome>
}

export async function shellIn(home: ScratchHome): Promise<Shell> {
  const bin = join(home.root, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'dsh'), `#!/bin/sh\nexec "${process.execPath}" "${dshBin()}" "$@"\n`, {
    mode: 0o755,
  })
  const base = await installEnv(home)
  const shell: Shell = {
    run: async (block, { cwd, env = {} }) => {
      const path = `${bin}${delimiter}${process.env['PATH'] ?? ''}`
      const command = { file: 'sh', args: ['-ec', block], cwd, env: { ...base, ...env, PATH: path } }
      return run({ ...command, timeoutMs: COMMAND_TIMEOUT_MS })
    },
    succeed: async (block, options) => {
      const outcome = await shell.run(block, options)
      if (outcome.code === 0) return outcome
      throw new Error(`${block}\nended with ${outcome.code}\n${outcome.stdout}\n${outcome.stderr}`)
    },
  }
  return shell
}
