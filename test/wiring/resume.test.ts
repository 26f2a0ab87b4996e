import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  boot,
  categories,
  edit,
  type Harness,
  quiet,
  read,
  resultsIn,
  type RawConfig,
  type TestAgent,
  textOf,
  write,
} from '../support/harness.ts'
import { waitFor } from '../support/wait.ts'

const names = (count: number, prefix = 'f'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(2, '0')}.ts`)

const filesOf = (paths: readonly string[]): Record<string, string> =>
  Object.fromEntries(paths.map((path) => [path, `content of ${path}\n`]))

const stored = async (paths: readonly string[], config: RawConfig = {}, compaction = false) => {
  const harness = await boot({ files: filesOf(paths), persistence: true, config, compaction })
  return { harness, agent: await harness.agent('main') }
}

/** Read all of these in one turn. */
const readAll = async (agent: TestAgent, paths: readonly string[]): Promise<void> => {
  await agent.prompt()
  await agent.answer({ calls: paths.map((path) => read(path)) })
  await agent.end()
}

const directoryOf = ({ base }: Harness): string => join(base, 'dsh-home', 'live-workspace', 'v1')
const manifestOf = (harness: Harness): string => join(directoryOf(harness), 'session-main.json')

const touch = (harness: Harness, path: string): void => {
  const at = new Date(Date.now() + 5_000)
  utimesSync(harness.path(path), at, at)
}

describe('a resumed session', () => {
  it('is told exactly what changed, and how many files need no new read', async () => {
    const paths = names(20)
    const { harness, agent } = await stored(paths)
    await readAll(agent, paths)
    await harness.resume(agent, () => {
      for (const path of paths.slice(0, 3)) harness.write(path, 'other\n')
      harness.remove('f03.ts')
      for (const path of paths.slice(4, 9)) touch(harness, path)
    })
    await agent.prompt()

    expect(categories(agent.told)).toEqual(['resume'])
    expect(textOf(agent.told)).toBe(
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
    const touched = await agent.call(edit('f05.ts', 'content', 'text'))
    expect(resultsIn(touched).at(-1)).not.toContain('Error')
    const untouched = await agent.call(edit('f15.ts', 'content', 'text'))
    expect(resultsIn(untouched).at(-1)).not.toContain('Error')
    const changed = await agent.call(edit('f00.ts', 'other', 'mine'))
    expect(resultsIn(changed).at(-1)).toContain('requires reading')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('is told in one line that nothing changed', async () => {
    const paths = names(3)
    const { harness, agent } = await stored(paths)
    await readAll(agent, paths)
    await harness.resume(agent)
    await agent.prompt()

    expect(textOf(agent.told)).toBe(
      '<system-reminder>\nThis session was resumed. All 3 files that it had read or written are unchanged: no new read is needed.\n</system-reminder>',
    )
    await agent.end()
    await agent.turn(quiet)
    expect(agent.notices).toHaveLength(1)
  })

  it('is told nothing when nothing changed, where the settings say so; the guard is renewed all the same', async () => {
    const { harness, agent } = await stored(['a.ts'], { resume: { tellUnchanged: false } })
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await agent.prompt()
    expect(agent.told).toEqual([])
    const request = await agent.call(edit('a.ts', 'content', 'text'))

    expect(resultsIn(request).at(-1)).not.toContain('Error')
    await agent.end()
  })

  it('edits a file whose version alone proves that it is the same, without a new read', async () => {
    const { harness, agent } = await stored(['a.ts'], { notice: { racyWindowMs: 0 } })
    await harness.live()
    await agent.turn(read('a.ts'))
    await agent.turn(quiet)
    await harness.resume(agent)
    expect(readFileSync(manifestOf(harness), 'utf8')).toContain('"settled":true')
    await agent.prompt()
    const request = await agent.call(edit('a.ts', 'content', 'text'))

    expect(resultsIn(request).at(-1)).not.toContain('Error')
    await agent.end()
  })

  it('is told again after each resume, of what is so then', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    await readAll(agent, ['a.ts', 'b.ts'])
    await harness.resume(agent, () => harness.write('a.ts', 'two\n'))
    await agent.prompt()
    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.call(read('a.ts'))
    await agent.end()
    await harness.resume(agent, () => harness.write('b.ts', 'two\n'))
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "b.ts"')
    expect(textOf(agent.told)).not.toContain('"a.ts"')
    expect(textOf(agent.told)).toContain('1 other is unchanged')
    await agent.end()
  })

  it('is told that a file is again as it saw it, when it had been told of another state', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'], { notice: { showHunks: false } })
    await readAll(agent, ['a.ts', 'b.ts'])
    harness.write('a.ts', 'two\n')
    await agent.turn(quiet)
    await harness.resume(agent, () => harness.write('a.ts', 'content of a.ts\n'))
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- again as this session saw it: "a.ts"')
    expect(textOf(agent.told)).toContain('1 other is unchanged')
    await agent.end()
  })

  it('takes a change that was shown to it in full for seen', async () => {
    const { harness, agent } = await stored(['a.ts'])
    await agent.turn(read('a.ts'))
    harness.write('a.ts', 'two\n')
    await agent.turn(quiet)
    await harness.resume(agent)
    await agent.prompt()

    expect(textOf(agent.told)).toContain('The one file that it had read or written is unchanged')
    await agent.end()
  })

  it('is told of a change that happens between the resume and the first request', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    await readAll(agent, ['a.ts', 'b.ts'])
    await harness.resume(agent)
    harness.write('a.ts', 'two\n')
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "a.ts"')
    await agent.end()
  })

  it('is told at the next request when the first one was rejected, with what is so then', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    await readAll(agent, ['a.ts', 'b.ts'])
    await harness.resume(agent, () => harness.write('a.ts', 'two\n'))
    const stop = harness.ctx.on(
      'agent/pre-step',
      async (_payload, next) => {
        await next()
        return { kind: 'reject' }
      },
      { prepend: true },
    )
    expect(await agent.submit()).toBeUndefined()
    stop()
    harness.write('b.ts', 'two\n')
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "a.ts"\n- modified "b.ts"')
    await agent.end()
    expect(agent.notices).toHaveLength(1)
  })

  it('is told of its own written files like of read ones', async () => {
    const { harness, agent } = await stored([])
    await agent.turn(write('new.ts', 'mine\n'), write('kept.ts', 'mine\n'))
    await harness.resume(agent, () => harness.write('new.ts', 'theirs\n'))
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "new.ts"')
    expect(textOf(agent.told)).toContain('1 other is unchanged')
    await agent.end()
  })

  it('counts what it does not name', async () => {
    const paths = names(20)
    const { harness, agent } = await stored(paths, { resume: { maxResumePaths: 2 } })
    await readAll(agent, paths)
    await harness.resume(agent, () => {
      for (const path of paths.slice(0, 10)) harness.write(path, 'other\n')
      harness.remove('f10.ts')
    })
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "f01.ts"\n- 9 more: 8 modified, 1 deleted\n9 others are')
    await agent.end()
  })

  it('does not list an instruction file that is told as an instruction', async () => {
    const { harness, agent } = await stored(['AGENTS.md', 'a.ts'])
    await readAll(agent, ['AGENTS.md', 'a.ts'])
    await harness.resume(agent, () => harness.write('AGENTS.md', 'Another rule.\n'))
    await agent.prompt()

    expect(textOf(agent.told)).not.toContain('AGENTS.md')
    expect(textOf(agent.told)).toContain('The one file')
    expect(JSON.stringify(agent.request.messages)).toContain('Another rule.')
    await agent.end()
  })

  it('sees through a link that leads elsewhere now', async () => {
    const { harness, agent } = await stored(['one/a.ts', 'two/a.ts'])
    symlinkSync(harness.path('one'), harness.path('link'))
    await agent.turn(read('link/a.ts'))
    await harness.resume(agent, () => {
      rmSync(harness.path('link'))
      symlinkSync(harness.path('two'), harness.path('link'))
    })
    await agent.prompt()

    expect(textOf(agent.told)).toContain('- modified "link/a.ts"')
    await agent.end()
  })
})

describe('many files', () => {
  it('are checked beside the work, under the careful wording, and told when all of them are', async () => {
    const paths = names(30)
    const { harness, agent } = await stored(paths, { resume: { firstStepFiles: 10 } })
    await readAll(agent, paths)
    await harness.resume(agent, () => harness.write('f02.ts', 'other\n'))
    await agent.prompt()
    expect(textOf(agent.told)).toContain('10 files are unchanged')
    expect(textOf(agent.told)).toContain('20 files are still being checked')

    const told = async () => {
      await agent.call(quiet)
      return agent.told
    }
    let rest = await told()
    for (let step = 0; rest.length === 0 && step < 200; step += 1) rest = await told()
    expect(textOf(rest)).toContain('The files of this session that were still to be checked were checked.')
    expect(textOf(rest)).toContain('- modified "f02.ts"')
    expect(textOf(rest)).toContain('19 others are unchanged')
    const request = await agent.call(edit('f00.ts', 'content', 'text'))
    expect(resultsIn(request).at(-1)).not.toContain('Error')
    await agent.end()
    expect(agent.notices).toHaveLength(2)
  })

  it('survive a process that ends before all of them were checked', async () => {
    const paths = names(30)
    const { harness, agent } = await stored(paths, { resume: { firstStepFiles: 1 } })
    await readAll(agent, paths)
    await harness.resume(agent)
    await agent.prompt()
    await agent.call(read('f00.ts'))
    await agent.end()
    await harness.resume(agent)
    await agent.prompt()

    expect(textOf(agent.told)).toContain('1 file is unchanged')
    expect(textOf(agent.told)).toContain('29 files are still being checked')
    await agent.end()
  })
})

describe('what cannot be known', () => {
  it.each([
    ['nothing', (path: string) => rmSync(path)],
    ['half of it', (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 200))],
    ['no JSON', (path: string) => writeFileSync(path, 'hello')],
    ['an empty file', (path: string) => writeFileSync(path, '')],
    [
      'another version',
      (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":2')),
    ],
    [
      'other bytes in it',
      (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('a.ts', 'b.ts')),
    ],
    ['far too much', (path: string) => writeFileSync(path, Buffer.alloc(5_000_000, 32))],
    ['a directory', (path: string) => (rmSync(path), mkdirSync(path))],
    ['a link', (path: string) => (rmSync(path), symlinkSync('/etc/hostname', path))],
  ])('leads to the general reminder: %s was left', async (what, damage) => {
    const { harness, agent } = await stored(['a.ts'])
    await agent.turn(read('a.ts'))
    const { id } = agent.session
    await agent.dispose()
    await harness.unmount()
    damage(join(directoryOf(harness), `${id}.json`))
    await harness.mount()
    await harness.continued(agent, id)
    await agent.prompt()

    expect(categories(agent.told)).toEqual(['resume'])
    expect(textOf(agent.told)).toContain('Files may have changed while it was not running')
    await agent.end()
    const reported = harness.errors.filter((error) => error.includes('cannot be used'))
    expect(reported).toHaveLength(what === 'nothing' ? 0 : 1)
    const aside = readdirSync(directoryOf(harness)).filter((name) => name.includes('unusable'))
    expect(aside).toHaveLength(what === 'nothing' ? 0 : 1)
  })

  it('keeps a file of what is remembered to its owner, without any content', async () => {
    const { harness, agent } = await stored(['a.ts'])
    await agent.turn(read('a.ts'))
    await agent.dispose()
    await harness.unmount()

    expect(statSync(manifestOf(harness)).mode & 0o777).toBe(0o600)
    expect(readFileSync(manifestOf(harness), 'utf8')).not.toContain('content of')
  })

  it('goes on where nothing can be written, and says so once', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    mkdirSync(join(harness.base, 'dsh-home'), { recursive: true })
    writeFileSync(join(harness.base, 'dsh-home', 'live-workspace'), 'in the way')
    await agent.turn(read('a.ts'))
    await harness.resume(agent)
    await agent.turn(read('b.ts'))
    await harness.unmount()

    expect(harness.errors.filter((error) => error.includes('cannot be written'))).toHaveLength(1)
    expect(textOf(agent.notices)).toContain('Files may have changed while it was not running')
  })
})

describe('old lists', () => {
  it('go when the plugin is mounted, unless their session still exists', async () => {
    const { harness, agent } = await stored(['a.ts'])
    await agent.turn(read('a.ts'))
    await agent.dispose()
    await harness.unmount()
    const logs = () => readdirSync(harness.base, { recursive: true, encoding: 'utf8' })
    await waitFor(() => logs().some((path) => path.endsWith('session.jsonl')), {
      timeoutMs: 10_000,
      describe: () => `the log of the session among ${logs().join(', ')}`,
    })
    const old = new Date(Date.now() - 40 * 86_400_000)
    const gone = join(directoryOf(harness), 'session-gone.json')
    writeFileSync(gone, readFileSync(manifestOf(harness)))
    for (const path of [gone, manifestOf(harness)]) utimesSync(path, old, old)
    await harness.mount()
    await harness.unmount()

    expect(readdirSync(directoryOf(harness))).toEqual(['session-main.json'])
  })
})

describe('a reload of the configuration', () => {
  it('wins over the list on disk', async () => {
    const { harness, agent } = await stored(['a.ts'])
    await agent.turn(read('a.ts'))
    await harness.unmount()
    writeFileSync(manifestOf(harness), 'nonsense')
    harness.write('a.ts', 'two\n')
    await harness.mount()
    await agent.prompt()

    expect(categories(agent.told)).toEqual(['changes'])
    expect(harness.errors).toEqual([])
    await agent.end()
  })

  it('in the middle of a check loses nothing of it', async () => {
    const paths = names(80)
    const config = { resume: { firstStepFiles: 1 } }
    const { harness, agent } = await stored(paths, config)
    await readAll(agent, paths)
    await harness.resume(agent, () => harness.write('f01.ts', 'other\n'))
    await agent.prompt()
    expect(textOf(agent.told)).toContain('79 files are still being checked')
    await harness.reload(config)
    const told = async () => {
      await agent.call(quiet)
      return agent.told
    }
    let rest = await told()
    for (let step = 0; rest.length === 0 && step < 200; step += 1) rest = await told()

    expect(textOf(rest)).toContain('- modified "f01.ts"')
    expect(textOf(rest)).toContain('78 others are unchanged')
    await agent.end()
  })
})

describe('after a compaction', () => {
  const LONG = Array.from({ length: 120 }, (_, line) => `line ${line} of a long file\n`).join('')

  it('unchanged files are unchanged, but not taken for shown; their edit passes', async () => {
    const harness = await boot({ files: { 'a.ts': LONG, 'b.ts': LONG }, persistence: true, compaction: true })
    const agent = await harness.agent('main')
    await agent.turn(read('a.ts'))
    await harness.compact(agent)
    await agent.turn(read('b.ts'))
    await harness.resume(agent)
    await agent.prompt()

    expect(textOf(agent.told)).toContain(
      'All 2 files that it had read or written are unchanged, 1 no longer shown',
    )
    const request = await agent.call(edit('a.ts', 'line 1 of', 'line one of'))
    expect(resultsIn(request).at(-1)).not.toContain('Error')
    await agent.end()
  })
})

describe('children', () => {
  it('a fork knows what its history shows, and nothing that its parent saw later', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts', 'c.ts'])
    await readAll(agent, ['a.ts', 'b.ts'])
    const boundary = agent.session.seq - 1
    await agent.turn(read('c.ts'))
    harness.write('b.ts', 'two\n')
    const child = await harness.fork(agent, 'child', boundary)
    await child.prompt()

    expect(textOf(child.told)).toContain(
      'The files that this session had read or written so far were checked.',
    )
    expect(textOf(child.told)).toContain('- modified "b.ts"')
    expect(textOf(child.told)).toContain('1 other is unchanged')
    expect(textOf(child.told)).not.toContain('c.ts')
    harness.write('c.ts', 'two\n')
    harness.write('a.ts', 'two\n')
    const request = await child.call(quiet)
    expect(textOf(child.told)).toContain('Used by this session:\n- modified "a.ts"')
    expect(request.messages.length).toBeGreaterThan(0)
    await child.finish()
  })

  it('a fork does not take the latest state of its parent for what its own history shows', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    await readAll(agent, ['a.ts', 'b.ts'])
    const boundary = agent.session.seq - 1
    harness.write('a.ts', 'two\n')
    await agent.turn(read('a.ts'))
    const child = await harness.fork(agent, 'child', boundary)
    await child.prompt()

    expect(textOf(child.told)).toContain('What this session saw of 1 file is not known: "a.ts".')
    await child.end()
  })

  it('a subagent without history knows nothing of what its parent saw', async () => {
    const { harness, agent } = await stored(['a.ts'])
    await agent.turn(read('a.ts'))
    const child = await harness.agent('child', { parent: agent })
    harness.write('a.ts', 'two\n')
    await child.prompt()

    expect(textOf(child.told)).not.toContain('Used by this session')
    await child.end()
  })
})

describe('a log and a manifest that do not fit', () => {
  it('what was read after the last writing is unknown, not unchanged', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    await readAll(agent, ['a.ts', 'b.ts'])
    const { id } = agent.session
    const old = await harness.remembered(id)
    harness.write('a.ts', 'two\n')
    await agent.turn(read('a.ts'))
    await agent.dispose()
    await harness.unmount()
    // A crash before the second writing; and somebody restores the first content.
    writeFileSync(manifestOf(harness), old)
    harness.write('a.ts', 'content of a.ts\n')
    await harness.mount()
    await harness.continued(agent, id)
    await agent.prompt()

    expect(textOf(agent.told)).toContain('What this session saw of 1 file is not known: "a.ts".')
    expect(textOf(agent.told)).toContain('1 file is unchanged')
    await agent.end()
  })

  it('the same read under another name of the file counts', async () => {
    const { harness, agent } = await stored(['a.ts', 'b.ts'])
    symlinkSync(harness.path('a.ts'), harness.path('alias.ts'))
    await readAll(agent, ['a.ts', 'b.ts'])
    const { id } = agent.session
    const old = await harness.remembered(id)
    harness.write('a.ts', 'two\n')
    await agent.turn(read('alias.ts'))
    await agent.dispose()
    await harness.unmount()
    writeFileSync(manifestOf(harness), old)
    harness.write('a.ts', 'content of a.ts\n')
    await harness.mount()
    await harness.continued(agent, id)
    await agent.prompt()

    expect(textOf(agent.told)).toContain('What this session saw of 1 file is not known: "alias.ts".')
    await agent.end()
  })
})
