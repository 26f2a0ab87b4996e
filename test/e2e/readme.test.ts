import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkout, PACKAGE, scratchHome, type ScratchHome } from '../support/dsh.ts'
import { withAgents } from '../support/headless.ts'
import { objectOf, parseJson } from '../support/json.ts'
import {
  cloneCheckout,
  commandBlock,
  commandBlocks,
  example,
  shellIn,
  switchedOff,
  type Shell,
} from '../support/readme.ts'
import {
  callBash,
  callRead,
  callTool,
  callWrite,
  injectedTexts,
  inSteps,
  noticesIn,
  say,
  startScriptedModel,
  type ModelRequest,
} from '../support/scripted-model.ts'
import { gate, within } from '../support/wait.ts'
import { startWeb } from '../support/web.ts'

const LIMIT_MS = 240_000
const WAIT_MS = 20_000

const manifest = objectOf(
  parseJson(readFileSync(join(checkout, 'package.json'), 'utf8'), 'package.json'),
  'package.json',
)

describe('the command blocks', () => {
  it('are those that this file runs, and two that it cannot run', () => {
    expect(commandBlocks.map(({ name }) => name)).toEqual([
      'npm run demo',
      // This is what runs this file.
      'npm test',
      'sh:checkout',
      'sh:archive',
      'sh:git',
      // Needs a published package.
      'sh:published',
      'sh:run',
      'sh:remove',
    ])
    expect(Object.keys(objectOf(manifest['scripts'], 'scripts'))).toEqual(
      expect.arrayContaining(['test', 'demo']),
    )
    expect(commandBlock('sh:published')).toBe(`dsh plugin --profile headless add ${PACKAGE}`)
  })
})

describe.skipIf(process.platform === 'win32')('a new user, from the README alone', () => {
  let home: ScratchHome
  let other: ScratchHome
  let shell: Shell
  let otherShell: Shell
  let clone: string
  let dump: string

  beforeAll(async () => {
    home = scratchHome('readme')
    other = scratchHome('readme-git')
    ;[shell, otherShell, clone] = await Promise.all([shellIn(home), shellIn(other), cloneCheckout(home.root)])
    dump = (await shell.succeed(commandBlock('sh:checkout'), { cwd: clone })).stdout
  }, LIMIT_MS)

  afterAll(() => {
    home.remove()
    other.remove()
  })

  const profile = (of: ScratchHome, name: string, file: string) => join(of.dshHome, 'profiles', name, file)

  it('installs a checkout, whose rows are in the profile', () => {
    expect(dump).toContain('id: live-workspace')
    expect(dump).toMatch(/id: agent-instructions\n(?:.+\n)*?\s+disabled: true/)
  })

  it(
    'runs the demo; installs an archive, and a repository once pnpm is allowed to build it',
    { timeout: LIMIT_MS },
    async () => {
      const git = commandBlock('sh:git').replace('/path/to/dsh-live-workspace', clone)
      const allowed = async () => {
        const refused = await otherShell.run(git, { cwd: other.root })
        expect(refused.code).not.toBe(0)
        const [line] =
          /^ +dsh-live-workspace@git\+file:.*: true$/m.exec(refused.stdout + refused.stderr) ?? []
        expect(line).toBeDefined()
        appendFileSync(profile(other, 'headless', 'pnpm-workspace.yaml'), `\nallowBuilds:\n${line}\n`)
        await otherShell.succeed(git, { cwd: other.root })
      }
      const archive = async () => {
        await shell.succeed(commandBlock('sh:archive'), { cwd: clone })
        const { stdout } = await shell.succeed(commandBlock('npm run demo'), { cwd: clone })
        expect(stdout).toContain('VERDICT: told.')
      }
      await Promise.all([allowed(), archive()])

      for (const [of, name] of [
        [other, 'headless'],
        [home, 'web'],
      ] as const) {
        expect(readFileSync(profile(of, name, 'package.json'), 'utf8')).toMatch(
          /"bundles": \[[^\]]*"dsh-live-workspace"/,
        )
        expect(readFileSync(profile(of, name, `node_modules/${PACKAGE}/lib/index.js`), 'utf8')).toContain(
          'apply',
        )
      }
    },
  )

  it('sees the first notice', async () => {
    const workspace = other.makeWorkspace({ 'notes.md': 'Ship on Monday.\n' })
    const told = await firstNotice(otherShell, other, workspace)
    expect(told.join('\n')).toContain('-Ship on Monday.\n  +Ship on Friday.')
  })

  it('reads the status in the web profile', async () => {
    const workspace = home.makeWorkspace({
      'AGENTS.md': 'Answer in rhyme.\n',
      'notes.md': 'Ship on Monday.\n',
    })
    const model = await startScriptedModel(inSteps(callRead(join(workspace, 'notes.md')), say('done')))
    const web = await startWeb({ cwd: workspace, env: home.runEnv(model.baseURL) })
    try {
      const session = await web.createSession(workspace)
      await web.prompt(session, 'Read notes.md.')
      expect(await web.command(session, '/workspace')).toMatch(
        /^Watching: \w+, 1 file seen, [^]*\nRoot: "[^]*Files seen, the latest first:\n {2}"notes\.md" {2}read\n/,
      )
      expect(await web.command(session, '/instructions')).toMatch(
        /^Instruction files: 1 in force, 0 not, [^]*"AGENTS\.md" {2}17 bytes, sha1 /,
      )
      expect(parseJson(await web.command(session, '/workspace --json'), 'the status')).toMatchObject({
        format: 1,
      })
    } finally {
      await web.stop()
      await model.close()
    }
  })

  it('pairs in the IDE, as the example says', async () => {
    const price = 'src/price.ts'
    const net = 'export const net = (gross: number) => gross / (1 + rate)\n'
    const workspace = home.makeWorkspace({ [price]: `export const rate = 0.19\n${net}` })
    const path = join(workspace, price)
    const turn = await withAgents({ home, workspace }, async (runAgent) =>
      runAgent(
        'Add gross().',
        inSteps(
          callRead(path),
          () => {
            writeFileSync(path, `export const rate = 0.07\n${net}`)
            return callBash('true')
          },
          callTool('edit', { file_path: path, old_string: '(1 + rate)', new_string: '(1 + rate) // net' }),
          say('done'),
        ),
      ),
    )
    expect(turn.told.map(({ text }) => text)).toEqual([example('example:ide')])
    expect(readFileSync(path, 'utf8')).toContain('0.07\n')
    expect(readFileSync(path, 'utf8')).toContain('// net')
  })

  it('lets two agents work in one checkout, as the example says', async () => {
    const workspace = home.makeWorkspace({ 'shared.md': 'colour: red\n' })
    const shared = join(workspace, 'shared.md')
    const [read, written] = [gate(), gate()]
    const [a, b] = await withAgents({ home, workspace }, async (runAgent) =>
      Promise.all([
        runAgent(
          'Agent A',
          inSteps(
            callRead(shared),
            async () => {
              read.open()
              await within(written.passed, { timeoutMs: WAIT_MS, describe: 'the write of B' })
              return callBash('true')
            },
            say('done'),
          ),
        ),
        runAgent(
          'Agent B',
          inSteps(
            async () => {
              await within(read.passed, { timeoutMs: WAIT_MS, describe: 'the read of A' })
              return callRead(shared)
            },
            callWrite(shared, 'colour: blue\n'),
            () => {
              written.open()
              return say('done')
            },
          ),
        ),
      ]),
    )
    expect(a.told.map(({ text }) => text)).toEqual([example('example:agents')])
    expect(b.told).toEqual([])
  })

  it('switches it off, on again, and removes it', async () => {
    const patch = profile(other, 'headless', 'cordis.patch.yml')
    const before = readFileSync(patch, 'utf8')
    writeFileSync(patch, switchedOff())
    const workspace = other.makeWorkspace({
      'AGENTS.md': 'Answer in rhyme.\n',
      'notes.md': 'Ship on Monday.\n',
    })
    const seen: ModelRequest[] = []
    expect(await firstNotice(otherShell, other, workspace, seen)).toEqual([])
    // The harness's own loader is at work again.
    expect(injectedTexts(requestAt(seen, 0)).join()).toContain('Answer in rhyme.')
    writeFileSync(patch, before)

    await otherShell.succeed(commandBlock('sh:remove'), { cwd: other.root })
    const { stdout } = await otherShell.succeed('dsh --profile headless --dump-config', { cwd: other.root })
    expect(stdout).not.toContain('live-workspace')
  })
})

const requestAt = (requests: readonly ModelRequest[], index: number): ModelRequest => {
  const request = requests.at(index)
  if (!request) throw new Error('dsh asked the model nothing')
  return request
}

/** Runs the README's command while somebody edits. @returns the notices in the last request. */
async function firstNotice(
  shell: Shell,
  home: ScratchHome,
  workspace: string,
  seen: ModelRequest[] = [],
): Promise<readonly string[]> {
  const notes = join(workspace, 'notes.md')
  const script = inSteps(
    callRead(notes),
    () => {
      writeFileSync(notes, 'Ship on Friday.\n')
      return callBash('true')
    },
    say('The plan is for Friday.'),
  )
  const model = await startScriptedModel((request) => {
    seen.push(request)
    return script(request)
  })
  try {
    const env = home.runEnv(model.baseURL)
    const { stdout } = await shell.succeed(commandBlock('sh:run'), { cwd: workspace, env })
    expect(stdout).toBe('The plan is for Friday.\n')
    return noticesIn(requestAt(seen, -1))
  } finally {
    await model.close()
  }
}
