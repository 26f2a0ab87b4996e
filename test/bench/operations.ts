/** The changes that a barrier must not miss, each as what is done and what must have been named then. */
import { dirname, join } from 'node:path'
import type { Step } from './steps.ts'

/** A path that must be reported, and whether it was there before. */
export interface Expected {
  readonly path: string
  readonly existed: boolean
}

export interface Change {
  readonly steps: readonly Step[]
  readonly expected: readonly Expected[]
}

export interface Trial extends Change {
  /** Done before, and known to the watcher. */
  readonly before?: readonly Step[]
  /** Done right after the boundary that saw the change; it has to be seen at the next one. */
  readonly later?: Change
  /** Puts things back. */
  readonly after?: readonly Step[]
  /** A directory of this trial, for removal at some time. */
  readonly scratch?: string
}

/** Where a trial takes place: an existing file, and a name that nobody else uses. */
export interface Site {
  readonly file: string
  readonly name: string
}

const old = (path: string): Expected => ({ path, existed: true })
const fresh = (path: string): Expected => ({ path, existed: false })

/** Into a directory that is new at its path: one file that the boundary before has seen, one that is new. */
const writeInto = (directory: string, known: string): Change => {
  const added = join(directory, 'later.ts')
  return {
    steps: [
      { do: 'write', path: known },
      { do: 'write', path: added },
    ],
    expected: [old(known), fresh(added)],
  }
}

const onFile =
  (action: 'write' | 'append' | 'replace') =>
  ({ file }: Site): Trial => ({ steps: [{ do: action, path: file }], expected: [old(file)] })

const newFile =
  (action: 'write' | 'empty') =>
  ({ file, name }: Site): Trial => {
    const path = join(dirname(file), `${name}.ts`)
    return { steps: [{ do: action, path }], expected: [fresh(path)], scratch: path }
  }

const newDirectory =
  (...below: string[]) =>
  ({ file, name }: Site): Trial => {
    const top = join(dirname(file), name)
    const directory = join(top, ...below)
    const path = join(directory, 'f.ts')
    return {
      steps: [
        { do: 'mkdir', path: directory },
        { do: 'write', path },
      ],
      expected: [fresh(path)],
      later: writeInto(directory, path),
      scratch: top,
    }
  }

const renameDirectory = ({ file, name }: Site): Trial => {
  const from = join(dirname(file), name)
  const to = `${from}-renamed`
  return {
    before: [
      { do: 'mkdir', path: join(from, 'sub') },
      { do: 'write', path: join(from, 'f.ts') },
      { do: 'write', path: join(from, 'sub', 'g.ts') },
    ],
    steps: [{ do: 'rename', path: from, to }],
    expected: [
      old(join(from, 'f.ts')),
      old(join(from, 'sub', 'g.ts')),
      fresh(join(to, 'f.ts')),
      fresh(join(to, 'sub', 'g.ts')),
    ],
    later: writeInto(join(to, 'sub'), join(to, 'sub', 'g.ts')),
    scratch: to,
  }
}

const remakeDirectory = ({ file, name }: Site): Trial => {
  const directory = join(dirname(file), name)
  const kept = join(directory, 'f.ts')
  const gone = join(directory, 'g.ts')
  return {
    before: [
      { do: 'mkdir', path: directory },
      { do: 'write', path: kept },
      { do: 'write', path: gone },
    ],
    steps: [
      { do: 'remove', path: directory },
      { do: 'mkdir', path: directory },
      { do: 'write', path: kept },
    ],
    expected: [old(kept), old(gone)],
    later: writeInto(directory, kept),
    scratch: directory,
  }
}

export const operations: Readonly<Record<string, (site: Site) => Trial>> = {
  modify: onFile('write'),
  append: onFile('append'),
  'atomic replace': onFile('replace'),
  create: newFile('write'),
  'empty file': newFile('empty'),
  unlink: ({ file }) => ({
    steps: [{ do: 'unlink', path: file }],
    expected: [old(file)],
    after: [{ do: 'write', path: file }],
  }),
  'new directory + file': newDirectory(),
  'new deep directory + file': newDirectory('a', 'b', 'c'),
  'directory renamed': renameDirectory,
  'directory removed, re-made': remakeDirectory,
}
