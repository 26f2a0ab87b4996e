/**
 * Measures the watcher and the boundary: `node --expose-gc test/bench/main.ts [--quick]`.
 *
 * Prints tables and writes all figures to `bench-results/latest.json`. Ends with exit code 1 when the
 * exact barrier missed a change without saying so; times depend on the machine and only get a verdict.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type CheckoutPlan, type CheckoutRun, makeBranches, runCheckouts } from './checkout.ts'
import { BUSY_RATE } from './load.ts'
import { shown, spreadOf, table } from './numbers.ts'
import { paces, type QuietResult, runQuiet, sweeps } from './quiet.ts'
import { Somebody } from './somebody.ts'
import { growTree, shuffled } from './tree.ts'
import { type Block, runTrials } from './trials.ts'
import { config, modeNames, modes } from './watching.ts'

const { values: given } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const { quick } = given

const TREE_FILES = 10_000
const USED_FILES = 200
const CHECKOUT_FILES = 2_000
const amounts = quick
  ? {
      trials: { cookie: 100, debounce: 20 },
      limitMs: { cookie: 8_000, debounce: 6_000 },
      steps: { cookie: 40, debounce: 4 },
      checkouts: 2,
    }
  : {
      trials: { cookie: 2_000, debounce: 200 },
      limitMs: { cookie: 100_000, debounce: 65_000 },
      steps: { cookie: 400, debounce: 30 },
      checkouts: 8,
    }

/** What a quiet boundary may cost; see DESIGN.md. */
const targets = { insideMs: 3, fullMs: 15, timesBelowDebounce: 20 }

const checkout = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const resultFile = join(checkout, 'bench-results', 'latest.json')
const startedAt = performance.now()

const MISSES_SHOWN = 10

const heading = (text: string): void => console.log(`\n${text}\n`)
const verdict = (met: boolean): string => (met ? 'met' : 'NOT MET')

const printBlocks = (blocks: readonly Block[]): void => {
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
    if (mode !== 'cookie') continue
    for (const miss of misses.slice(0, MISSES_SHOWN)) {
      console.log(
        `\n  MISSED (${load}) ${miss.operation}, trial ${miss.trial}, ${miss.outcome} after ${miss.waitedMs} ms, ` +
          `directory ${miss.ageMs} ms old, ${miss.cameLater ? 'named' : 'not named'} within 300 ms: ${miss.paths.join(', ')}`,
      )
    }
  }
}

const judgeQuiet = ({ boundaryMs: { cookie, debounce } }: QuietResult) =>
  paces.map((pace) => {
    const inside = cookie[pace]['inside a turn'].p50
    const full = cookie[pace]['full sweep'].p50
    const times = Number((debounce[pace]['inside a turn'].p50 / inside).toFixed(1))
    return {
      pace,
      insideP50Ms: inside,
      insideMet: inside < targets.insideMs,
      timesBelowDebounce: times,
      timesBelowDebounceMet: times >= targets.timesBelowDebounce,
      fullP50Ms: full,
      fullMet: full < targets.fullMs,
      fullTimesBelowDebounce: Number((debounce[pace]['full sweep'].p50 / full).toFixed(1)),
    }
  })

const printQuiet = (result: QuietResult): void => {
  console.log(
    table(
      ['boundary', 'process', 'method', 'boundaries', 'p50 ms', 'p95', 'p99', 'max'],
      sweeps.flatMap((sweep) =>
        paces.flatMap((pace) =>
          modes.map((mode) => {
            const { count, p50, p95, p99, max } = result.boundaryMs[mode][pace][sweep]
            return [sweep, pace, modeNames[mode], count, shown(p50), shown(p95), shown(p99), shown(max)]
          }),
        ),
      ),
    ),
  )
  console.log('\n  Against the targets, by p50:\n')
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
        `${shown(judged.insideP50Ms)} ms: ${verdict(judged.insideMet)}`,
        `${shown(judged.timesBelowDebounce)} times: ${verdict(judged.timesBelowDebounceMet)}`,
        `${shown(judged.fullP50Ms)} ms: ${verdict(judged.fullMet)}`,
        `${shown(judged.fullTimesBelowDebounce)} times`,
      ]),
    ),
  )
}

const printCheckouts = (runs: readonly CheckoutRun[]): void =>
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

const measure = async (scratch: string): Promise<boolean> => {
  const root = join(scratch, 'tree')
  const files = growTree(root, TREE_FILES)
  const order = shuffled(files)
  const machine = {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpus: cpus().length,
    model: cpus()[0]?.model ?? '',
    loadBefore: loadavg().map((value) => Number(value.toFixed(2))),
  }
  console.log(
    `${quick ? 'Quick run' : 'Full run'} on Node ${machine.node}, ${machine.platform}, ${machine.cpus} cores ` +
      `(load before: ${machine.loadBefore.join(' ')}), ${TREE_FILES} files in ${scratch}`,
  )

  heading(
    `1. Changes made right before a boundary, half of the trials beside a process that does about ${BUSY_RATE} op/s.` +
      `\n   The debounce gets ${amounts.trials.debounce} trials instead of ${amounts.trials.cookie}, as each one waits 75 to 500 ms.`,
  )
  const blocks: Block[] = []
  const faults: string[] = []
  const readyMs: Record<string, number> = {}
  const somebody = await Somebody.start(scratch)
  try {
    for (const mode of modes) {
      globalThis.gc?.()
      const { limitMs, trials } = amounts
      const done = await runTrials({ root, files: order, somebody, trials, limitMs }, mode)
      blocks.push(...done.blocks)
      faults.push(...done.faults)
      readyMs[mode] = done.readyMs
    }
  } finally {
    await somebody.close()
  }
  printBlocks(blocks)

  heading(
    `2. Time that a quiet boundary adds to a step: ${USED_FILES} used files, ${TREE_FILES} files in the tree.`,
  )
  globalThis.gc?.()
  const used = order.slice(0, USED_FILES)
  const quiet = await runQuiet({ root, treeFiles: TREE_FILES, used, boundaries: amounts.steps })
  faults.push(...quiet.faults)
  printQuiet(quiet)

  heading(
    `3. The boundary right after a git checkout of ${CHECKOUT_FILES} files; it may wait ${config.watch.maxWaitMs} ms.`,
  )
  const plan: CheckoutPlan = { root, files, changed: CHECKOUT_FILES, runs: amounts.checkouts }
  const changed = makeBranches(plan)
  const checkouts: CheckoutRun[] = []
  for (const mode of modes) {
    globalThis.gc?.()
    const done = await runCheckouts(plan, changed, mode)
    checkouts.push(...done.runs)
    faults.push(...done.faults)
  }
  printCheckouts(checkouts)

  const silent =
    blocks
      .filter(({ mode }) => mode === 'cookie')
      .reduce((sum, block) => sum + block.missed - block.admitted, 0) +
    checkouts
      .filter(({ mode, outcome }) => mode === 'cookie' && outcome === 'clean')
      .reduce((sum, { missed }) => sum + missed, 0)
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  const result = {
    at: new Date().toISOString(),
    quick,
    seconds,
    machine: { ...machine, loadAfter: loadavg().map((value) => Number(value.toFixed(2))) },
    silentMisses: silent,
    faults,
    readyMs,
    trials: blocks,
    quiet: { ...quiet, targets, judged: judgeQuiet(quiet) },
    checkouts,
  }
  mkdirSync(dirname(resultFile), { recursive: true })
  writeFileSync(resultFile, `${JSON.stringify(result, null, 2)}\n`)
  for (const fault of faults) console.log(`\n  The watcher reported: ${fault}`)
  console.log(
    `\nThe exact barrier ${silent === 0 ? 'missed nothing in silence' : `MISSED ${silent} CHANGES IN SILENCE`}; ` +
      `${seconds} s; all figures in ${relative(process.cwd(), resultFile)}`,
  )
  return silent === 0
}

const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'dsh-live-workspace-bench-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
if (!(await measure(scratch))) process.exitCode = 1
