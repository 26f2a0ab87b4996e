import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installBundle, overlay, packBundle, runDsh, scratchHome, type ScratchHome } from '../support/dsh.ts'
import { ourMessages, sessionLogs } from '../support/session-log.ts'
import { callRead, inSteps, noticesIn, say, startScriptedModel } from '../support/scripted-model.ts'

const PROFILE = 'plain'

/** A profile without a surface of its own has one agent of this row, and ends with it. */
const DRIVER = `
import { randomUUID } from 'node:crypto'
export const name = 'driver'
export const inject = ['agents', 'llm', 'fs', 'tools', 'sessionPersistence']
export const apply = (ctx) => {
  const run = async () => {
    await ctx.loader.await()
    const { agent } = await ctx.agents.create({
      sessionId: 'session-of-the-driver',
      meta: { cwd: process.cwd() },
      agentOptions: { provider: 'deepseek-official', model: 'deepseek-v4-flash' },
    })
    const content = [{ type: 'text', text: 'Look after this workspace.' }]
    agent.followup({ id: randomUUID(), role: 'user', content, source: { kind: 'user' } })
    await agent.whenIdle()
  }
  void run().then(
    () => process.kill(process.pid, 'SIGTERM'),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
}
`

let home: ScratchHome

beforeAll(async () => {
  home = scratchHome('base')
  await installBundle({ profile: PROFILE, home, tarball: packBundle(home.root) })
})

afterAll(() => home.remove())

describe('a profile of the base alone', () => {
  it('has the row of the bundle, and the host’s own loader of instructions switched off', async () => {
    const { stdout } = await runDsh({
      args: ['--profile', PROFILE, '--dump-config'],
      cwd: home.root,
      env: home.runEnv('http://127.0.0.1:9'),
    })

    expect(stdout).toMatch(/id: live-workspace\n\s+name: dsh-live-workspace/)
    expect(stdout).toMatch(/id: agent-instructions\n(?:\s+.*\n)*?\s+disabled: true/)
  })

  it('tells an agent what changed, and ends by itself', async () => {
    const workspace = home.makeWorkspace({ 'notes.md': 'first\n' })
    const notes = join(workspace, 'notes.md')
    const driver = join(home.root, 'driver.mjs')
    writeFileSync(driver, DRIVER)
    const patch = join(home.root, 'driver.yml')
    writeFileSync(patch, `- insert:\n    - { id: driver, name: 'file://${driver}' }\n`)
    const model = await startScriptedModel(
      inSteps(
        callRead(notes),
        () => {
          writeFileSync(notes, 'second\n')
          return callRead(join(workspace, 'missing.md'))
        },
        say('done'),
      ),
    )
    try {
      const args = ['--profile', PROFILE, '--patch', overlay, '--patch', patch]
      const outcome = await runDsh({ args, cwd: workspace, env: home.runEnv(model.baseURL) })
      expect(outcome).toMatchObject({ code: 0, stderr: '' })
    } finally {
      await model.close()
    }

    expect(model.conversation().map((request) => noticesIn(request).length)).toEqual([0, 0, 1])
    const told = sessionLogs(home.dshHome).flatMap((log) => ourMessages(log))
    expect(told.map(({ category }) => category)).toEqual(['changes'])
    expect(told[0]?.text).toContain('notes.md')
  })
})
