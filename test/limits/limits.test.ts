/**
 * Runs tests in a namespace of their own, in which limits are lowered and filesystems mounted for real.
 * Where the system does not allow such a namespace, each is skipped with what the system said.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'

const LIMIT_MS = 100_000
const run = promisify(execFile)

/** Why a namespace with these flags cannot be had; empty when it can. */
const refusalOf = (flags: string, script: string): string => {
  if (process.platform !== 'linux') return 'namespaces exist on Linux only'
  const { status, stderr, error } = spawnSync('unshare', [flags, 'sh', '-ec', script], { encoding: 'utf8' })
  return status === 0 ? '' : error?.message || stderr.trim() || `unshare ended with ${status}`
}

const environments = [
  {
    name: 'watches',
    flags: '-Ur',
    setUp: 'echo 1000 > /proc/sys/user/max_inotify_watches',
  },
  {
    name: 'instances',
    flags: '-Ur',
    setUp: 'echo 1000 > /proc/sys/user/max_inotify_instances',
  },
  {
    name: 'mounts',
    flags: '-Urm',
    setUp: 'mount -t tmpfs none /mnt && umount /mnt',
  },
] as const

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')

describe('in a namespace of their own', () => {
  it.for(environments)('$name', { timeout: LIMIT_MS }, async ({ name, flags, setUp }, { skip }) => {
    const refusal = refusalOf(flags, setUp)
    skip(refusal !== '', `this system does not allow it: ${refusal}`)
    const temporary = mkdtempSync(join(tmpdir(), 'live-workspace-limits-'))
    onTestFinished(() => rmSync(temporary, { recursive: true, force: true }))
    const config = join(import.meta.dirname, 'inner.config.ts')
    const report = join(temporary, 'report.json')
    const command = `${setUp}; exec "$0" "$@"`
    const file = `test/limits/${name}.inner.ts`
    const args = [vitest, 'run', file, '--config', config, '--reporter', 'json', '--outputFile', report]
    const ended = await run('unshare', [flags, 'sh', '-ec', command, process.execPath, ...args], {
      cwd: join(import.meta.dirname, '..', '..'),
      env: { ...process.env, TMPDIR: temporary },
      timeout: LIMIT_MS,
      maxBuffer: 16 * 1024 * 1024,
    }).catch((error: unknown) => error)
    if (!existsSync(report)) throw new Error('the inner run left no report', { cause: ended })
    expect(failuresIn(readFileSync(report, 'utf8'))).toEqual([])
  })
})

interface Report {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

/** What did not pass, with the reasons; a run without any test is one too. */
const failuresIn = (output: string): readonly string[] => {
  // The reporter's own format.
  const report = JSON.parse(output) as Report
  const failures = report.testResults.flatMap(({ message, assertionResults }) => [
    ...(message === '' ? [] : [message]),
    ...assertionResults
      .filter(({ status }) => status !== 'passed')
      .map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join('\n')}`),
  ])
  return report.numPassedTests > 0 || failures.length > 0 ? failures : ['no test was run']
}
