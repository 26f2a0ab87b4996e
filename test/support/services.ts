import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandRuntime } from '@deepseek-ai/dsh-commands'
import { hostPlugin, type Harness, type TestAgent } from './harness.ts'

/** The host's commands, as a person's slash command runs them. */
export const withCommands = async (harness: Harness): Promise<void> => {
  await harness.use(CommandRuntime)
}

export const command = async (harness: Harness, { agent }: TestAgent, line: string) => {
  const executed = await harness.ctx.commands.execute(agent, line, [], new AbortController().signal)
  if (!executed) throw new Error(`there is no command ${line}`)
  return executed.result
}

/** Text of a command that succeeds. */
export const commandText = async (harness: Harness, agent: TestAgent, line: string): Promise<string> => {
  const result = await command(harness, agent, line)
  if (result.kind !== 'success') throw new Error(`${line}: ${result.text}`)
  return result.text ?? ''
}

/** The host's settings document, in a file of its own. */
export interface SettingsFile {
  readonly path: string
  write(yaml: string): void
  /** Take the service away. */
  remove(): Promise<void>
}

export const withSettings = async (harness: Harness, yaml?: string): Promise<SettingsFile> => {
  const path = join(harness.base, 'settings.yaml')
  if (yaml !== undefined) writeFileSync(path, yaml)
  const plugin = await hostPlugin('@deepseek-ai/dsh-settings', '@deepseek-ai/dsh-settings-file')
  const fiber = await harness.use(plugin, { path, debounceMs: 5 })
  return {
    path,
    write: (text) => writeFileSync(path, text),
    remove: async () => fiber.dispose(),
  }
}
