/** Part 6: what beginning to watch costs, beside the library used plainly; each in a fresh process. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { median, shown, table } from './numbers.ts'
import { modes } from './watching.ts'

/** The library used plainly, a process that watches nothing, and every exact barrier there is. */
export const startSubjects = ['plain', 'nothing', ...modes.filter((mode) => mode !== 'debounce')] as const
export type StartSubject = (typeof startSubjects)[number]

export interface StartFigures {
  readonly readyMs: number
  /** Growth of the resident memory, in MB. */
  readonly rssMb: number
  readonly watches: number
  /** Longest time in ms for which the event loop did not turn. */
  readonly loopMs: number
  /** Processor time used once everything is watched and nothing happens. */
  readonly idlePercent: number
}

export interface StartRow extends StartFigures {
  readonly subject: StartSubject
  readonly files: number
  readonly runs: number
}

export interface StartPlan {
  readonly trees: readonly { readonly root: string; readonly files: number }[]
  /** Runs of each subject; they take turns. */
  readonly runs: number
  /** How long a process rests to show what it does then. */
  readonly restMs: number
}

const LIMIT_MS = 300_000
const run = promisify(execFile)

/** Run a program of this folder. @returns its one line of JSON. */
export const figuresOf = async <T>(program: string, args: readonly string[]): Promise<T> => {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const { stdout } = await run(process.execPath, ['--expose-gc', path, ...args], { timeout: LIMIT_MS })
  // Written by the program itself.
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as T
}

export const measureStarts = async (plan: StartPlan): Promise<readonly StartRow[]> => {
  const rows: StartRow[] = []
  for (const { root, files } of plan.trees) {
    const found = new Map<StartSubject, StartFigures[]>()
    for (let round = 0; round < plan.runs; round += 1) {
      for (const subject of startSubjects) {
        const args = [subject, root, String(plan.restMs)]
        found.set(subject, [...(found.get(subject) ?? []), await figuresOf<StartFigures>('start.ts', args)])
      }
    }
    for (const [subject, each] of found) {
      const middle = (key: keyof StartFigures) => median(each.map((figures) => figures[key]))
      rows.push({
        subject,
        files,
        runs: plan.runs,
        readyMs: middle('readyMs'),
        rssMb: middle('rssMb'),
        watches: middle('watches'),
        loopMs: middle('loopMs'),
        idlePercent: middle('idlePercent'),
      })
    }
  }
  return rows
}

const names: Readonly<Record<string, string>> = {
  plain: 'chokidar 6 used plainly',
  nothing: 'a process that watches nothing',
  cookie: 'ours with chokidar',
  native: 'ours, native',
}

export const printStarts = (rows: readonly StartRow[]): void => {
  console.log(
    table(
      [
        'start',
        'files',
        'ready ms',
        'of plain',
        'RSS MB',
        'of plain',
        'watches',
        'loop held ms',
        'idle CPU %',
      ],
      rows.map(({ subject, files, readyMs, rssMb, watches, loopMs, idlePercent }) => {
        const plain = rows.find((row) => row.subject === 'plain' && row.files === files)
        const ratio = (value: number, base: number | undefined) =>
          subject === 'nothing' || base === undefined ? '-' : shown(value / base)
        return [
          names[subject] ?? subject,
          files,
          readyMs,
          ratio(readyMs, plain?.readyMs),
          shown(rssMb),
          ratio(rssMb, plain?.rssMb),
          watches,
          shown(loopMs),
          shown(idlePercent),
        ]
      }),
    ),
  )
}
