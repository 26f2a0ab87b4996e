import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installBundle, packBundle, scratchHome, type ScratchHome } from '../support/dsh.ts'
import {
  callRead,
  callWrite,
  injectedTexts,
  noticesIn,
  say,
  startScriptedModel,
  type ModelRequest,
  type Reply,
  type ScriptedModel,
} from '../support/scripted-model.ts'
import { ourMessages, type OurMessage } from '../support/session-log.ts'
import { startWeb, type DshWeb } from '../support/web.ts'

const ROOT_RULE = 'Rule of the root: answer in rhyme.'
// The test starts dsh web twice.
const TEST_TIMEOUT_MS = 60_000
const NESTED_RULE = 'Rule of the folder: never use tabs.'

let home: ScratchHome
let workspace: string
let model: ScriptedModel
let web: DshWeb | undefined

/** What the model still has to answer, by session; without an entry it ends the turn. */
const pending = new Map<string, Reply[]>()

beforeAll(async () => {
  home = scratchHome('web')
  workspace = home.makeWorkspace({
    'AGENTS.md': `${ROOT_RULE}\n`,
    'folder/AGENTS.md': `${NESTED_RULE}\n`,
    'folder/shared.md': 'first\n',
  })
  model = await startScriptedModel(({ session }) => pending.get(session)?.shift() ?? say('done'))
  await installBundle({ profile: 'web', home, tarball: packBundle(home.root) })
})

afterAll(async () => {
  await web?.stop()
  await model.close()
  home.remove()
})

const start = async (): Promise<DshWeb> => startWeb({ cwd: workspace, env: home.runEnv(model.baseURL) })

const toldTo = async (dsh: DshWeb, session: string): Promise<readonly OurMessage[]> =>
  ourMessages({ events: await dsh.history(session) })

function lastRequest(session: string): ModelRequest {
  const request = model.conversation(session).at(-1)
  if (request === undefined) throw new Error(`${session} has asked the model nothing`)
  return request
}

/** How often the model reads a text in one request, wherever it stands. */
const occurrences = (request: ModelRequest, text: string): number =>
  injectedTexts(request).join('\n').split(text).length - 1

function expectNothingTwice(request: ModelRequest): void {
  const reminders = injectedTexts(request).filter((text) => text.includes('<system-reminder>'))
  expect(reminders).toEqual([...new Set(reminders)])
  for (const rule of [ROOT_RULE, NESTED_RULE]) expect(occurrences(request, rule)).toBeLessThanOrEqual(1)
}

describe('two sessions in one web process', () => {
  it(
    'are told of each other and, after a restart, of what happened meanwhile, and nothing twice',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      const shared = join(workspace, 'folder', 'shared.md')
      const first = await start()
      web = first
      const reader = await first.createSession(workspace)
      const writer = await first.createSession(workspace)

      pending.set(reader, [callRead(shared)])
      await first.prompt(reader, 'Read the shared file.')
      pending.set(writer, [callRead(shared), callWrite(shared, 'written by the other session\n')])
      await first.prompt(writer, 'Rewrite the shared file.')
      await first.prompt(reader, 'Go on.')

      expect(await toldTo(first, writer)).toEqual([])
      const [change, ...others] = await toldTo(first, reader)
      expect(change?.category).toBe('changes')
      expect(change?.text).toContain('shared.md')
      expect(others).toEqual([])
      expect(noticesIn(lastRequest(reader)).filter((text) => text.includes('shared.md'))).toHaveLength(1)
      for (const session of [reader, writer]) {
        expect(occurrences(lastRequest(session), ROOT_RULE)).toBe(1)
        expect(occurrences(lastRequest(session), NESTED_RULE)).toBe(1)
      }

      expect(await first.stop()).toMatchObject({ code: 0 })
      writeFileSync(shared, 'edited while dsh was off\n')
      const second = await start()
      web = second
      expect(await second.sessions()).toEqual(expect.arrayContaining([reader, writer]))
      await second.prompt(reader, 'Go on after the restart.')

      const reminders = (await toldTo(second, reader)).filter(({ category }) => category === 'resume')
      expect(reminders).toHaveLength(1)
      expect(reminders[0]?.text).toMatch(/resumed/i)
      expect(noticesIn(lastRequest(reader))).toContain(reminders[0]?.text)
      for (const request of model.conversation()) expectNothingTwice(request)
      expect(occurrences(lastRequest(reader), ROOT_RULE)).toBe(1)
      expect(occurrences(lastRequest(reader), NESTED_RULE)).toBe(1)
    },
  )
})
