import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { GitIgnore, type GitIgnoreOptions } from '../../src/watch/git-ignore.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'git-ignore-')))
let count = 0

afterAll(() => rmSync(base, { recursive: true, force: true }))

/** One repository with a home of its own; the files that git needs, without a process for each. */
class Repository {
  readonly home = join(base, `${count++}`)
  readonly root = join(this.home, 'work')
  readonly env: NodeJS.ProcessEnv = {
    PATH: process.env['PATH'],
    HOME: this.home,
    GIT_CONFIG_NOSYSTEM: '1',
    LC_ALL: 'C.UTF-8',
  }

  constructor(config = '') {
    this.adopt('.git', config)
  }

  /** Makes a directory of this repository the `.git` of one. */
  adopt(directory: string, config = ''): void {
    for (const name of ['objects', 'refs', 'info']) {
      mkdirSync(join(this.root, directory, name), { recursive: true })
    }
    this.write(`${directory}/HEAD`, 'ref: refs/heads/main\n')
    this.write(`${directory}/config`, `[core]\n\trepositoryformatversion = 0\n\tbare = false\n${config}`)
  }

  path(name: string): string {
    return join(this.root, name)
  }

  write(name: string, content: string | Buffer = ''): string {
    const path = this.path(name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    return path
  }

  directory(name: string): string {
    mkdirSync(this.path(name), { recursive: true })
    return this.path(name)
  }

  open(options: GitIgnoreOptions = {}): Promise<GitIgnore> {
    return GitIgnore.open(this.root, { env: this.env, ...options })
  }

  /** What git says: for each path the rule that decides and its file, `''` when there is none. */
  ask(paths: readonly string[], cwd = this.root): { path: string; source: string; rule: string }[] {
    const { status, stdout, stderr } = spawnSync(
      'git',
      ['check-ignore', '--no-index', '--stdin', '-z', '-v', '-n'],
      // With "./" a name that starts with ":" stays a name.
      { cwd, env: this.env, input: paths.map((path) => `./${path}\0`).join(''), encoding: 'utf8' },
    )
    if (status === null || status > 1) throw new Error(`git check-ignore: ${stderr}`)
    const fields = stdout.split('\0')
    return paths.map((path, index) => {
      const [source = '', , rule = '', asked] = fields.slice(index * 4, index * 4 + 4)
      if (asked !== `./${path}`) throw new Error(`git check-ignore answered about ${asked}`)
      return { path, source, rule }
    })
  }
}

const isIgnored = (rule: string): boolean => rule !== '' && !rule.startsWith('!')

describe('a generated corpus, against git check-ignore', () => {
  const REPOSITORIES = 50
  const PAIRS = 5000

  const names = fc.constantFrom(
    ...['a', 'b', 'ab', 'abc', 'A', 'foo', 'Foo', 'foobar', 'bar', 'foo.', 'a.b', '.a', 'main.c', 'x.log'],
    ...['a b', 'b ', ' a', '#a', '!a', 'a!', '-', '^', '$', '+', '(a', '{a}', '|', '~', ':', '_', 'a*', '*'],
    ...['?', '[a]', 'a]', 'x\\', '\\', 'a\nb', 'a\r', '\t', 'é', 'e\u0301', 'É', '日', '日本', '🙂', 'Z'],
  )
  /** Everything that a pattern may be made of. A lone capital in brackets has a test of its own. */
  const atoms = fc.constantFrom(
    ...['a', 'b', 'foo', 'bar', 'ab', 'A', '.', '-', '~', 'é', 'É', '日', '{a}', '$', '+', '(', '|', '^'],
    ...['*', '*', '**', '***', '?', '/', '/', '/', '/**/', '**/', '/**', 'foo**', '*.', '!', '#', ' ', '\t'],
    ...['[a]', '[!a]', '[^a-c]', '[a-c]', '[Aa]', '[A-Z]', '[A-z]', '[[:alpha:]]', '[[:upper:]]', '[]a]'],
    ...['[[:space:]]', '[a-]', '[\\]]', '[é]', '[/]', '[!/]', '[c-a]', '[--0]', '[[:foo:]]', '[', '[!é]'],
    ...['[[:alpha:]-z]', '[a-[:alpha:]]', '[\\a-c]', '\\', '\\*', '\\?', '\\a', '\\ ', '\\/', '\\[a]', '\\é'],
  )
  const wild = fc.array(atoms, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''))
  const noise = fc.constantFrom(
    '',
    ' ',
    '#',
    '# a',
    '!',
    '!!a',
    '/',
    '//',
    '\\',
    'a\\',
    'a  ',
    'a\\  ',
    '\t',
    '\r',
  )

  /** A rule about paths that exist, in one of the usual forms. */
  const usual = (paths: readonly string[]): fc.Arbitrary<string> =>
    fc.tuple(fc.constantFrom(...paths), fc.nat(3), fc.nat(3), fc.nat(12)).map(([path, skip, take, form]) => {
      const segments = path.split('/')
      const part = segments.slice(Math.min(skip, segments.length - 1)).slice(0, take + 1)
      const [first = '', last = ''] = [part[0], part.at(-1)]
      switch (form) {
        case 0:
          return last
        case 1:
          return `/${part.join('/')}`
        case 2:
          return `${part.join('/')}/`
        case 3:
          return `**/${last}`
        case 4:
          return `${first}/**`
        case 5:
          return `${first}/**/${last}`
        case 6:
          return `*${last.slice(-2)}`
        case 7:
          return `/${first}/*`
        case 8:
          return part.map((name, index) => (index === 0 ? '*' : name)).join('/')
        case 9:
          return `${first.slice(0, 1)}**/${last}`
        case 10:
          return `/${first.slice(0, 1)}**`
        case 11:
          return `**\\/${last}`
        default:
          return `${part.join('/').slice(0, 4)}*`
      }
    })

  const text = (paths: readonly string[], most: number): fc.Arbitrary<Buffer> =>
    fc
      .record({
        rules: fc.array(
          fc
            .tuple(
              fc.oneof(
                { weight: 6, arbitrary: usual(paths) },
                { weight: 3, arbitrary: wild },
                { weight: 1, arbitrary: noise },
              ),
              fc.nat(3),
            )
            .map(([rule, sign]) => (sign === 0 ? `!${rule}` : rule)),
          { maxLength: most },
        ),
        lineEnd: fc.constantFrom('\n', '\n', '\r\n'),
        marked: fc.nat(7).map((n) => n === 0),
        ended: fc.boolean(),
      })
      .map(({ rules, lineEnd, marked, ended }) =>
        Buffer.from((marked ? '\ufeff' : '') + rules.join(lineEnd) + (ended ? lineEnd : '')),
      )

  interface Plan {
    readonly paths: readonly string[]
    readonly ignoreCase: boolean
    readonly root: Buffer
    readonly nested: readonly { readonly directory: string; readonly rules: Buffer }[]
    readonly exclude: Buffer
    readonly users: Buffer
    readonly usersPlace: 'home' | 'xdg' | 'tilde' | 'relative'
  }

  const nested = (paths: readonly string[]): fc.Arbitrary<Plan['nested'][number]> =>
    fc
      .constantFrom(...new Set(paths.map((path) => dirname(path)).filter((path) => path !== '.')))
      .chain((directory) =>
        fc.record({
          directory: fc.constant(directory),
          rules: text(
            paths
              .filter((path) => path.startsWith(`${directory}/`))
              .map((path) => path.slice(directory.length + 1)),
            6,
          ),
        }),
      )

  /** Few directories with many names in them: making directories is what takes the time. */
  const trees: fc.Arbitrary<readonly string[]> = fc
    .uniqueArray(
      fc.array(names, { minLength: 1, maxLength: 3 }).map((segments) => segments.join('/')),
      { minLength: 6, maxLength: 10 },
    )
    .chain((directories) =>
      fc.uniqueArray(
        fc
          .tuple(fc.constantFrom('', ...directories.map((path) => `${path}/`)), names)
          .map((parts) => parts.join('')),
        { minLength: 90, maxLength: 110 },
      ),
    )

  const plans: fc.Arbitrary<Plan> = trees.chain((paths) =>
    fc.record({
      paths: fc.constant(paths),
      ignoreCase: fc.boolean(),
      root: text(paths, 5),
      nested: fc.array(nested(paths), { minLength: 4, maxLength: 12 }),
      exclude: text(paths, 3),
      users: text(paths, 3),
      usersPlace: fc.constantFrom('home', 'xdg', 'tilde', 'relative'),
    }),
  )

  /** Only directories are made: git takes what does not exist for a file. */
  const build = (plan: Plan): { repository: Repository; directories: Map<string, boolean> } => {
    const relative = plan.usersPlace === 'relative' ? '\texcludesFile = .git/of the user\n' : ''
    const repository = new Repository(`\tignorecase = ${plan.ignoreCase}\n${relative}`)
    const { home } = repository
    /** Path → whether it is a directory. */
    const directories = new Map<string, boolean>()
    for (const [index, path] of plan.paths.entries()) {
      const parents = path.split('/').slice(0, -1)
      for (const depth of parents.keys()) directories.set(parents.slice(0, depth + 1).join('/'), true)
      if (!directories.has(path)) directories.set(path, index % 16 === 0)
    }
    for (const [path, isDirectory] of directories) if (isDirectory) repository.directory(path)
    for (const { directory, rules } of plan.nested) repository.write(`${directory}/.gitignore`, rules)
    repository.write('.gitignore', plan.root)
    repository.write('.git/info/exclude', plan.exclude)
    switch (plan.usersPlace) {
      case 'home':
        repository.write('../.config/git/ignore', plan.users)
        break
      case 'xdg':
        repository.env['XDG_CONFIG_HOME'] = join(home, 'xdg')
        repository.write('../xdg/git/ignore', plan.users)
        break
      case 'tilde':
        repository.write(
          '../.gitconfig',
          '[core]\n\texcludesFile = nothing\n\texcludesFile = ~/of the user\n',
        )
        repository.write('../of the user', plan.users)
        break
      case 'relative':
        repository.write('.git/of the user', plan.users)
        break
    }
    return { repository, directories }
  }

  it('agrees on every path', async () => {
    const decided = {
      root: 0,
      nested: 0,
      exclude: 0,
      users: 0,
      negated: 0,
      nothing: 0,
      ignored: 0,
      folded: 0,
    }
    const differences: unknown[] = []
    let pairs = 0
    for (const [index, plan] of fc.sample(plans, { numRuns: REPOSITORIES, seed: 20_26 }).entries()) {
      const { repository, directories } = build(plan)
      const ignore = await repository.open()
      for (const { path, source, rule } of repository.ask([...directories.keys()])) {
        pairs++
        if (isIgnored(rule)) decided.ignored++
        if (rule.startsWith('!')) decided.negated++
        if (isIgnored(rule) && plan.ignoreCase) decided.folded++
        if (source === '') decided.nothing++
        else if (source === '.gitignore') decided.root++
        else if (source.endsWith('/.gitignore')) decided.nested++
        else if (source.endsWith('info/exclude')) decided.exclude++
        else decided.users++
        const isDirectory = directories.get(path) ?? false
        const ours = ignore.ignores(repository.path(path), isDirectory)
        if (ours !== isIgnored(rule)) differences.push({ index, path, isDirectory, source, rule, ours })
      }
      rmSync(repository.home, { recursive: true })
    }
    expect(differences).toEqual([])
    expect(pairs).toBeGreaterThanOrEqual(PAIRS)
    // A corpus in which one kind of rule never decides proves nothing about it.
    for (const [kind, times] of Object.entries(decided))
      expect([kind, times > PAIRS / 50]).toEqual([kind, true])
    expect(decided.ignored / pairs).toBeLessThan(0.75)
  }, 60_000)
})

describe('GitIgnore', () => {
  let repository: Repository

  beforeEach(() => {
    repository = new Repository()
    return () => rmSync(repository.home, { recursive: true, force: true })
  })

  /** Files of a repository, judged by us and by git: the answers, which are the same. */
  const judge = async (...files: string[]): Promise<Record<string, boolean>> => {
    for (const file of files) repository.write(file)
    const ignore = await repository.open()
    const ours = files.map((file): [string, boolean] => [file, ignore.ignores(repository.path(file), false)])
    expect(ours).toEqual(repository.ask(files).map(({ path, rule }) => [path, isIgnored(rule)]))
    return Object.fromEntries(ours)
  }

  it('has all the kinds of rules, not only those for directories or for the root', async () => {
    repository.write('.gitignore', '*.log\n!keep.log\n/only-here\ndocs/*.txt\nbuild/\n')
    repository.write('sub/.gitignore', '!deep.log\n/mine\n')
    repository.write('.git/info/exclude', 'private\n')
    repository.write('../.config/git/ignore', '*~\n')
    expect(
      await judge(
        ...[
          'a.log',
          'x/keep.log',
          'only-here',
          'x/only-here',
          'docs/a.txt',
          'x/docs/a.txt',
          'build',
          'x/build/y',
        ],
        ...['sub/deep.log', 'sub/mine', 'sub/x/mine', 'x/private', 'x/a~'],
      ),
    ).toEqual({
      'a.log': true,
      'x/keep.log': false,
      'only-here': true,
      'x/only-here': false,
      'docs/a.txt': true,
      'x/docs/a.txt': false,
      build: false,
      'x/build/y': true,
      'sub/deep.log': false,
      'sub/mine': true,
      'sub/x/mine': false,
      'x/private': true,
      'x/a~': true,
    })
  })

  it('lets nothing below an ignored directory come back', async () => {
    repository.write('.gitignore', 'out/\n!out/keep\n')
    repository.write('out/.gitignore', '!*\n')
    repository.write('kept/.gitignore', '!out/\n')
    expect(await judge('out/keep', 'out/x/y', 'kept/out/x')).toEqual({
      'out/keep': true,
      'out/x/y': true,
      'kept/out/x': false,
    })
  })

  it('takes .gitignore before info/exclude, and that before the excludes file', async () => {
    repository.write('../.config/git/ignore', 'a\nb\nc\n')
    repository.write('.git/info/exclude', '!b\n!c\n')
    repository.write('.gitignore', 'c\n')
    expect(await judge('a', 'b', 'c')).toEqual({ a: true, b: false, c: true })
  })

  it('knows where git lets a run of stars cross directories', async () => {
    repository.write('.gitignore', 'foo**/bar\n/ab**\n!/ab*/x/**\n**\\/c\nx/**\\/y\nz**z\n')
    expect(
      await judge(
        'foobar',
        'foo/x/bar',
        'fooz/bar',
        'abc/x/y',
        'abc/y',
        'd/c',
        'x/y',
        'x/d/y',
        'zaz',
        'za/z',
      ),
    ).toEqual({
      foobar: true,
      'foo/x/bar': true,
      'fooz/bar': true,
      'abc/x/y': true,
      'abc/y': true,
      'd/c': true,
      'x/y': false,
      'x/d/y': true,
      zaz: true,
      'za/z': false,
    })
  })

  it('reads files as git does: byte order mark, line ends, NUL, trailing spaces', async () => {
    repository.write('.gitignore', '\ufeffa\r\nb \r\nc\\ \n d\ne\0f\n#g\n\\#h\n\\!i\nj\r')
    expect(await judge('a', 'b', 'c ', ' d', 'd', 'e', '#g', '#h', '!i', 'j')).toEqual({
      a: true,
      b: true,
      'c ': true,
      ' d': true,
      d: false,
      e: true,
      '#g': false,
      '#h': true,
      '!i': true,
      j: true,
    })
  })

  it('compares bytes: composed and decomposed names differ, and ? is one byte', async () => {
    repository.write('.gitignore', 'é\n?.txt\n??.md\n')
    expect(await judge('é', 'e\u0301', 'é.txt', 'e.txt', 'é.md')).toEqual({
      é: true,
      'e\u0301': false,
      'é.txt': false,
      'e.txt': true,
      'é.md': true,
    })
  })

  it('follows core.ignorecase, for ASCII letters only', async () => {
    repository.write('.gitignore', 'Build\nÉ\n')
    expect(await judge('build', 'é')).toEqual({ build: false, é: false })
    repository.adopt('.git', '\tignorecase\n')
    expect(await judge('build', 'é')).toEqual({ build: true, é: false })
  })

  it('ignores a lone capital in brackets where git, with ignorecase, matches nothing', async () => {
    repository.adopt('.git', '\tignorecase = true\n')
    repository.write('.gitignore', '[T]emp\n')
    repository.write('Temp')
    const ignore = await repository.open()
    expect(ignore.ignores(repository.path('Temp'), false)).toBe(true)
    expect(repository.ask(['Temp'])).toMatchObject([{ rule: '' }])
  })

  it('takes a link to a directory for a file, and reads no ignore file through links', async () => {
    repository.write('.gitignore', 'linked/\n')
    repository.write('../elsewhere/.gitignore', '*\n')
    symlinkSync(join(repository.home, 'elsewhere'), repository.path('linked'))
    repository.directory('real')
    symlinkSync(join(repository.home, 'elsewhere/.gitignore'), repository.path('real/.gitignore'))
    repository.write('real/x')
    const ignore = await repository.open()
    expect(ignore.ignores(repository.path('linked'), false)).toBe(false)
    expect(ignore.ignores(repository.path('linked/x'), false)).toBe(false)
    expect(ignore.ignores(repository.path('real/x'), false)).toBe(false)
    expect([...ignore.refused().keys()]).toEqual([repository.path('real/.gitignore')])
    expect(repository.ask(['linked', 'real/x'])).toMatchObject([{ rule: '' }, { rule: '' }])
  })

  it('leaves out what is no file, too large or too slow, and says so', async () => {
    repository.write('big/.gitignore', `*\n#${'x'.repeat(1000)}\n`)
    repository.directory('pipe')
    execFileSync('mkfifo', [repository.path('pipe/.gitignore')])
    repository.directory('directory/.gitignore')
    repository.write('slow/.gitignore', `${'**/a/'.repeat(20)}b\n${'x'.repeat(5000)}\nfast\n`)
    const ignore = await repository.open({ maxFileBytes: 1000 })
    const answers = ['big/x', 'pipe/x', 'directory/x'].map((name) =>
      ignore.ignores(repository.path(name), false),
    )
    expect(answers).toEqual([false, false, false])
    expect([...ignore.refused()]).toEqual([
      [repository.path('big/.gitignore'), 'it is larger than 1000 bytes'],
      [repository.path('pipe/.gitignore'), 'it is not a plain file'],
    ])
    const patient = await repository.open()
    expect(patient.ignores(repository.path('slow/fast'), false)).toBe(true)
    expect(patient.ignores(repository.path(`slow/${'a/'.repeat(100)}b`), false)).toBe(false)
    expect([...patient.refused().values()]).toEqual(['2 of its rules would take too long'])
  })

  it.skipIf(process.getuid?.() === 0)('says which ignore file it may not read', async () => {
    chmodSync(repository.write('.gitignore', '*\n'), 0)
    const ignore = await repository.open()
    expect(ignore.ignores(repository.path('x'), false)).toBe(false)
    expect([...ignore.refused().values()]).toEqual(['it cannot be opened (EACCES)'])
  })

  it('has an answer for every path', async () => {
    repository.write('.gitignore', '*.log\n[\n')
    const ignore = await repository.open()
    const { root } = repository
    for (const name of [
      'a\nb.log',
      'b .log',
      'e\u0301.log',
      '\ud800.log',
      '\ufffd.log',
      '\0.log',
      '\\.log',
    ]) {
      expect(ignore.ignores(`${root}/${name}`, false)).toBe(true)
      expect(ignore.ignores(`${root}/${name}/x`, true)).toBe(true)
      expect(ignore.invalidate(`${root}/${name}`)).toBe(false)
    }
    for (const path of [
      '/',
      '/a.log',
      root,
      `${root}/`,
      `${root}/../a.log`,
      `${root}x/a.log`,
      `${root}/x/../..`,
    ]) {
      expect(ignore.ignores(path, true)).toBe(false)
      expect(ignore.isNestedRepository(path)).toBe(false)
    }
    expect(ignore.ignores(`${root}/..a.log`, false)).toBe(true)
    const endless = `${root}/${'a/'.repeat(100_000)}`
    expect(ignore.ignores(`${endless}b.log`, false)).toBeTypeOf('boolean')
    expect(ignore.invalidate(`${endless}.gitignore`)).toBeTypeOf('boolean')
  })

  it('applies outer rules to a nested repository as a whole, and not inside it', async () => {
    repository.write('.gitignore', '*.log\n/vendor/\n')
    repository.write('../.config/git/ignore', '*.mine\n')
    for (const name of ['nested', 'vendor/nested']) repository.adopt(`${name}/.git`)
    repository.write('nested/.gitignore', '/here\n')
    repository.write('nested/.git/info/exclude', 'private\n')
    repository.directory('not-one/.git')
    const files = ['nested/a.log', 'nested/here', 'nested/x/private', 'nested/a.mine', 'nested/x/a']
    for (const file of [...files, 'not-one/a.log', 'vendor/nested/a']) repository.write(file)
    const ignore = await repository.open()
    const ask = (name: string) => ignore.ignores(repository.path(name), false)

    expect(files.map(ask)).toEqual([false, true, true, true, false])
    const inside = repository.ask(
      files.map((file) => file.slice('nested/'.length)),
      repository.path('nested'),
    )
    expect(files.map(ask)).toEqual(inside.map(({ rule }) => isIgnored(rule)))
    expect(ask('not-one/a.log')).toBe(true)
    expect(ask('vendor/nested/a')).toBe(true)
    expect(ignore.isNestedRepository(repository.path('nested'))).toBe(true)
    expect(ignore.isNestedRepository(repository.path('vendor/nested'))).toBe(true)
    for (const name of ['', 'nested/x', 'not-one', 'absent', 'nested/x/a/b']) {
      expect(ignore.isNestedRepository(repository.path(name))).toBe(false)
    }
    // What git itself goes by: the nested one is a single entry.
    const status = execFileSync('git', ['status', '--porcelain', '-z', '--untracked-files=all'], {
      cwd: repository.root,
      env: repository.env,
      encoding: 'utf8',
    })
    expect(status.split('\0').filter((line) => line.includes('nested'))).toEqual(['?? nested/'])
  })

  it('finds info/exclude through the pointers of submodules and worktrees', async () => {
    rmSync(repository.path('.git'), { recursive: true })
    repository.adopt('../main/.git')
    repository.write('../main/.git/info/exclude', 'private\n')
    repository.write('../main/.git/worktrees/work/HEAD', 'ref: refs/heads/other\n')
    repository.write('../main/.git/worktrees/work/commondir', '../..\n')
    repository.write('../main/.git/worktrees/work/gitdir', `${repository.path('.git')}\n`)
    repository.write('.git', 'gitdir: ../main/.git/worktrees/work\n')
    expect(await judge('private', 'x')).toEqual({ private: true, x: false })
    expect((await repository.open()).ignores(repository.path('private'), false)).toBe(true)

    repository.adopt('../main/.git/modules/sub')
    repository.write('../main/.git/modules/sub/info/exclude', 'hidden\n')
    repository.write('.git', `gitdir: ${join(repository.home, 'main/.git/modules/sub')}\n`)
    expect(await judge('private', 'hidden')).toEqual({ private: false, hidden: true })
    for (const pointer of ['', 'gitdir: ', 'gitdir: nowhere\n', '\0', 'x'.repeat(100_000)]) {
      repository.write('.git', pointer)
      expect((await repository.open()).ignores(repository.path('hidden'), false)).toBe(false)
    }
  })

  it('forgets what was invalidated and says whether that matters', async () => {
    const ignore = await repository.open()
    const ask = (name: string) => ignore.ignores(repository.path(name), false)
    const excludes = repository.write('../.config/git/ignore', '')
    expect(ignore.sources()).toEqual([excludes, repository.path('.git/info/exclude')])
    expect(ask('d/e/x.log')).toBe(false)

    const root = repository.write('.gitignore', '*.log\n')
    repository.write('d/e/x.log')
    expect(ask('d/e/x.log')).toBe(false)
    expect(ignore.invalidate(root)).toBe(true)
    expect(ask('d/e/x.log')).toBe(true)

    const nested = repository.write('d/.gitignore', '!x.log\n')
    expect(ignore.invalidate(nested)).toBe(true)
    expect(ask('d/e/x.log')).toBe(false)
    expect(ignore.sources()).toEqual(
      expect.arrayContaining([root, nested, excludes, repository.path('.git/info/exclude')]),
    )

    renameSync(repository.path('d'), repository.path('f'))
    expect(ignore.invalidate(repository.path('d'))).toBe(true)
    expect(ignore.invalidate(repository.path('d'))).toBe(false)
    expect(ask('d/e/x.log')).toBe(true)
    expect(ask('f/e/x.log')).toBe(false)

    repository.write('.git/info/exclude', 'y\n')
    expect(ask('f/y')).toBe(false)
    expect(ignore.invalidate(repository.path('.git/info/exclude'))).toBe(true)
    expect(ask('f/y')).toBe(true)

    writeFileSync(excludes, 'z\n')
    expect(ignore.invalidate(excludes)).toBe(true)
    expect(ask('f/z')).toBe(true)

    repository.adopt('f/.git')
    expect(ignore.invalidate(repository.path('f/.git'))).toBe(true)
    expect(ask('f/y')).toBe(false)

    rmSync(root)
    expect(ignore.invalidate(root)).toBe(true)
    expect(ask('d/x.log')).toBe(false)
    for (const name of ['', 'f/e/x.log', 'f/e', 'absent', '.git/index']) {
      expect([name, ignore.invalidate(repository.path(name))]).toEqual([name, name === ''])
    }
    expect(ignore.invalidate('/elsewhere/.gitignore')).toBe(false)
  })

  it('does not count the ignore files of ignored directories', async () => {
    repository.write('.gitignore', 'node_modules/\n')
    const inside = repository.write('node_modules/a/.gitignore', '!*\n')
    const ignore = await repository.open()
    expect(ignore.ignores(dirname(inside), true)).toBe(true)
    expect(ignore.invalidate(inside)).toBe(false)
    expect(ignore.sources()).not.toContain(inside)
  })

  it('remembers no more directories than it may, and answers all the same', async () => {
    repository.write('.gitignore', '*.log\n')
    for (const name of ['a', 'b', 'c', 'd']) repository.write(`${name}/.gitignore`, `!${name}.log\n`)
    const ignore = await repository.open({ maxDirectories: 2 })
    for (const name of ['a', 'b', 'c', 'd', 'a']) {
      expect(ignore.ignores(repository.path(`${name}/${name}.log`), false)).toBe(false)
      expect(ignore.ignores(repository.path(`${name}/x.log`), false)).toBe(true)
    }
    expect(ignore.sources().filter((path) => path.endsWith('.gitignore')).length).toBeLessThanOrEqual(3)
  })

  it('answers for more paths than its matchers may cache', async () => {
    repository.write('.gitignore', '*.log\n!keep*\n')
    const ignore = await repository.open()
    const wrong = Array.from({ length: 10_000 }, (_, index) => index).filter(
      (index) =>
        !ignore.ignores(repository.path(`${index}.log`), false) ||
        ignore.ignores(repository.path(`keep${index}.log`), false),
    )
    expect(wrong).toEqual([])
  })

  it('does without git, and without an answer of it', async () => {
    repository.write('../.config/git/ignore', 'mine\n')
    repository.write('.gitignore', 'x\n')
    repository.write('../bin/git', '#!/bin/sh\nexec sleep 60\n')
    chmodSync(repository.path('../bin/git'), 0o755)
    const silent = { ...repository.env, PATH: `${repository.path('../bin')}:${process.env['PATH']}` }
    for (const env of [{ ...repository.env, PATH: join(repository.home, 'nothing') }, silent]) {
      const ignore = await repository.open({ env, configTimeoutMs: 200 })
      expect(ignore.ignores(repository.path('mine'), false)).toBe(true)
      expect(ignore.ignores(repository.path('x'), false)).toBe(true)
      expect(ignore.ignores(repository.path('X'), false)).toBe(false)
    }
  })

  it('asks about the given root, whatever repository the environment names', async () => {
    const other = new Repository('\tignorecase = true\n\texcludesFile = /nowhere\n')
    repository.write('../.config/git/ignore', 'mine\n')
    repository.env['GIT_DIR'] = other.path('.git')
    repository.env['GIT_WORK_TREE'] = other.root
    const ignore = await repository.open()
    expect(ignore.ignores(repository.path('mine'), false)).toBe(true)
    expect(ignore.ignores(repository.path('MINE'), false)).toBe(false)
  })

  it('applies ignore files where there is no repository yet, and its exclude file once there is', async () => {
    rmSync(repository.path('.git'), { recursive: true })
    repository.write('.gitignore', 'build/\n')
    const ignore = await repository.open()
    expect(ignore.ignores(repository.path('build'), true)).toBe(true)
    repository.adopt('.git')
    repository.write('.git/info/exclude', 'private\n')
    expect(ignore.invalidate(repository.path('.git'))).toBe(true)
    expect(ignore.ignores(repository.path('private'), false)).toBe(true)
  })
})
