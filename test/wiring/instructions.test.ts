import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import type { Fiber } from '@deepseek-ai/cordis'
import type { Message } from '@deepseek-ai/dsh-llm'
import { describe, expect, it } from 'vitest'
import {
  batch,
  boot,
  categories,
  edit,
  type Harness,
  type HarnessOptions,
  type ModelRequest,
  quiet,
  read,
  shell,
  type TestAgent,
  textOf,
  write,
} from '../support/harness.ts'
import { expectHearing } from '../support/hearing.ts'
import { changesOf, occurrences, stockLoader, toldInstructions } from '../support/instructions.ts'
import { readEvent } from '../support/session-log.ts'
import { waitFor } from '../support/wait.ts'

const NEVER = 3_600_000
/** The user-global file, seen from the workspace. */
const GLOBAL = '../dsh-home/AGENTS.md'
/** Long enough that its summary is shorter. */
const LONG = 'a line of a file that is long\n'.repeat(120)

interface Setup extends HarnessOptions {
  readonly cwd?: string
}

/** A workspace, an agent in it, and a home of the harness: what is not there cannot be followed. */
const start = async ({ cwd = '.', ...options }: Setup = {}) => {
  const harness = await boot(options)
  mkdirSync(harness.path('../dsh-home'), { recursive: true })
  return { harness, agent: await harness.agent('main', { cwd }) }
}

/** The same, with a baseline told and every directory followed. */
const started = async (setup: Setup = {}) => {
  const parts = await start(setup)
  await parts.agent.prompt()
  await parts.harness.live()
  await parts.agent.call(quiet)
  return parts
}

const instructionsOf = ({ session }: TestAgent) => toldInstructions({ events: session.events.map(readEvent) })
const toldOf = (agent: TestAgent): readonly string[] => changesOf(instructionsOf(agent))

/** Transitions that an action leads to. */
const during = async (agent: TestAgent, action: () => Promise<unknown>): Promise<readonly string[]> => {
  const before = instructionsOf(agent).length
  await action()
  return changesOf(instructionsOf(agent).slice(before))
}

const textIn = ({ messages }: { readonly messages: readonly Message[] }): string =>
  messages
    .flatMap(({ content }) => content.map((block) => (block.type === 'text' ? block.text : '')))
    .join('')

/** How often the model reads a text in a request. */
const countIn = (request: ModelRequest, text: string): number => occurrences(textIn(request), text)

/** Another directory in the place of the workspace, with the same files in it: its watcher is lost. */
const replaceWorkspace = ({ workspace }: Harness): void => {
  renameSync(workspace, `${workspace}.old`)
  cpSync(`${workspace}.old`, workspace, { recursive: true, preserveTimestamps: true })
}

const BASELINE = ['baseline set .:AGENTS.md']
const ROOT = { 'AGENTS.md': 'Root rule.\n' }

describe('the baseline', () => {
  it('comes once with the first request, from the user-global file down to the cwd', async () => {
    const { harness, agent } = await start({
      files: {
        ...ROOT,
        'p/CLAUDE.md': 'P rule.\n',
        'p/app/AGENTS.local.md': 'Local rule.\n',
        'q/AGENTS.md': 'Q.',
      },
      cwd: 'p/app',
    })
    harness.write(GLOBAL, 'Global rule.\n')
    const request = await agent.prompt()
    for (const rule of ['Global rule.', 'Root rule.', 'P rule.', 'Local rule.'])
      expect(countIn(request, rule)).toBe(1)
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)

    expect(toldOf(agent)).toEqual([
      'baseline set user-global:AGENTS.md',
      'baseline set .:AGENTS.md',
      'baseline set p:CLAUDE.md',
      'baseline set p/app:AGENTS.local.md',
    ])
    expect(agent.notices).toEqual([])
    expect(harness.errors).toEqual([])
  })

  it('comes when the first file appears, and not before', async () => {
    const { harness, agent } = await started()
    expect(toldOf(agent)).toEqual([])
    harness.write('AGENTS.md', 'Root rule.\n')
    await agent.call(quiet)

    expect(toldOf(agent)).toEqual(BASELINE)
    expect(agent.notices).toEqual([])
    await agent.end()
  })

  it('is that of the session alone: another one has its own, and so has a subagent', async () => {
    const files = {
      ...ROOT,
      'a/AGENTS.md': 'A rule.\n',
      'b/AGENTS.md': 'B rule.\n',
      'c/AGENTS.md': 'C rule.\n',
    }
    const { harness, agent: parent } = await start({ files, cwd: 'a' })
    await parent.prompt()
    await parent.call(read('../c/AGENTS.md'))
    const child = await harness.agent('child', { cwd: 'a', parent })
    const other = await harness.agent('other', { cwd: 'b' })
    await child.turn(quiet)
    await other.turn(quiet)
    await parent.end()

    expect(toldOf(parent)).toEqual([...BASELINE, 'baseline set a:AGENTS.md', 'set c:AGENTS.md'])
    expect(toldOf(child)).toEqual([...BASELINE, 'baseline set a:AGENTS.md'])
    expect(toldOf(other)).toEqual([...BASELINE, 'baseline set b:AGENTS.md'])
  })
})

describe('a first step that does not happen', () => {
  const unhappened = [
    ['is rejected before us', { kind: 'reject' }, false],
    ['is rejected after us', { kind: 'reject' }, true],
    ['is emptied before us', { kind: 'enter', messages: [] }, false],
    ['is emptied after us', { kind: 'enter', messages: [] }, true],
  ] as const

  it.each(unhappened)(
    'because it %s leaves nothing behind, and the next one has one baseline',
    async (...kind) => {
      const [, decision, prepend] = kind
      const { harness, agent } = await start({ files: ROOT })
      const stop = harness.ctx.on(
        'agent/pre-step',
        async (_payload, next) => {
          await next()
          return 'messages' in decision ? { ...decision, messages: [] } : decision
        },
        { prepend },
      )
      expect(await agent.submit()).toBeUndefined()
      expect(await agent.submit()).toBeUndefined()
      stop()
      expect(agent.agent.inbox.hasPending).toBe(false)
      expect(toldOf(agent)).toEqual([])
      const request = await agent.prompt()

      expect(toldOf(agent)).toEqual(BASELINE)
      expect(countIn(request, 'Root rule.')).toBe(1)
      await agent.end()
    },
  )
})

describe('a step that is aborted between the fold and the log', () => {
  const abortingNext = (harness: Harness, agent: TestAgent) => {
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        const decision = await next()
        stop()
        agent.agent.cancel({ kind: 'user' })
        return decision
      },
      { prepend: true },
    )
  }

  it('consumes no baseline', async () => {
    const { harness, agent } = await start({ files: ROOT })
    abortingNext(harness, agent)
    expect(await agent.submit()).toBeUndefined()
    expect(toldOf(agent)).toEqual([])
    await agent.turn(quiet)

    expect(toldOf(agent)).toEqual(BASELINE)
  })

  it('consumes no update, no addition and no removal', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'CLAUDE.md': 'Claude rule.\n' } })
    abortingNext(harness, agent)
    harness.write('AGENTS.md', 'Root rule two.\n')
    harness.write('AGENTS.local.md', 'Local rule.\n')
    harness.remove('CLAUDE.md')
    expect(await agent.answer({ calls: [quiet] })).toBeUndefined()
    expect(toldOf(agent)).toHaveLength(2)

    expect(await during(agent, async () => agent.turn(quiet))).toEqual([
      'replace .:AGENTS.md',
      'remove .:CLAUDE.md',
      'set .:AGENTS.local.md',
    ])
    expect(agent.notices).toEqual([])
  })
})

describe('with live coverage', () => {
  it('an edit, a creation, a removal and a return are each told once, at the next request, without a touch', async () => {
    const { harness, agent } = await started({ files: ROOT })
    const step = async (action: () => void) => {
      action()
      return during(agent, async () => agent.call(quiet))
    }

    expect(await step(() => harness.save('AGENTS.md', 'Root rule two.\n'))).toEqual(['replace .:AGENTS.md'])
    expect(await step(() => undefined)).toEqual([])
    expect(await step(() => harness.write('CLAUDE.md', 'Claude rule.\n'))).toEqual(['set .:CLAUDE.md'])
    expect(await step(() => harness.remove('AGENTS.md'))).toEqual(['remove .:AGENTS.md'])
    expect(await step(() => harness.write('AGENTS.md', 'Root rule two.\n'))).toEqual(['set .:AGENTS.md'])
    expect(await step(() => undefined)).toEqual([])
    await agent.end()
    expect(agent.notices).toEqual([])
  })

  it('every edit of the user-global file is told', async () => {
    const { harness, agent } = await started({ files: ROOT })
    for (let round = 0; round < 10; round++) {
      harness.write(GLOBAL, `Global rule ${round}.\n`)
      await agent.call(quiet)
      expect(countIn(agent.request, `Global rule ${round}.`)).toBe(1)
    }
    harness.remove(GLOBAL)
    expect(await during(agent, async () => agent.call(quiet))).toEqual(['remove user-global:AGENTS.md'])
    await agent.end()
    expect(agent.notices).toEqual([])
  })

  it('an edit of the user-global file is told to the sessions of every workspace', async () => {
    const { harness, agent: writer } = await started({
      files: { 'a/.git/HEAD': '', 'b/.git/HEAD': '', 'b/AGENTS.md': 'B rule.\n' },
      git: false,
      cwd: 'a',
    })
    const other = await harness.agent('other', { cwd: 'b' })
    await other.prompt()
    await harness.live()
    await other.call(quiet)
    await writer.call(write(harness.path(GLOBAL), 'Memory of the one.\n'))
    expect(await during(other, async () => other.call(quiet))).toEqual(['set user-global:AGENTS.md'])
    await other.call(read(harness.path(GLOBAL)))
    await other.call(edit(harness.path(GLOBAL), 'of the one', 'of both'))
    expect(await during(writer, async () => writer.call(quiet))).toEqual(['replace user-global:AGENTS.md'])

    for (const agent of [writer, other]) {
      expect(countIn(agent.request, 'Memory of both.')).toBe(1)
      expect(await during(agent, async () => agent.call(quiet))).toEqual([])
      await agent.end()
      expect(agent.notices).toEqual([])
    }
  })

  it('an edit above the cwd, and above the watched root, is told', async () => {
    const files = {
      '.top': '',
      ...ROOT,
      'in/.git/HEAD': '',
      'in/AGENTS.md': 'In.\n',
      'in/app/AGENTS.md': 'App.\n',
    }
    const { harness, agent } = await started({
      files,
      git: false,
      cwd: 'in/app',
      config: { instructions: { projectRootMarkers: ['.top'] } },
    })
    expect(toldOf(agent)).toHaveLength(3)
    harness.write('AGENTS.md', 'Root rule two.\n')
    expect(await during(agent, async () => agent.call(quiet))).toEqual(['replace .:AGENTS.md'])
    harness.write('in/AGENTS.md', 'In two.\n')
    expect(await during(agent, async () => agent.call(quiet))).toEqual(['replace in:AGENTS.md'])
    await agent.end()
    expect(agent.notices).toEqual([])
  })

  it('an edit of what an instruction file links to is told, wherever it lies', async () => {
    const { harness, agent } = await start()
    harness.write('../shared/rules.md', 'Shared rule.\n')
    symlinkSync('../shared/rules.md', harness.path('AGENTS.md'))
    await agent.prompt()
    await harness.live()
    await agent.call(quiet)
    expect(toldOf(agent)).toEqual(BASELINE)
    harness.write('../shared/rules.md', 'Shared rule two.\n')

    expect(await during(agent, async () => agent.call(quiet))).toEqual(['replace .:AGENTS.md'])
    await agent.end()
  })

  it('a touched file of equal content is silent', async () => {
    const { harness, agent } = await started({ files: ROOT })
    harness.save('AGENTS.md', 'Root rule.\n')
    await agent.call(shell('touch AGENTS.md'))
    expect(toldOf(agent)).toEqual(BASELINE)
    harness.save('AGENTS.md', 'Root rule two.\n')
    await agent.call(quiet)
    await agent.end()

    expect(toldOf(agent)).toEqual([...BASELINE, 'replace .:AGENTS.md'])
    expect(agent.notices).toEqual([])
  })

  it('quiet steps ask for no candidate at all', async () => {
    const directories = ['', 'a/', 'a/b/', 'a/b/c/', 'n1/', 'n2/']
    const names = ['AGENTS.md', 'CLAUDE.md', 'AGENTS.local.md', 'CLAUDE.local.md']
    const files = Object.fromEntries(
      directories.map((directory) => [`${directory}AGENTS.md`, `In ${directory}.\n`]),
    )
    const { harness, agent } = await started({ files: { ...files, 'n1/f': '', 'n2/f': '' }, cwd: 'a/b/c' })
    await agent.call(read(harness.path('n1/f')), read(harness.path('n2/f')))
    await agent.call(quiet)
    await agent.call(quiet)
    expect(toldOf(agent)).toHaveLength(directories.length)
    const candidates = [
      GLOBAL,
      ...directories.flatMap((directory) => names.map((name) => `${directory}${name}`)),
    ].map((path) => harness.path(path))
    const asked = () => candidates.map((path) => harness.probe.statsOf(path))
    const before = asked()
    expect(Math.min(...before)).toBeGreaterThan(0)
    for (let step = 0; step < 5; step++) await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)

    expect(asked()).toEqual(before)
  })
})

describe('nested scopes', () => {
  it('come with the first touch, outer first, in one message for all that one step has touched', async () => {
    const { agent } = await started({
      files: {
        ...ROOT,
        'a/AGENTS.md': 'A.\n',
        'a/b/c/AGENTS.md': 'C.\n',
        'a/b/c/f': '',
        'a/f': '',
        'd/CLAUDE.md': 'D.\n',
        'd/f': '',
      },
    })
    await agent.call(read('a/b/c/f'), read('d/f'), read('a/f'))
    const [, message, ...more] = instructionsOf(agent)
    expect(more).toEqual([])
    expect(message && changesOf([message])).toEqual([
      'set a:AGENTS.md',
      'set a/b/c:AGENTS.md',
      'set d:CLAUDE.md',
    ])
    await agent.call(read('a/b/c/f'), read('d/f'))
    await agent.end()

    expect(toldOf(agent)).toHaveLength(4)
    expect(agent.notices).toEqual([])
  })

  it('are found in a sibling package by a path that leads out of the cwd', async () => {
    const { agent } = await started({
      files: {
        ...ROOT,
        'packages/app/AGENTS.md': 'App.\n',
        'packages/lib/AGENTS.md': 'Lib.\n',
        'packages/lib/l.ts': '',
      },
      cwd: 'packages/app',
    })
    expect(await during(agent, async () => agent.call(read('../lib/l.ts')))).toEqual([
      'set packages/lib:AGENTS.md',
    ])
    await agent.end()
  })

  it('are not found outside the project, in node_modules, or by a command', async () => {
    const { harness, agent } = await started({
      files: {
        ...ROOT,
        'node_modules/dep/AGENTS.md': 'Dep.\n',
        'node_modules/dep/f': '',
        'd/AGENTS.md': 'D.\n',
        'd/f': '',
      },
    })
    harness.write('../elsewhere/AGENTS.md', 'Elsewhere.\n')
    harness.write('../elsewhere/f', '')
    await agent.call(read('../elsewhere/f'), read('node_modules/dep/f'), shell('cat d/f'))
    await agent.call(quiet)
    expect(toldOf(agent)).toEqual(BASELINE)
    await agent.call(read('d/f'))
    await agent.end()

    expect(toldOf(agent)).toEqual([...BASELINE, 'set d:AGENTS.md'])
    expect(agent.notices).toEqual([])
  })

  it('are found in node_modules when the settings say so', async () => {
    const { agent } = await started({
      files: { 'node_modules/dep/AGENTS.md': 'Dep.\n', 'node_modules/dep/f': '' },
      config: { instructions: { loadIgnoredDirectories: true } },
    })
    await agent.call(read('node_modules/dep/f'))

    expect(toldOf(agent)).toContain('set node_modules/dep:AGENTS.md')
    await agent.end()
  })

  it('count when the outermost call succeeds, and only then', async () => {
    const { agent } = await started({
      files: { 'a/AGENTS.md': 'A.\n', 'a/f': '', 'b/AGENTS.md': 'B.\n', 'b/f': '' },
    })
    await agent.call(batch([read('a/f')], { fail: true }), read('a/missing'))
    expect(toldOf(agent)).toEqual([])
    await agent.call(batch([batch([read('b/f')]), read('a/f')]))

    expect(toldOf(agent).toSorted()).toEqual(['set a:AGENTS.md', 'set b:AGENTS.md'])
    expect(instructionsOf(agent)).toHaveLength(1)
    await agent.end()
  })

  it('appear, change and vanish later without a touch, wherever the session has been', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'p/q/f': '' } })
    await agent.call(read('p/q/f'))
    await agent.call(quiet)
    const step = async (action: () => void) => {
      action()
      return during(agent, async () => agent.call(quiet))
    }

    expect(await step(() => harness.write('p/AGENTS.md', 'P.\n'))).toEqual(['set p:AGENTS.md'])
    expect(await step(() => harness.write('p/q/CLAUDE.md', 'Q.\n'))).toEqual(['set p/q:CLAUDE.md'])
    expect(await step(() => harness.write('p/q/CLAUDE.md', 'Q two.\n'))).toEqual(['replace p/q:CLAUDE.md'])
    expect(await step(() => harness.remove('p/AGENTS.md'))).toEqual(['remove p:AGENTS.md'])
    expect(await step(() => undefined)).toEqual([])
    await agent.end()
    expect(agent.notices).toEqual([])
  })

  it('go and come with their directory', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'p/AGENTS.md': 'P.\n', 'p/f': '' } })
    await agent.call(read('p/f'))
    await agent.call(quiet)
    renameSync(harness.path('p'), harness.path('away'))
    expect(await during(agent, async () => agent.call(quiet))).toEqual(['remove p:AGENTS.md'])
    renameSync(harness.path('away'), harness.path('p'))
    expect(await during(agent, async () => agent.call(quiet))).toEqual(['set p:AGENTS.md'])
    await agent.end()
  })

  it('live through edits, duplicates, removal and return, each told as what it is', async () => {
    const { harness, agent } = await started({
      files: { ...ROOT, 'p/AGENTS.md': 'One.\n', 'p/CLAUDE.md': 'Claude.\n', 'p/f': '' },
    })
    await agent.call(read('p/f'))
    const step = async (action: () => void) => {
      action()
      return during(agent, async () => agent.call(quiet))
    }

    expect(await step(() => harness.write('p/AGENTS.md', 'Two.\n'))).toEqual(['replace p:AGENTS.md'])
    expect(await step(() => harness.write('p/CLAUDE.md', '\nTwo.'))).toEqual(['remove p:CLAUDE.md'])
    expect(await step(() => harness.remove('p/AGENTS.md'))).toEqual(['remove p:AGENTS.md', 'set p:CLAUDE.md'])
    expect(await step(() => harness.write('p/AGENTS.md', 'Three.\n'))).toEqual(['set p:AGENTS.md'])
    await agent.end()
    expect(agent.notices).toEqual([])
  })
})

describe('one revalidation for instructions and notices', () => {
  it('a file that a transition names is in no notice, also when the session has read it', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'a.ts': 'one\n' } })
    await agent.call(read('AGENTS.md'), read('a.ts'))
    for (const version of ['two', 'three']) {
      harness.write('AGENTS.md', `Root rule ${version}.\n`)
      harness.write('a.ts', `${version}\n`)
      expect(await during(agent, async () => agent.call(quiet))).toEqual(['replace .:AGENTS.md'])
      expect(textOf(agent.told)).toContain('- modified "a.ts"')
      expect(textOf(agent.told)).not.toContain('AGENTS.md')
    }
    harness.remove('AGENTS.md')
    expect(await during(agent, async () => agent.call(quiet))).toEqual(['remove .:AGENTS.md'])
    await agent.call(quiet)
    await agent.end()
    await agent.turn(quiet)

    expect(categories(agent.notices)).toEqual(['changes', 'changes'])
  })

  it('what the agent writes itself is a transition and no notice', async () => {
    const { agent } = await started({ files: ROOT })
    await agent.call(read('AGENTS.md'))
    expect(await during(agent, async () => agent.call(write('AGENTS.md', 'Own rule.\n')))).toEqual([
      'replace .:AGENTS.md',
    ])
    expect(await during(agent, async () => agent.call(edit('AGENTS.md', 'Own', 'My own')))).toEqual([
      'replace .:AGENTS.md',
    ])
    expect(await during(agent, async () => agent.call(write('new/AGENTS.md', 'New rule.\n')))).toEqual([
      'set new:AGENTS.md',
    ])
    expect(await during(agent, async () => agent.call(shell('rm AGENTS.md')))).toEqual(['remove .:AGENTS.md'])
    await agent.call(quiet)
    await agent.end()

    expect(agent.notices).toEqual([])
  })

  it('notices stand behind instructions', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'a.ts': 'one\n' } })
    await agent.call(read('a.ts'))
    harness.write('a.ts', 'two\n')
    harness.write('AGENTS.md', 'Root rule two.\n')
    await agent.call(quiet)
    const text = textIn(agent.request)

    expect(text.indexOf('- modified "a.ts"')).toBeGreaterThan(text.indexOf('Root rule two.'))
    await agent.end()
  })
})

describe('a change during the last answer', () => {
  it('leads to exactly one more step, which carries the whole new text', async () => {
    const { harness, agent } = await started({ files: ROOT })
    harness.write('AGENTS.md', 'Root rule two.\n')
    expect(await agent.finish()).toBeDefined()
    expect(countIn(agent.request, 'Root rule two.')).toBe(1)
    expect(agent.told).toHaveLength(1)
    await agent.end()
    await agent.turn(quiet)

    expect(toldOf(agent)).toEqual([...BASELINE, 'replace .:AGENTS.md'])
    expect(agent.notices).toHaveLength(1)
    expect(textOf(agent.notices)).not.toContain('AGENTS.md')
  })

  it('leads to no more steps than the settings allow; the next turn is told', async () => {
    const { harness, agent } = await started({ files: ROOT, config: { notice: { maxSteersPerTurn: 1 } } })
    harness.write('AGENTS.md', 'Root rule two.\n')
    expect(await agent.finish()).toBeDefined()
    harness.write('AGENTS.md', 'Root rule three.\n')
    await agent.end()
    const request = await agent.prompt()

    expect(countIn(request, 'Root rule three.')).toBe(1)
    expect(toldOf(agent)).toEqual([...BASELINE, 'replace .:AGENTS.md', 'replace .:AGENTS.md'])
    await agent.end()
  })

  it('leads to one step together with the change of a file that the session has read', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'a.ts': 'one\n' } })
    await agent.call(read('a.ts'))
    harness.write('AGENTS.md', 'Root rule two.\n')
    harness.write('a.ts', 'two\n')
    expect(await agent.finish()).toBeDefined()
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    expect(countIn(agent.request, 'Root rule two.')).toBe(1)
    await agent.end()
  })
})

describe('after a compaction', () => {
  const files = { ...ROOT, 'p/AGENTS.md': 'P rule.\n', 'q/AGENTS.md': 'Q rule.\n', 'p/f': LONG, 'q/f': LONG }
  const compacted = async (offline: (harness: Harness) => void = () => undefined) => {
    const { harness, agent } = await started({ files, compaction: true })
    await agent.call(read('p/f'), read('q/f'))
    await agent.end()
    await harness.compact(agent)
    offline(harness)
    return { harness, agent }
  }

  it('the baseline and every nested scope in force are composed again, once', async () => {
    const { agent } = await compacted()
    expect(await during(agent, async () => agent.prompt())).toEqual([
      ...BASELINE,
      'set p:AGENTS.md',
      'set q:AGENTS.md',
    ])
    for (const rule of ['Root rule.', 'P rule.', 'Q rule.']) expect(countIn(agent.request, rule)).toBe(1)
    expect(
      await during(agent, async () => {
        await agent.call(quiet)
        await agent.call(read('p/f'))
        await agent.end()
        await agent.turn(quiet)
      }),
    ).toEqual([])
  })

  it('they are composed as they are now, and what is gone is not mentioned', async () => {
    const { agent } = await compacted((harness) => {
      harness.write('AGENTS.md', 'Root rule two.\n')
      harness.remove('p/AGENTS.md')
    })
    expect(await during(agent, async () => agent.prompt())).toEqual([...BASELINE, 'set q:AGENTS.md'])
    expect(countIn(agent.request, 'Root rule two.')).toBe(1)
    await agent.end()
  })

  it('in the middle of a turn they come with the very next request', async () => {
    const { harness, agent } = await started({ files, compaction: true })
    await agent.call(read('p/f'))
    let due = true
    harness.ctx.on('agent/pre-step', async (_payload, next) => {
      if (due) {
        due = false
        const { nodes } = agent.session.surface
        const [first, last] = [nodes[0], nodes.at(-1)]
        if (first === undefined || last === undefined) throw new Error('nothing to compact')
        await harness.ctx.compaction.compactRegion(first, last, agent.agent)
      }
      return next()
    })

    expect(await during(agent, async () => agent.call(quiet))).toEqual([...BASELINE, 'set p:AGENTS.md'])
    expect(countIn(agent.request, 'P rule.')).toBe(1)
    expect(await during(agent, async () => agent.call(quiet))).toEqual([])
    await agent.end()
  })

  it('a resumed process knows the nested scopes that only the summarized log names', async () => {
    const { harness, agent } = await started({ files, compaction: true, persistence: true })
    await agent.call(read('p/f'))
    await agent.end()
    await harness.compact(agent)
    await harness.resume(agent)

    expect(await during(agent, async () => agent.prompt())).toEqual([...BASELINE, 'set p:AGENTS.md'])
    await agent.end()
  })
})

describe('a resumed session', () => {
  it('keeps its baseline and is told the differences once', async () => {
    const { harness, agent } = await started({
      files: { ...ROOT, 'CLAUDE.md': 'Claude.\n', 'p/AGENTS.md': 'P.\n', 'p/f': '' },
      persistence: true,
    })
    await agent.call(read('p/f'))
    await agent.end()
    await harness.resume(agent)
    expect(await during(agent, async () => agent.turn(quiet))).toEqual([])
    await harness.resume(agent, () => {
      harness.write('AGENTS.md', 'Root rule two.\n')
      harness.remove('CLAUDE.md')
      harness.write('p/AGENTS.md', 'P two.\n')
    })

    expect(await during(agent, async () => agent.turn(quiet))).toEqual([
      'replace .:AGENTS.md',
      'remove .:CLAUDE.md',
      'replace p:AGENTS.md',
    ])
    expect(agent.notices.filter(({ category }) => category === 'changes')).toEqual([])
  })

  it('that was told nothing yet has its baseline with the first request', async () => {
    const { harness, agent } = await start({ persistence: true })
    await agent.turn(quiet)
    await harness.resume(agent, () => harness.write('AGENTS.md', 'Root rule.\n'))
    await agent.turn(quiet)

    expect(toldOf(agent)).toEqual(BASELINE)
  })
})

describe('a reload of the plugin in the middle of a session', () => {
  it('sends no second baseline, and tells what happened meanwhile once', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'p/AGENTS.md': 'P.\n', 'p/f': '' } })
    await agent.call(read('p/f'))
    await harness.reload()
    await harness.live()
    expect(await during(agent, async () => agent.call(quiet))).toEqual([])
    await harness.unmount()
    harness.write('AGENTS.md', 'Root rule two.\n')
    harness.remove('p/AGENTS.md')
    await harness.mount()

    expect(await during(agent, async () => agent.call(quiet))).toEqual([
      'replace .:AGENTS.md',
      'remove p:AGENTS.md',
    ])
    expect(await during(agent, async () => agent.call(quiet))).toEqual([])
    await agent.end()
    expect(agent.notices).toEqual([])
  })

  it('still tells a new file in a directory that the session had visited before', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'p/f': '' } })
    await agent.call(read('p/f'))
    await harness.reload()
    await harness.live()
    await agent.call(quiet)
    harness.write('p/AGENTS.md', 'P.\n')

    expect(await during(agent, async () => agent.call(quiet))).toEqual(['set p:AGENTS.md'])
    await agent.end()
  })

  it('tells an outer file before an inner one that was known before', async () => {
    const { harness, agent } = await started({
      files: { ...ROOT, 'p/q/AGENTS.md': 'Q.\n', 'p/q/f': '', 'p/f': '' },
    })
    await agent.call(read('p/q/f'))
    await harness.reload()
    await agent.call(quiet)
    harness.write('p/AGENTS.md', 'P.\n')
    harness.write('p/q/AGENTS.md', 'Q two.\n')

    expect(await during(agent, async () => agent.call(read('p/f')))).toEqual([
      'set p:AGENTS.md',
      'replace p/q:AGENTS.md',
    ])
    await agent.end()
  })

  it('with other settings supersedes the baseline once', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'CLAUDE.md': 'Claude.\n' } })
    await harness.reload({ instructions: { instructionFileCandidates: ['AGENTS.md'] } })

    const told = await during(agent, async () => agent.call(quiet))
    expect(told.toSorted()).toEqual(['baseline remove .:CLAUDE.md', ...BASELINE])
    expect(
      await during(agent, async () => {
        await agent.end()
        await agent.turn(quiet)
      }),
    ).toEqual([])
  })

  it('that turns the room off and on again tells only the differences', async () => {
    const { harness, agent } = await started({ files: ROOT })
    await harness.reload({ instructions: false })
    harness.write('AGENTS.md', 'Root rule two.\n')
    expect(await during(agent, async () => agent.call(quiet))).toEqual([])
    await harness.reload()

    expect(await during(agent, async () => agent.call(quiet))).toEqual(['replace .:AGENTS.md'])
    await agent.end()
  })
})

const DEGRADED = { restartDelayMs: NEVER, maxRestartDelayMs: NEVER }

describe('without live coverage', () => {
  const files = { ...ROOT, 'p/f': '', 'p/q/AGENTS.md': 'Q.\n', 'p/q/f': '' }

  it.each(['off', 'degraded'])(
    '(%s) edits, new files and removals are told at the next request',
    async (kind) => {
      const off = kind === 'off'
      const { harness, agent } = await start({
        files,
        config: { watch: off ? { backend: 'off' } : DEGRADED },
      })
      await agent.prompt()
      await harness.covered(off ? 'off' : 'live')
      if (!off) {
        replaceWorkspace(harness)
        await agent.call(quiet)
        await harness.covered('degraded')
      }
      const step = async (action: () => void, call = quiet) => {
        action()
        return during(agent, async () => agent.call(call))
      }

      expect(await step(() => undefined)).toEqual([])
      expect(await step(() => undefined, read('p/q/f'))).toEqual(['set p/q:AGENTS.md'])
      expect(await step(() => harness.write('AGENTS.md', 'Root rule two.\n'))).toEqual([
        'replace .:AGENTS.md',
      ])
      expect(await step(() => harness.write('p/AGENTS.md', 'P.\n'))).toEqual(['set p:AGENTS.md'])
      expect(await step(() => harness.remove('p/q/AGENTS.md'))).toEqual(['remove p/q:AGENTS.md'])
      expect(await step(() => harness.write(GLOBAL, 'Global.\n'))).toEqual(['set user-global:AGENTS.md'])
      expect(await step(() => undefined)).toEqual([])
      harness.write('AGENTS.md', 'Root rule three.\n')
      expect(await agent.finish()).toBeDefined()
      expect(countIn(agent.request, 'Root rule three.')).toBe(1)
      await agent.end()
    },
  )

  it('edits are told while the first scan runs', async () => {
    const { harness, agent } = await start({ files })
    await agent.prompt()
    harness.write('AGENTS.md', 'Root rule two.\n')
    await agent.call(quiet)

    expect(toldOf(agent)).toEqual([...BASELINE, 'replace .:AGENTS.md'])
    await agent.end()
  })

  it('what changed while the watcher was lost is told once it is back', async () => {
    const { harness, agent } = await started({
      files,
      config: { watch: { restartDelayMs: 200, maxRestartDelayMs: 200 } },
    })
    renameSync(harness.workspace, `${harness.workspace}.away`)
    await agent.call(read('/nowhere'))
    await harness.covered('degraded')
    renameSync(`${harness.workspace}.away`, harness.workspace)
    harness.write('AGENTS.md', 'Root rule two.\n')
    await harness.live()
    await agent.call(quiet)
    harness.write('AGENTS.md', 'Root rule three.\n')
    await agent.call(quiet)

    expect(countIn(agent.request, 'Root rule three.')).toBe(1)
    await agent.end()
  })
})

describe('a provider that fails', () => {
  it('removes nothing, and the file is told as it is once the provider works again', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'p/AGENTS.md': 'P.\n', 'p/f': '' } })
    await agent.call(read('p/f'))
    const paths = ['AGENTS.md', 'p/AGENTS.md'].map((path) => harness.path(path))
    for (const path of paths) harness.probe.failStat(path)
    harness.write('AGENTS.md', 'Root rule two.\n')
    harness.remove('p/AGENTS.md')
    expect(
      await during(agent, async () => {
        await agent.call(quiet)
        await agent.call(quiet)
      }),
    ).toEqual([])
    for (const path of paths) harness.probe.heal(path)

    expect(await during(agent, async () => agent.call(quiet))).toEqual([
      'replace .:AGENTS.md',
      'remove p:AGENTS.md',
    ])
    await agent.end()
  })

  it('leaves the whole directory in its last good state', async () => {
    const { harness, agent } = await started({ files: { ...ROOT, 'CLAUDE.md': 'Claude.\n' } })
    harness.probe.failStat(harness.path('AGENTS.md'))
    harness.save('AGENTS.md', 'Root rule two.\n')
    harness.remove('CLAUDE.md')
    expect(await during(agent, async () => agent.call(quiet))).toEqual([])
    harness.probe.healAll()

    expect(await during(agent, async () => agent.call(quiet))).toEqual([
      'replace .:AGENTS.md',
      'remove .:CLAUDE.md',
    ])
    await agent.end()
  })

  it('does not outlive a cancellation, and costs nothing that was to be told', async () => {
    const { harness, agent } = await started({ files: ROOT })
    harness.probe.hangStat(harness.path('AGENTS.md'))
    harness.write('AGENTS.md', 'Root rule two.\n')
    const answer = agent.answer({ calls: [quiet] })
    await waitFor(() => harness.probe.hanging > 0, { timeoutMs: 10_000, describe: 'the boundary waits' })
    agent.agent.cancel({ kind: 'user' })
    expect(await answer).toBeUndefined()
    harness.probe.healAll()

    expect(await during(agent, async () => agent.turn(quiet))).toEqual(['replace .:AGENTS.md'])
  })
})

const STOCK_CONFIG = { maxBytes: 65_536 }

describe('a session of the stock loader', () => {
  const files = { ...ROOT, 'p/AGENTS.md': 'P rule.\n', 'p/f': '', 'q/AGENTS.md': 'Q rule.\n', 'q/f': '' }
  const useStock = async (harness: Harness): Promise<Fiber> => harness.use(await stockLoader(), STOCK_CONFIG)

  it('goes on under ours and back without a second baseline', async () => {
    const { harness, agent } = await start({ files, config: false })
    const stock = await useStock(harness)
    await agent.turn(read('p/f'))
    expect(toldOf(agent)).toEqual([...BASELINE, 'set p:AGENTS.md'])
    await stock.dispose()
    harness.write('p/AGENTS.md', 'P rule two.\n')
    await harness.mount()
    expect(await during(agent, async () => agent.turn(read('q/f')))).toEqual([
      'replace p:AGENTS.md',
      'set q:AGENTS.md',
    ])
    await harness.unmount()
    const again = await useStock(harness)
    harness.write('AGENTS.md', 'Root rule two.\n')
    expect(await during(agent, async () => agent.turn(read('p/f'), read('q/f')))).toEqual([
      'replace .:AGENTS.md',
    ])
    await again.dispose()
    await harness.mount()

    expect(await during(agent, async () => agent.turn(quiet))).toEqual([])
    await agent.prompt()
    for (const rule of ['Root rule two.', 'P rule two.', 'Q rule.'])
      expect(countIn(agent.request, rule)).toBe(1)
    await agent.end()
  })

  it('is resumed under ours with what changed offline, once', async () => {
    const { harness, agent } = await start({ files, config: false, persistence: true })
    const stock = await useStock(harness)
    await agent.turn(read('p/f'))
    await stock.dispose()
    await harness.mount()
    await harness.resume(agent, () => {
      harness.write('AGENTS.md', 'Root rule two.\n')
      harness.remove('p/AGENTS.md')
    })

    expect(await during(agent, async () => agent.turn(quiet))).toEqual([
      'replace .:AGENTS.md',
      'remove p:AGENTS.md',
    ])
    expect(await during(agent, async () => agent.turn(quiet))).toEqual([])
  })
})

describe('beside the stock loader', () => {
  const files = { ...ROOT, 'p/AGENTS.md': 'P rule.\n', 'p/f': LONG, 'q/f': LONG }
  const beside = async (setup: Setup = {}, stock: Record<string, unknown> = STOCK_CONFIG) => {
    const { harness, agent } = await start({ files, config: false, ...setup })
    await harness.use(await stockLoader(), stock)
    await harness.mount(setup.config === false ? {} : setup.config)
    return { harness, agent }
  }

  it('nothing is told twice: baseline, touched directory, edit, new file, removal', async () => {
    const { harness, agent } = await beside()
    await agent.prompt()
    await harness.live()
    await agent.call(read('p/f'), read('q/f'))
    const step = async (action: () => void) => {
      action()
      return during(agent, async () => agent.call(quiet))
    }

    expect(toldOf(agent)).toEqual([...BASELINE, 'set p:AGENTS.md'])
    expect(await step(() => harness.write('AGENTS.md', 'Root rule two.\n'))).toEqual(['replace .:AGENTS.md'])
    expect(await step(() => harness.write('p/AGENTS.md', 'P rule two.\n'))).toEqual(['replace p:AGENTS.md'])
    expect(await step(() => harness.write('q/AGENTS.md', 'Q rule.\n'))).toEqual(['set q:AGENTS.md'])
    expect(await step(() => harness.remove('p/AGENTS.md'))).toEqual(['remove p:AGENTS.md'])
    expect(await step(() => undefined)).toEqual([])
    await agent.end()
    await agent.turn(read('q/f'), quiet)
    expect(toldOf(agent)).toHaveLength(6)
  })

  it.each([
    ['not used', quiet],
    ['read', read('AGENTS.md')],
  ])('what the stock loader tells of a file that the session has %s is in no notice', async (_what, call) => {
    const { harness, agent } = await beside()
    await agent.prompt()
    await harness.live()
    await agent.call(call)
    harness.write('AGENTS.md', 'Root rule two.\n')
    await agent.call(quiet)
    harness.remove('AGENTS.md')
    await agent.call(quiet)
    await agent.end()

    expect(toldOf(agent)).toEqual([...BASELINE, 'replace .:AGENTS.md', 'remove .:AGENTS.md'])
    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'q/f')
  })

  it('a change during the last answer leads to one step and one text', async () => {
    const { harness, agent } = await beside()
    await agent.prompt()
    harness.write('AGENTS.md', 'Root rule two.\n')
    expect(await agent.finish()).toBeDefined()
    expect(countIn(agent.request, 'Root rule two.')).toBe(1)
    await agent.end()
    await agent.turn(quiet)

    expect(toldOf(agent)).toEqual([...BASELINE, 'replace .:AGENTS.md'])
  })

  it('after a compaction the baseline is told again by one of the two, and nested scopes as well', async () => {
    const { harness, agent } = await beside({ compaction: true })
    await agent.turn(read('p/f'), read('q/f'))
    await harness.compact(agent)
    expect(await during(agent, async () => agent.prompt())).toEqual([...BASELINE, 'set p:AGENTS.md'])
    for (const rule of ['Root rule.', 'P rule.']) expect(countIn(agent.request, rule)).toBe(1)
    expect(
      await during(agent, async () => {
        await agent.call(read('p/f'))
        await agent.end()
      }),
    ).toEqual([])
  })

  it('a baseline that the stock loader has left in the inbox is not told a second time', async () => {
    const { harness, agent } = await beside()
    const stop = harness.ctx.on('agent/pre-step', async () => ({ kind: 'reject' }))
    expect(await agent.submit()).toBeUndefined()
    stop()
    await agent.turn(quiet)
    await agent.turn(read('q/f'))

    expect(toldOf(agent)).toEqual(BASELINE)
    await expectHearing(harness, agent, 'q/f')
  })

  it('a reload of ours says nothing', async () => {
    const { harness, agent } = await beside()
    await agent.prompt()
    await agent.call(read('p/f'))
    await harness.reload()
    await agent.call(quiet)
    await agent.end()
    await harness.reload()
    await agent.turn(quiet)

    expect(toldOf(agent)).toEqual([...BASELINE, 'set p:AGENTS.md'])
    expect(agent.notices).toEqual([])
    await expectHearing(harness, agent, 'p/f')
  })

  it.each([
    ['a smaller budget than ours', { maxBytes: 2_000 }, {}],
    ['a larger budget than ours', STOCK_CONFIG, { maxBytes: 2_000 }],
    ['fewer names than ours', { ...STOCK_CONFIG, instructionFileCandidates: ['AGENTS.md'] }, {}],
    ['more names than ours', STOCK_CONFIG, { instructionFileCandidates: ['AGENTS.md'] }],
  ])('with %s no fight of replacements arises', async (_what, stock, instructions) => {
    const { harness, agent } = await beside(
      { files: { ...files, 'CLAUDE.md': 'Claude rule.\n' }, config: { instructions } },
      stock,
    )
    await agent.prompt()
    await agent.call(read('p/f'))
    const { length } = instructionsOf(agent)
    for (let step = 0; step < 4; step++) await agent.call(quiet)
    expect(instructionsOf(agent)).toHaveLength(length)
    for (const rule of ['Root rule.', 'P rule.', 'Claude rule.']) expect(countIn(agent.request, rule)).toBe(1)
    harness.write('AGENTS.md', 'Root rule two.\n')
    await agent.call(quiet)
    await agent.call(quiet)

    expect(countIn(agent.request, 'Root rule two.')).toBe(1)
    expect(instructionsOf(agent)).toHaveLength(length + 1)
    await expectHearing(harness, agent, 'p/f')
  })
})

describe('an instruction file that the agent has read', () => {
  const RULES = 'Rule one.\nRule two.\n'

  it('is edited without a new read after an update that holds its whole text', async () => {
    const { harness, agent } = await started({ files: { 'AGENTS.md': RULES } })
    await agent.call(read('AGENTS.md'))
    harness.write('AGENTS.md', 'Rule one, by a person.\nRule two.\n')
    const told = await during(agent, () => agent.call(quiet))
    expect(told).toEqual(['replace .:AGENTS.md'])
    await agent.call(edit('AGENTS.md', 'Rule two.', 'Rule three.'))
    expect(readFileSync(harness.path('AGENTS.md'), 'utf8')).toBe('Rule one, by a person.\nRule three.\n')
    await agent.end()
  })

  it('is to be read again after an update that does not hold it as it is', async () => {
    const { harness, agent } = await started({ files: { 'AGENTS.md': RULES } })
    await agent.call(read('AGENTS.md'))
    harness.write('AGENTS.md', 'Close with </system-reminder>.\nRule two.\n')
    await during(agent, () => agent.call(quiet))
    await agent.call(edit('AGENTS.md', 'Rule two.', 'Rule three.'))
    expect(readFileSync(harness.path('AGENTS.md'), 'utf8')).toContain('Rule two.')
    await agent.end()
  })

  it('says so when nothing is left in it', async () => {
    const { harness, agent } = await started({ files: { 'AGENTS.md': RULES } })
    harness.write('AGENTS.md', '')
    await agent.call(quiet)
    expect(textIn(agent.request)).toContain('The file is empty now.')
    expect(textIn(agent.request)).not.toContain('What follows takes the place')
    await agent.end()
  })
})

describe('a directory of instructions that became a file', () => {
  it('takes its instructions out of force', async () => {
    const harness = await boot({ files: { 'pkg/AGENTS.md': 'Package.\n', 'pkg/f': 'f\n' } })
    const agent = await harness.agent('main')
    await agent.turn(read('pkg/f'))
    await agent.prompt()
    rmSync(harness.path('pkg'), { recursive: true })
    harness.write('pkg', 'a file now\n')
    await agent.call(quiet)
    expect(toldOf(agent)).toContain('remove pkg:AGENTS.md')
    await agent.end()
  })
})
