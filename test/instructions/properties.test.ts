import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Standing } from '../../src/instructions/standing.ts'
import { Conversation } from './conversation.ts'

const DIRECTORIES = ['', 'a', 'a/b', 'c', 'user-global'] as const
const CHAIN = ['', 'a'] as const
const NAMES = ['AGENTS.md', 'CLAUDE.md', 'AGENTS.local.md'] as const
/** Two of them are equal when trimmed; one is above the limit of this test; one is no text. */
const TEXTS = ['one', 'two', ' one\n', '', 'x'.repeat(300), '\0binary'] as const
const LIMIT = 200

type Directory = (typeof DIRECTORIES)[number]
type Name = (typeof NAMES)[number]

type Move =
  | { readonly kind: 'write'; readonly directory: Directory; readonly name: Name; readonly text: string }
  | { readonly kind: 'remove' | 'fail'; readonly directory: Directory; readonly name: Name }
  | { readonly kind: 'touch'; readonly directory: Directory }
  | { readonly kind: 'heal' | 'compact' | 'resume' | 'lose' | 'abort' | 'step' }

const directory = fc.constantFrom(...DIRECTORIES)
const name = fc.constantFrom(...NAMES)
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      directory,
      name,
      text: fc.constantFrom(...TEXTS),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('remove' as const, 'fail' as const),
      directory,
      name,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('touch' as const), directory }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('step' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'heal' as const,
        'compact' as const,
        'resume' as const,
        'lose' as const,
        'abort' as const,
      ),
    }),
  },
)

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')
const keyOf = (directory: Directory, name: Name) =>
  `${directory === '' ? '.' : directory === 'user-global' ? './user-global' : directory}\0${name}`

/** What should be in force, without any of the code under test. */
class Model {
  readonly files = new Map<string, string>()
  readonly failing = new Set<string>()
  readonly reached = new Set<Directory>(CHAIN)
  /** Digests in force. */
  #force = new Map<string, string>()

  touch(path: Directory): void {
    for (const directory of DIRECTORIES) {
      if (path === directory || path.startsWith(`${directory}/`)) this.reached.add(directory)
    }
  }

  forget(): void {
    this.#force.clear()
  }

  /** Another process does not know directories of which the log does not speak. */
  forgetUnmentioned(mentioned: ReadonlySet<string>): void {
    for (const directory of DIRECTORIES) {
      if ((CHAIN as readonly string[]).includes(directory)) continue
      if (!NAMES.some((name) => mentioned.has(keyOf(directory, name)))) this.reached.delete(directory)
    }
  }

  /** State after a boundary: a fresh load, or the last good state where a file in force cannot be read. */
  settle(): ReadonlyMap<string, string> {
    const next = new Map<string, string>()
    for (const directory of this.reached) {
      const keys = NAMES.map((name) => keyOf(directory, name))
      const unreadable = (key: string) => {
        const text = this.files.get(key)
        return this.failing.has(key) || (text !== undefined && (text.length > LIMIT || text.includes('\0')))
      }
      if (keys.some((key) => this.#force.has(key) && unreadable(key))) {
        for (const key of keys) {
          const last = this.#force.get(key)
          if (last !== undefined) next.set(key, last)
        }
        continue
      }
      const contents = new Set<string>()
      for (const key of keys) {
        const text = this.files.get(key)
        if (text === undefined || unreadable(key) || contents.has(text.trim())) continue
        contents.add(text.trim())
        next.set(key, sha1(text))
      }
    }
    this.#force = next
    return next
  }
}

const run = async (moves: readonly Move[], live: boolean): Promise<void> => {
  const talk = await Conversation.start(
    { 'a/f': '', 'a/b/f': '', 'c/f': '', 'user-global/f': '' },
    {
      live,
      cwd: 'a',
      config: { maxSourceBytes: LIMIT },
    },
  )
  const model = new Model()
  const log: unknown[] = []
  const inForce = () => {
    const { words } = new Standing(talk.visible.map(({ source }) => source))
    return new Map(
      [...words].flatMap(([key, { digest }]) => (digest === undefined ? [] : [[key, digest] as const])),
    )
  }
  const step = async () => {
    const told = await talk.step()
    log.push(...told.map(({ source }) => source))
    for (const { source } of told) expect(source.baseline === true || source.changes.length > 0).toBe(true)
    expect(Object.fromEntries(inForce())).toEqual(Object.fromEntries(model.settle()))
    // The same state is never told twice.
    expect(await talk.room.compose(talk.view())).toEqual([])
  }
  for (const move of moves) {
    switch (move.kind) {
      case 'write':
        talk.write(join(move.directory, move.name), move.text)
        model.files.set(keyOf(move.directory, move.name), move.text)
        break
      case 'remove': {
        const path = talk.path(join(move.directory, move.name))
        rmSync(path, { force: true })
        if (live) talk.room.suspect(path)
        model.files.delete(keyOf(move.directory, move.name))
        break
      }
      case 'fail': {
        const path = talk.path(join(move.directory, move.name))
        talk.disturbance.failing.add(path)
        model.failing.add(keyOf(move.directory, move.name))
        if (live) talk.room.suspect(path)
        break
      }
      case 'heal':
        // That everything works again announces itself to nobody.
        talk.disturbance.failing.clear()
        model.failing.clear()
        break
      case 'touch':
        talk.room.touch(talk.path(join(move.directory, 'f')))
        model.touch(move.directory)
        break
      case 'compact':
        talk.compact()
        model.forget()
        break
      case 'resume': {
        // What was touched and not looked at is lost with the process.
        await step()
        talk.resume()
        talk.room.recall(log)
        model.forgetUnmentioned(new Set(new Standing(log).words.keys()))
        break
      }
      case 'lose':
        // The message does not become visible.
        await talk.room.compose(talk.view())
        break
      case 'abort': {
        const controller = new AbortController()
        const composed = talk.room.compose(talk.view({ signal: controller.signal }))
        controller.abort(new Error('enough'))
        await composed.catch(() => undefined)
        break
      }
      case 'step':
        await step()
        break
      default:
        throw new Error(`unknown move ${String(move satisfies never)}`)
    }
  }
  await step()
}

/** Many real files: a busy machine must not decide. */
const PATIENCE_MS = 120_000

describe('after each boundary, what is in force', () => {
  it.each([
    ['with live coverage', true],
    ['without it', false],
  ])(
    'equals a fresh load, or the last good state, %s',
    async (_, live) => {
      await fc.assert(
        fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 40, size: 'max' }), async (moves) =>
          run(moves, live),
        ),
        { numRuns: 40 },
      )
    },
    PATIENCE_MS,
  )

  it(
    'is reached in instalments under any budget, and every message fits',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 1_500 }),
          fc.array(fc.string({ unit: 'grapheme', maxLength: 300 }), { maxLength: 5 }),
          async (maxBytes, texts) => {
            const talk = await Conversation.start({}, { config: { maxBytes } })
            for (const [index, text] of texts.entries()) {
              talk.write(`d${index}/AGENTS.md`, text)
              talk.room.touch(talk.path(`d${index}/f`))
            }
            for (const { text, source } of await talk.settle()) {
              expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes)
              expect(source.changes.length).toBeGreaterThan(0)
            }
            const enough = 600
            if (maxBytes < enough) return
            expect(talk.room.inForce().map(({ state }) => state)).toEqual(texts.map(() => 'in-force'))
          },
        ),
        { numRuns: 40 },
      )
    },
    PATIENCE_MS,
  )

  it('is the same under a live room that is told of every event and under one that looks at everything', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'one', 'c/AGENTS.md': 'two' }, { live: true })
    await talk.touch('c/f')
    writeFileSync(talk.path('c/CLAUDE.md'), 'three')
    expect(await talk.step()).toEqual([])
    talk.live = false
    expect(await talk.step()).toHaveLength(1)
  })
})
