import { expect } from 'vitest'
import { type Harness, quiet, type TestAgent, textOf } from './harness.ts'

/**
 * The other half of a test of silence: somebody else changes a file, the next request tells it, and the
 * turn ends. Without it the test would also pass if nothing were ever told.
 * @param path - relative to the workspace; a file that the agent has used, or any while the watcher is live.
 * @param shown - the path as the agent is told it.
 */
export const expectHearing = async (
  harness: Harness,
  agent: TestAgent,
  path: string,
  shown = path,
): Promise<void> => {
  harness.write(path, 'changed by somebody else\n')
  if (agent.agent.status === 'idle') await agent.prompt()
  else await agent.call(quiet)
  expect(textOf(agent.told)).toContain(`"${shown}"`)
  await agent.end()
}
