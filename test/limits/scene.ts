/** What the tests of limits share: a session that has used two files, and what it must be told. */
import { writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { boot, type Harness, quiet, read, type TestAgent, textOf } from '../support/harness.ts'

export const SOON = { restartDelayMs: 50, maxRestartDelayMs: 200, backend: 'chokidar' }

/** Set a limit of this namespace. */
export const setLimit = (name: 'max_inotify_watches' | 'max_inotify_instances', value: number): void =>
  writeFileSync(`/proc/sys/user/${name}`, String(value))

/** A workspace with many directories, and a session that uses a file at the top and one deep in it. */
export const using = async (
  directories: number,
  watch: Record<string, unknown> = {},
): Promise<{ readonly harness: Harness; readonly agent: TestAgent }> => {
  const files: Record<string, string> = { 'used.ts': 'one\n' }
  for (let index = 0; index < directories; index += 1) files[`d${index}/f.ts`] = 'one\n'
  const harness = await boot({ files, config: { watch: { ...SOON, ...watch } } })
  const agent = await harness.agent('main')
  await agent.prompt()
  await agent.call(read('used.ts'), read(`d${directories - 1}/f.ts`))
  return { harness, agent }
}

let writes = 0

/** A change of a used file is told at the very next request. */
export const provesAttention = async (
  harness: Harness,
  agent: TestAgent,
  path = 'used.ts',
): Promise<void> => {
  await agent.call(read(path))
  harness.write(path, `changed ${writes++}\n`)
  await agent.call(quiet)
  expect(textOf(agent.told)).toContain(`- modified "${path}"`)
}

/** The lines about the watcher itself. */
export const coverageTexts = ({ notices }: TestAgent): readonly string[] =>
  notices.filter(({ category }) => category === 'coverage').map(({ text }) => text)
