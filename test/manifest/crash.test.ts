import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Context } from '@deepseek-ai/cordis'
import { LocalFileSystem } from '@deepseek-ai/dsh-fs-local'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import pLimit from 'p-limit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Boundary } from '../../src/boundary.ts'
import { checkConfig } from '../../src/config.ts'
import { SessionMemory } from '../../src/manifest/memory.ts'
import { ManifestStore } from '../../src/manifest/store.ts'
import { SessionState } from '../../src/session.ts'
import { CREATED_AT, FILES, SESSION } from '../support/killed-writer.ts'

const KILLS = 200
const FAULTS = ['none', 'none', 'half-written', 'before-rename', 'after-rename'] as const
const LONGEST_RUN_MS = 120
const TIMEOUT_MS = 240_000

let base: string
const ctx = new Context()
const fiber = ctx.registry.plugin(LocalFileSystem, { cwd: tmpdir() })

beforeAll(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-crash-')))
  await fiber
})

afterAll(async () => {
  await fiber.dispose()
  rmSync(base, { recursive: true, force: true })
})

const makeFolder = (name: string): string => {
  const folder = mkdtempSync(join(base, name))
  for (let index = 0; index < FILES; index += 1) writeFileSync(join(folder, `f${index}.txt`), 'first\n')
  return folder
}

/** Run the writer until its fault, or until it is killed. */
const killWriter = async (folder: string, seed: number, fault: string, afterMs: number): Promise<void> => {
  const script = join(import.meta.dirname, '..', 'support', 'killed-writer.ts')
  const call = String(2 + (seed % 7))
  const child = spawn(process.execPath, [script, folder, String(seed), fault, call], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // The sources are compiled once, not two hundred times.
    env: { ...process.env, NODE_COMPILE_CACHE: join(base, 'compiled') },
  })
  const ended = once(child, 'close')
  await Promise.race([once(child.stdout, 'data'), ended])
  // Which moment it is does not matter, only that it is any.
  if (fault === 'none') await pause(afterMs)
  else await Promise.race([ended, pause(5_000)])
  child.kill('SIGKILL')
  await ended
}

interface LoggedEvent {
  readonly type: string
  readonly data: { readonly path?: string; readonly digest?: string }
}

/** The log as far as its last complete line. */
const logOf = (folder: string): (SessionEvent & LoggedEvent)[] => {
  const path = join(folder, 'log.jsonl')
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as SessionEvent & LoggedEvent)
}

interface Verdicts {
  readonly unchanged: ReadonlySet<string>
  readonly remembered: boolean
  readonly problems: readonly string[]
}

/** What a process that resumes the session calls unchanged. */
const resumeIn = async (folder: string, log: SessionEvent[]): Promise<Verdicts> => {
  const config = checkConfig({})
  const problems: string[] = []
  const report = (problem: string) => problems.push(problem)
  const fs = ctx.get('fs') as LocalFileSystem
  const memory = new SessionMemory({
    config: config.resume,
    racyWindowMs: 50,
    concurrency: 4,
    store: new ManifestStore(join(folder, 'manifests'), config.resume, report),
    report,
    detached: (make) => make(),
    fs: () => fs,
    living: () => undefined,
  })
  const header = { version: 0, id: SESSION, createdAt: CREATED_AT, cwd: folder }
  // As much of a session as the memory looks at.
  const session = { id: SESSION, header, events: log } as unknown as Session
  const state = new SessionState(SESSION, 1_000_000, 1_000)
  memory.begin(session, state, 'resume')
  const { recall } = state
  await recall?.ready
  const boundary = new Boundary(config, () => fs)
  const { signal } = new AbortController()
  await boundary.finishRecall(state, { fs, signal, renewGuard: () => undefined })
  const unchanged = new Set(recall?.keys('same'))
  await memory.close()
  return { unchanged, remembered: recall?.loaded === true, problems }
}

const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

/** No file is called unchanged whose content is not what the log shows last. */
const judge = (log: readonly LoggedEvent[], { unchanged }: Verdicts): string[] => {
  const shown = new Map<string, string>()
  for (const { type, data } of log) {
    if (type === 'tool/result') shown.set(data.path ?? '', data.digest ?? '')
  }
  return [...unchanged].filter((path) => shown.get(path) !== digestOf(path))
}

describe('a process that is killed while it writes', () => {
  it(
    `leaves a manifest that loads or is set aside, and no changed file is called unchanged (${KILLS} times)`,
    { timeout: TIMEOUT_MS },
    async () => {
      const limit = pLimit(4)
      const runs = await Promise.all(
        Array.from({ length: KILLS }, (_, seed) =>
          limit(async () => {
            const fault = FAULTS[seed % FAULTS.length] ?? 'none'
            const folder = makeFolder(`kill-${seed}-`)
            await killWriter(folder, seed + 1, fault, (seed * 37) % LONGEST_RUN_MS)
            // Somebody goes on writing after the crash.
            for (let index = 0; index < FILES; index += 3) {
              const path = join(folder, `f${index}.txt`)
              writeFileSync(path, `content ${seed % 4} of f${index}.txt\n`)
            }
            const log = logOf(folder)
            const verdicts = await resumeIn(folder, log)
            const wrong = judge(log, verdicts)
            rmSync(folder, { recursive: true, force: true })
            return { seed, fault, wrong, ...verdicts }
          }),
        ),
      )

      expect(runs.filter(({ wrong }) => wrong.length > 0)).toEqual([])
      // A rename leaves the old file or the new one: nothing was ever broken.
      expect(runs.flatMap(({ problems }) => problems)).toEqual([])
      // The test is worth something only if there was something to be wrong about.
      const unchanged = runs.reduce((sum, run) => sum + run.unchanged.size, 0)
      expect(runs.filter(({ remembered }) => remembered).length).toBeGreaterThan(KILLS / 2)
      expect(unchanged).toBeGreaterThan(KILLS / 2)
    },
  )

  it(
    'and a disk that loses a part of the file lead to a file that is set aside',
    { timeout: TIMEOUT_MS },
    async () => {
      const folder = makeFolder('lost-')
      await killWriter(folder, 11, 'none', LONGEST_RUN_MS)
      const directory = join(folder, 'manifests')
      const path = join(directory, `${SESSION}.json`)
      const whole = readFileSync(path)
      for (let part = 0; part < 20; part += 1) {
        writeFileSync(path, whole)
        const at = Math.floor((whole.length * part) / 20)
        if (part % 2 === 0) truncateSync(path, at)
        else writeFileSync(path, Buffer.concat([whole.subarray(0, at), Buffer.alloc(whole.length - at)]))
        const { remembered, problems } = await resumeIn(folder, logOf(folder))
        expect(remembered).toBe(false)
        expect(problems).toHaveLength(1)
      }
      expect(readdirSync(directory).filter((name) => name.includes('unusable'))).toHaveLength(
        checkConfig({}).resume.maxSetAside,
      )
    },
  )
})
