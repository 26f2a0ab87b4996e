/** Other branches, checked out under the sessions by somebody else or by a relative. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { git } from '../support/git.ts'
import { boot, edit, quiet, read, shell, textOf, write } from '../support/harness.ts'

const MOVED = /Git HEAD moved: branch "main" at \w+ → branch "other" at \w+ \(checkout\)/

/** A repository on `main`; on the branch `other` every file differs but `same.ts`. */
const repository = async () => {
  const harness = await boot({
    files: { 'a.ts': 'main a\n', 'same.ts': 'same\n', 'src/b.ts': 'main b\n' },
    git: false,
  })
  const { workspace } = harness
  git(workspace, 'init', '-q', '-b', 'main')
  git(workspace, 'add', '-A')
  git(workspace, 'commit', '-qm', 'one')
  git(workspace, 'checkout', '-qb', 'other')
  for (const name of ['a.ts', 'src/b.ts']) harness.write(name, 'of the other branch\n')
  git(workspace, 'commit', '-qam', 'two')
  git(workspace, 'checkout', '-q', 'main')
  return { harness, workspace }
}

describe('a checkout by force over edits of the session that are not committed', () => {
  it('is one message: where HEAD went, which edits are gone; untracked files are not in it', async () => {
    const { harness, workspace } = await repository()
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'), read('same.ts'))
    await agent.call(
      edit('a.ts', 'main a', 'mine a'),
      edit('same.ts', 'same', 'mine'),
      write('new.ts', 'mine\n'),
    )
    harness.write('notes.txt', 'untracked\n')
    await harness.live()
    await agent.call(quiet)
    const before = agent.notices.length
    git(workspace, 'checkout', '-qf', 'other')
    await agent.call(quiet)

    const told = textOf(agent.told)
    expect(agent.told).toHaveLength(1)
    expect(told).toMatch(MOVED)
    expect(told).toContain('Used by this session:\n- modified "a.ts"')
    expect(told).toContain('- no longer holds what this session wrote, but what was there before: "same.ts"')
    expect(told).toContain('Files that this session made are as they were.')
    expect(told).not.toMatch(/new\.ts|notes\.txt/)
    expect(readFileSync(harness.path('new.ts'), 'utf8')).toBe('mine\n')
    await agent.call(quiet)
    await agent.end()
    expect(agent.notices).toHaveLength(before + 1)
  })
})

describe('what git does is told as it is', () => {
  const start = async () => {
    const { harness, workspace } = await repository()
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    await harness.live()
    await agent.call(quiet)
    return { harness, workspace, agent }
  }

  it('a checkout by force over a file that the session made does not leave its files as they were', async () => {
    const { harness, workspace, agent } = await start()
    git(workspace, 'checkout', '-q', 'other')
    harness.write('new.ts', 'of the other branch\n')
    git(workspace, 'add', '-A')
    git(workspace, 'commit', '-qm', 'three')
    git(workspace, 'checkout', '-q', 'main')
    await agent.call(write('new.ts', 'mine\n'))
    git(workspace, 'checkout', '-qf', 'other')
    await agent.call(quiet)
    expect(textOf(agent.told)).toMatch(MOVED)
    expect(textOf(agent.told)).toContain('"new.ts"')
    expect(textOf(agent.told)).not.toMatch(/as they were|left alone/)
    await agent.end()
  })

  it('a bisection leaves the branch where it is', async () => {
    const { harness, workspace, agent } = await start()
    for (const n of [1, 2, 3]) {
      harness.write('b.ts', `${n}\n`)
      git(workspace, 'add', '-A')
      git(workspace, 'commit', '-qm', `c${n}`)
    }
    await agent.call(quiet)
    git(workspace, 'bisect', 'start', 'HEAD', 'HEAD~3')
    await agent.call(quiet)
    expect(textOf(agent.told)).toMatch(
      /branch "main" at \w+ → commit \w+, detached from branch "main" \(checkout, bisect in progress\)/,
    )
    harness.write('b.ts', 'x\n')
    git(workspace, 'commit', '-qam', 'on a detached HEAD')
    await agent.call(quiet)
    expect(textOf(agent.told)).toMatch(
      /→ commit \w+, detached from branch "main" \(commit, bisect in progress\)/,
    )
    await agent.end()
  })

  it('by a command of the session is told as such', async () => {
    const { agent } = await start()
    await agent.call(shell('git checkout -q other'))
    expect(textOf(agent.told)).toMatch(/\(checkout, while a command of this session ran\)/)
    await agent.end()
  })

  it('unused files are not listed among the used ones', async () => {
    const { harness, workspace, agent } = await start()
    harness.write('a.ts', 'a person\n')
    harness.write('same.ts', 'a person\n')
    await agent.call(quiet)
    git(workspace, 'stash', '-q')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('Not named:\n- 1 more path in "./"')
    await agent.end()
  })

  it('a repository that is made while the session runs is followed', async () => {
    const harness = await boot({ files: { 'a.ts': 'main a\n', 'b.ts': 'main b\n' }, git: false })
    const { workspace } = harness
    const agent = await harness.agent('main')
    await agent.prompt()
    await agent.call(read('a.ts'))
    await harness.live()
    await agent.call(quiet)
    git(workspace, 'init', '-q', '-b', 'main')
    git(workspace, 'add', '-A')
    git(workspace, 'commit', '-qm', 'one')
    await agent.call(quiet)
    git(workspace, 'checkout', '-qb', 'other')
    harness.write('b.ts', 'other b\n')
    git(workspace, 'commit', '-qam', 'two')
    await agent.call(quiet)
    expect(textOf(agent.told)).toMatch(/Git HEAD moved: branch "main" at \w+ → branch "other" at \w+/)
    await agent.end()
  })
})

describe('a subagent that switches the branch of its parent', () => {
  it('is told to the parent once, with the file that it uses', async () => {
    const { harness } = await repository()
    const parent = await harness.agent('parent')
    await parent.prompt()
    await parent.call(read('a.ts'))
    const child = await harness.agent('child', { parent })
    await child.prompt()
    await harness.live()
    await parent.call(quiet)
    expect(parent.told).toEqual([])
    await child.call(shell('git checkout -q other'))
    await parent.call(quiet)

    expect(parent.told).toHaveLength(1)
    expect(textOf(parent.told)).toMatch(MOVED)
    expect(textOf(parent.told)).toContain('Used by this session:\n- modified "a.ts" (+1 −1 lines)')
    expect(textOf(parent.told)).not.toContain('command of this session')
    for (let step = 0; step < 3; step++) await parent.call(quiet)
    await child.call(quiet)
    await child.end()
    await parent.end()
    expect(parent.notices).toHaveLength(1)
    expect(child.notices.length).toBeLessThanOrEqual(1)
  })
})
