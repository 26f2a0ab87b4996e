import { describe, expect, it } from 'vitest'
import { type Action, type Before, classify, type Now } from '../../src/notice/classify.ts'

const nows = {
  file: { kind: 'present', version: 'v1', type: 'file' },
  'changed file': { kind: 'present', version: 'v2', type: 'file' },
  directory: { kind: 'present', version: 'v2', type: 'directory' },
  other: { kind: 'present', version: 'v2', type: 'other' },
  absent: { kind: 'absent' },
  unverified: { kind: 'unverified' },
} as const satisfies Record<string, Now>

const befores = {
  unmet: undefined,
  present: { kind: 'present', version: 'v1' },
  absent: { kind: 'absent' },
  unverified: { kind: 'unverified' },
} as const satisfies Record<string, Before>

type NowName = keyof typeof nows
type BeforeName = keyof typeof befores

interface Row {
  readonly before: BeforeName
  readonly now: NowName
  /** Left out where it makes no difference. */
  readonly used?: boolean
  /** Left out where it makes no difference. */
  readonly existed?: readonly (boolean | undefined)[]
  readonly told: Action | undefined
}

const nothing = undefined
const unknownOrThere = [true, undefined]
const unknownOrNot = [false, undefined]

const table: readonly Row[] = [
  { before: 'unmet', now: 'file', existed: [false], told: 'created' },
  { before: 'unmet', now: 'file', existed: unknownOrThere, told: 'modified' },
  { before: 'unmet', now: 'changed file', existed: [false], told: 'created' },
  { before: 'unmet', now: 'changed file', existed: unknownOrThere, told: 'modified' },
  { before: 'unmet', now: 'directory', told: nothing },
  { before: 'unmet', now: 'other', told: nothing },
  { before: 'unmet', now: 'absent', existed: [true], told: 'deleted' },
  { before: 'unmet', now: 'absent', existed: unknownOrNot, told: nothing },

  { before: 'present', now: 'file', told: nothing },
  { before: 'present', now: 'changed file', told: 'modified' },
  { before: 'present', now: 'directory', told: 'modified' },
  { before: 'present', now: 'other', told: 'modified' },
  { before: 'present', now: 'absent', told: 'deleted' },

  { before: 'absent', now: 'file', told: 'created' },
  { before: 'absent', now: 'changed file', told: 'created' },
  { before: 'absent', now: 'directory', told: nothing },
  { before: 'absent', now: 'other', told: nothing },
  { before: 'absent', now: 'absent', told: nothing },

  { before: 'unverified', now: 'file', existed: [false], told: 'created' },
  { before: 'unverified', now: 'file', existed: unknownOrThere, told: 'modified' },
  { before: 'unverified', now: 'changed file', existed: [false], told: 'created' },
  { before: 'unverified', now: 'changed file', existed: unknownOrThere, told: 'modified' },
  { before: 'unverified', now: 'directory', existed: [false], told: 'created' },
  { before: 'unverified', now: 'directory', existed: unknownOrThere, told: 'modified' },
  { before: 'unverified', now: 'other', existed: [false], told: 'created' },
  { before: 'unverified', now: 'other', existed: unknownOrThere, told: 'modified' },
  { before: 'unverified', now: 'absent', told: 'deleted' },

  { before: 'unmet', now: 'unverified', used: true, told: 'unverified' },
  { before: 'present', now: 'unverified', used: true, told: 'unverified' },
  { before: 'absent', now: 'unverified', used: true, told: 'unverified' },
  { before: 'unverified', now: 'unverified', used: true, told: nothing },
  { before: 'unmet', now: 'unverified', used: false, told: nothing },
  { before: 'present', now: 'unverified', used: false, told: nothing },
  { before: 'absent', now: 'unverified', used: false, told: nothing },
  { before: 'unverified', now: 'unverified', used: false, told: nothing },
]

const usedOf = ({ used }: Row): readonly boolean[] => (used === undefined ? [true, false] : [used])
const existedOf = ({ existed }: Row): readonly (boolean | undefined)[] => existed ?? [true, false, undefined]

describe('classify', () => {
  it.each(table)('$before, now $now (used: $used, existed: $existed): $told', (row) => {
    for (const used of usedOf(row)) {
      for (const existed of existedOf(row))
        expect(classify(used, befores[row.before], existed, nows[row.now])).toBe(row.told)
    }
  })

  it('is laid down for every case, and for each once', () => {
    const cases = table.flatMap((row) =>
      usedOf(row).flatMap((used) =>
        existedOf(row).map((existed) => `${row.before} ${row.now} ${used} ${existed}`),
      ),
    )
    expect(new Set(cases).size).toBe(cases.length)
    expect(cases).toHaveLength(Object.keys(befores).length * Object.keys(nows).length * 2 * 3)
  })
})
