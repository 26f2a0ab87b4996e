/**
 * A process of its own that begins to watch a tree, so that its memory and its loop tell of nothing else:
 * `node --expose-gc start.ts <subject> <root> <rest in ms>`. Prints one line of JSON.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { type StartFigures, startSubjects } from './starts.ts'

/** Watches that the kernel counts for this process. */
const watches = (): number => {
  let count = 0
  for (const name of readdirSync('/proc/self/fdinfo')) {
    try {
      count += readFileSync(`/proc/self/fdinfo/${name}`, 'utf8').match(/^inotify /gm)?.length ?? 0
    } catch {
      // That descriptor is closed by now.
    }
  }
  return count
}

/** The library as one finds it in its documentation: an event for each path, directories ignored by name. */
const startPlain = async (root: string): Promise<void> => {
  const { watch } = await import('chokidar')
  const ignored = new Set(['.git', 'node_modules'])
  const watcher = watch(root, {
    ignoreInitial: true,
    followSymlinks: false,
    ignored: (path) => ignored.has(basename(path)),
  })
  watcher.on('all', () => undefined)
  await new Promise<void>((resolve, reject) => {
    watcher.once('ready', resolve)
    watcher.once('error', reject)
  })
}

const rssMb = (): number => process.memoryUsage().rss / 1_048_576

const [, , name = '', root = '', rest = '0'] = process.argv
const subject = startSubjects.find((known) => known === name)
if (!subject) throw new Error(`no subject ${name}`)
globalThis.gc?.()
const before = rssMb()
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
const startedAt = performance.now()
if (subject === 'plain') await startPlain(root)
else if (subject !== 'nothing') {
  const { watchTree } = await import('./watching.ts')
  await watchTree(root, subject, 300_000)
}
const readyMs = performance.now() - startedAt
// What the end of the start still does belongs to the start.
await pause(100)
delay.disable()
await pause(400)
const grown = rssMb() - before
const cpu = process.cpuUsage()
const idleFrom = performance.now()
await pause(Number(rest))
const { user, system } = process.cpuUsage(cpu)
const figures: StartFigures = {
  readyMs: Math.round(readyMs),
  rssMb: Number(grown.toFixed(1)),
  watches: watches(),
  loopMs: Number((delay.max / 1e6).toFixed(1)),
  idlePercent: Number(((user + system) / 10 / (performance.now() - idleFrom)).toFixed(2)),
}
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
