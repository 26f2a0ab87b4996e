import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { installBundle, packBundle, scratchHome, type ScratchHome } from '../support/dsh.ts'
import { withAgents, type Turn } from '../support/headless.ts'
import { changesOf, digestOf, occurrences, toldInstructions } from '../support/instructions.ts'
import {
  callBash,
  callRead,
  callTool,
  callWrite,
  injectedTexts,
  inSteps,
  say,
  type Reply,
  type Script,
} from '../support/scripted-model.ts'

const ROOT_RULE = 'Rule of the root: answer in rhyme.\n'
const NEW_ROOT_RULE = 'New rule of the root: answer in prose.\n'
const FOLDER_RULE = 'Rule of the folder: never use tabs.\n'
const GLOBAL_RULE = 'Rule of the person: be brief.\n'

let home: ScratchHome

beforeAll(async () => {
  home = scratchHome('instructions')
  await installBundle({ profile: 'headless', home, tarball: packBundle(home.root) })
})

afterAll(() => home.remove())

/** A file of the harness home for the running test. */
const inHome = (name: string, text: string): void => {
  const path = join(home.dshHome, name)
  const existed = existsSync(path)
  writeFileSync(path, text)
  onTestFinished(() => (existed ? writeFileSync(path, '[]\n') : rmSync(path)))
}

const oneTurn = async (cwd: string, script: Script): Promise<Turn> =>
  withAgents({ home, workspace: cwd }, async (runAgent) => runAgent('Look after this workspace.', script))

const quietStep = callBash('true')

/** Something happens in the workspace while the model answers. */
const meanwhile =
  (action: () => void, reply: Reply = quietStep): Script =>
  () => {
    action()
    return reply
  }

const toldBy = ({ log }: Turn) => toldInstructions(log)

/** How often each request carried a text. */
const counts = ({ requests }: Turn, text: string): readonly number[] =>
  requests.map((request) => occurrences(injectedTexts(request).join('\n'), text.trim()))

const shared = (change: object) => ({ kind: 'agent-instructions', form: 'instructions', changes: [change] })

const sourcesOf = ({ log }: Turn): readonly unknown[] => {
  const seqs = new Set(toldInstructions(log).map(({ seq }) => seq))
  return log.events.filter(({ seq }) => seqs.has(seq)).map(({ data }) => data['source'])
}

describe('the baseline', () => {
  it('stands in every request from the first one on, exactly once, and the log has it once', async () => {
    inHome('AGENTS.md', GLOBAL_RULE)
    const workspace = home.makeWorkspace({
      'AGENTS.md': ROOT_RULE,
      'app/AGENTS.md': FOLDER_RULE,
      'other/AGENTS.md': 'Rule of another folder.',
    })
    const turn = await oneTurn(join(workspace, 'app'), inSteps(quietStep, quietStep, say('done')))

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    expect(changesOf(toldBy(turn))).toEqual([
      'baseline set user-global:AGENTS.md',
      'baseline set .:AGENTS.md',
      'baseline set app:AGENTS.md',
    ])
    for (const rule of [GLOBAL_RULE, ROOT_RULE, FOLDER_RULE]) expect(counts(turn, rule)).toEqual([1, 1, 1])
    expect(counts(turn, 'Instructions from: ~/.dsh/AGENTS.md')).toEqual([1, 1, 1])
    expect(counts(turn, 'Rule of another folder.')).toEqual([0, 0, 0])
    expect(turn.told).toEqual([])
  })
})

describe('an instruction file that somebody edits between two requests', () => {
  it('is told once, whole, in the next request and in the protocol of the harness, and in no notice', async () => {
    const workspace = home.makeWorkspace({ 'AGENTS.md': ROOT_RULE })
    const edit = () => writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)
    const turn = await oneTurn(
      workspace,
      inSteps(quietStep, meanwhile(edit), quietStep, quietStep, say('done')),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    expect(counts(turn, ROOT_RULE)).toEqual([1, 1, 1, 1, 1])
    expect(counts(turn, NEW_ROOT_RULE)).toEqual([0, 0, 1, 1, 1])
    expect(sourcesOf(turn).slice(1)).toEqual([
      shared({
        action: 'replace',
        scope: '.\0AGENTS.md',
        path: 'AGENTS.md',
        digest: digestOf(NEW_ROOT_RULE),
      }),
    ])
    expect(turn.told).toEqual([])
  })

  it('during the last answer leads to exactly one more step, which carries the new text', async () => {
    const workspace = home.makeWorkspace({ 'AGENTS.md': ROOT_RULE })
    const edit = () => writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)
    const turn = await oneTurn(workspace, inSteps(meanwhile(edit, say('too early')), say('done')))

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(counts(turn, NEW_ROOT_RULE)).toEqual([0, 1])
    expect(changesOf(toldBy(turn))).toEqual(['baseline set .:AGENTS.md', 'replace .:AGENTS.md'])
    expect(turn.told).toHaveLength(1)
    expect(turn.told[0]?.text).not.toContain('AGENTS.md')
    expect(turn.log.events.filter(({ type }) => type === 'turn/end')).toHaveLength(1)
  })
})

describe('the instructions of a directory that a tool has reached', () => {
  it('are told as they come, change and go, without a further touch, each once and in order', async () => {
    const workspace = home.makeWorkspace({ 'AGENTS.md': ROOT_RULE, 'pkg/a.ts': 'export {}\n' })
    const rule = join(workspace, 'pkg', 'AGENTS.md')
    const turn = await oneTurn(
      workspace,
      inSteps(
        callRead(join(workspace, 'pkg', 'a.ts')),
        meanwhile(() => writeFileSync(rule, FOLDER_RULE)),
        meanwhile(() => writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)),
        meanwhile(() => rmSync(rule)),
        quietStep,
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(toldBy(turn).map((message) => changesOf([message]))).toEqual([
      ['baseline set .:AGENTS.md'],
      ['set pkg:AGENTS.md'],
      ['replace .:AGENTS.md'],
      ['remove pkg:AGENTS.md'],
    ])
    expect(counts(turn, FOLDER_RULE)).toEqual([0, 0, 1, 1, 1, 1])
    expect(counts(turn, NEW_ROOT_RULE)).toEqual([0, 0, 0, 1, 1, 1])
    expect(counts(turn, 'Instructions removed: pkg/AGENTS.md')).toEqual([0, 0, 0, 0, 1, 1])
    expect(turn.told).toEqual([])
  })

  it('are told once when a file there is read, viewed or written, whatever the tool', async () => {
    const workspace = home.makeWorkspace({
      'read/AGENTS.md': 'Rule for what is read.',
      'read/a.ts': 'export {}\n',
      'view/AGENTS.md': 'Rule for what is viewed.',
      'view/a.ts': 'export {}\n',
      'write/AGENTS.md': 'Rule for what is written.',
    })
    const turn = await oneTurn(
      workspace,
      inSteps(
        callRead(join(workspace, 'read', 'a.ts')),
        callTool('str_replace_editor', { command: 'view', path: join(workspace, 'view', 'a.ts') }),
        callWrite(join(workspace, 'write', 'a.ts'), 'export {}\n'),
        callRead(join(workspace, 'read', 'a.ts')),
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(counts(turn, 'Rule for what is read.')).toEqual([0, 1, 1, 1, 1])
    expect(counts(turn, 'Rule for what is viewed.')).toEqual([0, 0, 1, 1, 1])
    expect(counts(turn, 'Rule for what is written.')).toEqual([0, 0, 0, 1, 1])
    expect(toldBy(turn)).toHaveLength(3)
  })

  it('are not loaded under node_modules', async () => {
    const workspace = home.makeWorkspace({
      'AGENTS.md': ROOT_RULE,
      'node_modules/dep/AGENTS.md': FOLDER_RULE,
      'node_modules/dep/index.js': 'export {}\n',
    })
    const turn = await oneTurn(
      workspace,
      inSteps(callRead(join(workspace, 'node_modules', 'dep', 'index.js')), quietStep, say('done')),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(counts(turn, FOLDER_RULE)).toEqual([0, 0, 0])
    expect(changesOf(toldBy(turn))).toEqual(['baseline set .:AGENTS.md'])
    expect(turn.told).toEqual([])
  })
})

describe('an instruction file that the agent writes itself', () => {
  it('is a transition and no notice', async () => {
    const workspace = home.makeWorkspace({ 'AGENTS.md': ROOT_RULE })
    const turn = await oneTurn(
      workspace,
      inSteps(
        callRead(join(workspace, 'AGENTS.md')),
        callWrite(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE),
        callWrite(join(workspace, 'pkg', 'AGENTS.md'), FOLDER_RULE),
        quietStep,
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(toldBy(turn).map((message) => changesOf([message]))).toEqual([
      ['baseline set .:AGENTS.md'],
      ['replace .:AGENTS.md'],
      ['set pkg:AGENTS.md'],
    ])
    expect(counts(turn, NEW_ROOT_RULE)).toEqual([0, 0, 1, 1, 1])
    expect(counts(turn, FOLDER_RULE)).toEqual([0, 0, 0, 1, 1])
    expect(turn.told).toEqual([])
  })
})

describe('with "instructions: false" in a patch layer', () => {
  const layer = (stockDisabled: boolean): string => `
- id: agent-instructions
  disabled: ${stockDisabled}
- id: live-workspace
  config: { instructions: false }
`
  const files = {
    'AGENTS.md': ROOT_RULE,
    'pkg/AGENTS.md': FOLDER_RULE,
    'pkg/a.ts': 'export {}\n',
  }

  it("the harness's own loader speaks if its row is switched on again, and ours adds nothing", async () => {
    inHome('cordis.patch.yml', layer(false))
    const workspace = home.makeWorkspace(files)
    const turn = await oneTurn(
      workspace,
      inSteps(
        callRead(join(workspace, 'AGENTS.md')),
        meanwhile(() => writeFileSync(join(workspace, 'AGENTS.md'), NEW_ROOT_RULE)),
        // The harness's own loader does not follow this tool, ours would.
        callTool('str_replace_editor', { command: 'view', path: join(workspace, 'pkg', 'a.ts') }),
        quietStep,
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(changesOf(toldBy(turn))).toEqual(['baseline set .:AGENTS.md', 'replace .:AGENTS.md'])
    expect(counts(turn, ROOT_RULE)[0]).toBe(1)
    expect(counts(turn, 'Updated instructions from: AGENTS.md')).toEqual([0, 0, 1, 1, 1])
    // For ours it is a file like any other.
    expect(turn.told.map(({ category }) => category)).toEqual(['changes'])
    expect(turn.told[0]?.text).toContain('AGENTS.md')
  })

  it('nobody speaks of instructions if that row stays off', async () => {
    inHome('cordis.patch.yml', layer(true))
    const workspace = home.makeWorkspace(files)
    const turn = await oneTurn(
      workspace,
      inSteps(callRead(join(workspace, 'pkg', 'a.ts')), quietStep, say('done')),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(toldBy(turn)).toEqual([])
    expect(counts(turn, ROOT_RULE)).toEqual([0, 0, 0])
    expect(turn.told).toEqual([])
  })
})
