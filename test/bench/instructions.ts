/** Time of a quiet step with instruction files in force: ours beside the host's own loader. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from '@deepseek-ai/cordis'
import { BenchHost } from './host.ts'
import { type Spread, spreadOf } from './numbers.ts'

// Not a literal: its types would declare the instruction source a second time.
const STOCK: string = '@deepseek-ai/dsh-agent-instructions'
const CHAIN = ['a', 'b', 'c', 'd', 'e']
const NESTED_SCOPES = 30
const NESTED_DIRECTORIES = Array.from({ length: NESTED_SCOPES }, (_, n) => `n${n}`)

export interface InstructionTimes {
  /** Whole pre-step with our bundle, which watches and checks files as well. */
  readonly ours: Spread
  /** Whole pre-step with the host's own loader alone. */
  readonly stock: Spread
}

const growWorkspace = (root: string): string => {
  mkdirSync(join(root, '.git'), { recursive: true })
  let directory = root
  for (const name of ['', ...CHAIN]) {
    directory = join(directory, name)
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'AGENTS.md'), `Rules of ${directory}.\n`)
  }
  for (const name of NESTED_DIRECTORIES) {
    mkdirSync(join(directory, name))
    writeFileSync(join(directory, name, 'AGENTS.md'), `Rules of ${name}.\n`)
    writeFileSync(join(directory, name, 'f.txt'), 'text\n')
  }
  return directory
}

const timesOf = async (host: BenchHost, cwd: string, steps: number): Promise<number[]> => {
  await host.open()
  await host.call(
    NESTED_DIRECTORIES.map((name) => ({ name: 'read', args: { file_path: join(cwd, name, 'f.txt') } })),
  )
  // The first steps tell what was reached.
  for (let step = 0; step < 5; step += 1) await host.call()
  const times: number[] = []
  for (let step = 0; step < steps; step += 1) times.push(await host.call())
  await host.end()
  return times
}

/**
 * Measure quiet steps in the middle of a turn, both loaders in turns.
 * @param scratch - folder for the workspaces.
 * @param rounds - rounds of each.
 * @param steps - quiet steps in a round.
 */
export const measureInstructions = async (
  scratch: string,
  rounds: number,
  steps: number,
): Promise<InstructionTimes> => {
  // The package has no plugin type of its own; what it exports is what the host mounts.
  const plugin = (await import(STOCK)) as Plugin
  const [ours, stock]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    for (const [times, isOurs] of [
      [ours, true],
      [stock, false],
    ] as const) {
      const root = join(scratch, `instructions-${round}-${isOurs ? 'ours' : 'stock'}`)
      const cwd = growWorkspace(root)
      const host = isOurs
        ? await BenchHost.boot(root, 'cookie', { cwd })
        : await BenchHost.boot(root, undefined, { cwd, plugin, settings: { maxBytes: 65_536 } })
      times.push(...(await timesOf(host, cwd, steps)))
      await host.dispose()
    }
  }
  return { ours: spreadOf(ours), stock: spreadOf(stock) }
}
