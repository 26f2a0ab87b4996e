import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { installBundle, packBundle, scratchHome, type ScratchHome } from '../support/dsh.ts'
import {
  callRead,
  callTool,
  callTools,
  noticesIn,
  say,
  startScriptedModel,
  type ModelRequest,
  type Reply,
  type ScriptedModel,
} from '../support/scripted-model.ts'
import { waitFor } from '../support/wait.ts'
import { startWeb, type DshWeb } from '../support/web.ts'

// A test starts dsh web twice.
const TEST_TIMEOUT_MS = 90_000

let home: ScratchHome
let model: ScriptedModel
let web: DshWeb | undefined

/** What the model still has to answer, by session; without an entry it ends the turn. */
const pending = new Map<string, Reply[]>()

beforeAll(async () => {
  home = scratchHome('resume')
  model = await startScriptedModel(({ session }) => pending.get(session)?.shift() ?? say('done'))
  await installBundle({ profile: 'web', home, tarball: packBundle(home.root) })
})

afterEach(async () => {
  await web?.stop()
  web = undefined
})

afterAll(async () => {
  await model.close()
  home.remove()
})

const names = Array.from({ length: 20 }, (_, index) => `f${String(index).padStart(2, '0')}.ts`)

const workspaceOf = (paths: readonly string[]): string =>
  home.makeWorkspace(Object.fromEntries(paths.map((name) => [name, `export const name = '${name}'\n`])))

const start = async (workspace: string): Promise<DshWeb> => {
  web = await startWeb({ cwd: workspace, env: home.runEnv(model.baseURL) })
  return web
}

const requestsOf = (session: string): readonly ModelRequest[] => model.conversation(session)

const editOf = (path: string): Reply =>
  callTool('edit', { file_path: path, old_string: 'export', new_string: 'export /* edited */' })

const lastToolResult = (session: string): string =>
  requestsOf(session)
    .at(-1)
    ?.messages.findLast(({ role }) => role === 'tool')?.text ?? ''

const manifestOf = (session: string): string => join(home.dshHome, 'live-workspace', 'v1', `${session}.json`)

describe('a session that is resumed by another process', () => {
  it(
    'is told exactly the changed and the deleted files, and edits the others without a new read',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      const workspace = workspaceOf(names)
      const at = (name: string): string => join(workspace, name)
      const first = await start(workspace)
      const session = await first.createSession(workspace)
      pending.set(session, [
        callTools(...names.map((name) => ({ name: 'read', args: { file_path: at(name) } }))),
      ])
      await first.prompt(session, 'Read everything.')
      expect(await first.stop()).toMatchObject({ code: 0 })

      for (const name of names.slice(0, 3)) writeFileSync(at(name), 'export const other = 1\n')
      rmSync(at('f03.ts'))
      const later = new Date(Date.now() + 60_000)
      for (const name of names.slice(4, 9)) utimesSync(at(name), later, later)

      const second = await start(workspace)
      const before = requestsOf(session).length
      pending.set(session, [editOf(at('f04.ts')), editOf(at('f19.ts')), editOf(at('f00.ts'))])
      await second.prompt(session, 'Go on.')
      const [resumed, afterTouched, afterUntouched] = requestsOf(session).slice(before)
      const notices = resumed ? noticesIn(resumed) : []
      expect(notices.at(-1)).toBe(
        [
          '<system-reminder>',
          'This session was resumed. The files that it had read or written were checked.',
          'Not as this session last saw them:',
          '- modified "f00.ts"',
          '- modified "f01.ts"',
          '- modified "f02.ts"',
          '- deleted "f03.ts"',
          '16 others are unchanged: what this conversation shows of them is still true, without a new read.',
          'Read such a file again before you edit it or rely on it. Read only what the next step needs.',
          '</system-reminder>',
        ].join('\n'),
      )
      for (const request of [afterTouched, afterUntouched]) {
        expect(request?.messages.findLast(({ role }) => role === 'tool')?.text).not.toMatch(/error/i)
      }
      expect(readFileSync(at('f04.ts'), 'utf8')).toContain('/* edited */')
      expect(readFileSync(at('f19.ts'), 'utf8')).toContain('/* edited */')
      expect(lastToolResult(session)).toMatch(/requires reading/)
      expect(readFileSync(at('f00.ts'), 'utf8')).not.toContain('/* edited */')
      // Nothing of it is said a second time.
      const told = requestsOf(session).at(-1)
      expect(told ? noticesIn(told).filter((text) => text.includes('resumed')) : []).toHaveLength(1)
    },
  )

  it(
    'knows what it had seen also when the first process was killed',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      const workspace = workspaceOf(['a.ts', 'b.ts'])
      const first = await start(workspace)
      const session = await first.createSession(workspace)
      pending.set(session, [callRead(join(workspace, 'a.ts')), callRead(join(workspace, 'b.ts'))])
      await first.prompt(session, 'Read both.')
      await waitFor(
        () =>
          existsSync(manifestOf(session)) &&
          /a\.ts[^]*digest[^]*b\.ts|b\.ts[^]*digest[^]*a\.ts/.test(readFileSync(manifestOf(session), 'utf8')),
        { timeoutMs: 10_000, describe: () => `what was seen, in ${readdirSync(home.dshHome).join(', ')}` },
      )
      expect(statSync(manifestOf(session)).mode & 0o777).toBe(0o600)
      expect(await first.kill()).toMatchObject({ signal: 'SIGKILL' })
      writeFileSync(join(workspace, 'b.ts'), 'export const other = 1\n')

      const second = await start(workspace)
      await second.prompt(session, 'Go on.')
      const request = requestsOf(session).at(-1)
      const notice = request ? noticesIn(request).at(-1) : undefined
      expect(notice).toContain('- modified "b.ts"\n')
      expect(notice).not.toContain('"a.ts"')
      expect(notice).toContain('1 other is unchanged')
    },
  )
})
