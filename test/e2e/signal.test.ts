import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { installBundle, packBundle, scratchHome, type ScratchHome } from '../support/dsh.ts'
import { withAgents, type Turn } from '../support/headless.ts'
import { changesOf, toldInstructions } from '../support/instructions.ts'
import {
  callBash,
  callRead,
  callTool,
  callTools,
  inSteps,
  noticesIn,
  say,
  textOf,
  type ModelRequest,
  type Reply,
  type Script,
} from '../support/scripted-model.ts'

const ORIGINAL = 'export const a = 1\nexport const b = {c: 1}\nexport const d = 1\n'
const FORMATTED = ORIGINAL.replace('{c: 1}', '{ c: 1 }')

let home: ScratchHome

beforeAll(async () => {
  home = scratchHome('signal')
  await installBundle({ profile: 'headless', home, tarball: packBundle(home.root) })
})

afterAll(() => home.remove())

const oneTurn = async (workspace: string, script: Script): Promise<Turn> =>
  withAgents({ home, workspace }, async (runAgent) => runAgent('Look after this workspace.', script))

const quietStep = callBash('true')

const callEdit = (path: string, before: string, after: string): Reply =>
  callTool('edit', { file_path: path, old_string: before, new_string: after })

/** Something happens in the workspace while the model answers. */
const meanwhile =
  (action: () => void, reply: Reply = quietStep): Script =>
  () => {
    action()
    return reply
  }

const resultsIn = ({ messages }: ModelRequest): readonly string[] =>
  messages.filter(({ role }) => role === 'tool').map(textOf)

/** The result of the last call that a request carries. */
const lastResult = ({ requests }: Turn, step: number): string => {
  const request = requests[step - 1]
  return (request === undefined ? undefined : resultsIn(request).at(-1)) ?? ''
}

const noticeCounts = ({ requests }: Turn): readonly number[] =>
  requests.map((request) => noticesIn(request).length)

const REFUSED = /changed since|modified since|stale|read (?:it|the file) again/i

const touch = (path: string): void => utimesSync(path, new Date(), new Date(Date.now() + 2_000))

describe('a file that the agent has read and somebody else touches', () => {
  it('is edited without an error, right away and a step later, and nothing is told', async () => {
    const workspace = home.makeWorkspace({ 'a.ts': ORIGINAL, 'b.ts': ORIGINAL })
    const [a, b] = [join(workspace, 'a.ts'), join(workspace, 'b.ts')]
    const turn = await oneTurn(
      workspace,
      inSteps(
        callTools({ name: 'read', args: { file_path: a } }, { name: 'read', args: { file_path: b } }),
        meanwhile(
          () => {
            touch(a)
          },
          callEdit(a, 'a = 1', 'a = 2'),
        ),
        meanwhile(() => {
          touch(b)
        }),
        callEdit(b, 'a = 1', 'a = 3'),
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    for (const step of [3, 5]) expect(lastResult(turn, step)).not.toMatch(REFUSED)
    expect(readFileSync(a, 'utf8')).toBe(ORIGINAL.replace('a = 1', 'a = 2'))
    expect(readFileSync(b, 'utf8')).toBe(ORIGINAL.replace('a = 1', 'a = 3'))
    expect(noticeCounts(turn)).toEqual([0, 0, 0, 0, 0])
    expect(turn.told).toEqual([])
  })
})

describe('a formatter that comes between a read and an edit', () => {
  it('makes one refusal and one notice with what it changed; the next edit passes without a read', async () => {
    const workspace = home.makeWorkspace({ 'a.ts': ORIGINAL })
    const path = join(workspace, 'a.ts')
    const edit = callEdit(path, 'a = 1', 'a = 2')
    const turn = await oneTurn(
      workspace,
      inSteps(
        callRead(path),
        meanwhile(() => {
          format(path)
        }, edit),
        edit,
        quietStep,
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n' })
    expect(lastResult(turn, 3)).toMatch(REFUSED)
    expect(noticeCounts(turn)).toEqual([0, 0, 1, 1, 1])
    expect(turn.told.map(({ category }) => category)).toEqual(['changes'])
    expect(turn.told[0]?.text).toContain('- modified "a.ts" (+1 −1 lines)')
    expect(turn.told[0]?.text).toContain('  -export const b = {c: 1}\n  +export const b = { c: 1 }\n')
    expect(lastResult(turn, 4)).not.toMatch(REFUSED)
    expect(readFileSync(path, 'utf8')).toBe(FORMATTED.replace('a = 1', 'a = 2'))
  })
})

describe('a background job that keeps touching a file and is killed', () => {
  it('leaves the file editable without a word; a real change is told afterwards', async () => {
    const workspace = home.makeWorkspace({ 'a.ts': ORIGINAL })
    const path = join(workspace, 'a.ts')
    const loop = 'while :; do touch a.ts; sleep 0.02; done'
    const turn = await oneTurn(
      workspace,
      inSteps(
        callRead(path),
        callTool('bash', { command: loop, description: 'a watcher', run_in_background: true }),
        quietStep,
        (request) => {
          const job = /background job (\S+)/.exec(resultsIn(request).join('\n'))?.[1] ?? 'no job'
          return callTool('job_kill', { job_id: job })
        },
        callEdit(path, 'a = 1', 'a = 2'),
        quietStep,
        meanwhile(() => {
          writeFileSync(path, readFileSync(path, 'utf8').replace('d = 1', 'd = 2'))
        }),
        say('done'),
      ),
    )

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    expect(lastResult(turn, 3)).toContain('started background job')
    expect(lastResult(turn, 5)).toContain('requested cancellation of job')
    expect(lastResult(turn, 6)).not.toMatch(REFUSED)
    expect(readFileSync(path, 'utf8')).toBe(ORIGINAL.replace('a = 1', 'a = 2').replace('d = 1', 'd = 2'))
    expect(noticeCounts(turn)).toEqual([0, 0, 0, 0, 0, 0, 0, 1])
    expect(turn.told[0]?.text).toContain('+export const d = 2')
    expect(turn.told[0]?.text).not.toMatch(/a = 2|command of this session/)
  })
})

describe('a home of the harness inside of the workspace', () => {
  const MOST_STEPS = 150
  const STEPS = 8

  it('never has a word said of it: sessions, logs, our own files', async () => {
    const workspace = home.root
    expect(home.dshHome.startsWith(`${workspace}/`)).toBe(true)
    mkdirSync(join(workspace, '.git'))
    onTestFinished(() => rmSync(join(workspace, '.git'), { recursive: true }))
    const own = ['logs/dsh.log', 'live-workspace/v1/session.json', 'sessions/some/thing.txt', 'new.json']
    let liveAt = 0
    const turn = await oneTurn(workspace, ({ step, ...request }) => {
      const told = noticesIn({ step, ...request }).join('\n')
      if (liveAt === 0 && !told.includes('probe-') && step < MOST_STEPS) {
        // The watcher is up when it tells of a file that the agent has not used.
        writeFileSync(join(workspace, `probe-${step}.txt`), 'new\n')
        return quietStep
      }
      if (liveAt === 0) liveAt = step
      if (step === liveAt + STEPS) return say('done')
      for (const name of own) {
        mkdirSync(dirname(join(home.dshHome, name)), { recursive: true })
        writeFileSync(join(home.dshHome, name), `step ${step}\n`)
      }
      if (step === liveAt + STEPS - 1) writeFileSync(join(workspace, 'last.txt'), 'new\n')
      return quietStep
    })

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    expect(liveAt).toBeLessThan(MOST_STEPS)
    expect(readdirSync(join(home.dshHome, 'sessions'), { recursive: true }).join()).toContain(turn.log.id)
    const counts = noticeCounts(turn)
    expect(counts.slice(liveAt - 1)).toEqual([
      ...Array.from({ length: STEPS }, () => counts[liveAt - 1]),
      (counts[liveAt - 1] ?? 0) + 1,
    ])
    expect(turn.told.at(-1)?.text).toContain('- created "last.txt"')
    const named = turn.told.flatMap(({ text }) => text.match(/^- .*$/gm) ?? [])
    for (const line of named) expect(line).toMatch(/^- created "(?:probe-\d+|last)\.txt"$/)
    expect(turn.told.map(({ text }) => text).join('\n')).not.toContain('.dsh')
  })
})

describe('git switch with 3,000 files that differ', () => {
  const FILES = 2_999
  const ROOT_RULE = 'Rule of the main branch: answer in rhyme.\n'
  const NEW_ROOT_RULE = 'Rule of the other branch: answer in prose.\n'
  const MOST_STEPS = 150
  const STEPS_AFTER = 6
  const used = ['src/m0/f0.ts', 'src/m7/f307.ts', 'src/m31/f1231.ts', 'src/m58/f2998.ts']

  it('is one change notice and one instruction update, and then nothing more', async () => {
    const all = Array.from({ length: FILES }, (_, n) => `src/m${n % 60}/f${n}.ts`)
    const workspace = home.makeWorkspace({
      ...Object.fromEntries(all.map((name) => [name, 'main\n'])),
      'AGENTS.md': ROOT_RULE,
    })
    commitOnTwoBranches(workspace, all, NEW_ROOT_RULE)

    let switchedAt = 0
    let before = 0
    const turn = await oneTurn(workspace, (request) => {
      const { step } = request
      if (step === 1)
        return callTools(
          ...used.map((name) => ({ name: 'read', args: { file_path: join(workspace, name) } })),
        )
      if (switchedAt > 0) return step < switchedAt + STEPS_AFTER ? quietStep : say('done')
      const seen = noticesIn(request)
      // The watcher is up when it tells of a file that the agent has not used.
      if (!seen.join('\n').includes('probe') && step < MOST_STEPS) {
        writeFileSync(join(workspace, `probe-${step}.txt`), 'new\n')
        return quietStep
      }
      switchedAt = step
      before = seen.length
      git(workspace, 'switch', '-q', 'feature')
      return quietStep
    })

    expect(turn.outcome).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    expect(switchedAt).toBeLessThan(MOST_STEPS)
    const changes = turn.told.filter(({ category }) => category === 'changes')
    expect(turn.told).toHaveLength(before + 1)
    expect(changes).toHaveLength(before + 1)
    const text = changes.at(-1)?.text ?? ''
    expect(text).toMatch(
      /Git HEAD moved: branch "main" at \w+ → branch "feature" at \w+ \(checkout\); (?:2999|3000) paths changed/,
    )
    for (const name of used) expect(text).toContain(`- modified "${name}" (+1 −1 lines)`)
    expect(text).toMatch(/- \d{4} more paths: /)
    expect(text.match(/^- modified /gm)?.length).toBeLessThanOrEqual(used.length + 6)
    expect(text).not.toContain('AGENTS.md')

    const [baseline, update, ...further] = toldInstructions(turn.log)
    expect(changesOf(baseline === undefined ? [] : [baseline])).toEqual(['baseline set .:AGENTS.md'])
    expect(changesOf(update === undefined ? [] : [update])).toEqual(['replace .:AGENTS.md'])
    expect(update?.text).toContain(NEW_ROOT_RULE.trim())
    expect(further).toEqual([])
    expect(turn.requests).toHaveLength(switchedAt + STEPS_AFTER)
    expect(Buffer.byteLength(text)).toBeLessThan(2_048)
  }, 90_000)

  function commitOnTwoBranches(workspace: string, files: readonly string[], rule: string): void {
    git(workspace, 'init', '-q', '-b', 'main')
    git(workspace, 'add', '-A')
    git(workspace, 'commit', '-qm', 'one')
    git(workspace, 'switch', '-qc', 'feature')
    for (const name of files) writeFileSync(join(workspace, name), 'other\n')
    writeFileSync(join(workspace, 'AGENTS.md'), rule)
    git(workspace, 'commit', '-qam', 'two')
    git(workspace, 'switch', '-q', 'main')
  }
})

/** A process of somebody else that lays a file out anew. */
function format(path: string): void {
  const program = `
    const { readFileSync, writeFileSync } = require('node:fs')
    const path = process.argv[1]
    writeFileSync(path, readFileSync(path, 'utf8').replace('{c: 1}', '{ c: 1 }'))`
  execFileSync(process.execPath, ['-e', program, path])
}

function git(cwd: string, ...args: readonly string[]): void {
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'gc.auto=0']
  execFileSync('git', [...identity, ...args], {
    cwd,
    env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    stdio: 'pipe',
  })
}
