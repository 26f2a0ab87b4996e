/** How much of the machine the measured process had: its times mean little where others were at work. */
import { cpus } from 'node:os'

const busyMs = (): number =>
  cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0)

/**
 * Watch the processors from now on.
 * @returns a function that gives the share of their time that other processes have used since, in percent.
 */
export const watchOthers = (): (() => number) => {
  const busyBefore = busyMs()
  const ownBefore = process.cpuUsage()
  const startedAt = performance.now()
  return () => {
    const own = process.cpuUsage(ownBefore)
    const others = busyMs() - busyBefore - (own.user + own.system) / 1_000
    return Math.max(0, Math.round((others / ((performance.now() - startedAt) * cpus().length)) * 100))
  }
}
