/** For the tests that `limits.test.ts` runs in surroundings of their own. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: join(import.meta.dirname, '..', '..'),
  cacheDir: join(tmpdir(), 'live-workspace-limits-cache'),
  test: {
    include: ['test/limits/*.inner.ts'],
    testTimeout: 30_000,
    // One after the other: they share the limits of one namespace.
    fileParallelism: false,
  },
})
