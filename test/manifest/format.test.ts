import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeManifest,
  encodeEntry,
  encodeManifest,
  type Manifest,
  type Remembered,
} from '../../src/manifest/format.ts'
import { isManifest, isSetAside, isUnfinished, manifestName, setAsideName } from '../../src/manifest/names.ts'

const LARGE = 1_000_000

const hex = (length: number) =>
  fc.string({
    unit: fc.constantFrom(...Array.from('0123456789abcdef')),
    minLength: length,
    maxLength: length,
  })
const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
const seq = fc.nat()

const remembered: fc.Arbitrary<Remembered> = fc.record({
  key: text,
  path: text,
  seen: fc.oneof(
    fc.record({ kind: fc.constant('present' as const), version: text }),
    fc.constant({ kind: 'absent' as const }),
  ),
  content: fc.option(fc.record({ digest: hex(64), size: fc.nat() }), { nil: undefined }),
  shown: fc.tuple(seq, fc.array(seq, { maxLength: 5 })).map(([first, rest]) => [first, ...rest] as const),
  proof: hex(32),
  nested: fc.boolean(),
  settled: fc.boolean(),
  told: fc.boolean(),
})

const manifest: fc.Arbitrary<Manifest> = fc.record({
  session: text,
  createdAt: fc.nat(),
  writer: text,
  through: fc.option(fc.record({ seq, proof: hex(32) }), { nil: undefined }),
  entries: fc.uniqueArray(remembered, { selector: ({ key }) => key, maxLength: 12 }),
})

const encode = ({ entries, ...head }: Manifest, maxBytes = LARGE): string =>
  encodeManifest(
    head,
    entries.flatMap((entry) => encodeEntry(entry) ?? []),
    maxBytes,
  )

/** A text with a right checksum, whatever its fields say. */
const signed = (fields: object): string => {
  const rest = JSON.stringify({ format: 'dsh-live-workspace manifest', ...fields }).slice(1)
  return `{"sum":"${createHash('sha256').update(rest).digest('hex')}",${rest}`
}

const entry = { key: '/w/a.ts', version: 'v1', shown: [3], proof: 'ab'.repeat(16) }
const good = { version: 1, session: 's', createdAt: 1, writer: 'w', entries: [entry] }

describe('a manifest', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(manifest, (written) => {
        expect(decodeManifest(encode(written))).toEqual({ kind: 'manifest', manifest: written })
      }),
    )
  })

  it('never exceeds its bytes, and loses the entries used longest ago', () => {
    fc.assert(
      fc.property(manifest, fc.integer({ min: 1_024, max: 4_096 }), (written, maxBytes) => {
        const text = encode(written, maxBytes)
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes)
        const decoded = decodeManifest(text)
        const entries = decoded.kind === 'manifest' ? decoded.manifest.entries : undefined
        expect(entries).toEqual(written.entries.slice(0, entries?.length))
      }),
    )
  })

  it('is one line of JSON for each entry, which other tools can read', () => {
    expect(JSON.parse(signed(good))).toMatchObject(good)
    expect(decodeManifest(signed(good))).toMatchObject({
      kind: 'manifest',
      manifest: { entries: [{ path: '/w/a.ts', seen: { kind: 'present', version: 'v1' }, settled: false }] },
    })
  })
})

describe('any damage', () => {
  it('makes it unusable: a cut, at every byte', () => {
    const text = encode({ session: 's', createdAt: 1, writer: 'w', through: undefined, entries: [] })
    for (let length = 0; length < text.trimEnd().length; length += 1) {
      expect(decodeManifest(text.slice(0, length)).kind).toBe('unusable')
    }
  })

  it('makes it unusable: one other character', () => {
    fc.assert(
      fc.property(manifest, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }), (written, at, character) => {
        const text = encode(written)
        const index = at % text.length
        if (text[index] === character) return
        const damaged = `${text.slice(0, index)}${character}${text.slice(index + 1)}`
        expect(decodeManifest(damaged).kind).toBe('unusable')
      }),
      { numRuns: 500 },
    )
  })

  it('makes it unusable: the half of one and the half of another', () => {
    fc.assert(
      fc.property(manifest, manifest, fc.nat(), (one, other, at) => {
        const [first, second] = [encode(one), encode(other)]
        const index = 100 + (at % Math.max(1, Math.min(first.length, second.length) - 100))
        const mixed = first.slice(0, index) + second.slice(index)
        if (mixed === first || mixed === second) return
        expect(decodeManifest(mixed).kind).toBe('unusable')
      }),
      { numRuns: 300 },
    )
  })

  it('never makes the reader throw, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (text) => {
        expect(decodeManifest(text).kind).toBe('unusable')
      }),
      { numRuns: 1_000 },
    )
    for (const text of ['['.repeat(200_000), '{"a":'.repeat(100_000), 'null', '""', '0', '[]', '{}']) {
      expect(decodeManifest(text).kind).toBe('unusable')
    }
  })

  it('never makes the reader throw, or believe, whatever stands in a field with a right checksum', () => {
    const wrong = fc.oneof(
      fc.constantFrom(null, true, -1, 1.5, 2 ** 53, '', [], {}, 'x'.repeat(20_000), [[1]], { length: 1 }),
      fc.json().map((text): unknown => JSON.parse(text)),
    )
    const field = fc.constantFrom('session', 'createdAt', 'writer', 'through', 'entries', 'version', 'format')
    fc.assert(
      fc.property(field, wrong, (name, value) => {
        const decoded = decodeManifest(signed({ ...good, [name]: value }))
        if (decoded.kind === 'unusable') return
        const { session, createdAt, writer, entries } = decoded.manifest
        expect([typeof session, typeof writer]).toEqual(['string', 'string'])
        expect(Number.isSafeInteger(createdAt)).toBe(true)
        expect(Array.isArray(entries)).toBe(true)
      }),
      { numRuns: 1_000 },
    )
    const inEntry = fc.constantFrom(
      'key',
      'path',
      'version',
      'absent',
      'digest',
      'size',
      'shown',
      'proof',
      'nested',
    )
    fc.assert(
      fc.property(inEntry, wrong, (name, value) => {
        const decoded = decodeManifest(signed({ ...good, entries: [{ ...entry, [name]: value }] }))
        if (decoded.kind === 'unusable') return
        const [read] = decoded.manifest.entries
        expect(read?.shown.every(Number.isSafeInteger)).toBe(true)
        expect(read?.proof).toMatch(/^[0-9a-f]{32}$/)
        expect([typeof read?.key, typeof read?.path]).toEqual(['string', 'string'])
      }),
      { numRuns: 1_000 },
    )
  })

  it.each([
    ['another version', { ...good, version: 2 }, 'another version'],
    ['no key', { ...good, entries: [{ ...entry, key: undefined }] }, 'key'],
    ['neither a version nor absent', { ...good, entries: [{ ...entry, version: undefined }] }, 'version'],
    ['both', { ...good, entries: [{ ...entry, absent: true }] }, 'absent'],
    ['a digest of another kind', { ...good, entries: [{ ...entry, digest: 'ab', size: 1 }] }, 'digest'],
    ['a digest without a size', { ...good, entries: [{ ...entry, digest: 'a'.repeat(64) }] }, 'size'],
    ['no event', { ...good, entries: [{ ...entry, shown: [] }] }, 'shown'],
    ['a negative event', { ...good, entries: [{ ...entry, shown: [-1] }] }, 'shown'],
    ['a key twice', { ...good, entries: [entry, entry] }, 'twice'],
    [
      'an inherited field',
      { ...good, entries: [{ ...entry, proof: undefined, ['__proto__']: entry }] },
      'proof',
    ],
  ])('is named: %s', (_what, fields, reason) => {
    const decoded = decodeManifest(signed(fields))
    expect(decoded.kind === 'unusable' ? decoded.reason : decoded).toContain(reason)
  })
})

describe('an entry that is too large', () => {
  it.each([
    ['a path', { path: 'x'.repeat(16_385) }],
    ['events', { shown: Array.from({ length: 257 }, (_, index) => index) }],
  ])('is not remembered: %s', (_what, change) => {
    const small: Remembered = {
      key: 'k',
      path: 'p',
      seen: { kind: 'absent' },
      shown: [1],
      proof: 'ab'.repeat(16),
      nested: false,
      settled: true,
      told: false,
    }
    expect(encodeEntry(small)).toBeDefined()
    // As wrong as a test wants it.
    expect(encodeEntry({ ...small, ...change } as Remembered)).toBeUndefined()
  })
})

describe('the name of a file', () => {
  it('is the id where that is harmless', () => {
    expect(manifestName('session-3f2b')).toBe('session-3f2b.json')
  })

  it('is harmless whatever the id, and another one for another id', () => {
    const awkward = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '..',
        '../../etc/passwd',
        'a/b',
        'A',
        'a',
        'con',
        'CON',
        '',
        '.',
        'x'.repeat(5_000),
        'a\0b',
        'C:\\x',
      ),
    )
    fc.assert(
      fc.property(awkward, awkward, (one, other) => {
        const name = manifestName(one)
        expect(name).toMatch(/^[a-z0-9][a-z0-9_-]{0,119}\.json$/)
        expect(isManifest(name)).toBe(true)
        expect(manifestName(other).toLowerCase() === name.toLowerCase()).toBe(one === other)
      }),
      { numRuns: 1_000 },
    )
    // An id that looks like a digest of another one.
    expect(manifestName(manifestName('../x').slice(0, -5))).not.toBe(manifestName('../x'))
  })

  it('is told from what else may lie beside it', () => {
    const aside = setAsideName('a.json', 5, 'ff')
    expect([isManifest(aside), isSetAside(aside), isUnfinished(aside)]).toEqual([false, true, false])
    expect([isManifest('a.json.0a1b.tmp'), isUnfinished('a.json.0a1b.tmp')]).toEqual([false, true])
    expect([isSetAside('a.json'), isUnfinished('a.json')]).toEqual([false, false])
  })
})
