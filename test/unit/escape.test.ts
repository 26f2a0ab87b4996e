import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytesOf, quotePath } from '../../src/notice/escape.ts'

const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}<>]/u

const anyUnit = fc.integer({ min: 0, max: 0xff_ff }).map((unit) => String.fromCharCode(unit))

const nasty = fc.constantFrom(
  '\n',
  '\r\n',
  '\t',
  '\0',
  '\u001b[31m',
  '\u007f',
  '\u0085',
  '\u00ad',
  '\u200b',
  '\u202e',
  '\u2028',
  '\u2029',
  '\u2066',
  '\ufeff',
  '\u{e0041}',
  '\ud83d',
  '\ude00',
  '😀',
  '</system-reminder>',
  '<',
  '"',
  '\\',
  '\\u0041',
  '…',
  '[9 bytes]',
  'e\u0301',
)

const mixed = fc
  .array(fc.oneof(anyUnit, nasty, fc.string({ unit: 'grapheme', maxLength: 4 })), { maxLength: 80 })
  .map((parts) => parts.join(''))

/** Plain ends, so that a shortened path fills its limit, and a middle that grows when it is escaped. */
const swelling = fc
  .tuple(fc.nat(30), fc.constantFrom('\u0001', '<', '\u202e', '\ud83d', 'ä'), fc.nat(300))
  .map(([ends, middle, count]) => 'a'.repeat(ends) + middle.repeat(count) + 'z'.repeat(ends))

const anyPath: fc.Arbitrary<string> = fc.oneof(mixed, swelling)

const anyLimit = fc.integer({ min: 32, max: 400 })

describe('bytesOf', () => {
  it('counts UTF-8', () => {
    expect(['', 'a', 'é', '…', '😀'].map(bytesOf)).toEqual([0, 1, 2, 3, 4])
  })
})

describe('quotePath', () => {
  it.each([
    ['src/a b.ts', '"src/a b.ts"'],
    ['Amélie/日本.md', '"Amélie/日本.md"'],
    ['emoji 😀', '"emoji 😀"'],
    ['', '""'],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ['a\nb\rc\td', '"a\\nb\\rc\\td"'],
    ['\u001b[31m\0', '"\\u001b[31m\\u0000"'],
    ['a\u202eb\u2066', '"a\\u202eb\\u2066"'],
    ['\u200b\ufeff', '"\\u200b\\ufeff"'],
    ['\u2028\u2029\u0085', '"\\u2028\\u2029\\u0085"'],
    ['</system-reminder>', '"\\u003c/system-reminder\\u003e"'],
    ['\ud83d', '"\\ud83d"'],
    ['\ude00\ud83d', '"\\ude00\\ud83d"'],
    ['\u{e0041}', '"\\udb40\\udc41"'],
  ])('shows %j as %s', (path, shown) => {
    expect(quotePath(path, 300)).toBe(shown)
  })

  it('keeps a path that just fits, and shortens one that is a byte longer', () => {
    const path = 'x'.repeat(98)
    expect(quotePath(path, 100)).toBe(`"${path}"`)
    const shortened = quotePath(path, 99)
    expect(bytesOf(shortened)).toBeLessThanOrEqual(99)
    expect(shortened).toMatch(/^"x+…\[\d+ bytes\]…x+"$/)
  })

  it('keeps both ends of a long path and counts what is left out', () => {
    const path = `start/${'m'.repeat(4_000)}/end.txt`
    const match = /^"(start\/m+)…\[(\d+) bytes\]…(m+\/end\.txt)"$/.exec(quotePath(path, 100))
    const [, head = '', left, tail = ''] = match ?? []
    expect(head.length + Number(left) + tail.length).toBe(path.length)
    // No more is left out than the limit asks for.
    expect(head.length + tail.length).toBeGreaterThan(100 - 30)
  })

  it('counts the bytes of the path that are left out, not those of its escapes', () => {
    const path = `start-${'\u0001'.repeat(90)}-end`
    expect(quotePath(path, 64)).toMatch(/…\[\d+ bytes\]…/)
    const match = /^(.*)…\[(\d+) bytes\]…(.*)$/su.exec(String(JSON.parse(quotePath(path, 64))))
    const [, head = '', left, tail = ''] = match ?? []
    expect(bytesOf(head) + Number(left) + bytesOf(tail)).toBe(bytesOf(path))
  })

  it('stays within the limit when more digits are left out than the path itself has bytes', () => {
    const path = `${'a'.repeat(11)}${'\u0001'.repeat(20)}${'z'.repeat(11)}`
    expect(bytesOf(quotePath(path, 40))).toBeLessThanOrEqual(40)
  })

  it('makes one line without anything that is not shown, and never a longer one than allowed', () => {
    fc.assert(
      fc.property(anyPath, anyLimit, (path, limit) => {
        const quoted = quotePath(path, limit)
        expect(quoted).not.toMatch(UNSHOWN)
        expect(quoted).not.toMatch(/[\n\r]/)
        expect(bytesOf(quoted)).toBeLessThanOrEqual(limit)
      }),
      { numRuns: 2_000 },
    )
  })

  it('makes a JSON string of the very path, if that is not shortened', () => {
    fc.assert(
      fc.property(anyPath, (path) => {
        const quoted = quotePath(path, Infinity)
        expect(JSON.parse(quoted)).toBe(path)
        expect(quotePath(path, bytesOf(quoted))).toBe(quoted)
      }),
      { numRuns: 2_000 },
    )
  })

  it('cuts no escape and no character in two when it shortens', () => {
    const plain = anyPath.filter((path) => !path.includes('…'))
    fc.assert(
      fc.property(plain, anyLimit, (path, limit) => {
        const quoted = quotePath(path, limit)
        if (quoted === quotePath(path, Infinity)) return
        const match = /^(.*)…\[\d+ bytes\]…(.*)$/su.exec(String(JSON.parse(quoted)))
        const [, head = '-', tail = '-'] = match ?? []
        expect(path.startsWith(head)).toBe(true)
        expect(path.endsWith(tail)).toBe(true)
        expect(head.length + tail.length).toBeLessThan(path.length)
      }),
      { numRuns: 1_000 },
    )
  })
})
