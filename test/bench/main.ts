/**
 * Measures the watcher and the boundary: `node --expose-gc test/bench/main.ts [--quick] [--only scale]
 * [--output file] [--against file]`.
 *
 * Prints tables and writes all figures to `bench-results/latest.json`, or to the output file. Warns of
 * figures that are clearly worse than those of the earlier file, by default the last one written. Ends with exit code 1 when the
 * exact barrier missed a change without saying so; times depend on the machine and only get a verdict.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type CheckoutRun, makeBranches, runCheckouts } from './checkout.ts'
import { BUSY_RATE } from './load.ts'
import { measureInstructions } from './instructions.ts'
import { watchOthers } from './machine.ts'
import { reportMessages } from './messages.ts'
import type { Spread } from './numbers.ts'
import { measureResume } from './resume.ts'
import { REST_MS, runQuiet } from './quiet.ts'
import { type Figures, savedFigures, worseThan } from './saved.ts'
import { measureBoundaries, measureEvents, measureFirstRequests, printScale } from './scale.ts'
import { measureStarts, printStarts } from './starts.ts'
import { judgeQuiet, printBlocks, printCheckouts, printQuiet, targets } from './report.ts'
import { Somebody } from './somebody.ts'
import { growTree, shuffled } from './tree.ts'
import { type Block, runTrials } from './trials.ts'
import { config, modes } from './watching.ts'

const { values: given } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    output: { type: 'string' },
    against: { type: 'string' },
  },
})
const { quick } = given
if (given.only !== undefined && given.only !== 'scale') throw new Error('--only knows "scale"')

const TREE_FILES = 10_000
const USED_FILES = 200
const CHECKOUT_FILES = 2_000
const RESUMED_FILES = 5_000
/** What the first step after a restart may take longer. */
const RESUME_TARGET_MS = 150
const amounts = quick
  ? {
      trials: {
        trials: { native: 100, cookie: 100, debounce: 20 },
        limitMs: { native: 10_000, cookie: 10_000, debounce: 8_000 },
      },
      quiet: { turns: { native: 20, cookie: 20, debounce: 4, bare: 20 }, limitMs: 8_000 },
      checkouts: { runs: 2, limitMs: 5_000 },
      starts: { sizes: [1_000, 5_000], ignored: 3_000, runs: 1, restMs: 300 },
      scale: { events: 20_000, used: 100, turns: 5, busySteps: 10, pairs: 1 },
    }
  : {
      trials: {
        trials: { native: 2_000, cookie: 2_000, debounce: 200 },
        limitMs: { native: 130_000, cookie: 130_000, debounce: 70_000 },
      },
      quiet: { turns: { native: 150, cookie: 150, debounce: 15, bare: 150 }, limitMs: 40_000 },
      checkouts: { runs: 8, limitMs: 25_000 },
      starts: { sizes: [1_000, 10_000, 100_000], ignored: 30_000, runs: 3, restMs: 3_000 },
      scale: { events: 100_000, used: 500, turns: 50, busySteps: 200, pairs: 7 },
    }

const checkout = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const resultFile = given.output ?? join(checkout, 'bench-results', 'latest.json')
const startedAt = performance.now()
const faults: string[] = []

const sinceStart = (): number => Math.round((performance.now() - startedAt) / 1_000)

/** Do one part, and say how much of the machine it had. */
const part = async <T>(
  title: string,
  work: () => Promise<T>,
): Promise<T & { readonly othersPercent: number }> => {
  console.log(`\n${title}\n`)
  globalThis.gc?.()
  const others = watchOthers()
  const result = await work()
  const othersPercent = others()
  console.log(
    `\n  Other processes, the helpers of this part included, used ${othersPercent} % of the processors meanwhile ` +
      `(${sinceStart()} s so far).`,
  )
  return { ...result, othersPercent }
}

const measureTrials = async (scratch: string, root: string, files: readonly string[]) => {
  const blocks: Block[] = []
  const readyMs: Record<string, number> = {}
  const somebody = await Somebody.start(scratch)
  try {
    for (const mode of modes) {
      const done = await runTrials({ root, files, somebody, ...amounts.trials }, mode)
      blocks.push(...done.blocks)
      faults.push(...done.faults)
      readyMs[mode] = done.readyMs
    }
  } finally {
    await somebody.close()
  }
  printBlocks(blocks)
  return { blocks, readyMs }
}

const measureQuiet = async (root: string, used: readonly string[]) => {
  const quiet = await runQuiet({ root, treeFiles: TREE_FILES, used, ...amounts.quiet })
  printQuiet(quiet)
  return { ...quiet, targets, judged: judgeQuiet(quiet) }
}

const measureCheckouts = async (root: string, files: readonly string[]) => {
  const plan = { root, files, changed: CHECKOUT_FILES, ...amounts.checkouts }
  const changed = makeBranches(plan)
  const runs: CheckoutRun[] = []
  for (const mode of modes) {
    const done = await runCheckouts(plan, changed, mode)
    runs.push(...done.runs)
    faults.push(...done.faults)
  }
  printCheckouts(runs)
  return { runs }
}

/** Changes that the exact barrier missed while it called itself clean. */
const silentMisses = (blocks: readonly Block[], runs: readonly CheckoutRun[]): number =>
  blocks
    .filter(({ mode }) => mode !== 'debounce')
    .reduce((sum, { missed, admitted }) => sum + missed - admitted, 0) +
  runs
    .filter(({ mode, outcome }) => mode !== 'debounce' && outcome === 'clean')
    .reduce((sum, { missed }) => sum + missed, 0)

/** Parts 1 to 5: what is missed, and what quiet steps cost, in a tree of middling size. */
const measureSignal = async (scratch: string) => {
  const root = join(scratch, 'tree')
  const files = growTree(root, TREE_FILES)
  const order = shuffled(files)
  const { cookie, debounce } = amounts.trials.trials
  const trials = await part(
    `1. Changes made right before a boundary, half of the trials beside a process that does about ${BUSY_RATE} op/s.` +
      `\n   The debounce gets ${debounce} trials instead of ${cookie}, as each one waits ` +
      `${config.watch.debounceMs} to ${config.watch.maxWaitMs} ms.`,
    async () => measureTrials(scratch, root, order),
  )
  const quiet = await part(
    `2. Time of a quiet pre-step: ${USED_FILES} used files, ${TREE_FILES} files in the tree; a rest is ${REST_MS} ms.`,
    async () => measureQuiet(root, order.slice(0, USED_FILES)),
  )
  const checkouts = await part(
    `3. The boundary right after a git checkout of ${CHECKOUT_FILES} files; it may wait ${config.watch.maxWaitMs} ms.`,
    async () => measureCheckouts(root, files),
  )
  const instructions = await part(
    `4. Time of a quiet step with a chain of 6 directories and 30 nested scopes in force.`,
    async () => {
      const times = await measureInstructions(scratch, quick ? 1 : 3, quick ? 50 : 150)
      const line = (name: string, { p50, p95 }: Spread) =>
        `  ${name.padEnd(40)} p50 ${p50.toFixed(2)} ms   p95 ${p95.toFixed(2)} ms`
      console.log(line('this bundle, all of it', times.ours))
      console.log(line("the host's own loader alone", times.stock))
      return times
    },
  )
  const resume = await part(
    `5. First pre-step of a resumed session that had seen ${RESUMED_FILES} files.`,
    async () => {
      const times = await measureResume(scratch, root, files.slice(0, RESUMED_FILES), quick ? 2 : 7)
      const line = (name: string, { p50, max }: Spread) =>
        `  ${name.padEnd(52)} p50 ${p50.toFixed(1)} ms   max ${max.toFixed(1)} ms`
      console.log(line('with what was seen remembered', times.remembered))
      console.log(line('with the general reminder', times.general))
      console.log(line('after that, until the last file is told', times.untilAllToldMs))
      console.log(
        `  Remembering adds ${times.addedMs.toFixed(1)} ms (${times.addedCpuMs.toFixed(1)} ms of a processor; target: below ${RESUME_TARGET_MS} ms); ` +
          `${times.manifestBytes} bytes on disk.`,
      )
      return { ...times, targetMs: RESUME_TARGET_MS }
    },
  )
  console.log('\n6. Sizes of messages.\n')
  const messages = reportMessages()
  return { trials, quiet, checkouts, instructions, resume, messages }
}

/** Parts 7 and 8: large trees, many sessions. */
const measureScale = async (scratch: string) => {
  const { sizes, ignored, runs, restMs } = amounts.starts
  const trees = sizes.map((files) => {
    const root = join(scratch, `scale${files}`)
    const grown = growTree(root, files)
    growTree(join(root, 'node_modules'), ignored)
    return { root, files, used: shuffled(grown).slice(0, amounts.scale.used) }
  })
  const starts = await part(
    `7. Beginning to watch, each in a fresh process, medians of ${runs}; beside it ${ignored} ignored files.`,
    async () => {
      const rows = await measureStarts({ trees, runs, restMs })
      printStarts(rows)
      return { rows }
    },
  )
  const largest = trees.at(-1)
  if (!largest) throw new Error('no tree')
  const scale = await part(
    `8. ${largest.files} files, ${largest.used.length} of them used; the first request of ${amounts.scale.pairs} interleaved pairs.`,
    async () => {
      const figures = {
        eventUs: await measureEvents(scratch, amounts.scale.events),
        firstRequests: await measureFirstRequests(largest.root, amounts.scale.pairs),
        boundaries: await measureBoundaries({ ...amounts.scale, root: largest.root, used: largest.used }),
      }
      printScale(figures)
      return figures
    },
  )
  return { starts, scale }
}

/** What is compared with the next run. */
const figuresOf = ({ starts, scale }: Awaited<ReturnType<typeof measureScale>>): Figures => ({
  ...Object.fromEntries(
    starts.rows
      .filter(({ subject }) => subject !== 'nothing' && subject !== 'plain')
      .flatMap(({ subject, files, readyMs, rssMb, watches, loopMs, idlePercent }) =>
        Object.entries({ readyMs, rssMb, watches, loopMs, idlePercent }).map(([name, value]) => [
          `start ${subject} ${files} ${name}`,
          value,
        ]),
      ),
  ),
  ...Object.fromEntries(
    Object.entries(scale.eventUs).map(([sessions, cost]) => [`event ${sessions} sessions us`, cost]),
  ),
  ...Object.fromEntries(
    Object.entries(scale.boundaries).flatMap(([mode, { insideMs, fullMs, busyMs }]) => [
      [`boundary ${mode} inside p50`, insideMs.p50],
      [`boundary ${mode} full p50`, fullMs.p50],
      [`boundary ${mode} busy p95`, busyMs.p95],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(scale.firstRequests).map(([subject, { requestMs }]) => [
      `first request ${subject} ms`,
      requestMs,
    ]),
  ),
})

const measure = async (scratch: string): Promise<boolean> => {
  const load = () => loadavg().map((value) => Number(value.toFixed(2)))
  const machine = {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpus: cpus().length,
    model: cpus()[0]?.model ?? '',
    loadBefore: load(),
  }
  console.log(
    `${quick ? 'Quick run' : 'Full run'} on Node ${machine.node}, ${machine.platform}, ${machine.cpus} cores ` +
      `(load before: ${machine.loadBefore.join(' ')}), in ${scratch}`,
  )
  const signal = given.only === undefined ? await measureSignal(scratch) : undefined
  const large = await measureScale(scratch)
  const figures = figuresOf(large)
  const worse = worseThan(savedFigures(given.against ?? resultFile), figures)
  const silent = signal ? silentMisses(signal.trials.blocks, signal.checkouts.runs) : 0
  const result = {
    at: new Date().toISOString(),
    quick,
    seconds: sinceStart(),
    machine: { ...machine, loadAfter: load() },
    silentMisses: silent,
    faults,
    figures,
    ...large,
    ...signal,
  }
  mkdirSync(dirname(resultFile), { recursive: true })
  writeFileSync(resultFile, `${JSON.stringify(result, null, 2)}\n`)
  for (const line of worse) console.log(`\n  Worse than before: ${line}`)
  for (const fault of faults) console.log(`\n  The watcher reported: ${fault}`)
  console.log(
    `\nThe exact barrier ${silent === 0 ? 'missed nothing in silence' : `MISSED ${silent} CHANGES IN SILENCE`}; ` +
      `${result.seconds} s; all figures in ${relative(process.cwd(), resultFile)}`,
  )
  return silent === 0
}

const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'dsh-live-workspace-bench-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
// What the host writes for itself stays out of the user's home.
process.env['DSH_HOME'] = join(scratch, 'dsh-home')
mkdirSync(process.env['DSH_HOME'])
if (!(await measure(scratch))) process.exitCode = 1
