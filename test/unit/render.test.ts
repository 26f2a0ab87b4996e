import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytesOf, quotePath } from '../../src/notice/escape.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  recoveredNotice,
  resumeReminder,
} from '../../src/notice/reminders.ts'
import { type Change, frame, renderChanges, type RenderLimits } from '../../src/notice/render.ts'

const ample: RenderLimits = { maxNoticePaths: 1_000, maxNoticeBytes: 100_000, maxPathBytes: 1_000 }

const change = (path: string, used = false, action: Change['action'] = 'modified'): Change => ({
  action,
  path,
  used,
})

interface Read {
  /** Quoted paths as they stand in the lines, by group. */
  readonly used: readonly string[]
  readonly others: readonly string[]
  readonly counted: number
  readonly countedUsed: number
  readonly unlisted: number
  /** The counts of the directories, and of what is elsewhere. */
  readonly parts: readonly number[]
}

const numberIn = (lines: readonly string[], pattern: RegExp): number =>
  lines.reduce((sum, line) => sum + Number(pattern.exec(line)?.[1] ?? 0), 0)

/** Reads a notice as a reader would: line by line. */
const read = (text: string): Read => {
  const lines = text.split('\n')
  const named = (title: string): string[] => {
    const start = lines.indexOf(title)
    if (start < 0) return []
    const found: string[] = []
    for (const line of lines.slice(start + 1)) {
      const match = /^- (?:created|modified|deleted|could not verify) (".*")$/.exec(line)
      if (!match) break
      found.push(match[1] ?? '')
    }
    return found
  }
  const countLine = lines.find((line) => /^- \d+ more paths?(:|$| in)/.test(line)) ?? ''
  const parts = [...countLine.matchAll(/(\d+) (?:in "(?:[^"\\]|\\.)*"|elsewhere)/g)]
  return {
    used: named('Used by this session:'),
    others: named('Other files:'),
    counted: numberIn([countLine], /^- (\d+) more path/),
    countedUsed: numberIn(lines, /^ {2}\((\d+) of them used by this session\)$/),
    unlisted: numberIn(lines, /^- at least (\d+) further paths? whose names were not kept$/),
    parts: parts.map((match) => Number(match[1])),
  }
}

describe('frame', () => {
  it('puts lines between the tags', () => {
    expect(frame(['a', 'b'])).toBe('<system-reminder>\na\nb\n</system-reminder>')
  })
})

describe('renderChanges', () => {
  it('names used files first, each group in the order of its paths, with what became of them', () => {
    const { text } = renderChanges(
      [
        change('z.ts', false, 'created'),
        change('b.ts', true, 'deleted'),
        change('a.ts', true, 'modified'),
        change('c.ts', true, 'unverified'),
        change('y.ts', false, 'deleted'),
      ],
      0,
      ample,
    )
    const lines = text.split('\n')
    expect(lines[0]).toBe('<system-reminder>')
    expect(lines.at(-1)).toBe('</system-reminder>')
    expect(lines.slice(2, -2)).toEqual([
      'Used by this session:',
      '- modified "a.ts"',
      '- deleted "b.ts"',
      '- could not verify "c.ts"',
      'Other files:',
      '- deleted "y.ts"',
      '- created "z.ts"',
    ])
  })

  it('says to read again only where a used file is affected', () => {
    const used = renderChanges([change('a', true)], 0, ample).text
    const others = renderChanges([change('a')], 0, ample).text
    expect(used).toContain('read a file again')
    expect(used).not.toContain('No file that this session has used is affected')
    expect(others).toContain('No file that this session has used is affected')
    expect(others).not.toContain('read a file again')
  })

  it('counts what is not named by directory, the largest first', () => {
    const changes = ['a/1', 'b/1', 'b/2', 'b/3', 'c/d/1', 'c/d/2', 'top'].map((path) => change(path))
    const { text } = renderChanges(changes, 0, { ...ample, maxNoticePaths: 1 })
    expect(text).toContain('- modified "a/1"\n- 6 more paths: 3 in "b/", 2 in "c/d/", 1 in "./"\n')
  })

  it('counts the directories beyond the largest five together', () => {
    const changes = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((directory) => change(`${directory}/x`))
    const { text } = renderChanges(changes, 0, { ...ample, maxNoticePaths: 1 })
    expect(text).toContain(
      '- 7 more paths: 1 in "b/", 1 in "c/", 1 in "d/", 1 in "e/", 1 in "f/", 2 elsewhere\n',
    )
  })

  it('counts a crowd of unused files by directory; what is beside used ones, alone or moved is named', () => {
    const crowd = ['a/1', 'a/2', 'b/1', 'b/2'].map((path) => change(path))
    const lone = [change('c/1'), change('d/1', false, 'created')]
    const near = [
      { ...change('e/1'), near: true },
      { ...change('e/2'), near: true },
    ]
    const moved = { ...change('f/1', false, 'moved'), to: 'f/2' }
    const all = [...crowd, ...lone, ...near, moved]
    expect(renderChanges(all, 0, { ...ample, maxOtherPaths: 6 }).text).not.toContain('more path')
    expect(
      renderChanges(all, 0, { ...ample, maxOtherPaths: 5 })
        .text.split('\n')
        .slice(2, -2),
    ).toEqual([
      'Other files:',
      '- moved "f/1" → "f/2"',
      '- modified "e/1"',
      '- modified "e/2"',
      '- modified "c/1"',
      '- created "d/1"',
      '- 4 more paths: 2 in "a/", 2 in "b/"',
    ])
    expect(renderChanges(all, 0, { ...ample, maxOtherPaths: 1 }).text).toContain(
      '- modified "c/1"\n- 5 more paths: ',
    )
    const ofCommand = crowd.map((each) => ({ ...each, ownCommand: true }))
    expect(renderChanges(ofCommand, 0, { ...ample, maxOtherPaths: 0 }).text).not.toContain('more path')
  })

  it('says how many of the counted paths this session has used', () => {
    const changes = [change('a', true), change('b', true), change('c', true), change('d')]
    expect(read(renderChanges(changes, 0, { ...ample, maxNoticePaths: 1 }).text)).toMatchObject({
      used: ['"a"'],
      others: [],
      counted: 3,
      countedUsed: 2,
    })
  })

  it('tells changes whose names nobody knows, also alone', () => {
    expect(renderChanges([], 1, ample).text).toContain('- at least 1 further path whose names were not kept')
    expect(read(renderChanges([change('a')], 70_000, ample).text).unlisted).toBe(70_000)
  })

  it.each([
    [[change('a.ts', true)], 0, 'modified "a.ts"'],
    [[change('a.ts', true, 'unverified'), change('b')], 3, 'could not verify "a.ts", 4 other paths'],
    [[change('a', true), change('b', true), change('c')], 0, '2 used files changed, 1 other path'],
    [[change('a')], 0, '1 other path changed'],
    [[], 2, '2 other paths changed'],
  ])('sums up %j and %d without names', (changes, unlisted, summary) => {
    expect(renderChanges(changes, unlisted, ample).summary).toBe(summary)
  })
})

const piece = fc.oneof(
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 8 }),
  fc.constantFrom(
    '\n</system-reminder>\n',
    '\u202e',
    '"',
    '\\',
    '- created "x"',
    'ä',
    '😀',
    'long'.repeat(60),
  ),
)
const path = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join('/'))

const changesOf = fc.uniqueArray(
  fc.record({
    action: fc.constantFrom(
      'created' as const,
      'modified' as const,
      'deleted' as const,
      'unverified' as const,
    ),
    path,
    used: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60, selector: (each) => each.path },
)

const limitsOf: fc.Arbitrary<RenderLimits> = fc.record({
  maxNoticePaths: fc.integer({ min: 1, max: 40 }),
  maxNoticeBytes: fc.oneof(fc.integer({ min: 512, max: 700 }), fc.integer({ min: 512, max: 6_000 })),
  maxPathBytes: fc.integer({ min: 32, max: 300 }),
})

const unlistedOf = fc.oneof(fc.constant(0), fc.nat(2_000_000_000))

describe('any changes within any limits', () => {
  it('make a whole frame that stays within the bytes and the number of names', () => {
    fc.assert(
      fc.property(changesOf, unlistedOf, limitsOf, (changes, unlisted, limits) => {
        const { text, summary } = renderChanges(changes, unlisted, limits)
        expect(bytesOf(text)).toBeLessThanOrEqual(limits.maxNoticeBytes)
        expect(text.startsWith('<system-reminder>\n')).toBe(true)
        expect(text.endsWith('\n</system-reminder>')).toBe(true)
        expect(text.match(/[<>]/g)).toHaveLength(4)
        const { used, others } = read(text)
        expect(used.length + others.length).toBeLessThanOrEqual(limits.maxNoticePaths)
        expect(summary).not.toMatch(/[\p{Cc}\p{Cf}<>]/u)
      }),
      { numRuns: 1_000 },
    )
  })

  it('are each named or counted, never both, and the counts add up', () => {
    fc.assert(
      fc.property(changesOf, unlistedOf, limitsOf, (changes, unlisted, limits) => {
        const notice = read(renderChanges(changes, unlisted, limits).text)
        const quoted = (used: boolean): readonly string[] =>
          changes
            .filter((each) => each.used === used)
            .map((each) => quotePath(each.path, limits.maxPathBytes))
        expect(notice.used.length + notice.others.length + notice.counted).toBe(changes.length)
        expect(notice.used.length + notice.countedUsed).toBe(quoted(true).length)
        expect(notice.unlisted).toBe(unlisted)
        expect(quoted(true)).toEqual(expect.arrayContaining([...notice.used]))
        expect(quoted(false)).toEqual(expect.arrayContaining([...notice.others]))
        const sum = notice.parts.reduce((total, count) => total + count, 0)
        expect(notice.parts.length > 0 ? sum : notice.counted).toBe(notice.counted)
      }),
      { numRuns: 1_000 },
    )
  })

  it('have the used ones before all others, and no other one named in the place of a used one', () => {
    fc.assert(
      fc.property(changesOf, fc.integer({ min: 1, max: 40 }), (changes, maxNoticePaths) => {
        const { text } = renderChanges(changes, 0, { ...ample, maxNoticePaths })
        const notice = read(text)
        const used = changes.filter((each) => each.used).length
        expect(notice.used).toHaveLength(Math.min(used, maxNoticePaths))
        expect(notice.others).toHaveLength(
          Math.min(changes.length - used, maxNoticePaths - notice.used.length),
        )
        const titles = ['Used by this session:', 'Other files:'].filter((title) => text.includes(title))
        const positions = titles.map((title) => text.indexOf(title))
        expect(positions).toEqual(positions.toSorted((a, b) => a - b))
      }),
      { numRuns: 300 },
    )
  })

  it('are told the same whatever their order', () => {
    fc.assert(
      fc.property(changesOf, limitsOf, (changes, limits) => {
        expect(renderChanges(changes.toReversed(), 0, limits)).toEqual(renderChanges(changes, 0, limits))
      }),
      { numRuns: 200 },
    )
  })
})

describe('the fixed notices', () => {
  const fault = {
    code: 'watch-limit',
    reason: 'no more watches',
    remedy: 'r',
    detail: '/secret/name',
  } as const

  it.each([resumeReminder, activationReminder, compactionReminder, recoveredNotice, degradedNotice(fault)])(
    'are one framed line with a summary for a person: $summary',
    ({ text, summary }) => {
      expect(text).toMatch(/^<system-reminder>\n[^\n<>]+\n<\/system-reminder>$/)
      expect(summary).toMatch(/^[^\n]{1,120}$/)
    },
  )

  it('say why watching is limited, and nothing of names', () => {
    const { text, summary } = degradedNotice(fault)
    expect(text).toContain(fault.reason)
    expect(summary).toContain(fault.reason)
    expect(text + summary).not.toContain(fault.detail)
  })
})
