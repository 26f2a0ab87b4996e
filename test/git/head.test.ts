import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import {
  describeHeadMove,
  headSources,
  type HeadMove,
  type HeadState,
  type HeadStep,
  readHead,
} from '../../src/notice/git-head.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'git-head-')))
const home = join(base, 'home')
mkdirSync(home)
let count = 0

afterAll(() => rmSync(base, { recursive: true, force: true }))

const env: NodeJS.ProcessEnv = {
  PATH: process.env['PATH'],
  HOME: home,
  GIT_CONFIG_NOSYSTEM: '1',
  LC_ALL: 'C.UTF-8',
  GIT_EDITOR: 'true',
  GIT_AUTHOR_NAME: 'A > B',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'A > B',
  GIT_COMMITTER_EMAIL: 'a@example.org',
  // All steps within one second: time alone must not tell them apart.
  GIT_AUTHOR_DATE: '1700000000 +0200',
  GIT_COMMITTER_DATE: '1700000000 -0330',
}

writeFileSync(
  join(home, '.gitconfig'),
  '[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n[protocol "file"]\n\tallow = always\n',
)

/** A work tree of a real repository. */
class WorkTree {
  readonly root: string

  constructor(root = join(base, `${count++}`)) {
    this.root = root
    mkdirSync(root, { recursive: true })
  }

  git(...args: string[]): string {
    return execFileSync('git', args, { cwd: this.root, env, encoding: 'utf8', stdio: 'pipe' }).trim()
  }

  /** Runs a command that is to stop with a conflict. */
  stops(...args: string[]): void {
    const { status } = spawnSync('git', args, { cwd: this.root, env })
    if (status !== 1) throw new Error(`git ${args.join(' ')} ended with ${status}`)
  }

  write(name: string, content: string | Buffer): string {
    const path = join(this.root, name)
    writeFileSync(path, content)
    return path
  }

  commit(message: string, content = message): string {
    this.write('a.txt', `${content}\n`)
    this.git('add', '-A')
    this.git('commit', '-q', '-m', message)
    return this.id()
  }

  id(name = 'HEAD'): string {
    return this.git('rev-parse', name)
  }

  read(): Promise<HeadState | undefined> {
    return readHead(this.root)
  }

  /** The move that an action makes. */
  async move(action: () => void): Promise<HeadMove | undefined> {
    const before = await this.read()
    action()
    return describeHeadMove(before, await this.read())
  }
}

describe('readHead, in real repositories', () => {
  let tree: WorkTree

  beforeEach(() => {
    tree = new WorkTree()
    tree.git('init', '-q')
  })

  it('knows a repository without a commit', async () => {
    expect(await tree.read()).toEqual({
      ref: 'refs/heads/main',
      detached: false,
      commit: undefined,
      unborn: true,
      operation: undefined,
      steps: [],
    })
  })

  it('knows branch, commit and the last steps, with loose and with packed refs', async () => {
    const commit = tree.commit('first')
    const loose = await tree.read()
    expect(loose).toEqual({
      ref: 'refs/heads/main',
      detached: false,
      commit,
      unborn: false,
      operation: undefined,
      steps: [{ from: '0'.repeat(40), to: commit, time: 1_700_000_000, message: 'commit (initial): first' }],
    })
    for (const name of ['aaa', 'zzz', 'x/main', 'main2']) tree.git('branch', name)
    tree.git('tag', '-a', '-m', 'annotated', 'refs-heads')
    tree.git('pack-refs', '--all')
    expect(existsSync(join(tree.root, '.git/refs/heads/main'))).toBe(false)
    expect(await tree.read()).toEqual(loose)
    const second = tree.commit('second')
    expect(await tree.read()).toMatchObject({ commit: second })
  })

  it('knows a detached HEAD', async () => {
    const commit = tree.commit('first')
    tree.git('checkout', '-q', '--detach')
    expect(await tree.read()).toMatchObject({ ref: undefined, detached: true, commit, unborn: false })
  })

  it('follows a branch that stands for another, as far as git does', async () => {
    const commit = tree.commit('first')
    tree.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/main')
    tree.git('symbolic-ref', 'HEAD', 'refs/heads/alias')
    expect(await tree.read()).toMatchObject({ ref: 'refs/heads/alias', commit })
    tree.git('symbolic-ref', 'refs/heads/main', 'refs/heads/alias')
    expect(await tree.read()).toMatchObject({ ref: 'refs/heads/alias', commit: undefined, unborn: false })
  })

  it('reads a HEAD that is a symbolic link', async () => {
    const commit = tree.commit('first')
    rmSync(join(tree.root, '.git/HEAD'))
    symlinkSync('refs/heads/main', join(tree.root, '.git/HEAD'))
    expect(await tree.read()).toMatchObject({ ref: 'refs/heads/main', detached: false, commit })
  })

  it('finds a worktree and its own HEAD', async () => {
    const commit = tree.commit('first')
    const other = new WorkTree()
    tree.git('worktree', 'add', '-q', '-b', 'topic', other.root)
    expect(await other.read()).toMatchObject({ ref: 'refs/heads/topic', commit })
    const second = other.commit('second')
    expect(await other.read()).toMatchObject({ ref: 'refs/heads/topic', commit: second })
    expect(await tree.read()).toMatchObject({ ref: 'refs/heads/main', commit })
    tree.git('pack-refs', '--all')
    const state = await other.read()
    expect(state).toMatchObject({ commit: second })
    expect(state?.steps.at(-1)?.message).toBe('commit: second')
    const own = join(tree.root, '.git/worktrees', `${other.root.split('/').at(-1)}`)
    expect(await headSources(other.root)).toEqual(
      expect.arrayContaining([
        join(own, 'HEAD'),
        join(own, 'logs/HEAD'),
        join(tree.root, '.git/refs/heads/topic'),
        join(tree.root, '.git/packed-refs'),
      ]),
    )
  })

  it('finds the repository of a submodule', async () => {
    const commit = tree.commit('first')
    const outer = new WorkTree()
    outer.git('init', '-q')
    outer.git('submodule', '--quiet', 'add', tree.root, 'libs/sub')
    const sub = new WorkTree(join(outer.root, 'libs/sub'))
    expect(await sub.read()).toMatchObject({ ref: 'refs/heads/main', commit })
    expect(await headSources(sub.root)).toContain(join(outer.root, '.git/modules/libs/sub/HEAD'))
  })

  it('knows the operations that are in progress', async () => {
    tree.commit('base')
    tree.git('branch', 'topic')
    tree.commit('on main')
    tree.git('checkout', '-q', 'topic')
    tree.commit('on topic')
    const operation = async () => (await tree.read())?.operation

    tree.stops('merge', 'main')
    expect(await operation()).toEqual({ kind: 'merge', ref: undefined })
    tree.git('merge', '--abort')
    tree.stops('cherry-pick', 'main')
    expect(await operation()).toEqual({ kind: 'cherry-pick', ref: undefined })
    tree.git('cherry-pick', '--abort')
    tree.commit('again')
    tree.stops('revert', 'HEAD~1')
    expect(await operation()).toEqual({ kind: 'revert', ref: undefined })
    tree.git('revert', '--abort')
    for (const backend of ['--merge', '--apply']) {
      tree.stops('rebase', backend, 'main')
      expect(await tree.read()).toMatchObject({
        detached: true,
        operation: { kind: 'rebase', ref: 'refs/heads/topic' },
      })
      tree.git('rebase', '--abort')
    }
    tree.git('checkout', '-q', '--detach')
    tree.stops('rebase', 'main')
    expect(await operation()).toEqual({ kind: 'rebase', ref: undefined })
    tree.git('rebase', '--abort')
    tree.git('checkout', '-q', 'topic')
    const patch = tree.git('format-patch', '-1', '--stdout', 'main')
    spawnSync('git', ['am'], { cwd: tree.root, env, input: `${patch}\n` })
    expect(await tree.read()).toMatchObject({ ref: 'refs/heads/topic', operation: { kind: 'am' } })
    tree.git('am', '--abort')
    tree.git('bisect', 'start', 'HEAD', 'HEAD~2')
    expect(await tree.read()).toMatchObject({
      detached: true,
      operation: { kind: 'bisect', ref: 'refs/heads/topic' },
    })
    tree.git('bisect', 'reset')
    expect(await operation()).toBe(undefined)
  })

  it('reads no more of a long log than its end', async () => {
    const commit = tree.commit('first')
    const line = (message: string) => `${commit} ${commit} A <a@example.org> 1700000000 +0000\t${message}\n`
    const log = join(tree.root, '.git/logs/HEAD')
    writeFileSync(log, line('x').repeat(50_000) + line('commit: last'))
    const state = await tree.read()
    expect(state?.steps.at(-1)?.message).toBe('commit: last')
    expect(state?.steps.length).toBeLessThan(500)
    writeFileSync(log, line('x') + line('y').slice(0, -1))
    expect((await tree.read())?.steps.map(({ message }) => message)).toEqual(['x'])
    writeFileSync(log, line('x'.repeat(100_000)))
    expect((await tree.read())?.steps).toEqual([])
    writeFileSync(log, Buffer.from([0, 0xff, 0x0a, 0x09, 0x0a]))
    expect((await tree.read())?.steps).toEqual([])
  })

  it('does not know refs of another format', async () => {
    tree.commit('first')
    mkdirSync(join(tree.root, '.git/reftable'))
    writeFileSync(join(tree.root, '.git/HEAD'), 'ref: refs/heads/.invalid\n')
    expect(await tree.read()).toMatchObject({
      ref: undefined,
      detached: false,
      commit: undefined,
      unborn: false,
    })
    expect(await headSources(tree.root)).toContain(join(tree.root, '.git/reftable/tables.list'))
  })

  it('survives a HEAD and refs that make no sense', async () => {
    const commit = tree.commit('first')
    const head = join(tree.root, '.git/HEAD')
    writeFileSync(join(base, 'secret'), commit)
    const senseless = [
      ...['', '\n', 'refs/heads/main', 'ref:', 'ref: ', 'ref: main', 'ref: refs/heads/../../../secret'],
      ...[
        'ref: refs/../HEAD',
        'ref: refs//heads',
        'ref: refs/heads/.x',
        'ref: refs/heads/a\0b',
        'ref: refs/',
      ],
      ...[commit.slice(1), `${commit}0`, commit.replace(/./, 'g'), '\xff\xfe', 'x'.repeat(1_000_000)],
    ]
    for (const content of senseless) {
      writeFileSync(head, content, 'latin1')
      expect([content.slice(0, 40), await tree.read()]).toEqual([content.slice(0, 40), undefined])
      expect(await headSources(tree.root)).toContain(head)
    }
    rmSync(head)
    mkdirSync(head)
    expect(await tree.read()).toBe(undefined)
    rmSync(head, { recursive: true })
    execFileSync('mkfifo', [head])
    expect(await tree.read()).toBe(undefined)
    rmSync(head)
    expect(await tree.read()).toBe(undefined)

    writeFileSync(head, 'ref: refs/heads/main\n')
    for (const content of ['not a commit\n', `ref: ${'x'.repeat(10)}\n`, 'ref: refs/heads/../../HEAD\n']) {
      writeFileSync(join(tree.root, '.git/refs/heads/main'), content)
      expect(await tree.read()).toMatchObject({ ref: 'refs/heads/main', commit: undefined, unborn: false })
    }
    rmSync(join(tree.root, '.git/refs/heads/main'))
    writeFileSync(join(tree.root, '.git/packed-refs'), `zzz refs/heads/main\n`)
    expect(await tree.read()).toMatchObject({ commit: undefined, unborn: false })
    writeFileSync(join(tree.root, '.git/packed-refs'), Buffer.alloc(17 * 1024 * 1024, '#'))
    expect(await tree.read()).toMatchObject({ commit: undefined, unborn: false })
  })

  it('says nothing where there is no repository', async () => {
    for (const root of [base, join(base, 'absent'), '/', '\0']) {
      expect(await readHead(root)).toBe(undefined)
      // But one may come.
      expect(await headSources(root)).toEqual([join(root, '.git'), join(root, '.git', 'HEAD')])
    }
    const pointing = new WorkTree()
    for (const pointer of ['gitdir: ../absent\n', 'gitdir: .\n', 'nonsense', '']) {
      pointing.write('.git', pointer)
      expect(await pointing.read()).toBe(undefined)
    }
  })
})

describe('describeHeadMove, in real repositories', () => {
  let tree: WorkTree
  let first: string
  let second: string

  beforeEach(() => {
    tree = new WorkTree()
    tree.git('init', '-q')
    first = tree.commit('first')
    tree.git('branch', 'topic')
    second = tree.commit('second')
  })

  it('calls a switch of branches by their names', async () => {
    expect(await tree.move(() => tree.git('switch', '-q', 'topic'))).toEqual({
      kind: 'switched',
      from: { branch: 'main', detached: false, commit: second },
      to: { branch: 'topic', detached: false, commit: first },
      operation: undefined,
      action: 'checkout',
      steps: 1,
      message: 'checkout: moving from main to topic',
    })
    // At the same commit, too.
    expect(await tree.move(() => tree.git('switch', '-q', '-c', 'feature/x'))).toMatchObject({
      kind: 'switched',
      to: { branch: 'feature/x', commit: first },
      action: 'checkout',
    })
    expect(await tree.move(() => tree.git('switch', '-q', '--orphan', 'empty'))).toMatchObject({
      kind: 'switched',
      to: { branch: 'empty', commit: undefined },
    })
  })

  it('is silent about a way there and back', async () => {
    const there = () => {
      tree.git('switch', '-q', 'topic')
      tree.git('switch', '-q', 'main')
      tree.write('a.txt', 'changed\n')
      tree.git('stash', '-q')
      tree.git('stash', 'pop', '-q')
    }
    expect(await tree.move(there)).toBe(undefined)
  })

  it('names commits, and counts them', async () => {
    expect(await tree.move(() => tree.commit('third'))).toMatchObject({
      kind: 'moved',
      from: { branch: 'main', commit: second },
      to: { branch: 'main', commit: tree.id() },
      action: 'commit',
      steps: 1,
      message: 'commit: third',
    })
    const more = () => ['4', '5', '6'].forEach((name) => tree.commit(name))
    expect(await tree.move(more)).toMatchObject({
      kind: 'moved',
      action: 'commit',
      steps: 3,
      message: 'commit: 6',
    })
    expect(await tree.move(() => tree.git('commit', '-q', '--amend', '-m', 'reset: to'))).toMatchObject({
      kind: 'moved',
      action: 'amend',
      message: 'commit (amend): reset: to',
    })
  })

  it('names the first commit', async () => {
    const empty = new WorkTree()
    empty.git('init', '-q')
    expect(await empty.move(() => empty.commit('first'))).toMatchObject({
      kind: 'moved',
      from: { branch: 'main', commit: undefined },
      action: 'commit',
      steps: 1,
    })
  })

  it('names reset, merge, pull, cherry-pick and revert', async () => {
    expect(await tree.move(() => tree.git('reset', '-q', '--hard', first))).toMatchObject({
      kind: 'moved',
      from: { commit: second },
      to: { commit: first },
      action: 'reset',
      message: `reset: moving to ${first}`,
    })
    expect(await tree.move(() => tree.git('merge', '-q', second))).toMatchObject({
      kind: 'moved',
      action: 'merge',
    })
    expect(await tree.move(() => tree.git('revert', '--no-edit', 'HEAD'))).toMatchObject({ action: 'revert' })
    tree.git('switch', '-q', 'topic')
    expect(await tree.move(() => tree.git('cherry-pick', second))).toMatchObject({
      kind: 'moved',
      action: 'cherry-pick',
    })
    tree.git('reset', '-q', '--hard', first)
    const clone = new WorkTree()
    clone.git('clone', '-q', tree.root, '.')
    tree.commit('upstream')
    expect(await clone.move(() => clone.git('pull', '-q', '--ff-only'))).toMatchObject({
      kind: 'moved',
      action: 'pull',
    })
    tree.commit('upstream again')
    clone.write('b.txt', 'b\n')
    clone.git('add', '-A')
    clone.git('commit', '-q', '-m', 'ours')
    expect(await clone.move(() => clone.git('pull', '-q', '--rebase'))).toMatchObject({
      kind: 'moved',
      action: 'pull',
    })
  })

  it('stays neutral where the log tells of different steps, or of nothing', async () => {
    const both = () => {
      tree.commit('third')
      tree.git('reset', '-q', '--hard', first)
    }
    expect(await tree.move(both)).toMatchObject({ kind: 'moved', action: undefined, steps: 2 })
    expect(await tree.move(() => rmSync(join(tree.root, '.git/logs'), { recursive: true }))).toBe(undefined)
    tree.git('config', 'core.logAllRefUpdates', 'false')
    expect(await tree.move(() => tree.commit('x'))).toEqual({
      kind: 'moved',
      from: { branch: 'main', detached: false, commit: first },
      to: { branch: 'main', detached: false, commit: tree.id() },
      operation: undefined,
      action: undefined,
      steps: undefined,
      message: undefined,
    })
    expect(await tree.move(() => tree.git('switch', '-q', 'topic'))).toMatchObject({
      kind: 'switched',
      action: undefined,
    })
  })

  it('tells leaving all branches from coming back to one', async () => {
    expect(await tree.move(() => tree.git('checkout', '-q', first))).toMatchObject({
      kind: 'detached',
      from: { branch: 'main', commit: second },
      to: { branch: undefined, commit: first },
      action: 'checkout',
    })
    expect(await tree.move(() => tree.git('checkout', '-q', second))).toMatchObject({
      kind: 'moved',
      from: { branch: undefined },
      to: { branch: undefined },
      action: 'checkout',
    })
    expect(await tree.move(() => tree.git('checkout', '-q', 'main'))).toMatchObject({
      kind: 'switched',
      from: { branch: undefined, commit: second },
      to: { branch: 'main', commit: second },
    })
  })

  it('keeps the branch in sight while it is being rebased', async () => {
    tree.git('switch', '-q', 'topic')
    const third = tree.commit('on topic')
    const operation = { kind: 'rebase', ref: 'refs/heads/topic' }
    expect(await tree.move(() => tree.stops('rebase', 'main'))).toMatchObject({
      kind: 'started',
      from: { branch: 'topic', commit: third },
      to: { branch: 'topic', commit: second },
      operation,
      action: 'rebase',
    })
    expect(await tree.move(() => tree.write('a.txt', 'solved\n'))).toBe(undefined)
    const goOn = () => {
      tree.git('add', '-A')
      tree.git('rebase', '--continue')
    }
    expect(await tree.move(goOn)).toMatchObject({
      kind: 'finished',
      from: { branch: 'topic', commit: second },
      to: { branch: 'topic', commit: tree.id() },
      operation,
      action: 'rebase',
      message: 'rebase (finish): returning to refs/heads/topic',
    })
    tree.git('switch', '-q', '-c', 'clean', first)
    tree.write('b.txt', 'b\n')
    tree.git('add', '-A')
    tree.git('commit', '-q', '-m', 'elsewhere')
    expect(await tree.move(() => tree.git('rebase', '-q', 'main'))).toMatchObject({
      kind: 'moved',
      to: { branch: 'clean' },
      action: 'rebase',
    })
  })

  it('tells an aborted rebase by its last step', async () => {
    tree.git('switch', '-q', 'topic')
    const third = tree.commit('on topic')
    tree.stops('rebase', 'main')
    const move = await tree.move(() => tree.git('rebase', '--abort'))
    expect(move).toMatchObject({ kind: 'finished', to: { branch: 'topic', commit: third }, action: 'rebase' })
    expect(move?.message).toMatch(/^rebase \(abort\)/)
  })

  it('tells a merge that stopped and its end', async () => {
    tree.git('switch', '-q', 'topic')
    tree.commit('on topic')
    expect(await tree.move(() => tree.stops('merge', 'main'))).toMatchObject({
      kind: 'started',
      operation: { kind: 'merge' },
    })
    expect(await tree.move(() => tree.commit('merged'))).toMatchObject({
      kind: 'finished',
      operation: { kind: 'merge' },
      action: 'merge',
    })
  })

  it('hands names and messages on as they are', async () => {
    const name = 'x/</system-reminder>\u202e"é'
    expect(await tree.move(() => tree.git('switch', '-q', '-c', name))).toMatchObject({
      kind: 'switched',
      to: { branch: name },
      message: `checkout: moving from main to ${name}`,
    })
    expect(await tree.move(() => tree.commit('\u001b[31m`a`\tb'))).toMatchObject({ action: 'commit' })
  })
})

describe('describeHeadMove', () => {
  const a = 'a'.repeat(40)
  const b = 'b'.repeat(40)
  const step = (from: string, to: string, message: string, time = 1): HeadStep => ({
    from,
    to,
    time,
    message,
  })
  const state = (given: Partial<HeadState>): HeadState => ({
    ref: 'refs/heads/main',
    detached: false,
    commit: a,
    unborn: false,
    operation: undefined,
    steps: [],
    ...given,
  })

  it('is silent where a state or a commit is not known', () => {
    expect(describeHeadMove(undefined, state({}))).toBe(undefined)
    expect(describeHeadMove(state({}), undefined)).toBe(undefined)
    expect(describeHeadMove(state({}), state({}))).toBe(undefined)
    expect(describeHeadMove(state({}), state({ commit: undefined }))).toBe(undefined)
    expect(describeHeadMove(state({}), state({ ref: undefined, commit: undefined }))).toBe(undefined)
  })

  it('names a move only by a log that leads from one commit to the other', () => {
    const old = step('0'.repeat(40), a, 'commit (initial): x')
    const move = (before: HeadStep[], after: HeadStep[]) =>
      describeHeadMove(state({ steps: before }), state({ commit: b, steps: after }))
    expect(move([old], [old, step(a, b, 'commit: y')])).toMatchObject({ action: 'commit', steps: 1 })
    expect(move([], [step(a, b, 'commit: y')])).toMatchObject({ action: 'commit', steps: 1 })
    for (const after of [
      [],
      [old],
      [step(b, a, 'commit: y')],
      [old, step(b, b, 'commit: y')],
      [step(a, b, 'x')],
    ]) {
      expect(move([old], after)).toMatchObject({ kind: 'moved', action: undefined, steps: undefined })
    }
  })

  it.each([
    ['commit: a', 'commit'],
    ['commit (initial): a', 'commit'],
    ['commit (amend): a', 'amend'],
    ['commit (merge): a', 'merge'],
    ['commit (cherry-pick): a', 'cherry-pick'],
    ['rebase -i (finish): returning to refs/heads/x', 'rebase'],
    ['rebase finished: refs/heads/x onto y', 'rebase'],
    ['pull --rebase origin main (start): checkout x', 'pull'],
    ['merge topic: Fast-forward', 'merge'],
    ['am: a', 'am'],
    ['committed by hand', undefined],
    ['constructor: a', undefined],
    ['', undefined],
  ])('takes %j for %s', (message, action) => {
    const after = state({ commit: b, steps: [step(a, b, message)] })
    expect(describeHeadMove(state({}), after)).toMatchObject({ kind: 'moved', action, steps: 1, message })
  })
})
