/**
 * A process of its own: the host begins, and its first request is made while the first scan runs.
 * `node first-request.ts <mode or "bare"> <root>`. Prints one line of JSON.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { BenchHost } from './host.ts'
import { modes } from './watching.ts'

const [, , name = '', root = ''] = process.argv
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
const startedAt = performance.now()
const host = await BenchHost.boot(
  root,
  modes.find((mode) => mode === name),
  { atOnce: true },
)
await host.open()
const requestMs = performance.now() - startedAt
await host.call()
const secondMs = performance.now() - startedAt - requestMs
delay.disable()
const figures = {
  requestMs: Math.round(requestMs),
  secondMs: Math.round(secondMs),
  loopMs: Number((delay.max / 1e6).toFixed(1)),
}
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
