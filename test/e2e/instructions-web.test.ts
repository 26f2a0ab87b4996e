import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { installBundle, packBundle, scratchHome, type ScratchHome } from '../support/dsh.ts'
import { changesOf, occurrences, toldInstructions } from '../support/instructions.ts'
import {
  callBash,
  callRead,
  injectedTexts,
  say,
  startScriptedModel,
  type ModelRequest,
  type Reply,
  type Script,
  type ScriptedModel,
} from '../support/scripted-model.ts'
import { ourMessages, type SessionEvent } from '../support/session-log.ts'
import { startWeb, type DshWeb } from '../support/web.ts'

const ROOT_RULE = 'Rule of the root: answer in rhyme.\n'
const NEW_ROOT_RULE = 'New rule of the root: answer in prose.\n'
const FOLDER_RULE = 'Rule of the folder: never use tabs.\n'
const NEW_FOLDER_RULE = 'New rule of the folder: use tabs.\n'
const GLOBAL_RULE = 'Rule of the person: be brief.\n'
const BASELINE = ['baseline set user-global:AGENTS.md', 'baseline set .:AGENTS.md']
// Some of the tests start dsh web twice.
const TEST_TIMEOUT_MS = 60_000

let home: ScratchHome
let model: ScriptedModel
let web: DshWeb | undefined

/** What the model still has to answer, by session; without an entry it ends the turn. */
const pending = new Map<string, (Reply | Script)[]>()

beforeAll(async () => {
  home = scratchHome('instructions-web')
  model = await startScriptedModel(async (request) => {
    const reply = pending.get(request.session)?.shift() ?? say('done')
    return typeof reply === 'function' ? reply(request) : reply
  })
  await installBundle({ profile: 'web', home, tarball: packBundle(home.root) })
  writeFileSync(join(home.dshHome, 'AGENTS.md'), GLOBAL_RULE)
})

afterEach(async () => {
  await web?.stop()
  web = undefined
})

afterAll(async () => {
  await model.close()
  home.remove()
})

const start = async (): Promise<DshWeb> => {
  web = await startWeb({ cwd: home.root, env: home.runEnv(model.baseURL) })
  return web
}

/** One session of a web process. */
class WebSession {
  readonly id: string
  #web: DshWeb

  constructor(dsh: DshWeb, id: string) {
    this.#web = dsh
    this.id = id
  }

  static async create(dsh: DshWeb, cwd: string): Promise<WebSession> {
    return new WebSession(dsh, await dsh.createSession(cwd))
  }

  /** One turn, in which the model answers as given and then ends it. */
  async turn(text: string, ...replies: readonly (Reply | Script)[]): Promise<void> {
    pending.set(this.id, [...replies])
    await this.#web.prompt(this.id, text)
  }

  /** Ends the process, runs `offline`, and starts another one that goes on with the session. */
  async restart(offline: () => void): Promise<void> {
    const { code } = await this.#web.stop()
    if (code !== 0) throw new Error(`dsh web ended with ${String(code)}`)
    offline()
    this.#web = await start()
  }

  async events(): Promise<readonly SessionEvent[]> {
    return this.#web.history(this.id)
  }

  async changes(): Promise<readonly string[]> {
    return changesOf(toldInstructions({ events: await this.events() }))
  }

  async notices(): Promise<readonly string[]> {
    return ourMessages({ events: await this.events() }).map(({ text }) => text)
  }

  get requests(): readonly ModelRequest[] {
    return model.conversation(this.id)
  }

  /** How often each request carried a text, from the last `most` requests. */
  counts(text: string, most = Infinity): readonly number[] {
    return this.requests
      .slice(-most)
      .map((request) => occurrences(injectedTexts(request).join('\n'), text.trim()))
  }

  /** How often the whole log holds a text in a message to the model. */
  async logged(text: string): Promise<number> {
    const messages = (await this.events()).filter(({ type }) => type === 'user/message')
    return occurrences(messages.map(({ data }) => JSON.stringify(data['content'])).join('\n'), text.trim())
  }
}

const quietStep = callBash('true')

/** Something happens in the workspace while the model answers. */
const meanwhile =
  (action: () => void, reply: Reply = quietStep): Script =>
  () => {
    action()
    return reply
  }

describe('beside the loader of the agent presets', { timeout: TEST_TIMEOUT_MS }, () => {
  it('the baseline and an edit of it are told once, in the log and in every request', async () => {
    const workspace = home.makeWorkspace({ 'AGENTS.md': ROOT_RULE })
    const session = await WebSession.create(await start(), workspace)
    await session.turn('Begin.', quietStep)
    await session.turn('Go on.', quietStep)
    expect(session.counts(ROOT_RULE)).toEqual([1, 1, 1, 1])
    expect(session.counts(GLOBAL_RULE)).toEqual([1, 1, 1, 1])
    expect(await session.changes()).toEqual(BASELINE)

    const edit = () => writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)
    await session.turn('Work.', meanwhile(edit), quietStep, quietStep)
    await session.turn('Go on.')
    expect(session.counts(NEW_ROOT_RULE, 5)).toEqual([0, 1, 1, 1, 1])
    expect(session.counts(ROOT_RULE, 5)).toEqual([1, 1, 1, 1, 1])
    expect(await session.changes()).toEqual([...BASELINE, 'replace .:AGENTS.md'])
    for (const rule of [ROOT_RULE, NEW_ROOT_RULE, GLOBAL_RULE]) expect(await session.logged(rule)).toBe(1)
    expect(await session.notices()).toEqual([])
  })

  it('an edit during the last answer is told once, in exactly one more step', async () => {
    const workspace = home.makeWorkspace({ 'AGENTS.md': ROOT_RULE })
    const session = await WebSession.create(await start(), workspace)
    const edit = () => writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)
    await session.turn('Begin.', meanwhile(edit, say('too early')))
    expect(session.counts(NEW_ROOT_RULE)).toEqual([0, 1])
    await session.turn('Go on.')

    expect(session.counts(NEW_ROOT_RULE)).toEqual([0, 1, 1])
    expect(await session.changes()).toEqual([...BASELINE, 'replace .:AGENTS.md'])
  })

  it('nested files are told once: by a read, and in a visited directory without a touch', async () => {
    const workspace = home.makeWorkspace({
      'AGENTS.md': ROOT_RULE,
      'old/AGENTS.md': FOLDER_RULE,
      'old/a.ts': 'export {}\n',
      'young/a.ts': 'export {}\n',
    })
    const [old, young] = ['old', 'young'].map((name) => join(workspace, name, 'a.ts'))
    if (old === undefined || young === undefined) throw new Error('there are two directories')
    const rule = join(workspace, 'young', 'AGENTS.md')
    const session = await WebSession.create(await start(), workspace)
    await session.turn(
      'Begin.',
      callRead(old),
      callRead(young),
      meanwhile(() => writeFileSync(rule, NEW_FOLDER_RULE)),
      quietStep,
      callRead(young),
    )
    expect(session.counts(FOLDER_RULE)).toEqual([0, 1, 1, 1, 1, 1])
    expect(session.counts(NEW_FOLDER_RULE)).toEqual([0, 0, 0, 1, 1, 1])
    await session.turn(
      'Go on.',
      meanwhile(() => rmSync(rule)),
      callRead(young),
      quietStep,
    )

    expect(session.counts('Instructions removed: young/AGENTS.md', 4)).toEqual([0, 1, 1, 1])
    expect(await session.changes()).toEqual([
      ...BASELINE,
      'set old:AGENTS.md',
      'set young:AGENTS.md',
      'remove young:AGENTS.md',
    ])
    for (const text of [FOLDER_RULE, NEW_FOLDER_RULE]) expect(await session.logged(text)).toBe(1)
  })

  it('what changed while dsh was off is told once after the restart, removals too', async () => {
    const workspace = home.makeWorkspace({
      'AGENTS.md': ROOT_RULE,
      'CLAUDE.md': 'Rule for another agent.\n',
      'folder/AGENTS.md': FOLDER_RULE,
      'folder/a.ts': 'export {}\n',
    })
    const session = await WebSession.create(await start(), workspace)
    await session.turn('Begin.', callRead(join(workspace, 'folder', 'a.ts')))
    const before = await session.changes()
    expect(before).toEqual([...BASELINE, 'baseline set .:CLAUDE.md', 'set folder:AGENTS.md'])
    await session.restart(() => {
      writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)
      writeFileSync(join(workspace, 'folder', 'AGENTS.md'), NEW_FOLDER_RULE)
      rmSync(join(workspace, 'CLAUDE.md'))
    })
    await session.turn('Go on.', quietStep, callRead(join(workspace, 'folder', 'a.ts')))
    await session.turn('Go on.', quietStep)

    expect((await session.changes()).slice(before.length).toSorted()).toEqual([
      'remove .:CLAUDE.md',
      'replace .:AGENTS.md',
      'replace folder:AGENTS.md',
    ])
    expect(session.counts(NEW_ROOT_RULE, 5)).toEqual([1, 1, 1, 1, 1])
    expect(session.counts(NEW_FOLDER_RULE, 5)).toEqual([1, 1, 1, 1, 1])
    for (const rule of [ROOT_RULE, FOLDER_RULE, NEW_ROOT_RULE, NEW_FOLDER_RULE, GLOBAL_RULE])
      expect(await session.logged(rule)).toBe(1)
  })

  it('two sessions do not see what the other one was told', async () => {
    const dsh = await start()
    const workspace = home.makeWorkspace({
      'AGENTS.md': ROOT_RULE,
      'folder/AGENTS.md': FOLDER_RULE,
      'folder/a.ts': 'export {}\n',
    })
    const elsewhere = home.makeWorkspace({ 'AGENTS.md': 'Rule of elsewhere.\n' })
    const first = await WebSession.create(dsh, workspace)
    const second = await WebSession.create(dsh, workspace)
    const foreign = await WebSession.create(dsh, elsewhere)
    await second.turn('Begin.')
    await foreign.turn('Begin.')
    await first.turn('Begin.', callRead(join(workspace, 'folder', 'a.ts')))
    writeFileSync(join(workspace, 'folder', 'AGENTS.md'), NEW_FOLDER_RULE)
    await first.turn('Go on.', quietStep)
    await second.turn('Go on.', quietStep)
    await foreign.turn('Go on.', quietStep)

    expect(await first.changes()).toEqual([...BASELINE, 'set folder:AGENTS.md', 'replace folder:AGENTS.md'])
    expect(await second.changes()).toEqual(BASELINE)
    expect(await foreign.changes()).toEqual(BASELINE)
    expect(await foreign.logged(ROOT_RULE)).toBe(0)
    expect(await second.logged(NEW_FOLDER_RULE)).toBe(0)
  })
})
