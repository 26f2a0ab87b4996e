import { dirname } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KnownTree } from '../../src/watch/known-tree.ts'

const treeOf = (...files: readonly string[]): KnownTree => {
  const tree = new KnownTree()
  tree.addDirectory('/r', 1)
  for (const file of files) {
    const steps = dirname(file).split('/').slice(2)
    for (const index of steps.keys()) tree.addDirectory(['/r', ...steps.slice(0, index + 1)].join('/'), 2)
    tree.addFile(file)
  }
  return tree
}

describe('KnownTree', () => {
  it('knows files and directories apart', () => {
    const tree = treeOf('/r/a', '/r/d/b')
    expect([tree.hasFile('/r/a'), tree.hasDirectory('/r/a')]).toEqual([true, false])
    expect([tree.hasFile('/r/d'), tree.hasDirectory('/r/d')]).toEqual([false, true])
    expect([tree.hasFile('/r/x'), tree.hasFile('/elsewhere/a'), tree.hasDirectory('/')]).toEqual([
      false,
      false,
      false,
    ])
    expect(tree.directoryCount).toBe(2)
  })

  it('lists what is directly in a directory', () => {
    const tree = treeOf('/r/a', '/r/d/b', '/r/d/e/c')
    expect([...tree.filesIn('/r')]).toEqual(['a'])
    expect([...tree.directoriesIn('/r')]).toEqual(['d'])
    expect([...tree.filesIn('/r/d')]).toEqual(['b'])
    expect([...tree.filesIn('/unknown')]).toEqual([])
    expect([...tree.directoriesIn('/unknown')]).toEqual([])
  })

  it('takes the inode number that it was told last, and keeps what is in the directory', () => {
    const tree = treeOf('/r/d/b')
    expect(tree.inodeOf('/r/d')).toBe(2)
    tree.addDirectory('/r/d', 3)
    expect(tree.inodeOf('/r/d')).toBe(3)
    expect(tree.hasFile('/r/d/b')).toBe(true)
    expect(tree.inodeOf('/r/unknown')).toBeUndefined()
  })

  it('says whether a removed file was known', () => {
    const tree = treeOf('/r/a')
    expect([tree.removeFile('/r/a'), tree.removeFile('/r/a'), tree.removeFile('/x/y')]).toEqual([
      true,
      false,
      false,
    ])
    expect(tree.hasFile('/r/a')).toBe(false)
  })

  it('forgets a directory with everything in it, and names it all', () => {
    const tree = treeOf('/r/a', '/r/d/b', '/r/d/e/c', '/r/de/x')
    const gone = tree.removeDirectory('/r/d')
    expect(gone.files.toSorted()).toEqual(['/r/d/b', '/r/d/e/c'])
    expect(gone.directories.toSorted()).toEqual(['/r/d', '/r/d/e'])
    expect([...tree.directoriesIn('/r')]).toEqual(['de'])
    expect(tree.hasFile('/r/de/x')).toBe(true)
    expect(tree.removeDirectory('/r/d')).toEqual({ files: [], directories: [] })
  })

  it('takes a file before its directory', () => {
    const tree = new KnownTree()
    tree.addFile('/r/d/a')
    expect(tree.hasFile('/r/d/a')).toBe(true)
    expect(tree.hasDirectory('/r/d')).toBe(true)
  })

  it('forgets with a directory what it heard of before that directory', () => {
    const tree = new KnownTree()
    tree.addDirectory('/r', 1)
    tree.addFile('/r/d/e/a')
    tree.addDirectory('/r/d', 2)
    tree.addDirectory('/r/d/e', 3)
    expect([...tree.directoriesIn('/r/d')]).toEqual(['e'])
    expect(tree.removeDirectory('/r/d').files).toEqual(['/r/d/e/a'])
    expect(tree.hasFile('/r/d/e/a')).toBe(false)
  })
})

const DIRECTORIES = ['/r', '/r/a', '/r/a/b', '/r/a/b/c', '/r/ab', '/r/b']
const FILES = DIRECTORIES.flatMap((directory) => [`${directory}/x`, `${directory}/y`])

type Action =
  | { readonly kind: 'addDirectory'; readonly path: string; readonly ino: number }
  | { readonly kind: 'addFile' | 'removeFile' | 'removeDirectory'; readonly path: string }

const directory = fc.constantFrom(...DIRECTORIES)
const file = fc.constantFrom(...FILES)

const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('addDirectory' as const), path: directory, ino: fc.nat(5) }),
    fc.record({ kind: fc.constant('addFile' as const), path: file }),
    fc.record({ kind: fc.constant('removeFile' as const), path: file }),
    fc.record({ kind: fc.constant('removeDirectory' as const), path: directory }),
  ),
  { maxLength: 40 },
)

const within = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(`${directory}/`)

const namesIn = (paths: Iterable<string>, directory: string): readonly string[] =>
  [...paths]
    .filter((path) => dirname(path) === directory)
    .map((path) => path.slice(directory.length + 1))
    .toSorted()

/** Plays the actions on a tree and, beside it, on plain sets of paths. */
const compare = (script: readonly Action[]): void => {
  const tree = new KnownTree()
  const files = new Set<string>()
  const directories = new Map<string, number>()
  for (const action of script) {
    switch (action.kind) {
      case 'addDirectory':
        tree.addDirectory(action.path, action.ino)
        directories.set(action.path, action.ino)
        break
      case 'addFile':
        tree.addFile(action.path)
        files.add(action.path)
        directories.set(dirname(action.path), directories.get(dirname(action.path)) ?? 0)
        break
      case 'removeFile':
        expect(tree.removeFile(action.path)).toBe(files.delete(action.path))
        break
      case 'removeDirectory': {
        const gone = tree.removeDirectory(action.path)
        const goneFiles = [...files].filter((path) => within(path, action.path))
        const goneDirectories = [...directories.keys()].filter((path) => within(path, action.path))
        expect(gone.files.toSorted()).toEqual(goneFiles.toSorted())
        expect(gone.directories.toSorted()).toEqual(goneDirectories.toSorted())
        for (const path of goneFiles) files.delete(path)
        for (const path of goneDirectories) directories.delete(path)
        break
      }
    }
    expect(tree.directoryCount).toBe(directories.size)
    for (const path of FILES) expect(tree.hasFile(path)).toBe(files.has(path))
    for (const path of DIRECTORIES) {
      expect(tree.hasDirectory(path)).toBe(directories.has(path))
      expect(tree.inodeOf(path)).toBe(directories.get(path))
      if (!directories.has(path)) continue
      expect([...tree.filesIn(path)].toSorted()).toEqual(namesIn(files, path))
      expect([...tree.directoriesIn(path)].toSorted()).toEqual(namesIn(directories.keys(), path))
    }
  }
}

/** Each directory after the one that holds it, as a scan hears of them. */
const parentsFirst = (script: readonly Action[]): readonly Action[] =>
  script.flatMap((action) => {
    if (action.kind !== 'addDirectory' && action.kind !== 'addFile') return [action]
    const above = DIRECTORIES.filter((path) => path !== action.path && within(action.path, path))
    return [...above.map((path) => ({ kind: 'addDirectory' as const, path, ino: 9 })), action]
  })

describe('any order of appearing and disappearing, against plain sets of paths', () => {
  it('is the same where a directory is heard of before what it holds', () => {
    fc.assert(
      fc.property(actions, (script) => compare(parentsFirst(script))),
      { numRuns: 300 },
    )
  })

  it('is the same where a directory is heard of after what it holds', () => {
    fc.assert(fc.property(actions, compare), { numRuns: 300 })
  })
})
