import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, parse } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { findRoot, isWithin } from '../../src/watch/root.ts'

/** No directory above the temporary one has an entry of this name. */
const MARKER = '.live-workspace-test-marker'

let base: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-root-')))
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(base, { recursive: true, force: true })
})

const directory = (...names: readonly string[]): string => {
  const path = join(base, ...names)
  mkdirSync(path, { recursive: true })
  return path
}

const file = (...names: readonly string[]): string => {
  const path = join(base, ...names)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, '')
  return path
}

describe('findRoot', () => {
  it('is the first directory upward that holds the marker, as a directory', async () => {
    const root = directory('project')
    directory('project', MARKER)
    expect(await findRoot(directory('project', 'a', 'b'), [MARKER])).toBe(root)
    expect(await findRoot(root, [MARKER])).toBe(root)
  })

  it('takes a marker that is a file, as in a linked worktree', async () => {
    file('project', MARKER)
    expect(await findRoot(directory('project', 'a'), [MARKER])).toBe(join(base, 'project'))
  })

  it('takes a marker that is a link to nowhere', async () => {
    symlinkSync(join(base, 'nowhere'), join(directory('project'), MARKER))
    expect(await findRoot(directory('project', 'a'), [MARKER])).toBe(join(base, 'project'))
  })

  it('stops at the nearest one', async () => {
    directory('outer', MARKER)
    directory('outer', 'inner', MARKER)
    expect(await findRoot(directory('outer', 'inner', 'a'), [MARKER])).toBe(join(base, 'outer', 'inner'))
    expect(await findRoot(directory('outer', 'other'), [MARKER])).toBe(join(base, 'outer'))
  })

  it('takes any of several markers', async () => {
    file('outer', '.second')
    file('outer', 'inner', MARKER)
    const cwd = directory('outer', 'inner', 'a')
    expect(await findRoot(cwd, [MARKER, '.second'])).toBe(join(base, 'outer', 'inner'))
    expect(await findRoot(cwd, ['.second', '.third'])).toBe(join(base, 'outer'))
  })

  it('is the working directory where no marker is found or none is wanted', async () => {
    const cwd = directory('project', 'a')
    expect(await findRoot(cwd, [MARKER])).toBe(cwd)
    directory('project', MARKER)
    expect(await findRoot(cwd, [])).toBe(cwd)
  })

  it('is a real path', async () => {
    directory('project', MARKER)
    const cwd = directory('project', 'a')
    symlinkSync(cwd, join(base, 'link'))
    expect(await findRoot(join(base, 'link'), [MARKER])).toBe(join(base, 'project'))
    directory('elsewhere')
    symlinkSync(join(base, 'elsewhere'), join(base, 'link2'))
    expect(await findRoot(join(base, 'link2'), [MARKER])).toBe(join(base, 'elsewhere'))
  })

  it('is never a home directory, nor what lies above it', async () => {
    directory('users', MARKER)
    directory('users', 'me', MARKER)
    const cwd = directory('users', 'me', 'notes')
    vi.stubEnv('HOME', join(base, 'users', 'me'))
    vi.stubEnv('USERPROFILE', join(base, 'users', 'me'))
    expect(await findRoot(cwd, [MARKER])).toBe(cwd)
    directory('users', 'me', 'project', MARKER)
    expect(await findRoot(directory('users', 'me', 'project', 'a'), [MARKER])).toBe(
      join(base, 'users', 'me', 'project'),
    )
  })

  it('knows the home directory behind a link', async () => {
    directory('disk', 'me', MARKER)
    symlinkSync(join(base, 'disk', 'me'), join(base, 'home'))
    vi.stubEnv('HOME', join(base, 'home'))
    vi.stubEnv('USERPROFILE', join(base, 'home'))
    const cwd = directory('disk', 'me', 'notes')
    expect(await findRoot(cwd, [MARKER])).toBe(cwd)
  })

  it('is the working directory where home does not exist', async () => {
    vi.stubEnv('HOME', join(base, 'nobody'))
    vi.stubEnv('USERPROFILE', join(base, 'nobody'))
    const cwd = directory('a')
    expect(await findRoot(cwd, [MARKER])).toBe(cwd)
  })

  it('looks further up where something on the way is no directory', async () => {
    directory('project', MARKER)
    expect(await findRoot(file('project', 'a', 'notes.txt'), [MARKER])).toBe(join(base, 'project'))
  })

  it('stays where it is when a marker cannot be asked for, whatever lies above', async () => {
    directory('project', MARKER)
    const cwd = directory('project', 'a')
    // Too long for any filesystem, so that asking fails for every user.
    expect(await findRoot(cwd, ['x'.repeat(5_000), MARKER])).toBe(cwd)
  })

  it.skipIf(process.getuid?.() === 0 || process.platform === 'win32')(
    'stays where it is when a directory on the way may not be searched',
    async () => {
      directory('project', MARKER)
      const closed = directory('project', 'closed')
      const cwd = directory('project', 'closed', 'a')
      chmodSync(closed, 0o600)
      await expect(findRoot(cwd, [MARKER])).rejects.toMatchObject({ code: 'EACCES' })
      chmodSync(closed, 0o700)
    },
  )

  it('is the top of the filesystem only for a session that works there', async () => {
    const top = parse(base).root
    expect(await findRoot(top, [MARKER])).toBe(top)
  })

  it('fails for a directory that does not exist', async () => {
    await expect(findRoot(join(base, 'gone'), [MARKER])).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('isWithin', () => {
  it.each([
    ['/a', '/a', true],
    ['/a', '/a/b', true],
    ['/a', '/a/b/c', true],
    ['/a', '/ab', false],
    ['/a', '/', false],
    ['/a/b', '/a', false],
    ['/', '/a', true],
    ['/', '/', true],
    ['/a', '/a..b', false],
  ])('%s holds %s: %s', (directory, path, held) => {
    expect(isWithin(directory, path)).toBe(held)
  })
})
