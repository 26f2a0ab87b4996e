import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { renderResume, type ResumeFacts } from '../../src/notice/resume.ts'

const limits = { maxResumePaths: 50, maxResumeBytes: 4_096, maxPathBytes: 300 }
const none: ResumeFacts = {
  origin: 'resumed',
  changes: [],
  unchanged: 0,
  unseen: 0,
  unknown: [],
  unchecked: 0,
}

const path = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 })
const facts: fc.Arbitrary<ResumeFacts> = fc.record({
  origin: fc.constantFrom('resumed' as const, 'continued' as const, 'rest' as const),
  changes: fc.array(
    fc.record({
      action: fc.constantFrom(
        'modified' as const,
        'deleted' as const,
        'created' as const,
        'restored' as const,
      ),
      path,
      used: fc.constant(true),
    }),
    { maxLength: 120 },
  ),
  unchanged: fc.nat({ max: 100_000 }),
  unseen: fc.nat({ max: 100_000 }),
  unknown: fc.array(path, { maxLength: 120 }),
  unchecked: fc.nat({ max: 100_000 }),
})

describe('the message after a restart', () => {
  it('stays within its bytes and names, whatever the names, in one frame', () => {
    fc.assert(
      fc.property(
        facts,
        fc.integer({ min: 1_024, max: 5_000 }),
        fc.integer({ min: 1, max: 60 }),
        (all, bytes, most) => {
          const { text } = renderResume(all, { ...limits, maxResumeBytes: bytes, maxResumePaths: most })
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytes)
          expect(text.match(/<\/?system-reminder>/g)).toEqual(['<system-reminder>', '</system-reminder>'])
          const named = text.split('\n').filter((line) => /^- (?!\d+ more: )/.test(line)).length
          expect(named).toBeLessThanOrEqual(most)
          const counted = Number(/^- (\d+) more: /m.exec(text)?.[1] ?? 0)
          expect(named + counted).toBe(all.changes.length)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('says how many of each kind it does not name', () => {
    const changes = ['modified', 'modified', 'deleted', 'modified'] as const
    const { text } = renderResume(
      { ...none, changes: changes.map((action, index) => ({ action, path: `f${index}`, used: true })) },
      { ...limits, maxResumePaths: 1 },
    )
    expect(text).toContain('- modified "f0"\n- 3 more: 2 modified, 1 deleted\n')
  })

  it.each<[string, Partial<ResumeFacts>, string]>([
    [
      'one',
      { unchanged: 1 },
      'The one file that it had read or written is unchanged: no new read is needed.',
    ],
    [
      'several',
      { unchanged: 2 },
      'All 2 files that it had read or written are unchanged: no new read is needed.',
    ],
    [
      'none of which is shown',
      { unseen: 2 },
      'All 2 files that it had read or written are unchanged, no longer shown',
    ],
    [
      'some of which are shown',
      { unchanged: 1, unseen: 2 },
      'All 3 files that it had read or written are unchanged, 2 no longer',
    ],
    [
      'of a fork',
      { origin: 'continued', unchanged: 2 },
      'All 2 files that this session had read or written so far are',
    ],
  ])('is one line when nothing changed: %s', (_what, some, line) => {
    const { text } = renderResume({ ...none, ...some }, limits)
    expect(text.split('\n')).toHaveLength(3)
    expect(text).toContain(line)
  })

  it('names what is not known, as far as there is room', () => {
    const unknown = ['a', 'b', 'c']
    expect(renderResume({ ...none, unknown }, limits).text).toContain(
      'of 3 files is not known: "a", "b", "c".',
    )
    expect(renderResume({ ...none, unknown }, { ...limits, maxResumePaths: 2 }).text).toContain(
      'of 3 files is not known: "a", "b", 1 more.',
    )
  })
})
