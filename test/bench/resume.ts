/** The first step of a resumed session that had seen many files. */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { waitFor } from '../support/wait.ts'
import { BenchHost } from './host.ts'
import { type Spread, spreadOf } from './numbers.ts'
import { config } from './watching.ts'

const READS_PER_STEP = 250
const LIMIT_MS = 60_000
const SESSION_FILE = 'bench-cookie.json'

/** Times in ms, sizes in bytes. */
export interface ResumeTimes {
  readonly files: number
  /** The first pre-step with what was seen remembered, and without. */
  readonly remembered: Spread
  readonly general: Spread
  /** What remembering adds to it, at the median; and how much of the processor that is. */
  readonly addedMs: number
  readonly addedCpuMs: number
  /** Further steps, of nothing but a call, until the last file was told to be checked. */
  readonly untilAllToldMs: Spread
  readonly manifestBytes: number
}

const callsFor = (files: readonly string[]) =>
  files.map((path) => ({ name: 'read', args: { file_path: path } }))

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** @param files - absolute paths, all of which the session reads. */
export const measureResume = async (
  scratch: string,
  root: string,
  files: readonly string[],
  runs: number,
): Promise<ResumeTimes> => {
  const [sessions, manifests] = [join(scratch, 'resume-sessions'), join(scratch, 'resume-manifests')]
  const first = await BenchHost.boot(root, 'cookie', { stored: { sessions, manifests } })
  await first.open()
  for (let at = 0; at < files.length; at += READS_PER_STEP) {
    await first.call(callsFor(files.slice(at, at + READS_PER_STEP)))
  }
  // A session that has seen so many files is older than this; then a version alone says enough.
  await pause(config.notice.racyWindowMs + 100)
  await first.call()
  await first.end()
  await first.dispose()
  const manifestBytes = statSync(join(manifests, SESSION_FILE)).size
  const times = { remembered: [] as number[], general: [] as number[], untilAllTold: [] as number[] }
  const cpu = { remembered: [] as number[], general: [] as number[] }
  for (let run = 0; run < runs; run += 1) {
    const resumed = await BenchHost.boot(root, 'cookie', { stored: { sessions, manifests, resume: true } })
    let before = cpuMs()
    times.remembered.push(await resumed.open())
    cpu.remembered.push(cpuMs() - before)
    const startedAt = performance.now()
    if (!resumed.told.join('').includes('unchanged')) throw new Error(`not told: ${resumed.told.join('\n')}`)
    if (resumed.told.join('').includes('still being checked')) {
      await waitFor(
        async () => {
          await resumed.call()
          return resumed.told.join('').includes('still to be checked')
        },
        { timeoutMs: LIMIT_MS, describe: () => `the rest: ${resumed.told.join('\n')}` },
      )
    }
    times.untilAllTold.push(performance.now() - startedAt)
    await resumed.end()
    await resumed.dispose()
    const general = await BenchHost.boot(root, 'cookie', { stored: { sessions, resume: true } })
    before = cpuMs()
    times.general.push(await general.open())
    cpu.general.push(cpuMs() - before)
    await general.end()
    await general.dispose()
  }
  rmSync(sessions, { recursive: true })
  rmSync(manifests, { recursive: true })
  const [remembered, general] = [spreadOf(times.remembered), spreadOf(times.general)]
  return {
    files: files.length,
    remembered,
    general,
    addedMs: remembered.p50 - general.p50,
    addedCpuMs: spreadOf(cpu.remembered).p50 - spreadOf(cpu.general).p50,
    untilAllToldMs: spreadOf(times.untilAllTold),
    manifestBytes,
  }
}
