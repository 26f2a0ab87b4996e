import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Journal, type JournalSlice } from '../../src/watch/journal.ts'

const pathsOf = (slice: JournalSlice): readonly string[] => slice.paths.map(({ path }) => path)

const existedOf = (slice: JournalSlice, path: string): boolean | undefined => {
  const found = slice.paths.find((dirty) => dirty.path === path)
  if (!found) throw new Error(`${path} is not in the slice`)
  return found.existed
}

describe('Journal', () => {
  it('numbers events and shows a reader those after its cursor', () => {
    const journal = new Journal(10)
    journal.note('/a', true)
    const joined = journal.head
    journal.note('/b', false)
    journal.note('/c', undefined)
    const slice = journal.since(joined)
    expect(slice).toEqual({
      head: 3,
      everything: false,
      dropped: 0,
      paths: [
        { path: '/b', seq: 2, existed: false, at: 0, times: [0] },
        { path: '/c', seq: 3, existed: undefined, at: 0, times: [0] },
      ],
    })
    expect(journal.since(slice.head)).toEqual({ head: 3, everything: false, dropped: 0, paths: [] })
  })

  it('has the times of the events behind a cursor: of many, the first and the latest', () => {
    const journal = new Journal(10)
    const timesSince = (cursor: number) => journal.since(cursor).paths.map(({ times }) => times)
    for (let at = 1; at <= 3; at += 1) journal.note('/a', true, at)
    expect([timesSince(0), timesSince(1), timesSince(2)]).toEqual([[[1, 2, 3]], [[2, 3]], [[3]]])
    for (let at = 4; at <= 20; at += 1) journal.note('/a', true, at)
    expect(timesSince(0)).toEqual([[1, 13, 14, 15, 16, 17, 18, 19, 20]])
    expect(timesSince(18)).toEqual([[19, 20]])
    // Some behind the cursor are not kept: the first of all stands for them.
    expect(timesSince(5)).toEqual([[1, 13, 14, 15, 16, 17, 18, 19, 20]])
  })

  it('keeps one entry per path, under the number of its latest event', () => {
    const journal = new Journal(10)
    for (const path of ['/a', '/b', '/a']) journal.note(path, true)
    expect(journal.size).toBe(2)
    expect(journal.since(0).paths.map(({ path, seq }) => [path, seq])).toEqual([
      ['/b', 2],
      ['/a', 3],
    ])
    expect(pathsOf(journal.since(2))).toEqual(['/a'])
  })

  it('says of a new file that is changed again that it was not there', () => {
    const journal = new Journal(10)
    journal.note('/a', false)
    journal.note('/a', true)
    expect(existedOf(journal.since(0), '/a')).toBe(false)
  })

  it('says of a new file that it was there to a reader who came after its first event', () => {
    const journal = new Journal(10)
    journal.note('/a', false)
    const later = journal.head
    journal.note('/a', true)
    expect(existedOf(journal.since(later), '/a')).toBe(true)
  })

  it('says of a file that was removed and made again that it was there', () => {
    const journal = new Journal(10)
    journal.note('/a', true)
    journal.note('/a', false)
    expect(existedOf(journal.since(0), '/a')).toBe(true)
  })

  it('marks everything once for each reader', () => {
    const journal = new Journal(10)
    journal.note('/a', true)
    journal.noteAll()
    const slice = journal.since(0)
    expect(slice.everything).toBe(true)
    expect(slice.dropped).toBe(0)
    expect(journal.since(slice.head).everything).toBe(false)
  })

  it('drops and counts all paths when there is one too many', () => {
    const journal = new Journal(2)
    for (const path of ['/a', '/b']) journal.note(path, true)
    expect(journal.since(0).everything).toBe(false)
    journal.note('/c', true)
    expect(journal.since(0)).toEqual({ head: 3, everything: true, dropped: 3, paths: [] })
    journal.note('/d', true)
    expect(journal.since(0)).toMatchObject({ everything: true, dropped: 3 })
    expect(pathsOf(journal.since(0))).toEqual(['/d'])
    expect(journal.since(3)).toMatchObject({ everything: false, dropped: 0 })
  })

  it('does not drop for a path that it keeps already', () => {
    const journal = new Journal(2)
    for (const path of ['/a', '/b', '/a', '/b']) journal.note(path, true)
    expect(journal.since(0)).toMatchObject({ everything: false, dropped: 0 })
  })

  it('does not count for a reader what that reader has read already', () => {
    const journal = new Journal(3)
    for (const path of ['/a', '/b', '/c']) journal.note(path, true)
    // Another reader has read nothing yet, so that nothing can be trimmed.
    const cursor = journal.since(0).head
    journal.note('/d', true)
    expect(journal.since(cursor)).toMatchObject({ everything: true, dropped: 1 })
    expect(journal.since(0)).toMatchObject({ everything: true, dropped: 4 })
  })

  it('forgets what every reader has passed, and nothing else', () => {
    const journal = new Journal(10)
    for (const path of ['/a', '/b', '/a', '/c']) journal.note(path, true)
    journal.trim(2)
    expect(journal.size).toBe(2)
    expect(pathsOf(journal.since(2))).toEqual(['/a', '/c'])
    journal.trim(4)
    expect(journal.size).toBe(0)
  })
})

/** One thing that happens to a journal and its readers. */
type Action =
  | { readonly kind: 'note'; readonly path: string; readonly existed: boolean | undefined }
  | { readonly kind: 'all' }
  | { readonly kind: 'read'; readonly reader: number }
  | { readonly kind: 'trim' }

const READERS = 3

const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('note' as const),
        path: fc.constantFrom('/a', '/b', '/c', '/d', '/e', '/f'),
        existed: fc.constantFrom(true, false, undefined),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('all' as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('read' as const), reader: fc.nat(READERS - 1) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('trim' as const) }) },
  ),
  { maxLength: 60 },
)

type Noted = { readonly path: string; readonly existed: boolean | undefined } | 'everything'

interface Seen {
  readonly slice: JournalSlice
  /** All that happened since the reader's last read, in order; event n is the nth. */
  readonly since: readonly Noted[]
  readonly cursor: number
  readonly maxPaths: number
}

/** Plays the actions on a journal and, beside it, on a list that never forgets. */
const play = (maxPaths: number, script: readonly Action[], check: (seen: Seen) => void): void => {
  const journal = new Journal(maxPaths)
  const log: Noted[] = []
  const cursors = Array.from({ length: READERS }, () => 0)
  const read = (reader: number): void => {
    const cursor = cursors[reader] ?? 0
    const slice = journal.since(cursor)
    check({ slice, since: log.slice(cursor), cursor, maxPaths })
    cursors[reader] = slice.head
  }
  for (const action of script) {
    switch (action.kind) {
      case 'note':
        journal.note(action.path, action.existed)
        log.push(action)
        break
      case 'all':
        journal.noteAll()
        log.push('everything')
        break
      case 'read':
        read(action.reader)
        break
      case 'trim':
        journal.trim(Math.min(...cursors))
        break
    }
    expect(journal.head).toBe(log.length)
    expect(journal.size).toBeLessThanOrEqual(maxPaths)
  }
  for (const reader of cursors.keys()) read(reader)
}

const property = (check: (seen: Seen) => void): void => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 7 }), actions, (maxPaths, script) => play(maxPaths, script, check)),
    { numRuns: 500 },
  )
}

const latestOf = (since: readonly Noted[]): ReadonlyMap<string, number> => {
  const latest = new Map<string, number>()
  for (const [index, noted] of since.entries()) if (noted !== 'everything') latest.set(noted.path, index)
  return latest
}

describe('several readers of one journal, against a list that never forgets', () => {
  it('are told of every path of theirs once, by its latest number, or that everything is dirty', () => {
    property(({ slice, since, cursor }) => {
      const latest = latestOf(since)
      const listed = pathsOf(slice)
      expect(new Set(listed).size).toBe(listed.length)
      for (const { path, seq } of slice.paths) expect(seq).toBe(cursor + (latest.get(path) ?? -1) + 1)
      const lost = [...latest.keys()].filter((path) => !listed.includes(path))
      const mustLookAtAll = since.includes('everything') || lost.length > 0
      expect(slice.everything || !mustLookAtAll).toBe(true)
      expect(slice.dropped).toBeGreaterThanOrEqual(lost.length)
    })
  })

  it('are told nothing that they have read: everything is dirty only for a reason of theirs', () => {
    property(({ slice, since, maxPaths }) => {
      const silent = slice.paths.length === 0 && !slice.everything && slice.dropped === 0
      expect(silent || since.length > 0).toBe(true)
      expect(slice.everything && slice.dropped === 0 && !since.includes('everything')).toBe(false)
      expect(slice.dropped > 0 && latestOf(since).size === 0).toBe(false)
      expect(slice.paths.length).toBeLessThanOrEqual(maxPaths)
    })
  })

  it('are told of no more dropped paths than there were events since they read', () => {
    property(({ slice, since }) => {
      const notes = since.filter((noted) => noted !== 'everything').length
      expect(slice.dropped + slice.paths.length).toBeLessThanOrEqual(notes)
    })
  })

  it('are told whether a path was there before, as its first event since they read says', () => {
    property(({ slice, since }) => {
      // A dropped name has lost its history too.
      if (slice.dropped > 0) return
      for (const { path, existed } of slice.paths) {
        const first = since.find((noted) => noted !== 'everything' && noted.path === path)
        expect(first).toMatchObject({ path, existed })
      }
    })
  })
})
