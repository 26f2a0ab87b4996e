import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { InstructionMessage } from '../../src/instructions/view.ts'
import { digestOf } from '../../src/instructions/text.ts'
import { changesOf, Conversation, textOf } from './conversation.ts'

describe('the baseline', () => {
  it('holds the user-global file and the chain from the root to the cwd, broad first', async () => {
    const talk = await Conversation.start(
      {
        'AGENTS.md': 'Root.\n',
        'CLAUDE.md': 'Claude.\n',
        'a/b/AGENTS.local.md': 'Local.\n',
        'c/AGENTS.md': 'No.',
      },
      { cwd: 'a/b' },
    )
    talk.writeGlobal('Global.\n')
    const [message, ...more] = await talk.step()
    expect(more).toEqual([])
    expect(message?.source).toMatchObject({
      kind: 'agent-instructions',
      form: 'instructions',
      baseline: true,
    })
    expect(changesOf(talk.visible)).toEqual([
      'baseline set user-global:AGENTS.md',
      'baseline set .:AGENTS.md',
      'baseline set .:CLAUDE.md',
      'baseline set a/b:AGENTS.local.md',
    ])
    expect(message?.text).toBe(
      [
        '<system-reminder>',
        'The following workspace instructions may be relevant to your work. Use them as guidance when applicable. More specific instructions take precedence over broader ones. They do not override system, developer, or direct user instructions.',
        '',
        'Instructions from: $DSH_HOME/AGENTS.md',
        '',
        'Global.',
        '',
        '',
        'Instructions from: AGENTS.md',
        '',
        'Root.',
        '',
        '',
        'Instructions from: CLAUDE.md',
        '',
        'Claude.',
        '',
        '',
        'Instructions from: a/b/AGENTS.local.md',
        '',
        'Local.',
        '',
        '</system-reminder>',
      ].join('\n'),
    )
    expect(await talk.step()).toEqual([])
  })

  it('names the files that it speaks of', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.' })
    const [message] = await talk.step()
    expect(message?.summaryPaths).toEqual([talk.path('AGENTS.md')])
  })

  it('is nothing without a file, and comes when the first one appears', async () => {
    const talk = await Conversation.start()
    expect(await talk.step()).toEqual([])
    talk.write('AGENTS.md', 'Root.')
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
  })

  it('is told again when the message did not become visible', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.' }, { live: true })
    const first = await talk.room.compose(talk.view())
    expect(await talk.step()).toEqual(first)
    expect(await talk.step()).toEqual([])
  })

  it('stays when a new process continues, and only differences are told', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'CLAUDE.md': 'Claude.' })
    await talk.step()
    talk.resume()
    expect(await talk.step()).toEqual([])
    talk.resume()
    talk.write('AGENTS.md', 'Root, new.')
    talk.remove('CLAUDE.md')
    talk.write('AGENTS.local.md', 'Local.')
    expect(changesOf(await talk.step())).toEqual([
      'replace .:AGENTS.md',
      'remove .:CLAUDE.md',
      'set .:AGENTS.local.md',
    ])
  })

  it('of other settings is superseded once, with removals', async () => {
    const talk = await Conversation.start({
      'AGENTS.md': 'Root.',
      'CLAUDE.md': 'Claude.',
      'p/AGENTS.md': 'P.',
    })
    await talk.step()
    await talk.touch('p/f')
    talk.resume({ instructionFileCandidates: ['AGENTS.md'] })
    const told = await talk.step()
    expect(changesOf(told)).toEqual(['baseline remove .:CLAUDE.md', 'baseline set .:AGENTS.md'])
    expect(textOf(told)).toContain('take the place of every earlier list')
    expect(await talk.step()).toEqual([])
    talk.remove('AGENTS.md')
    talk.resume({ instructionFileCandidates: ['AGENTS.md'], maxBytes: 9_999 })
    const empty = await talk.step()
    expect(changesOf(empty)).toEqual(['baseline remove .:AGENTS.md'])
    expect(textOf(empty)).not.toContain('Instructions from')
    expect(await talk.step()).toEqual([])
  })

  it('is composed anew after a compaction, with the nested scopes that were in force', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'p/AGENTS.md': 'P.', 'q/AGENTS.md': 'Q.' })
    await talk.step()
    await talk.touch('p/f', 'q/f')
    talk.remove('q/AGENTS.md')
    talk.compact()
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md', 'set p:AGENTS.md'])
    expect(await talk.step()).toEqual([])
  })

  it('brings nested scopes back after a compaction that another process made', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'p/AGENTS.md': 'P.', 'q/AGENTS.md': 'Q.' })
    await talk.step()
    await talk.touch('p/f', 'q/f')
    const log = talk.visible.map(({ source }) => source)
    talk.compact()
    talk.resume()
    talk.room.recall(log)
    expect(changesOf(await talk.step())).toEqual([
      'baseline set .:AGENTS.md',
      'set p:AGENTS.md',
      'set q:AGENTS.md',
    ])
  })
})

describe('news', () => {
  it('is what the session was not told before', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'p/AGENTS.md': 'P.' })
    const news = (messages: readonly InstructionMessage[]) => messages.map(({ news }) => news)
    expect(news(await talk.step())).toEqual([true])
    expect(news(await talk.touch('p/f'))).toEqual([true])
    expect(await talk.step()).toEqual([])
    const log = talk.visible.map(({ source }) => source)
    talk.compact()
    expect(news(await talk.step())).toEqual([false, false])
    talk.compact()
    talk.resume()
    talk.room.recall(log)
    talk.write('p/AGENTS.md', 'P, new.')
    expect(news(await talk.step())).toEqual([false, true])
    talk.remove('AGENTS.md')
    expect(news(await talk.step())).toEqual([true])
  })

  it('is not what a budget left for later', async () => {
    const talk = await Conversation.start(
      { 'p/AGENTS.md': 'p'.repeat(400), 'p/CLAUDE.md': 'c'.repeat(400) },
      { config: { maxBytes: 700 } },
    )
    expect((await talk.touch('p/f')).map(({ news }) => news)).toEqual([true])
    const later = await talk.step()
    expect(changesOf(later)).toEqual(['set p:AGENTS.md'])
    expect(later.map(({ news }) => news)).toEqual([false])
  })
})

describe('the project root', () => {
  it('is where a marker is a link that leads somewhere', async () => {
    const talk = await Conversation.start(
      { 'AGENTS.md': 'Root.', 'a/AGENTS.md': 'A.', 'a/b/AGENTS.md': 'B.', 'git/HEAD': '' },
      { cwd: 'a/b' },
    )
    rmSync(talk.path('.git'), { recursive: true })
    talk.link('a/.git', 'nowhere')
    talk.link('.git', 'git')
    expect(changesOf(await talk.step())).toEqual([
      'baseline set .:AGENTS.md',
      'baseline set a:AGENTS.md',
      'baseline set a/b:AGENTS.md',
    ])
  })

  it('is the cwd without a marker', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'a/AGENTS.md': 'A.' }, { cwd: 'a' })
    rmSync(talk.path('.git'), { recursive: true })
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
    expect(textOf(talk.visible)).toContain('A.')
  })

  it('stays what it is while the baseline is visible', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'a/AGENTS.md': 'A.' }, { cwd: 'a' })
    await talk.step()
    mkdirSync(talk.path('a/.git'))
    expect(await talk.step()).toEqual([])
    talk.compact()
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
    expect(textOf(talk.visible)).not.toContain('Root.')
  })

  it('is not looked for beyond a directory that cannot be asked', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Foreign.', 'a/b/AGENTS.md': 'B.' }, { cwd: 'a/b' })
    talk.disturbance.failing.add(talk.path('a/.git'))
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
    expect(textOf(talk.visible)).not.toContain('Foreign.')
    expect(talk.reports.join()).toContain('project root')
  })

  it('of a visible baseline is kept when a new process cannot ask', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'a/b/AGENTS.md': 'B.' }, { cwd: 'a/b' })
    await talk.step()
    talk.disturbance.failing.add(talk.path('a/.git'))
    talk.resume()
    expect(await talk.step()).toEqual([])
  })

  it('is found through a cwd that is a link to the root, or into the middle of the project', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'a/AGENTS.md': 'A.', 'q/AGENTS.md': 'Q.' })
    const direct = join(talk.sandbox.base, 'direct')
    const middle = join(talk.sandbox.base, 'middle')
    talk.link('../direct', talk.sandbox.project)
    talk.link('../middle', talk.path('a'))
    expect(changesOf(await talk.room.compose(talk.view({ cwd: direct })))).toEqual([
      'baseline set .:AGENTS.md',
    ])
    talk.room.touch(join(direct, 'q/f'))
    talk.room.touch(talk.path('q/f'))
    expect(changesOf(await talk.room.compose(talk.view({ cwd: direct })))).toEqual([
      'baseline set .:AGENTS.md',
      'set q:AGENTS.md',
    ])
    talk.resume()
    expect(changesOf(await talk.room.compose(talk.view({ cwd: middle })))).toEqual([
      'baseline set .:AGENTS.md',
      'baseline set a:AGENTS.md',
    ])
  })

  it('reports a cwd that cannot be resolved and tells nothing', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.' })
    talk.disturbance.failing.add(talk.sandbox.project)
    expect(await talk.step()).toEqual([])
    expect(talk.reports).toHaveLength(1)
    talk.disturbance.failing.clear()
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
  })
})

describe('nested scopes', () => {
  it('come with the first touch, from the root to the file, anywhere below the root', async () => {
    const talk = await Conversation.start(
      {
        'AGENTS.md': 'Root.',
        'p/AGENTS.md': 'P.',
        'p/l/AGENTS.md': 'L.',
        'p/l/CLAUDE.md': 'LC.',
        'p/app/f': '',
      },
      { cwd: 'p/app' },
    )
    await talk.step()
    const told = await talk.touch('p/l/f')
    expect(changesOf(told)).toEqual(['set p/l:AGENTS.md', 'set p/l:CLAUDE.md'])
    expect(told[0]?.text).toBe(
      [
        '<system-reminder>',
        'Additional instructions from: p/l/AGENTS.md',
        '',
        'These instructions apply to work under `p/l`. Use them as guidance when relevant; more specific instructions take precedence. They do not override system, developer, or direct user instructions.',
        '',
        'L.',
        '',
        'Additional instructions from: p/l/CLAUDE.md',
        '',
        'These instructions apply to work under `p/l`. Use them as guidance when relevant; more specific instructions take precedence. They do not override system, developer, or direct user instructions.',
        '',
        'LC.',
        '</system-reminder>',
      ].join('\n'),
    )
    expect(await talk.touch('p/l/f')).toEqual([])
    expect(await talk.touch('../elsewhere/f')).toEqual([])
  })

  it('come outer ones first, also where the log speaks of an inner one before', async () => {
    const talk = await Conversation.start({ 'p/q/AGENTS.md': 'Q.', 'z/AGENTS.md': 'Z.' })
    await talk.touch('p/q/f')
    talk.resume()
    talk.write('p/AGENTS.md', 'P.')
    talk.write('p/q/AGENTS.md', 'Q, new.')
    expect(changesOf(await talk.touch('z/f', 'p/f'))).toEqual([
      'set p:AGENTS.md',
      'replace p/q:AGENTS.md',
      'set z:AGENTS.md',
    ])
  })

  it('appear later in a directory that was visited before', async () => {
    const talk = await Conversation.start({ 'p/f': '' }, { live: true })
    await talk.touch('p/f')
    talk.write('p/AGENTS.md', 'P.')
    expect(changesOf(await talk.step())).toEqual(['set p:AGENTS.md'])
  })

  it('are told when the agent writes an instruction file itself', async () => {
    const talk = await Conversation.start({}, { live: true })
    await talk.step()
    writeFileSync(talk.path('AGENTS.md'), 'Own.')
    expect(changesOf(await talk.touch('AGENTS.md'))).toEqual(['baseline set .:AGENTS.md'])
    writeFileSync(talk.path('AGENTS.md'), 'Own, new.')
    expect(changesOf(await talk.touch('AGENTS.md'))).toEqual(['replace .:AGENTS.md'])
    mkdirSync(talk.path('new'))
    writeFileSync(talk.path('new/AGENTS.md'), 'New.')
    expect(changesOf(await talk.touch('new/AGENTS.md'))).toEqual(['set new:AGENTS.md'])
  })

  it('do not come from ignored directories, unless they are in force', async () => {
    const files = { 'node_modules/m/AGENTS.md': 'M.', 'out/AGENTS.md': 'Out.', 'src/AGENTS.md': 'Src.' }
    const talk = await Conversation.start(files, { ignored: (path) => /\/out(\/|$)/.test(path) })
    expect(changesOf(await talk.touch('node_modules/m/f', 'out/f', 'src/f'))).toEqual(['set src:AGENTS.md'])
    const open = await Conversation.start(files, { config: { loadIgnoredDirectories: true } })
    expect(changesOf(await open.touch('node_modules/m/f', 'out/f'))).toEqual([
      'set node_modules/m:AGENTS.md',
      'set out:AGENTS.md',
    ])
    open.resume({})
    expect(await open.step()).toEqual([])
    open.write('node_modules/m/CLAUDE.md', 'Not new ones.')
    open.write('node_modules/m/AGENTS.md', 'M, new.')
    expect(changesOf(await open.step())).toEqual(['replace node_modules/m:AGENTS.md'])
  })

  it('come from below a cwd that is ignored itself', async () => {
    const talk = await Conversation.start(
      { 'node_modules/m/AGENTS.md': 'M.', 'node_modules/m/src/AGENTS.md': 'Src.' },
      { cwd: 'node_modules/m', ignored: (path) => path.includes('node_modules') },
    )
    expect(changesOf(await talk.touch('node_modules/m/src/f'))).toEqual([
      'baseline set node_modules/m:AGENTS.md',
      'set node_modules/m/src:AGENTS.md',
    ])
  })

  it('of a directory called user-global are its own', async () => {
    const talk = await Conversation.start({
      'user-global/AGENTS.md': 'Project.',
      'user-global/CLAUDE.md': 'C.',
    })
    talk.writeGlobal('Global.')
    await talk.step()
    expect(changesOf(await talk.touch('user-global/f'))).toEqual([
      'set ./user-global:AGENTS.md',
      'set ./user-global:CLAUDE.md',
    ])
    expect(await talk.step()).toEqual([])
    talk.resume()
    expect(await talk.step()).toEqual([])
  })

  it('say that the user-global file applies to all work', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.' })
    await talk.step()
    talk.writeGlobal('Global.')
    expect(textOf(await talk.step())).toContain('These instructions apply to all work.')
  })
})

describe('transitions', () => {
  it('tell an edit, a removal and a return with the whole text', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.\n' })
    await talk.step()
    talk.write('AGENTS.md', 'Two.\n')
    const edited = await talk.step()
    expect(changesOf(edited)).toEqual(['replace .:AGENTS.md'])
    expect(textOf(edited)).toMatch(
      /^<system-reminder>\nUpdated instructions from: AGENTS.md\n\n.*\n\nTwo.\n\n</,
    )
    talk.remove('AGENTS.md')
    expect(textOf(await talk.step())).toBe(
      '<system-reminder>\nInstructions removed: AGENTS.md\n\nThe previously loaded instructions from this file no longer apply.\n</system-reminder>',
    )
    talk.write('AGENTS.md', 'Two.\n')
    expect(changesOf(await talk.step())).toEqual(['set .:AGENTS.md'])
  })

  it('are silent about a version that moved with equal bytes', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.' }, { live: true })
    await talk.step()
    talk.write('AGENTS.md', 'One.')
    expect(await talk.step()).toEqual([])
  })

  it('remove a sibling that becomes a duplicate, and set it when it differs again', async () => {
    const talk = await Conversation.start({ 'p/AGENTS.md': 'One.', 'p/CLAUDE.md': 'Two.' })
    await talk.touch('p/f')
    talk.write('p/CLAUDE.md', '\n One.\n')
    expect(changesOf(await talk.step())).toEqual(['remove p:CLAUDE.md'])
    talk.remove('p/AGENTS.md')
    expect(changesOf(await talk.step())).toEqual(['remove p:AGENTS.md', 'set p:CLAUDE.md'])
    talk.write('p/AGENTS.md', 'One, new.')
    expect(changesOf(await talk.step())).toEqual(['set p:AGENTS.md'])
  })

  it('tell one file that is reached by several names once', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'q/AGENTS.md': 'Q.' })
    talk.link('CLAUDE.md', 'AGENTS.md')
    talk.link('p/AGENTS.md', '../AGENTS.md')
    talk.link('l', 'q')
    talk.writeGlobal('Global.')
    await talk.step()
    expect(changesOf(await talk.touch('p/f', 'l/f', 'q/f'))).toEqual(['set q:AGENTS.md'])
    talk.remove('p/AGENTS.md')
    talk.write('p/AGENTS.md', 'Root.')
    expect(changesOf(await talk.step())).toEqual(['set p:AGENTS.md'])
  })

  it('tell the user-global file once when the cwd is the harness home', async () => {
    const talk = await Conversation.start({}, { cwd: '../home' })
    talk.writeGlobal('Global.')
    expect(changesOf(await talk.step())).toEqual(['baseline set user-global:AGENTS.md'])
  })

  it('follow a link when what it leads to changes or is another file', async () => {
    const talk = await Conversation.start(
      { 'docs/rules.md': 'One.', 'docs/other.md': 'Other.' },
      { live: true },
    )
    talk.link('AGENTS.md', 'docs/rules.md')
    await talk.step()
    expect(talk.room.followed().files).toEqual([talk.path('docs/rules.md')])
    talk.write('docs/rules.md', 'Two.')
    expect(changesOf(await talk.step())).toEqual(['replace .:AGENTS.md'])
    rmSync(talk.path('AGENTS.md'))
    talk.link('AGENTS.md', 'docs/other.md')
    expect(textOf(await talk.step())).toContain('Other.')
  })

  it('wait for a dead link to lead somewhere, and report it', async () => {
    const talk = await Conversation.start({}, { live: true })
    talk.link('AGENTS.md', 'rules.md')
    expect(await talk.step()).toEqual([])
    expect(talk.reports.join()).toContain('leads nowhere')
    writeFileSync(talk.path('rules.md'), 'Rules.')
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
  })

  it('name the path that a file was known by when that is another one now', async () => {
    const talk = await Conversation.start()
    talk.writeGlobal('One.')
    const [first] = await talk.step()
    if (!first) throw new Error('no baseline')
    const changes = first.source.changes.map((change) => ({ ...change, path: '~/.dsh/AGENTS.md' }))
    talk.visible = [{ ...first, source: { ...first.source, changes } }]
    expect(await talk.step()).toEqual([])
    talk.writeGlobal('Two.')
    expect(textOf(await talk.step())).toContain('take the place of those from `~/.dsh/AGENTS.md`')
  })
})

describe('failures', () => {
  it('are never removals, and hold back the whole directory', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.', 'CLAUDE.md': 'Claude.' }, { live: true })
    await talk.step()
    talk.disturbance.failing.add(talk.path('AGENTS.md'))
    talk.room.suspect(talk.path('AGENTS.md'))
    talk.write('CLAUDE.md', 'Claude, new.')
    expect(await talk.step()).toEqual([])
    expect(talk.room.inForce().map(({ state }) => state)).toEqual(['held', 'held'])
    talk.disturbance.failing.clear()
    expect(changesOf(await talk.step())).toEqual(['replace .:CLAUDE.md'])
  })

  it('skip a file that was never loaded, and load it later', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.', 'CLAUDE.md': 'Claude.' }, { live: true })
    talk.disturbance.failing.add(talk.path('AGENTS.md'))
    expect(changesOf(await talk.step())).toEqual(['baseline set .:CLAUDE.md'])
    expect(talk.reports.join()).toContain('the disk is on fire')
    talk.disturbance.failing.clear()
    expect(changesOf(await talk.step())).toEqual(['set .:AGENTS.md'])
  })

  it('do not supersede a baseline that holds a file which cannot be read now', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.' })
    await talk.step()
    talk.resume({ maxBytes: 9_999 })
    talk.disturbance.failing.add(talk.path('AGENTS.md'))
    expect(await talk.step()).toEqual([])
    talk.disturbance.failing.clear()
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
  })

  it('refuse a file above the limit or without text, and read it again when it is another one', async () => {
    const talk = await Conversation.start(
      { 'AGENTS.md': 'x'.repeat(101), 'CLAUDE.md': 'Claude.' },
      { live: true, config: { maxSourceBytes: 100 } },
    )
    talk.write('AGENTS.local.md', new Uint8Array([0xff, 0xfe, 0x41]))
    expect(changesOf(await talk.step())).toEqual(['baseline set .:CLAUDE.md'])
    expect(talk.reports).toHaveLength(2)
    const { asked } = talk.disturbance
    await talk.step()
    expect(talk.disturbance.asked).toBe(asked)
    talk.write('AGENTS.md', 'x')
    talk.write('AGENTS.local.md', 'Local.')
    expect(changesOf(await talk.step())).toEqual(['set .:AGENTS.md', 'set .:AGENTS.local.md'])
  })

  it('bound the bytes of one pass, the most specific first', async () => {
    const talk = await Conversation.start(
      { 'AGENTS.md': 'r'.repeat(60), 'a/AGENTS.md': 'a'.repeat(60) },
      { live: true, cwd: 'a', config: { maxPassBytes: 100 } },
    )
    expect(changesOf(await talk.step())).toEqual(['baseline set a:AGENTS.md'])
    expect(changesOf(await talk.step())).toEqual(['set .:AGENTS.md'])
    expect(await talk.step()).toEqual([])
  })

  it('read a file again that changes while it is read, and never mix', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.' })
    let changes = 1
    talk.disturbance.beforeText = (path) => {
      if (changes-- > 0) writeFileSync(path, 'Two, which is longer.')
    }
    expect(textOf(await talk.step())).toContain('Two, which is longer.')
    const endless = await Conversation.start({ 'AGENTS.md': 'One.' })
    endless.disturbance.afterText = (path) => writeFileSync(path, `${readFileSync(path, 'utf8')}+`)
    expect(await endless.step()).toEqual([])
    expect(endless.disturbance.reads).toHaveLength(3)
    endless.disturbance.afterText = () => undefined
    expect(textOf(await endless.step())).toContain('One.+++')
  })

  it('end with the signal, and leave everything to be looked at again', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'One.' }, { live: true })
    talk.disturbance.hanging.add(talk.path('AGENTS.md'))
    const controller = new AbortController()
    const composed = talk.room.compose(talk.view({ signal: controller.signal }))
    controller.abort(new Error('enough'))
    await expect(composed).rejects.toThrow('enough')
    talk.disturbance.hanging.clear()
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
    talk.write('AGENTS.md', 'Two.')
    const again = new AbortController()
    const recomposed = talk.room.compose(talk.view({ signal: again.signal }))
    again.abort(new Error('enough'))
    await expect(recomposed).rejects.toThrow('enough')
    expect(changesOf(await talk.step())).toEqual(['replace .:AGENTS.md'])
  })
})

describe('live coverage', () => {
  it('asks nothing at all when nothing is suspected', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'p/AGENTS.md': 'P.' }, { live: true })
    await talk.touch('p/f')
    const { asked } = talk.disturbance
    talk.room.suspect(talk.path('p/f'))
    expect(await talk.touch('p/g')).toEqual([])
    expect(talk.disturbance.asked).toBe(asked)
  })

  it('looks at suspects, at directories that went or came, and at everything when in doubt', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'p/q/AGENTS.md': 'Q.' }, { live: true })
    await talk.touch('p/q/f')
    talk.move('p', 'elsewhere')
    expect(changesOf(await talk.step())).toEqual(['remove p/q:AGENTS.md'])
    talk.move('elsewhere', 'p')
    expect(changesOf(await talk.step())).toEqual(['set p/q:AGENTS.md'])
    writeFileSync(talk.path('AGENTS.md'), 'Silently.')
    expect(await talk.step()).toEqual([])
    talk.room.suspectAll()
    expect(changesOf(await talk.step())).toEqual(['replace .:AGENTS.md'])
  })

  it('names what has to be watched', async () => {
    const talk = await Conversation.start({ 'a/b/f': '', 'c/f': '' }, { live: true, cwd: 'a/b' })
    await talk.touch('c/f')
    expect(talk.room.followed()).toEqual({
      directories: [talk.sandbox.home, talk.path(''), talk.path('a'), talk.path('a/b'), talk.path('c')].map(
        (path) => path.replace(/\/$/, ''),
      ),
      files: [],
      names: ['AGENTS.md', 'CLAUDE.md', 'AGENTS.local.md', 'CLAUDE.local.md'],
    })
  })
})

describe('settings', () => {
  it('turn the room off', async () => {
    for (const maxBytes of [0, -1, Number.NaN, Infinity]) {
      const talk = await Conversation.start({ 'AGENTS.md': 'Root.' }, { config: { maxBytes } })
      expect(await talk.step()).toEqual([])
      expect(talk.disturbance.asked).toBe(0)
    }
  })

  it('ignore candidate entries that are no plain names', async () => {
    const candidates = ['', '.', '..', 'a/AGENTS.md', 'a\\AGENTS.md', 'RULES.md', 'RULES.md']
    const talk = await Conversation.start(
      { 'RULES.md': 'Rules.', 'a/AGENTS.md': 'A.', 'AGENTS.md': 'Not a candidate.' },
      { config: { instructionFileCandidates: candidates } },
    )
    expect(changesOf(await talk.step())).toEqual(['baseline set .:RULES.md'])
  })

  it('name another home, also from the home of the person', async () => {
    const talk = await Conversation.start({}, { config: { dshHome: '~/no-such-home-of-a-harness' } })
    await talk.step()
    expect(talk.room.followed().directories[0]).toBe(join(homedir(), 'no-such-home-of-a-harness'))
  })

  it('load only the first candidate of each list in `first` mode, and say what it takes the place of', async () => {
    const talk = await Conversation.start(
      { 'CLAUDE.md': 'Claude.', 'AGENTS.local.md': 'Local.', 'CLAUDE.local.md': 'Other local.' },
      { config: { candidateSelection: 'first' } },
    )
    const [message] = await talk.step()
    expect(changesOf(talk.visible)).toEqual(['baseline set .:CLAUDE.md', 'baseline set .:AGENTS.local.md'])
    expect(message?.source.baselineIdentity).toContain('"candidateSelection":"first"')
    talk.write('AGENTS.md', 'Agents.')
    const told = await talk.step()
    expect(changesOf(told)).toEqual(['set .:AGENTS.md', 'remove .:CLAUDE.md'])
    expect(textOf(told)).toContain('take the place of those from `CLAUDE.md`')
  })

  it('speak of no predecessor from the other list in `first` mode', async () => {
    const talk = await Conversation.start(
      { 'AGENTS.local.md': 'Local.', 'CLAUDE.md': 'Claude.' },
      { config: { candidateSelection: 'first' } },
    )
    await talk.step()
    talk.remove('AGENTS.local.md')
    talk.remove('CLAUDE.md')
    talk.write('AGENTS.md', 'Agents.')
    const told = textOf(await talk.step())
    expect(told).toContain('take the place of those from `CLAUDE.md`')
    expect(told).not.toContain('`AGENTS.local.md`')
  })

  it('do not fall through to a later candidate in `first` mode when the first is refused', async () => {
    const talk = await Conversation.start(
      { 'AGENTS.md': 'x'.repeat(101), 'CLAUDE.md': 'Claude.' },
      { config: { candidateSelection: 'first', maxSourceBytes: 100 } },
    )
    expect(await talk.step()).toEqual([])
  })
})

describe('beside another loader', () => {
  const theirs = (identity: string, changes: unknown[]) => ({
    kind: 'agent-instructions',
    form: 'instructions',
    baseline: true,
    baselineIdentity: identity,
    changes,
  })
  const other = JSON.stringify({
    projectRoot: '',
    projectRootMarkers: ['.git'],
    maxBytes: 100,
    maxSourceBytes: 100,
    instructionFileCandidates: ['AGENTS.md', 'CLAUDE.md'],
    localInstructionFileCandidates: [],
  })

  it('makes no baseline, and adds what the other does not know', async () => {
    const talk = await Conversation.start(
      { 'AGENTS.md': 'x', 'GEMINI.md': 'G.', 'AGENTS.local.md': 'L.', 'p/AGENTS.md': 'P.' },
      {
        config: { instructionFileCandidates: ['AGENTS.md', 'GEMINI.md'] },
      },
    )
    const entering = [theirs(other, [])]
    const told = await talk.step({ entering })
    expect(changesOf(told)).toEqual(['set .:GEMINI.md', 'set .:AGENTS.local.md'])
    const visible = [...entering, ...talk.visible.map(({ source }) => source)]
    talk.room.touch(talk.path('p/f'))
    expect(changesOf(await talk.room.compose(talk.view({ visible })))).toEqual(['set p:AGENTS.md'])
  })

  it('leaves a baseline alone that may be that of a living loader', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'x' })
    const visible = [theirs(other, [])]
    talk.otherLoader = true
    expect(await talk.room.compose(talk.view({ visible }))).toEqual([])
    talk.otherLoader = false
    expect(changesOf(await talk.room.compose(talk.view({ visible })))).toEqual(['baseline set .:AGENTS.md'])
  })

  it('assumes nothing about an identity that it cannot read', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'x', 'p/AGENTS.md': 'P.' })
    for (const identity of ['', '5', 'null', '{"projectRoot":5}', '{"projectRoot":"../elsewhere"}']) {
      talk.resume()
      const entering = [theirs(identity, [])]
      const told = await talk.room.compose(talk.view({ entering }))
      expect(changesOf(told)).toEqual(['set .:AGENTS.md'])
    }
  })

  it('follows the root of their baseline', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.', 'a/AGENTS.md': 'A.' }, { cwd: 'a' })
    const there = { action: 'set', scope: '.\0AGENTS.md', path: 'AGENTS.md', digest: digestOf('A.') }
    const entering = [theirs(other, [there])]
    expect(await talk.room.compose(talk.view({ entering }))).toEqual([])
    talk.write('a/AGENTS.md', 'A, new.')
    expect(changesOf(await talk.room.compose(talk.view({ entering })))).toEqual(['replace .:AGENTS.md'])
  })

  it('takes over when the other loader turns out to be gone', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'x' })
    const entering = [theirs(other, [])]
    expect(await talk.room.compose(talk.view({ entering }))).toEqual([])
    expect(await talk.room.compose(talk.view({ visible: [], entering: undefined }))).toEqual([])
    expect(changesOf(await talk.step())).toEqual(['baseline set .:AGENTS.md'])
  })

  it('skips what it cannot read in the log', async () => {
    const talk = await Conversation.start({ 'AGENTS.md': 'Root.' })
    const [first] = await talk.step()
    if (!first) throw new Error('no baseline')
    const odd = [
      null,
      5,
      {},
      { action: 'set', scope: 'none', path: 'p', digest: 'd' },
      { action: 'set', scope: '../x\0A', path: 'p', digest: 'd' },
    ]
    const visible = [
      null,
      'x',
      { kind: 'user' },
      { kind: 'agent-instructions' },
      { ...first.source, changes: [...odd, ...first.source.changes] },
    ]
    expect(await talk.room.compose(talk.view({ visible }))).toEqual([])
  })
})
