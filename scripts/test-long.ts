/**
 * The tests that run as long as they are given: `pnpm test:long --minutes N`. Each reads the minutes from
 * the environment, and prints how far it came and its seed.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const TESTS = [
  'test/property/two-sessions.test.ts',
  'test/property/more-sessions.test.ts',
  'test/property/faults.test.ts',
  'test/watch/agents.test.ts',
]
const DEFAULT_MINUTES = '10'

const { values } = parseArgs({ options: { minutes: { type: 'string', default: DEFAULT_MINUTES } } })
const minutes = Number(values.minutes)
if (!Number.isFinite(minutes) || minutes <= 0) {
  console.error(`--minutes is ${JSON.stringify(values.minutes)}; allowed: a number above 0`)
  process.exit(2)
}

const { status, error } = spawnSync('pnpm', ['exec', 'vitest', 'run', ...TESTS], {
  stdio: 'inherit',
  env: { ...process.env, LIVE_WORKSPACE_LONG_MINUTES: String(minutes), SOAK: 'full' },
})
if (error) throw error
process.exit(status ?? 1)
