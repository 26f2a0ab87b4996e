/**
 * A fault at every single await of a boundary. An abort there leaves everything as if the boundary had not
 * happened; a call that fails there keeps nothing from being told, once; a write there leaves no session
 * with a picture of the file that is silently wrong.
 */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { HeadWatch } from '../../src/head.ts'
import { RootWatch } from '../../src/watch/root-watch.ts'
import { boot, type Harness, quiet, read, type TestAgent } from '../support/harness.ts'
import { applyHunk, readNotice } from './notice-text.ts'

type Fault = 'abort' | 'fail' | 'write'
type Place = 'first request of a turn' | 'a later request' | 'end of a turn'

/** Counts the awaits of one boundary and acts at one of them. */
class Tripwire {
  #left = 0
  #act: () => void = () => undefined

  /** @param nth - from 1. */
  arm(nth: number, act: () => void): void {
    this.#left = nth
    this.#act = act
  }

  /** @returns whether the boundary came as far as the tripwire. */
  disarm(): boolean {
    const hit = this.#left <= 0
    this.#left = 0
    this.#act = () => undefined
    return hit
  }

  pass(): void {
    this.#left -= 1
    if (this.#left === 0) this.#act()
  }
}

const tripwire = new Tripwire()

beforeEach(() => {
  const barrier = Reflect.get<RootWatch, 'barrier'>(RootWatch.prototype, 'barrier')
  vi.spyOn(RootWatch.prototype, 'barrier').mockImplementation(async function (this: RootWatch, ...args) {
    tripwire.pass()
    return barrier.apply(this, args)
  })
  const look = Reflect.get<HeadWatch, 'look'>(HeadWatch.prototype, 'look')
  vi.spyOn(HeadWatch.prototype, 'look').mockImplementation(async function (this: HeadWatch, ...args) {
    tripwire.pass()
    return look.apply(this, args)
  })
  return () => vi.restoreAllMocks()
})

const ORIGINAL = 'one\ntwo\nthree\n'
const CHANGED = 'one\nTWO\nthree\n'
const REWRITTEN = 'one\nTWO\nthree and more\n'
const INJECTED = 'a fault that a test has injected'
/** More awaits than a boundary has. */
const MOST = 500

interface Scene {
  readonly harness: Harness
  readonly agent: TestAgent
  readonly at: (name: string) => string
}

/** A session that knows two files and an instruction file; then everything changes. */
const stage = async (harness: Harness, number: number, place: Place): Promise<Scene> => {
  const at = (name: string) => `r${number}/${name}`
  for (const name of ['a.ts', 'b.ts', 'c.ts']) harness.write(at(name), ORIGINAL)
  harness.write(at('AGENTS.md'), 'Be brief.\n')
  const agent = await harness.agent(`agent-${number}`, { cwd: `r${number}` })
  await agent.prompt()
  await agent.call(read('a.ts'), read('b.ts'), read('c.ts'))
  await harness.live()
  await agent.call(quiet)
  if (place === 'first request of a turn') await agent.end()
  harness.write(at('a.ts'), CHANGED)
  harness.remove(at('b.ts'))
  harness.write(at('new.ts'), 'new\n')
  harness.write(at('AGENTS.md'), 'Be very brief.\n')
  return { harness, agent, at }
}

const reach = async (agent: TestAgent, place: Place): Promise<void> => {
  if (place === 'first request of a turn') await agent.submit()
  else if (place === 'a later request') await agent.answer({ calls: [quiet] })
  else await agent.finish()
}

/** Two more boundaries, after which everything must have been told. */
const goOn = async (agent: TestAgent): Promise<void> => {
  if (agent.agent.status === 'idle') await agent.prompt()
  else await agent.call(quiet)
  await agent.call(quiet)
}

const count = (agent: TestAgent, word: string): number =>
  agent.notices.reduce((sum, { text }) => sum + text.split(word).length - 1, 0)

const instructionsOf = ({ session }: TestAgent): string[] =>
  session.events.flatMap((event) =>
    event.type === 'user/message' && event.data.source.kind === 'agent-instructions'
      ? [JSON.stringify(event.data.content)]
      : [],
  )

const fitted = (base: string, hunk: readonly string[]): string | undefined => {
  try {
    return applyHunk(base, hunk)
  } catch {
    // It is shown against another base.
    return undefined
  }
}

/** What the session takes the file to hold, by everything that it was shown; `undefined`: to be read again. */
const pictureOf = (agent: TestAgent, path: string): string | undefined => {
  let picture: string | undefined = ORIGINAL
  for (const { text, category } of agent.notices) {
    if (category !== 'changes') continue
    const change = readNotice(text).changes.find((change) => change.path === path)
    if (!change) continue
    // A message that waits for its step is no base of the next one.
    const bases: readonly (string | undefined)[] = [picture, ORIGINAL]
    picture = undefined
    if (change.hunk.length === 0) continue
    for (const base of bases) picture ??= base === undefined ? undefined : fitted(base, change.hunk)
    if (picture === undefined) throw new Error(`what is shown fits nothing: ${text}`)
  }
  return picture
}

/** Run the scene once for each await of the boundary. @returns how many there were. */
const atEveryAwait = async (
  place: Place,
  act: (scene: Scene) => void,
  judge: (scene: Scene, hit: boolean) => Promise<void>,
): Promise<number> => {
  const harness = await boot()
  harness.probe.beforeCall = () => tripwire.pass()
  for (let nth = 1; nth < MOST; nth++) {
    const scene = await stage(harness, nth, place)
    tripwire.arm(nth, () => act(scene))
    await reach(scene.agent, place)
    const hit = tripwire.disarm()
    try {
      await judge(scene, hit)
    } catch (error) {
      throw new Error(
        `at await ${nth} of the boundary: ${String(error)}: ${JSON.stringify(scene.agent.notices.map(({ text }) => text))}`,
        { cause: error },
      )
    }
    if (scene.agent.agent.status !== 'idle') await scene.agent.cancel()
    await scene.agent.dispose()
    harness.agents.delete(scene.agent.name)
    const unexpected = harness.errors.filter((error) => !error.includes(INJECTED))
    expect(unexpected).toEqual([])
    if (!hit) return nth - 1
  }
  throw new Error(`a boundary of more than ${MOST} awaits`)
}

const toldAll = ({ agent }: Scene): void => {
  expect(count(agent, '- modified "a.ts"')).toBe(1)
  expect(count(agent, '- deleted "b.ts"')).toBe(1)
  expect(count(agent, '- created "new.ts"')).toBe(1)
  expect(count(agent, 'ed "c.ts"')).toBe(0)
  expect(instructionsOf(agent).filter((text) => text.includes('very brief'))).toHaveLength(1)
}

const PLACES: readonly Place[] = ['first request of a turn', 'a later request', 'end of a turn']
/** Many scenes on a busy machine. */
const PATIENCE_MS = 300_000
/** A boundary of the scene asks at least about each of its files once. */
const LEAST = 6

const FAULTS: Readonly<
  Record<
    Fault,
    { readonly act: (scene: Scene) => void; readonly judge: (scene: Scene, hit: boolean) => Promise<void> }
  >
> = {
  abort: {
    act: ({ agent }) => agent.agent.cancel({ kind: 'user' }),
    judge: async (scene) => {
      const { agent } = scene
      await goOn(agent)
      toldAll(scene)
      // The whole change is shown, as if nothing had come in between.
      expect(pictureOf(agent, 'a.ts')).toBe(CHANGED)
      expect(count(agent, 'could not verify')).toBe(0)
      expect(count(agent, 'Used by this session:')).toBe(1)
    },
  },
  fail: {
    act: () => {
      throw new Error(INJECTED)
    },
    judge: async (scene) => {
      await goOn(scene.agent)
      toldAll(scene)
    },
  },
  write: {
    act: ({ harness, at }) => harness.write(at('a.ts'), REWRITTEN),
    judge: async ({ agent }, hit) => {
      await goOn(agent)
      expect([undefined, hit ? REWRITTEN : CHANGED]).toContain(pictureOf(agent, 'a.ts'))
      expect(count(agent, '- modified "a.ts"')).toBeGreaterThan(0)
    },
  },
}

describe.each(PLACES)('at every await of a boundary (%s)', (place) => {
  it.each([
    ['an abort leaves everything as if it had not happened', 'abort'],
    ['a call that fails keeps nothing from being told once', 'fail'],
    ['a write leaves no picture that is silently wrong', 'write'],
  ] as const)(
    '%s',
    async (_what, fault) => {
      const { act, judge } = FAULTS[fault]
      const awaits = await atEveryAwait(place, act, judge)
      expect(awaits).toBeGreaterThan(LEAST)
    },
    PATIENCE_MS,
  )
})
