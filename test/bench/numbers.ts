/** Numbers for people. */

/** Times in ms. */
export interface Spread {
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

export const spreadOf = (times: readonly number[]): Spread => {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) =>
    Number((sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN).toFixed(3))
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}

/** The middle one; of an even number the lower of the two. */
export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN

/** Three digits that count. */
export const shown = (value: number): string => {
  if (!Number.isFinite(value)) return '-'
  if (value >= 100) return value.toFixed(0)
  return value.toFixed(value >= 10 ? 1 : 2)
}

/** Rows under their heads; the first column to the left, the others to the right. */
export const table = (heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string => {
  const lines = [heads, ...rows].map((row) =>
    row.map((cell) => (typeof cell === 'number' && !Number.isInteger(cell) ? shown(cell) : String(cell))),
  )
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const drawn = lines.map((line) =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('   ')
      .trimEnd(),
  )
  return [drawn[0], '-'.repeat(drawn[0]?.length ?? 0), ...drawn.slice(1)]
    .map((line) => `  ${line}`)
    .join('\n')
}
