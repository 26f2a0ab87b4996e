/** Whatever comes from outside: settings, logs, names, contents, answers of the filesystem service. */
import { rmSync, writeFileSync } from 'node:fs'
import { type FsInfo, FsVersion } from '@deepseek-ai/dsh-fs'
import { createUserMessage } from '@deepseek-ai/dsh-llm'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkConfig, ConfigError, describeConfig } from '../../src/config.ts'
import { parseScope, readSource } from '../../src/instructions/protocol.ts'
import { Standing } from '../../src/instructions/standing.ts'
import { differenceOf } from '../../src/notice/hunk.ts'
import { boot, quiet, read, resultsIn, textOf } from '../support/harness.ts'
import { applyHunk, readNotice } from './notice-text.ts'

/** Many real files: a busy machine must not decide. */
const PATIENCE_MS = 120_000
const RUNS_ON_DISK = 40

const keys = describeConfig().map(({ key }) => key.split('.'))

/** Values that are right, nearly right, and anything else. */
const setting: fc.Arbitrary<unknown> = fc.oneof(
  fc.integer({ min: -2, max: 100_000 }),
  fc.boolean(),
  fc.array(fc.string(), { maxLength: 3 }),
  fc.constantFrom('auto', 'off', 'chokidar', 'polling', 'session', 'workspace', '', null, Number.NaN),
  fc.anything(),
)
const nearConfig = fc.array(fc.tuple(fc.constantFrom(...keys), setting), { maxLength: 4 }).map((settings) => {
  const config: Record<string, Record<string, unknown>> = {}
  for (const [[room = '', key = ''], value] of settings) config[room] = { ...config[room], [key]: value }
  return config
})
const anyConfig: fc.Arbitrary<unknown> = fc.oneof(
  nearConfig,
  fc.anything(),
  fc.jsonValue(),
  fc.record(
    { watch: fc.anything(), notice: fc.anything(), instructions: fc.anything() },
    { requiredKeys: [] },
  ),
)

describe('any configuration', () => {
  it('is complete afterwards, or refused with the key, the value and what is allowed', () => {
    fc.assert(
      fc.property(anyConfig, (raw) => {
        const [config, error] = tried(() => checkConfig(raw))
        expect(config === undefined).toBe(error instanceof ConfigError)
        expect(String(error)).toMatch(/^undefined$|dsh-live-workspace: .+ is [^]+; allowed: ./)
        const isOff = config?.instructions === false
        const expected = keys.filter(([room]) => config && !(room === 'instructions' && isOff))
        for (const key of expected) expect(config).toHaveProperty(key)
        // What was accepted once is accepted again, as the same.
        expect(config && checkConfig(config)).toEqual(config)
      }),
      { numRuns: 2_000 },
    )
  })
})

const tried = <T>(work: () => T): [T, undefined] | [undefined, unknown] => {
  try {
    return [work(), undefined]
  } catch (error) {
    return [undefined, error]
  }
}

const scope = fc.oneof(
  fc.tuple(
    fc.constantFrom('.', 'a', 'a/b', 'user-global', './user-global'),
    fc.constantFrom('AGENTS.md', ''),
  ),
  fc.tuple(fc.string(), fc.string()),
)
const change = fc.oneof(
  fc.record({
    action: fc.constantFrom('set', 'replace', 'remove', 'other'),
    scope: scope.map(([directory, name]) => `${directory}\0${name}`),
    path: fc.string(),
    digest: fc.option(fc.string(), { nil: undefined }),
  }),
  fc.jsonValue(),
)
const source: fc.Arbitrary<unknown> = fc.oneof(
  fc.record({
    kind: fc.constant('agent-instructions'),
    form: fc.constant('instructions'),
    baseline: fc.jsonValue(),
    baselineIdentity: fc.jsonValue(),
    changes: fc.oneof(fc.array(change, { maxLength: 4 }), fc.jsonValue()),
  }),
  fc.anything(),
)

describe('any source in a session log', () => {
  it('is read or passed over, and only well-formed scopes have a word', () => {
    fc.assert(
      fc.property(fc.array(source, { maxLength: 5 }), (sources) => {
        for (const [key, word] of new Standing(sources).words) {
          expect(parseScope(key)).toBeDefined()
          expect(typeof word.path).toBe('string')
        }
        // What was read is read again as the same.
        const known = sources.flatMap((value) => readSource(value) ?? [])
        expect(structuredClone(known).map((source) => readSource(source))).toEqual(known)
      }),
      { numRuns: 2_000 },
    )
  })

  it(
    'keeps no step from going on and no change from being told',
    async () => {
      const harness = await boot({ files: { 'AGENTS.md': 'Be brief.\n' } })
      let run = 0
      const kind = fc.constantFrom('agent-instructions', 'plugin', 'other')
      const junk = fc.record({ kind, changes: fc.oneof(fc.array(change, { maxLength: 3 }), fc.jsonValue()) })
      await fc.assert(
        fc.asyncProperty(fc.array(junk, { minLength: 1, maxLength: 3 }), async (sources) => {
          run += 1
          const name = `f${run}.ts`
          harness.write(name, 'one\n')
          const agent = await harness.agent(`junk-${run}`)
          for (const source of sources) {
            // The log takes whatever JSON a source holds.
            const message = {
              content: [{ type: 'text' as const, text: 'junk' }],
              source: plain(source) as never,
            }
            agent.agent.inbox.append('next-turn', createUserMessage(message))
          }
          await agent.prompt()
          await agent.call(read(name))
          harness.write(name, 'two\n')
          await agent.call(quiet)
          expect(textOf(agent.told)).toContain(`- modified "${name}"`)
          await agent.cancel()
          await agent.dispose()
          harness.agents.delete(agent.name)
          expect(harness.errors).toEqual([])
        }),
        { numRuns: RUNS_ON_DISK },
      )
    },
    PATIENCE_MS,
  )
})

/** Without what a log would refuse. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const MOST_NAME_BYTES = 120
const SPECIAL = ['</system-reminder>', '\u202e', '\n', '"', '\\', '\u200b', '\t', '- deleted "x"', '\u0007']
const fileName = fc
  .array(fc.oneof(fc.string({ unit: 'binary', maxLength: 8 }), fc.constantFrom(...SPECIAL)), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.join('').replaceAll(/[/\0]/g, '_').toWellFormed())
  .filter(
    (name) =>
      !/^\.|^(AGENTS|CLAUDE)|node_modules/.test(name) &&
      name !== '' &&
      !name.includes('\uFFFD') &&
      Buffer.byteLength(name) < MOST_NAME_BYTES,
  )
/** Bytes that are no UTF-8, behind a letter. */
const byteName = fc
  .uint8Array({ minLength: 1, maxLength: 40 })
  .map((bytes) => Buffer.from([0x62, 0xff, ...bytes].filter((byte) => byte !== 0x2f && byte !== 0)))

describe.skipIf(process.platform !== 'linux')('any file name', () => {
  it(
    'is told as it is, or counted where it is no text, within the frame and the budget',
    async () => {
      const met = new Set<string>()
      const maxNoticeBytes = 65_536
      const harness = await boot({ config: { notice: { maxNoticeBytes, maxPathBytes: 4_096 } } })
      const agent = await harness.agent('main')
      await agent.prompt()
      await harness.live()
      await fc.assert(
        fc.asyncProperty(fileName, fc.array(byteName, { maxLength: 2 }), async (name, names) => {
          const paths = [
            Buffer.from(harness.path(name)),
            ...names.map((bytes) => Buffer.concat([Buffer.from(`${harness.workspace}/`), bytes])),
          ]
          for (const path of paths) writeFileSync(path, `${Math.random()}\n`)
          await agent.call(read(harness.path(name)))
          const [first] = agent.told
          // The agent read it by its own name, so it is used from now on.
          expect(resultsIn(agent.request).at(-1)).toContain('file')
          // As text some of them are the same name, and one that keeps changing is not told each time.
          const fresh = names.map(String).filter((text) => !met.has(text))
          for (const text of fresh) met.add(text)
          expect(first === undefined ? 0 : readNotice(first.text).counted).toBeGreaterThanOrEqual(
            Math.min(1, fresh.length),
          )
          writeFileSync(paths[0] ?? '', 'changed\n')
          await agent.call(quiet)
          const [told] = agent.told
          expect(agent.told).toHaveLength(1)
          expect(Buffer.byteLength(told?.text ?? '')).toBeLessThanOrEqual(maxNoticeBytes)
          const { changes } = readNotice(told?.text ?? '')
          expect(changes.filter(({ used }) => used).map(({ path }) => path)).toEqual([name])
          for (const path of paths) rmSync(path)
          await agent.call(quiet)
          expect(harness.errors).toEqual([])
        }),
        { numRuns: RUNS_ON_DISK },
      )
      await agent.cancel()
    },
    PATIENCE_MS,
  )
})

const line = fc.oneof(
  fc.constantFrom('a', 'b', 'c', '', '</system-reminder>', '- deleted "x"', '\\ No newline at end of file'),
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll(/[\r\n]/g, '')),
)
const text = fc
  .tuple(fc.array(line, { maxLength: 12 }), fc.constantFrom('\n', '\n', '\r\n'), fc.boolean(), fc.boolean())
  .map(
    ([lines, ending, bom, closed]) =>
      (bom ? '\uFEFF' : '') + lines.join(ending) + (closed && lines.length > 0 ? ending : ''),
  )
const hasMark = (text: string): boolean => text.startsWith('\uFEFF')
const withoutEncoding = (text: string): string => text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')

describe('any two contents of a file', () => {
  it('differ by exactly what is shown as complete', () => {
    fc.assert(
      fc.property(
        text,
        text,
        fc.nat({ max: 400 }),
        fc.nat({ max: 3 }),
        (before, after, bytes, contextLines) => {
          fc.pre(before !== after)
          const limits = { maxHunkBytes: bytes, maxLineBytes: 64, contextLines }
          const difference = differenceOf(before, after, limits)
          fc.pre(difference.kind === 'hunk')
          const { lines, complete, encoding } = difference
          expect(lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)).toBeLessThanOrEqual(bytes)
          const [old, now] = [withoutEncoding(before), withoutEncoding(after)]
          expect(complete ? applyHunk(old, lines) : now).toBe(now)
          // That the encoding is another one too is said.
          expect(encoding !== undefined || hasMark(before) === hasMark(after)).toBe(true)
        },
      ),
      { numRuns: 3_000 },
    )
  })

  it(
    'reach the model in an intact frame, as instructions and as a change',
    async () => {
      const harness = await boot()
      const agent = await harness.agent('main')
      await agent.prompt()
      await harness.live()
      const bytes = fc.oneof(
        text.map((text) => Buffer.from(text)),
        fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      )
      await fc.assert(
        fc.asyncProperty(bytes, bytes, async (first, second) => {
          writeFileSync(harness.path('AGENTS.md'), first)
          writeFileSync(harness.path('a.ts'), first)
          await agent.call(read('a.ts'))
          writeFileSync(harness.path('a.ts'), second)
          writeFileSync(harness.path('AGENTS.md'), second)
          const { messages } = await agent.call(quiet)
          for (const { text, category } of agent.told) if (category === 'changes') readNotice(text)
          for (const { source, content } of messages) {
            if (source.kind !== 'agent-instructions') continue
            const [block] = content
            const text = block?.type === 'text' ? block.text : ''
            expect(text.match(/<\s*\/?\s*system-reminder/gi)).toEqual([
              '<system-reminder',
              '</system-reminder',
            ])
          }
        }),
        { numRuns: RUNS_ON_DISK },
      )
      // A text that cannot be taken over is reported; nothing has failed.
      expect(harness.errors.filter((error) => error.includes('please report'))).toEqual([])
      await agent.cancel()
    },
    PATIENCE_MS,
  )
})

type Distortion = (info: FsInfo | undefined) => FsInfo | undefined

const thrown = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    'text',
    7,
    new Error('boom'),
    { code: 'FS_IO_ERROR' },
    { code: 7 },
  ),
  fc.anything(),
)
const distortion: fc.Arbitrary<Distortion> = fc.oneof(
  fc.constant<Distortion>((info) => info),
  fc.constant<Distortion>(() => undefined),
  thrown.map<Distortion>((value) => () => {
    throw value
  }),
  fc
    .record({
      version: fc.string(),
      type: fc.constantFrom('file' as const, 'directory' as const, 'other' as const),
      size: fc.option(fc.oneof(fc.double(), fc.integer()), { nil: undefined }),
    })
    .map<Distortion>(({ version, type, size }) => () => ({
      version: FsVersion(version),
      type,
      ...(size === undefined ? {} : { size }),
    })),
)

describe('any answer of the filesystem service', () => {
  it(
    'keeps no step from going on, and once it speaks the truth again, the truth is told',
    async () => {
      const harness = await boot({ files: { 'AGENTS.md': 'Be brief.\n' } })
      let run = 0
      await fc.assert(
        fc.asyncProperty(fc.array(distortion, { minLength: 1, maxLength: 6 }), async (distortions) => {
          run += 1
          const name = `d${run}/f.ts`
          harness.write(name, 'one\n')
          const agent = await harness.agent(`distorted-${run}`)
          await agent.turn(read(name))
          let asked = 0
          harness.probe.distort = (_path, info) => {
            asked += 1
            return distortions[asked % distortions.length]?.(info)
          }
          await agent.prompt()
          for (let step = 0; step < 3; step++) {
            harness.write(name, `while distorted ${step}\n`)
            await agent.call(quiet)
          }
          harness.probe.distort = (_path, info) => info
          await agent.call(quiet)
          await agent.call(read(name))
          expect(resultsIn(agent.request).at(-1)).toContain('while distorted 2')
          harness.write(name, 'the last text\n')
          await agent.call(quiet)
          expect(textOf(agent.told)).toContain(`- modified "${name}"`)
          await agent.cancel()
          await agent.dispose()
          harness.agents.delete(agent.name)
          expect(harness.errors.filter((error) => error.includes('please report'))).toEqual([])
        }),
        { numRuns: RUNS_ON_DISK },
      )
    },
    PATIENCE_MS,
  )
})
