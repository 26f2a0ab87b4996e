import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { encodeEntry, encodeManifest } from '../../src/manifest/format.ts'
import { Keeper, type KeeperParts } from '../../src/manifest/keeper.ts'
import { manifestName } from '../../src/manifest/names.ts'
import { ManifestStore, type StoreLimits } from '../../src/manifest/store.ts'
import { waitFor } from '../support/wait.ts'

const DAY = 86_400_000
const limits: StoreLimits = {
  maxManifestBytes: 10_000,
  maxSessions: 5,
  maxSetAside: 2,
  keepMs: 30 * DAY,
  unfinishedMs: 60_000,
}

let base: string
let directory: string
let problems: string[]

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-store-')))
  directory = join(base, 'v1')
  problems = []
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

const storeWith = (changes: Partial<StoreLimits> = {}): ManifestStore =>
  new ManifestStore(directory, { ...limits, ...changes }, (problem) => problems.push(problem))

const textOf = (
  session: string,
  { createdAt = 1, writer = 'w', through = -1, key = '/w/a.ts' } = {},
): string => {
  const line = encodeEntry({
    key,
    path: key,
    seen: { kind: 'present', version: 'v1' },
    shown: [1],
    proof: 'ab'.repeat(16),
    nested: false,
    settled: true,
    told: false,
  })
  const proof = 'cd'.repeat(16)
  const head = { session, createdAt, writer, through: through < 0 ? undefined : { seq: through, proof } }
  return encodeManifest(head, line === undefined ? [] : [line], 10_000)
}

const put = (name: string, text: string, ageMs = 0): void => {
  mkdirSync(directory, { recursive: true })
  const path = join(directory, name)
  writeFileSync(path, text)
  const at = new Date(Date.now() - ageMs)
  utimesSync(path, at, at)
}

const names = (): string[] => (existsSync(directory) ? readdirSync(directory).toSorted() : [])
const nobodyKnows = async () => undefined

describe('a store', () => {
  it('writes for its owner alone, and leaves nothing beside', async () => {
    const store = storeWith()
    expect(await store.save('s', textOf('s'))).toBeDefined()
    expect(names()).toEqual(['s.json'])
    expect(statSync(join(directory, 's.json')).mode & 0o777).toBe(0o600)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(await store.load({ id: 's', createdAt: 1 })).toMatchObject({ kind: 'manifest' })
  })

  it.each([
    ['another id in it', textOf('other'), 1],
    ['another time of making', textOf('s'), 2],
  ])('sets aside what belongs to another session: %s', async (_what, text, createdAt) => {
    put('s.json', text)
    expect(await storeWith().load({ id: 's', createdAt })).toEqual({ kind: 'unusable' })
    expect(problems).toEqual([expect.stringContaining('it belongs to another session')])
    expect(names()).toEqual([expect.stringMatching(/^s\.json\.unusable-\d+-/)])
  })

  it('keeps only so many unusable files, the latest ones', async () => {
    const store = storeWith()
    for (const text of ['one', 'two', 'three', 'four']) {
      put('s.json', text)
      await store.load({ id: 's', createdAt: 1 })
    }
    const kept = names().map((name) => readFileSync(join(directory, name), 'utf8'))
    expect(kept).toHaveLength(2)
    expect(kept).toContain('four')
    expect(problems).toHaveLength(4)
  })

  it('reads no more than the bound', async () => {
    put('s.json', ' '.repeat(limits.maxManifestBytes + 1))
    expect(await storeWith().load({ id: 's', createdAt: 1 })).toEqual({ kind: 'unusable' })
    expect(problems).toEqual([expect.stringContaining('larger than 10000 bytes')])
  })

  it.runIf(process.getuid?.() !== 0)(
    'does not set aside what it may not read (the superuser may read everything)',
    async () => {
      put('s.json', textOf('s'))
      chmodSync(join(directory, 's.json'), 0)
      expect(await storeWith().load({ id: 's', createdAt: 1 })).toEqual({ kind: 'unusable' })
      expect(names()).toEqual(['s.json'])
    },
  )

  it('reports a directory in which nothing can be written, and goes on', async () => {
    writeFileSync(directory, 'a file')
    expect(await storeWith().save('s', textOf('s'))).toBeUndefined()
    expect(problems).toEqual([expect.stringContaining('cannot be written')])
    expect(await storeWith().load({ id: 's', createdAt: 1 })).toEqual({ kind: 'none' })
  })
})

describe('tidying', () => {
  it('removes old manifests of sessions that no longer exist, and no others', async () => {
    put('old-gone.json', '', 31 * DAY)
    put('old-there.json', '', 31 * DAY)
    put('new-gone.json', '', 29 * DAY)
    put(manifestName('../Old There'), '', 31 * DAY)
    put('something-else.txt', '', 31 * DAY)
    await storeWith().tidy(async () => new Set(['old-there', '../Old There']), Date.now())
    expect(names()).toEqual(
      ['new-gone.json', 'old-there.json', manifestName('../Old There'), 'something-else.txt'].toSorted(),
    )
  })

  it('removes by age alone where nobody knows the sessions', async () => {
    put('old.json', '', 31 * DAY)
    put('new.json', '')
    await storeWith().tidy(nobodyKnows, Date.now())
    expect(names()).toEqual(['new.json'])
  })

  it('keeps only so many, those used last', async () => {
    for (let index = 0; index < 8; index += 1) put(`s${index}.json`, '', index * 1_000)
    await storeWith().tidy(nobodyKnows, Date.now())
    expect(names()).toEqual(['s0.json', 's1.json', 's2.json', 's3.json', 's4.json'])
  })

  it('removes what a killed process has left, but not what one is writing', async () => {
    put('s.json.aa11.tmp', 'half', 61_000)
    put('s.json.bb22.tmp', 'half', 1_000)
    await storeWith().tidy(nobodyKnows, Date.now())
    expect(names()).toEqual(['s.json.bb22.tmp'])
  })

  it('removes nothing when the clock was set back', async () => {
    put('s.json', '')
    put('s.json.aa11.tmp', 'half')
    await storeWith().tidy(nobodyKnows, Date.now() - 365 * DAY)
    expect(names()).toEqual(['s.json', 's.json.aa11.tmp'])
  })

  it('is silent where there is nothing yet', async () => {
    await storeWith().tidy(nobodyKnows, Date.now())
    expect(problems).toEqual([])
  })
})

describe('a keeper', () => {
  const keeperWith = (changes: Partial<KeeperParts> = {}) => {
    const store = storeWith()
    let saved = 0
    const keeper = new Keeper({
      store: {
        mark: (id) => store.mark(id),
        peek: (id) => store.peek(id),
        save: (id, text) => {
          saved += 1
          return store.save(id, text)
        },
      },
      sessionId: 's',
      writer: 'mine',
      delayMs: 0,
      loaded: Promise.resolve(undefined),
      compose: () => ({ text: textOf('s', { writer: 'mine', through: 5 }), through: 5 }),
      through: () => 5,
      report: (problem) => problems.push(problem),
      detached: (make) => make(),
      ...changes,
    })
    return { keeper, saved: () => saved }
  }
  const written = (): string =>
    names().includes('s.json') ? readFileSync(join(directory, 's.json'), 'utf8') : ''

  it('writes many changes at once', async () => {
    const { keeper, saved } = keeperWith()
    for (let index = 0; index < 100; index += 1) keeper.changed()
    await waitFor(() => written() !== '', { timeoutMs: 5_000, describe: 'a manifest' })
    await keeper.close()
    expect(saved()).toBe(1)
  })

  it('writes what is not written yet when it is closed, and nothing afterwards', async () => {
    const { keeper, saved } = keeperWith({ delayMs: 600_000 })
    keeper.changed()
    await keeper.close()
    expect(written()).not.toBe('')
    keeper.changed()
    await keeper.close()
    expect(saved()).toBe(1)
  })

  it('writes nothing before it is known what was there', async () => {
    const loading = Promise.withResolvers<undefined>()
    const { keeper, saved } = keeperWith({ loaded: loading.promise })
    keeper.changed()
    const closed = keeper.close()
    await new Promise((resolve) => setImmediate(resolve))
    expect(saved()).toBe(0)
    loading.resolve(undefined)
    await closed
    expect(saved()).toBe(1)
  })

  it('leaves what another process wrote that is further, and says so', async () => {
    put('s.json', textOf('s', { writer: 'theirs', through: 9 }))
    const { keeper, saved } = keeperWith()
    keeper.changed()
    await keeper.close()
    expect(saved()).toBe(0)
    expect(written()).toContain('theirs')
    expect(problems).toEqual([expect.stringContaining('two processes')])
  })

  it.each([
    ['is not further', textOf('s', { writer: 'theirs', through: 5 })],
    ['is unusable', 'nonsense'],
  ])('replaces what another process wrote that %s', async (_what, text) => {
    put('s.json', text)
    const { keeper } = keeperWith()
    keeper.changed()
    await keeper.close()
    expect(written()).toContain('mine')
    expect(problems).toEqual([])
  })

  it('writes at the end how far the log was followed, if that has moved, and nothing otherwise', async () => {
    let through = 5
    const { keeper, saved } = keeperWith({ through: () => through })
    await new Promise((resolve) => setImmediate(resolve))
    through = 6
    await keeper.close()
    expect(saved()).toBe(1)
    const quiet = keeperWith()
    await quiet.keeper.close()
    expect(quiet.saved()).toBe(0)
  })

  it('does not read its own file again', async () => {
    let peeks = 0
    const store = storeWith()
    const { keeper } = keeperWith({
      store: {
        mark: (id) => store.mark(id),
        save: (id, text) => store.save(id, text),
        peek: (id) => {
          peeks += 1
          return store.peek(id)
        },
      },
    })
    keeper.changed()
    await waitFor(() => written() !== '', { timeoutMs: 5_000, describe: 'a manifest' })
    keeper.changed()
    await keeper.close()
    expect(peeks).toBe(0)
  })

  it('tries again after a failure', async () => {
    writeFileSync(directory, 'in the way')
    const { keeper } = keeperWith()
    keeper.changed()
    await waitFor(() => problems.length > 0, { timeoutMs: 5_000, describe: 'a report' })
    rmSync(directory)
    keeper.changed()
    await keeper.close()
    expect(written()).toContain('mine')
  })
})
