/** The figures for a person. */
import type { CheckoutRun } from './checkout.ts'
import { shown, spreadOf, table } from './numbers.ts'
import { paces, type QuietResult, type Subject, subjects, sweeps } from './quiet.ts'
import type { Block } from './trials.ts'
import { modeNames, modes } from './watching.ts'

/** What the plugin may add to a quiet step; see DESIGN.md. */
export const targets = { insideMs: 3, fullMs: 15, timesBelowDebounce: 20 }

const MISSES_SHOWN = 10

const verdict = (met: boolean): string => (met ? 'met' : 'NOT MET')

export const printBlocks = (blocks: readonly Block[]): void => {
  console.log(
    table(
      [
        'method',
        'load',
        'trials',
        'missed',
        'admitted',
        'mislabelled',
        'p50 ms',
        'p95',
        'p99',
        'max',
        'unclean',
      ],
      blocks.map((block) => [
        modeNames[block.mode],
        block.load === 'quiet' ? 'quiet' : `${block.loadRate} op/s`,
        block.trials,
        block.missed,
        block.admitted,
        block.mislabelled,
        shown(block.barrierMs.p50),
        shown(block.barrierMs.p95),
        shown(block.barrierMs.p99),
        shown(block.barrierMs.max),
        block.outcomes.unclean,
      ]),
    ),
  )
  const names = [...new Set(blocks.flatMap((block) => Object.keys(block.operations)))]
  console.log('\n  Missed of trials, by operation:\n')
  console.log(
    table(
      ['operation', ...blocks.map(({ mode, load }) => `${mode} ${load}`)],
      names.map((name) => [
        name,
        ...blocks.map(({ operations }) => {
          const { missed = 0, mislabelled = 0, trials = 0 } = operations[name] ?? {}
          return `${missed}/${trials}${mislabelled > 0 ? ` (${mislabelled} mislabelled)` : ''}`
        }),
      ]),
    ),
  )
  for (const { mode, load, misses, cutShort } of blocks) {
    if (cutShort) console.log(`\n  ${modeNames[mode]}, ${load}: stopped early, its time was up.`)
    if (mode === 'debounce') continue
    for (const miss of misses.slice(0, MISSES_SHOWN)) {
      console.log(
        `\n  MISSED (${load}) ${miss.operation}, trial ${miss.trial}, ${miss.outcome} after ${miss.waitedMs} ms, ` +
          `directory ${miss.ageMs} ms old, ${miss.cameLater ? 'named' : 'not named'} within 300 ms: ${miss.paths.join(', ')}`,
      )
    }
  }
}

const subjectNames: Readonly<Record<Subject, string>> = { ...modeNames, bare: 'without the plugin' }

/** The plugin's own share, and whether it is small enough. */
export const judgeQuiet = ({ preStepMs: { cookie, debounce, bare } }: QuietResult) =>
  paces.map((pace) => {
    const added = (sweep: (typeof sweeps)[number]) =>
      Number((cookie[pace][sweep].p50 - bare[pace][sweep].p50).toFixed(2))
    const times = (sweep: (typeof sweeps)[number]) =>
      Number(((debounce[pace][sweep].p50 - bare[pace][sweep].p50) / added(sweep)).toFixed(1))
    return {
      pace,
      insideAddedMs: added('inside a turn'),
      insideMet: added('inside a turn') < targets.insideMs,
      timesBelowDebounce: times('inside a turn'),
      timesBelowDebounceMet: times('inside a turn') >= targets.timesBelowDebounce,
      fullAddedMs: added('full sweep'),
      fullMet: added('full sweep') < targets.fullMs,
      fullTimesBelowDebounce: times('full sweep'),
    }
  })

export const printQuiet = (result: QuietResult): void => {
  console.log(
    table(
      ['pre-step', 'process', 'method', 'steps', 'p50 ms', 'p95', 'p99', 'max'],
      sweeps.flatMap((sweep) =>
        paces.flatMap((pace) =>
          subjects.map((subject) => {
            const { count, p50, p95, p99, max } = result.preStepMs[subject][pace][sweep]
            return [sweep, pace, subjectNames[subject], count, shown(p50), shown(p95), shown(p99), shown(max)]
          }),
        ),
      ),
    ),
  )
  console.log('\n  What the plugin adds, by p50, against the targets:\n')
  console.log(
    table(
      [
        'process',
        `inside a turn < ${targets.insideMs} ms`,
        `>= ${targets.timesBelowDebounce} times below the debounce`,
        `full sweep < ${targets.fullMs} ms`,
        'full sweep below the debounce',
      ],
      judgeQuiet(result).map((judged) => [
        judged.pace,
        `${shown(judged.insideAddedMs)} ms: ${verdict(judged.insideMet)}`,
        `${shown(judged.timesBelowDebounce)} times: ${verdict(judged.timesBelowDebounceMet)}`,
        `${shown(judged.fullAddedMs)} ms: ${verdict(judged.fullMet)}`,
        `${shown(judged.fullTimesBelowDebounce)} times`,
      ]),
    ),
  )
  if (result.cutShort) console.log('\n  Stopped early, its time was up.')
}

export const printCheckouts = (runs: readonly CheckoutRun[]): void =>
  console.log(
    table(
      ['method', 'runs', 'missed, each run', 'barrier ms, each run', 'p50', 'unclean'],
      modes.map((mode) => {
        const mine = runs.filter((run) => run.mode === mode)
        return [
          modeNames[mode],
          mine.length,
          mine.map(({ missed }) => missed).join(' '),
          mine.map(({ barrierMs }) => shown(barrierMs)).join(' '),
          shown(spreadOf(mine.map(({ barrierMs }) => barrierMs)).p50),
          mine.filter(({ outcome }) => outcome === 'unclean').length,
        ]
      }),
    ),
  )
