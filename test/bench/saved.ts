/** Figures of this run against those of an earlier one. Lower is better for each. */
import { readFileSync } from 'node:fs'
import { messageOf } from '../../src/errors.ts'

/** More than this many times the earlier figure is worth a word; machines are never equally busy. */
const WORSE = 1.5
/** Below this a figure is noise, whatever its unit. */
const SMALL = 0.5

export type Figures = Readonly<Record<string, number>>

/** The figures of an earlier run; none when there is no such file or it holds something else. */
export const savedFigures = (file: string): Figures => {
  try {
    const saved: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof saved !== 'object' || saved === null || !('figures' in saved)) return {}
    const { figures } = saved
    if (typeof figures !== 'object' || figures === null) return {}
    return Object.fromEntries(
      Object.entries(figures).filter(
        (entry): entry is [string, number] => typeof entry[1] === 'number' && Number.isFinite(entry[1]),
      ),
    )
  } catch (error) {
    console.log(`\n  No earlier figures in ${file}: ${messageOf(error)}`)
    return {}
  }
}

/** What is clearly worse than before, in words. */
export const worseThan = (earlier: Figures, now: Figures): readonly string[] =>
  Object.entries(now).flatMap(([name, value]) => {
    const before = earlier[name]
    if (before === undefined || value <= Math.max(before, SMALL) * WORSE) return []
    return [`${name}: ${value} instead of ${before}`]
  })
