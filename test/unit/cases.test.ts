import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const checkout = join(import.meta.dirname, '..', '..')

/** The numbers of the cases that concern change notices, by chapter. */
const chapters: Readonly<Record<string, readonly number[]>> = {
  B1: [1, 2, 3, 4, 5, 6, 7, 9, 10, 12],
  B2: [1, 3, 4, 5, 6, 7, 8, 9, 11, 12],
  B3: [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 13],
  B4: [1, 2, 3, 4, 5, 6],
  B5: [1, 2, 3, 4, 5, 7, 8],
  B10: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14],
  B11: [1, 2, 3, 5, 7],
  B12: [2, 3],
  B13: [1, 2, 3, 4, 5, 6],
  B14: [1, 2],
}

const allCases = Object.entries(chapters).flatMap(([chapter, numbers]) =>
  numbers.map((number) => `${chapter}-${number}`),
)

const cellsOf = (line: string): readonly string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())

const rows = readFileSync(join(checkout, 'test', 'CASES.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| B\d+-\d+ /.test(line))
  .map(cellsOf)

const shown = rows
  .filter(({ length }) => length === 4)
  .map(([id = '', , file = '', name = '']) => ({ id, file: file.replaceAll('`', ''), name }))
const gaps = rows
  .filter(({ length }) => length === 3)
  .map(([id = '', state = '', why = '']) => ({ id, state, why }))

describe('the table of cases', () => {
  it.each(shown)('$id: $file has "$name"', ({ file, name }) => {
    const source = readFileSync(join(checkout, file), 'utf8')
    expect(["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`))).toBe(true)
  })

  it('has every case, and no other', () => {
    expect(new Set(rows.map(([id]) => id))).toEqual(new Set(allCases))
    expect(shown.length + gaps.length).toBe(rows.length)
  })

  it('says of each case without a test why, and calls the others covered in part at most', () => {
    const tested = new Set(shown.map(({ id }) => id))
    const wrong = gaps.filter(({ id, state, why }) => {
      const allowed = tested.has(id) ? ['in part'] : ['not covered', 'out of scope']
      return why === '' || !allowed.includes(state)
    })
    expect(wrong).toEqual([])
  })
})
