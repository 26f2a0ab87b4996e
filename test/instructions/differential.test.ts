/**
 * The room and the loader that the host ships, on equal projects, turn by turn: what they tell has to be
 * equal in sources, digests, headings, contents and frames. Free wording is taken out before the texts
 * are compared; scenarios with another difference say which and why.
 */
import { describe, expect, it } from 'vitest'
import { Standing } from '../../src/instructions/standing.ts'
import type { Told } from './lab.ts'
import { type Mount, mountBoth, mountBundle, mountRoom, mountStock } from './loaders.ts'
import { edit, read, World, type WorldOptions, write } from './world.ts'

interface Scenario extends WorldOptions {
  readonly run: (world: World) => Promise<void>
}

const INTRODUCTION = 'The following workspace instructions may'

/** Takes out what the two may word differently: the sentence of an update, of a new baseline, of the budget. */
const withoutFreeWords = (text: string): string =>
  text
    .replace(/^(<system-reminder>\n)[^\n]*(\n<\/system-reminder>)$/, '$1$2')
    .replaceAll(/(Updated instructions from: .*\n\n).*\n\n/g, '$1')
    .replaceAll(/Workspace instruction budget.*/g, 'Workspace instruction budget')
    .replace(
      new RegExp(
        `(<system-reminder>\n|\n\n)(?!Updated|Additional|Instructions|Workspace).*?(${INTRODUCTION})`,
      ),
      '$1$2',
    )

const comparable = (turns: readonly (readonly Told[])[]) =>
  turns.map((told) => told.map(({ text, source }) => ({ source, text: withoutFreeWords(text) })))

const played = new Map<string, Promise<Told[][]>>()

const playOnce = async (mount: Mount, { run, ...options }: Scenario): Promise<Told[][]> => {
  const world = new World(mount, options)
  await run(world)
  return world.turns
}

/** What was told in each turn. A scenario is played once under each loader. */
const play = async (name: string, mount: Mount, scenario: Scenario): Promise<Told[][]> => {
  const key = `${mount.name} ${name}`
  const known = played.get(key) ?? playOnce(mount, scenario)
  played.set(key, known)
  return known
}

/** Transitions of each turn in one line each. */
const changes = (turns: readonly (readonly Told[])[]): string[][] =>
  turns.map((told) =>
    told.flatMap(({ source }) =>
      source.changes.map(
        ({ action, scope }) => `${source.baseline ? 'baseline ' : ''}${action} ${scope.replace('\0', ':')}`,
      ),
    ),
  )

const CHAIN = { 'AGENTS.md': 'Root.\n', 'CLAUDE.md': 'Claude.\n', 'a/b/AGENTS.md': 'B.\n', 'a/b/f': 'f\n' }
const NESTED = {
  'AGENTS.md': 'Root.\n',
  'p/AGENTS.md': 'P.\n',
  'p/CLAUDE.md': 'PC.\n',
  'p/q/AGENTS.local.md': 'Q.\n',
  'p/q/f': 'f\n',
  'p/f': 'f\n',
  'z/AGENTS.md': 'Z.\n',
  'z/f': 'f\n',
}

const SAME: Readonly<Record<string, Scenario>> = {
  'no file at all': { run: async (world) => void (await world.turn('x')) },
  'a chain from the root to the cwd': {
    files: CHAIN,
    cwd: 'a/b',
    run: async (world) => void (await world.turn('x')),
  },
  'a user-global file': {
    files: CHAIN,
    run: async (world) => {
      world.writeGlobal('Global.\n')
      await world.turn('x')
      world.writeGlobal('Global, new.\n')
      await world.turn('x')
      world.removeGlobal()
      await world.turn('x')
    },
  },
  'the cwd is the harness home': {
    cwd: '../home',
    run: async (world) => {
      world.writeGlobal('Global.\n')
      await world.turn('x')
    },
  },
  'no marker: the cwd is the root': {
    files: CHAIN,
    cwd: 'a/b',
    run: async (world) => {
      world.remove('.git')
      await world.turn('x')
    },
  },
  'a marker that is a file': {
    files: { ...CHAIN, 'a/.git': 'gitdir: elsewhere\n' },
    cwd: 'a/b',
    run: async (world) => void (await world.turn('x')),
  },
  'another marker': {
    files: { ...CHAIN, 'a/root.toml': '' },
    cwd: 'a/b',
    config: { projectRootMarkers: ['root.toml'] },
    run: async (world) => void (await world.turn('x')),
  },
  'a cwd that is a link to the root': {
    files: NESTED,
    cwd: '../link',
    run: async (world) => {
      world.link('../link', 'project')
      await world.turn(read('p/q/f'), 'x')
    },
  },
  'other candidates, some of them no names': {
    files: {
      'RULES.md': 'Rules.\n',
      'MINE.md': 'Mine.\n',
      'AGENTS.md': 'No.\n',
      'd/RULES.md': 'D.\n',
      'd/f': '',
    },
    config: {
      instructionFileCandidates: ['', 'RULES.md', 'RULES.md', 'a/b', '..'],
      localInstructionFileCandidates: ['MINE.md'],
    },
    run: async (world) => void (await world.turn(read('d/f'), 'x')),
  },
  'no local additions': {
    files: { 'AGENTS.md': 'Root.\n', 'AGENTS.local.md': 'Local.\n' },
    config: { localInstructionFileCandidates: [] },
    run: async (world) => void (await world.turn('x')),
  },
  'local additions': {
    files: { 'AGENTS.local.md': 'Local.\n', 'AGENTS.md': 'Root.\n', 'CLAUDE.local.md': 'Claude, local.\n' },
    run: async (world) => void (await world.turn('x')),
  },
  'equal siblings, after trimming': {
    files: { 'AGENTS.md': 'Root.\n', 'CLAUDE.md': '\n Root.', 'AGENTS.local.md': 'Root.' },
    run: async (world) => void (await world.turn('x')),
  },
  'a sibling that becomes equal, and differs again': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      world.write('CLAUDE.md', ' Root.')
      await world.turn('x')
      world.write('CLAUDE.md', 'Claude.')
      await world.turn('x')
    },
  },
  'a sibling that is a link to the first': {
    files: { 'AGENTS.md': 'Root.\n' },
    run: async (world) => {
      world.link('CLAUDE.md', 'AGENTS.md')
      await world.turn('x')
    },
  },
  'a link to a file outside of the project': {
    run: async (world) => {
      world.write('../rules.md', 'Rules.\n')
      world.link('AGENTS.md', '../rules.md')
      await world.turn('x')
      world.write('../rules.md', 'Rules, new.\n')
      await world.turn('x')
      world.remove('../rules.md')
      await world.turn('x')
    },
  },
  'a dead link and a directory in the place of a file': {
    files: { 'CLAUDE.md/f': '', 'AGENTS.local.md': 'Local.\n' },
    run: async (world) => {
      world.link('AGENTS.md', 'nowhere')
      await world.turn('x')
    },
  },
  'an edit, a removal and a return': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root, new.\n')
      await world.turn('x')
      world.remove('AGENTS.md')
      await world.turn('x')
      world.write('AGENTS.md', 'Root, new.\n')
      await world.turn('x')
      await world.turn('x')
    },
  },
  'an edit and back between two requests': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root, new.\n')
      world.write('AGENTS.md', 'Root.\n')
      await world.turn('x')
    },
  },
  'equal bytes written again, and another mode': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root.\n')
      world.mode('CLAUDE.md', 0o755)
      await world.turn('x')
    },
  },
  'an edit within a turn': {
    files: NESTED,
    run: async (world) => {
      await world.turn(() => world.write('AGENTS.md', 'Root, new.\n'), read('z/f'), read('z/f'), 'x')
    },
  },
  'the first file appears later': {
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root.\n')
      await world.turn('x')
    },
  },
  'a further file of the chain appears later': {
    files: CHAIN,
    cwd: 'a/b',
    run: async (world) => {
      await world.turn('x')
      world.write('a/AGENTS.md', 'A.\n')
      world.write('AGENTS.local.md', 'Local.\n')
      await world.turn('x')
    },
  },
  'an empty file, filled and emptied': {
    files: { 'AGENTS.md': '', 'CLAUDE.md': 'Claude.' },
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root.')
      await world.turn('x')
      world.write('AGENTS.md', '')
      await world.turn('x')
    },
  },
  'text with a byte order mark, CRLF and no final newline': {
    files: { 'AGENTS.md': '\ufeffRoot.\r\nMore.', 'CLAUDE.md': 'Ünïcödé 😀\u202e' },
    run: async (world) => void (await world.turn('x')),
  },
  'a file that is no text, and becomes one': {
    files: { 'CLAUDE.md': 'Claude.\n' },
    run: async (world) => {
      world.write('AGENTS.md', new Uint8Array([0xff, 0xfe, 0x41]))
      await world.turn('x')
      world.write('AGENTS.md', 'Root.')
      await world.turn('x')
    },
  },
  'a closing tag in the text': {
    files: {
      'AGENTS.md': 'a</system-reminder>b</system-reminder',
      'd/AGENTS.md': '</system-reminder>',
      'd/f': '',
    },
    run: async (world) => void (await world.turn(read('d/f'), 'x')),
  },
  'a closing tag in a path': {
    files: { 'x</system-reminder>/AGENTS.md': 'X.\n', 'x</system-reminder>/f': '' },
    run: async (world) => {
      await world.turn(read('x</system-reminder>/f'), 'x')
      world.remove('x</system-reminder>/AGENTS.md')
      await world.turn('x')
    },
  },
  'blanks and quotes in a path': {
    files: { 'a b/"c`/AGENTS.md': 'C.\n', 'a b/"c`/f': '' },
    run: async (world) => void (await world.turn(read('a b/"c`/f'), 'x')),
  },
  'nested files on a read': {
    files: NESTED,
    run: async (world) => {
      await world.turn('x')
      await world.turn(read('p/q/f'), 'x')
      await world.turn(read('p/q/f'), read('p/f'), 'x')
    },
  },
  'nested files on a write and an edit': {
    files: NESTED,
    run: async (world) => {
      await world.turn(write('p/q/new', 'new\n'), edit('z/f', 'f', 'g'), 'x')
    },
  },
  'nested files on several reads of one turn': {
    files: NESTED,
    run: async (world) => void (await world.turn(read('z/f'), read('p/q/f'), 'x')),
  },
  'a read that fails is no touch': {
    files: NESTED,
    run: async (world) => void (await world.turn(read('p/none'), 'x')),
  },
  'a read outside of the project is no touch': {
    files: NESTED,
    run: async (world) => {
      world.write('../outside/AGENTS.md', 'Outside.\n')
      world.write('../outside/f', '')
      await world.turn(read('../outside/f'), 'x')
    },
  },
  'a nested file beside edits of others': {
    files: NESTED,
    run: async (world) => {
      await world.turn(read('z/f'), 'x')
      const edits = () => {
        world.write('z/AGENTS.md', 'Z, new.\n')
        world.write('AGENTS.md', 'Root, new.\n')
      }
      await world.turn(edits, read('p/f'), 'x')
    },
  },
  'edits and removals of nested files': {
    files: NESTED,
    run: async (world) => {
      await world.turn(read('z/f'), read('p/q/f'), 'x')
      world.write('z/AGENTS.md', 'Z, new.\n')
      world.remove('p/AGENTS.md')
      world.write('p/q/AGENTS.local.md', 'Q, new.\n')
      await world.turn('x')
      world.write('p/AGENTS.md', 'P, back.\n')
      await world.turn('x')
    },
  },
  'a nested directory is removed': {
    files: NESTED,
    run: async (world) => {
      await world.turn(read('p/q/f'), 'x')
      world.remove('p')
      await world.turn('x')
    },
  },
  'the agent writes an instruction file itself': {
    files: NESTED,
    run: async (world) => {
      await world.turn(read('AGENTS.md'), write('AGENTS.md', 'Own.\n'), 'x')
      await world.turn(write('new/AGENTS.md', 'Own, nested.\n'), 'x')
    },
  },
  'a new process and nothing changed': {
    files: NESTED,
    run: async (world) => {
      await world.turn(read('p/q/f'), 'x')
      await world.restart()
      await world.turn('x')
      await world.turn(read('p/q/f'), 'x')
    },
  },
  'a new process after edits, removals and additions': {
    files: { ...CHAIN, ...NESTED },
    cwd: 'a/b',
    run: async (world) => {
      world.writeGlobal('Global.\n')
      await world.turn('x')
      world.write('AGENTS.md', 'Root, new.\n')
      world.remove('CLAUDE.md')
      world.write('a/CLAUDE.md', 'A.\n')
      world.removeGlobal()
      await world.restart()
      await world.turn('x')
      await world.turn('x')
    },
  },
  'a new process with another budget': {
    files: NESTED,
    run: async (world) => {
      await world.turn(read('z/f'), 'x')
      await world.restart({ config: { maxBytes: 9_999 } })
      await world.turn('x')
      await world.turn('x')
    },
  },
  'a new process with other candidates and a file gone': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      world.remove('AGENTS.md')
      await world.restart({ config: { instructionFileCandidates: ['AGENTS.md', 'CLAUDE.md', 'X.md'] } })
      await world.turn('x')
    },
  },
  'a new process with other settings and no file left': {
    files: { 'AGENTS.md': 'Root.\n' },
    run: async (world) => {
      await world.turn('x')
      world.remove('AGENTS.md')
      await world.restart({ config: { maxBytes: 9_999 } })
      await world.turn('x')
      world.write('AGENTS.md', 'Root.\n')
      await world.turn('x')
    },
  },
  'a compaction without nested files': {
    files: CHAIN,
    cwd: 'a/b',
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root, new.\n')
      await world.turn('x')
      await world.compact()
      await world.turn('x')
      await world.turn('x')
    },
  },
  'a compaction before a new process': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      await world.compact()
      await world.restart()
      await world.turn('x')
    },
  },
  'a compaction and every file gone': {
    files: { 'AGENTS.md': 'Root.\n' },
    run: async (world) => {
      await world.turn('x')
      world.remove('AGENTS.md')
      await world.compact()
      await world.turn('x')
    },
  },
  'a rejected first step': {
    files: CHAIN,
    run: async (world) => {
      await world.reject(true)
      await world.turn('x')
      await world.reject(false)
      await world.turn('x')
      await world.turn('x')
    },
  },
  'a rejected later step': {
    files: CHAIN,
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'Root, new.\n')
      await world.reject(true)
      await world.turn('x')
      await world.reject(false)
      await world.turn('x')
    },
  },
  'a baseline above its budget': {
    files: { 'AGENTS.md': 'r'.repeat(500), 'a/AGENTS.md': 'a'.repeat(300), 'a/b/AGENTS.md': 'b'.repeat(100) },
    cwd: 'a/b',
    config: { maxBytes: 700 },
    run: async (world) => {
      await world.turn('x')
      await world.turn('x')
      world.write('AGENTS.md', 'R'.repeat(500))
      await world.turn('x')
      world.write('a/b/AGENTS.md', 'B'.repeat(100))
      await world.turn('x')
    },
  },
  'a baseline above its budget, and a new process': {
    files: { 'AGENTS.md': 'r'.repeat(500), 'a/AGENTS.md': 'a'.repeat(100) },
    cwd: 'a',
    config: { maxBytes: 700 },
    run: async (world) => {
      await world.turn('x')
      await world.restart()
      await world.turn('x')
    },
  },
  'a touch above the budget': {
    files: { ...NESTED, 'p/AGENTS.md': 'p'.repeat(700), 'p/CLAUDE.md': 'c'.repeat(500) },
    config: { maxBytes: 1_300 },
    run: async (world) => void (await world.turn(read('p/f'), read('p/f'), 'x')),
  },
  'a file above the limit of one source': {
    files: { 'AGENTS.md': 'r'.repeat(101), 'CLAUDE.md': 'Claude.\n' },
    config: { maxSourceBytes: 100 },
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'r'.repeat(100))
      await world.turn('x')
    },
  },
  'turned off': {
    files: CHAIN,
    config: { maxBytes: 0 },
    run: async (world) => void (await world.turn(read('a/b/f'), 'x')),
  },
}

describe('the same as the loader of the host', () => {
  it.each(Object.entries(SAME))('%s', async (name, scenario) => {
    const [ours, theirs] = [await play(name, mountRoom, scenario), await play(name, mountStock, scenario)]
    expect(comparable(ours)).toEqual(comparable(theirs))
  })
})

describe('the whole bundle tells the same', () => {
  it.each(Object.entries(SAME))('%s', async (name, scenario) => {
    const ours = await play(name, mountBundle, scenario)
    expect(comparable(ours)).toEqual(comparable(await play(name, mountStock, scenario)))
  })
})

interface Difference extends Scenario {
  readonly why: string
  readonly ours: readonly (readonly string[])[]
  readonly theirs: readonly (readonly string[])[]
}

const DIFFERENT: Readonly<Record<string, Difference>> = {
  'nested files after a compaction': {
    why: 'they were in force, so they come back at once, not at the next touch',
    files: NESTED,
    run: async (world) => {
      await world.turn(read('z/f'), 'x')
      await world.compact()
      await world.turn('x')
    },
    ours: [
      ['baseline set .:AGENTS.md', 'set z:AGENTS.md'],
      ['baseline set .:AGENTS.md', 'set z:AGENTS.md'],
    ],
    theirs: [['baseline set .:AGENTS.md', 'set z:AGENTS.md'], ['baseline set .:AGENTS.md']],
  },
  'a new file in a nested directory that was visited before': {
    why: 'a directory that was reached counts from then on',
    files: { 'AGENTS.md': 'Root.\n', 'd/f': '' },
    run: async (world) => {
      await world.turn(read('d/f'), 'x')
      world.write('d/AGENTS.md', 'D.\n')
      await world.turn('x')
    },
    ours: [['baseline set .:AGENTS.md'], ['set d:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md'], []],
  },
  'the first of two equal siblings goes': {
    why: 'the rules still apply, under the other name, so they are not just told to be gone',
    files: { 'AGENTS.md': 'Root.\n', 'CLAUDE.md': 'Root.\n' },
    run: async (world) => {
      await world.turn('x')
      world.remove('AGENTS.md')
      await world.turn('x')
      await world.turn('x')
      world.write('AGENTS.md', 'Root again.\n')
      await world.turn('x')
    },
    ours: [['baseline set .:AGENTS.md'], ['remove .:AGENTS.md', 'set .:CLAUDE.md'], [], ['set .:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md'], ['remove .:AGENTS.md'], [], ['set .:AGENTS.md']],
  },
  'a directory beside the cwd': {
    why: 'every directory of the project counts, not only those below the cwd',
    files: { 'AGENTS.md': 'Root.\n', 'app/f': '', 'lib/AGENTS.md': 'Lib.\n', 'lib/f': '' },
    cwd: 'app',
    run: async (world) => void (await world.turn(read('../lib/f'), 'x')),
    ours: [['baseline set .:AGENTS.md', 'set lib:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md']],
  },
  'a project directory called user-global': {
    why: 'its scope is not that of the user-global file',
    files: { 'user-global/AGENTS.md': 'Project.\n', 'user-global/f': '' },
    run: async (world) => {
      world.writeGlobal('Global.\n')
      await world.turn(read('user-global/f'), 'x')
    },
    ours: [['baseline set user-global:AGENTS.md', 'set ./user-global:AGENTS.md']],
    theirs: [['baseline set user-global:AGENTS.md']],
  },
  'a file in node_modules': {
    why: 'instructions of a dependency are not instructions for this project',
    files: { 'AGENTS.md': 'Root.\n', 'node_modules/m/AGENTS.md': 'M.\n', 'node_modules/m/f': '' },
    run: async (world) => void (await world.turn(read('node_modules/m/f'), 'x')),
    ours: [['baseline set .:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md', 'set node_modules/m:AGENTS.md']],
  },
  'a file in force that grows above the limit, beside an edited sibling': {
    why: 'a directory with an unreadable file in force keeps its last good state as a whole',
    files: { 'AGENTS.md': 'Root.\n', 'CLAUDE.md': 'Claude.\n' },
    config: { maxSourceBytes: 100 },
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'r'.repeat(101))
      world.write('CLAUDE.md', 'Claude, new.\n')
      await world.turn('x')
    },
    ours: [['baseline set .:AGENTS.md', 'baseline set .:CLAUDE.md'], []],
    theirs: [['baseline set .:AGENTS.md', 'baseline set .:CLAUDE.md'], ['replace .:CLAUDE.md']],
  },
  'one file under two names in different directories': {
    why: 'one file is told once',
    files: { 'AGENTS.md': 'Root.\n', 'd/f': '' },
    run: async (world) => {
      world.link('d/AGENTS.md', '../AGENTS.md')
      await world.turn(read('d/f'), 'x')
    },
    ours: [['baseline set .:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md', 'set d:AGENTS.md']],
  },
  'a linked directory of the project': {
    why: 'a directory of the project has one name, and its files are told once',
    files: { 'q/AGENTS.md': 'Q.\n', 'q/f': '' },
    run: async (world) => {
      world.link('l', 'q')
      await world.turn(read('l/f'), read('q/f'), 'x')
    },
    ours: [['set q:AGENTS.md']],
    theirs: [['set l:AGENTS.md', 'set q:AGENTS.md']],
  },
  'a cwd that is a link into the middle of a project': {
    why: 'without a marker on the way that was given, the real one is tried',
    files: { 'AGENTS.md': 'Root.\n', 'q/AGENTS.md': 'Q.\n' },
    cwd: '../middle',
    run: async (world) => {
      world.link('../middle', 'project/q')
      await world.turn('x')
    },
    ours: [['baseline set .:AGENTS.md', 'baseline set q:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md']],
  },
  'what a budget left out, and then everything would fit': {
    why: 'what was left out stays eligible',
    files: { 'AGENTS.md': 'r'.repeat(200), 'a/AGENTS.md': 'a'.repeat(300) },
    cwd: 'a',
    config: { maxBytes: 700 },
    run: async (world) => {
      await world.turn('x')
      world.write('a/AGENTS.md', 'a')
      await world.turn('x')
    },
    ours: [['baseline set a:AGENTS.md'], ['set .:AGENTS.md', 'replace a:AGENTS.md']],
    theirs: [['baseline set a:AGENTS.md'], ['replace a:AGENTS.md']],
  },
  'what a new baseline would leave out, in a new process': {
    why: 'the model still has the text, and the file still applies',
    files: { 'a/AGENTS.md': 'a'.repeat(300) },
    cwd: 'a',
    config: { maxBytes: 700 },
    run: async (world) => {
      await world.turn('x')
      world.write('AGENTS.md', 'r'.repeat(300))
      await world.turn('x')
      await world.restart()
      await world.turn('x')
    },
    ours: [['baseline set a:AGENTS.md'], ['set .:AGENTS.md'], []],
    theirs: [['baseline set a:AGENTS.md'], ['set .:AGENTS.md'], ['remove .:AGENTS.md']],
  },
  'a touch above the budget, in the following turns': {
    why: 'what a message left out comes with the next ones, the broader directory too',
    files: { ...NESTED, 'p/AGENTS.md': 'p'.repeat(700), 'p/q/AGENTS.local.md': 'q'.repeat(500) },
    config: { maxBytes: 1_000 },
    run: async (world) => {
      await world.turn(read('p/q/f'), 'x')
      await world.turn('x')
      await world.turn('x')
    },
    ours: [['baseline set .:AGENTS.md', 'set p/q:AGENTS.local.md'], ['set p:CLAUDE.md'], ['set p:AGENTS.md']],
    theirs: [['baseline set .:AGENTS.md', 'set p/q:AGENTS.local.md'], [], []],
  },
}

describe('not the same as the loader of the host, on purpose', () => {
  it.each(Object.entries(DIFFERENT))('%s', async (name, { why, ours, theirs, ...scenario }) => {
    const told = {
      why,
      ours: changes(await play(name, mountRoom, scenario)),
      theirs: changes(await play(name, mountStock, scenario)),
    }
    expect(told).toEqual({ why, ours, theirs })
  })
})

describe('a session that one began and the other continues', () => {
  const scenarios: Readonly<Record<string, Scenario & { readonly edits: (world: World) => void }>> = {
    'nothing changed': { files: NESTED, run: async () => undefined, edits: () => undefined },
    'edits, removals and additions': {
      files: { ...CHAIN, ...NESTED },
      run: async () => undefined,
      edits: (world) => {
        world.write('AGENTS.md', 'Root, new.\n')
        world.remove('CLAUDE.md')
        world.write('p/q/AGENTS.local.md', 'Q, new.\n')
        world.write('AGENTS.local.md', 'Local.\n')
      },
    },
  }
  const continued = async (first: Mount, second: Mount, name: string) => {
    const { edits, ...options } = scenarios[name] ?? { edits: () => undefined }
    const world = new World(first, options)
    await world.turn(read(world.path('p/q/f')), 'x')
    edits(world)
    await world.restart({ mount: second })
    await world.turn('x')
    await world.turn(read(world.path('p/q/f')), 'x')
    return world.turns
  }

  it.each(Object.keys(scenarios))('goes on without a second baseline: %s', async (name) => {
    const alone = comparable(await continued(mountRoom, mountRoom, name)).slice(1)
    expect(comparable(await continued(mountStock, mountRoom, name)).slice(1)).toEqual(alone)
    expect(comparable(await continued(mountRoom, mountStock, name)).slice(1)).toEqual(alone)
  })
})

describe('together with the loader of the host', () => {
  /** What is in force after all that was told, one message after the other. */
  const inForce = (turns: readonly (readonly Told[])[]) => {
    const standing = new Standing(turns.flat().map(({ source }) => source))
    return Object.fromEntries(
      [...standing.words].flatMap(([key, { digest }]) =>
        digest === undefined ? [] : [[key, digest] as const],
      ),
    )
  }

  /** Where what the other loader has told stands, although the room alone would have told otherwise. */
  const THEIRS: readonly string[] = [
    'a file in force that grows above the limit, beside an edited sibling',
    'a cwd that is a link into the middle of a project',
    'what a new baseline would leave out, in a new process',
  ]

  it.each(Object.entries<Scenario>({ ...SAME, ...DIFFERENT }))(
    'nothing is told twice: %s',
    async (name, scenario) => {
      const told = await play(name, mountBoth, scenario)
      expect(told.flat().filter(({ source }) => source.baseline)).toHaveLength(
        (await play(name, mountStock, scenario)).flat().filter(({ source }) => source.baseline).length,
      )
      for (const turn of told) {
        const texts = turn.flatMap(({ source }) =>
          source.changes.flatMap(({ scope, digest }) => (digest === undefined ? [] : [scope + digest])),
        )
        expect(texts).toEqual([...new Set(texts)])
      }
      expect(inForce(told)).toMatchObject(
        inForce(await play(name, THEIRS.includes(name) ? mountStock : mountRoom, scenario)),
      )
    },
  )
})
