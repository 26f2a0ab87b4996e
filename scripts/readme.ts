// Writes the generated parts of README.md: the settings and the messages, from the code that they come
// from.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeConfig } from '../src/config.ts'
import { renderBaseline, renderChanges as renderTransitions } from '../src/instructions/render.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  instructionsChangedNotice,
  recoveredNotice,
  resumeReminder,
  uncoveredNotice,
} from '../src/notice/reminders.ts'
import { headLine } from '../src/notice/head-line.ts'
import { differenceOf } from '../src/notice/hunk.ts'
import { renderResume, type ResumeFacts } from '../src/notice/resume.ts'
import { renderChanges, type Change, type RenderedNotice } from '../src/notice/render.ts'
import { faultOf } from '../src/watch/faults.ts'

const limits = { maxNoticePaths: 50, maxNoticeBytes: 4_096, maxPathBytes: 300 }

const used: Change[] = [
  { action: 'modified', path: 'src/a.ts', used: true },
  { action: 'deleted', path: '../lib/b.ts', used: true },
]
const others: Change[] = [{ action: 'created', path: 'docs/notes.md', used: false }]
const many: Change[] = Array.from({ length: 400 }, (_, index) => ({
  action: 'modified',
  path: `tree/d${index % 8}/file-${index}.txt`,
  used: false,
}))

const before = 'export const a = 1\nexport const b = 1\nexport const c = 1\n'
const hunkLimits = { maxHunkBytes: 1_200, maxLineBytes: 300, contextLines: 1 }

const compared: Change[] = [
  {
    action: 'modified',
    path: 'src/a.ts',
    used: true,
    difference: differenceOf(before, before.replace('b = 1', 'b = 2'), hunkLimits),
  },
  {
    action: 'modified',
    path: 'src/crlf.ts',
    used: true,
    difference: differenceOf(before, before.replaceAll('\n', '\r\n'), hunkLimits),
  },
]

const attributed: Change[] = [
  { action: 'modified', path: 'src/a.ts', used: true, by: 'session "session-4711", 40 s ago' },
  { action: 'modified', path: 'src/b.ts', used: true, ownCommand: true },
  { action: 'created', path: 'out/a.js', used: false, ownCommand: true },
]

const shaped: Change[] = [
  { action: 'moved', path: 'src/old.ts', to: 'src/new.ts', used: true },
  { action: 'moved', path: 'lib/', to: 'core/', used: true, alongside: 300 },
  { action: 'undone', path: 'src/a.ts', used: true },
  { action: 'restored', path: 'src/b.ts', used: true },
  { action: 'modified', path: 'log.txt', used: true, untold: 7 },
  { action: 'modified', path: 'plan', used: true, isDirectory: true },
]

const resumed: ResumeFacts = {
  origin: 'resumed',
  changes: [],
  unchanged: 20,
  unseen: 0,
  unknown: [],
  unchecked: 0,
}
const resumeLimits = { maxResumePaths: 50, maxResumeBytes: 4_096, maxPathBytes: 300 }
const lost: Change[] = [
  { action: 'modified', path: 'src/a.ts', used: true },
  { action: 'modified', path: 'src/b.ts', used: true },
  { action: 'modified', path: 'src/c.ts', used: true },
  { action: 'deleted', path: 'src/d.ts', used: true },
]

const switched = headLine(
  {
    kind: 'switched',
    from: { branch: 'main', detached: false, commit: '1f0c2b3a4d5e' },
    to: { branch: 'feature', detached: false, commit: '9a8b7c6d5e4f' },
    operation: undefined,
    action: 'checkout',
    steps: 1,
    message: undefined,
  },
  { paths: 3_000, ownCommand: false, ownFilesKept: true, maxPathBytes: limits.maxPathBytes },
)

const mergeBegun = headLine(
  {
    kind: 'started',
    from: { branch: 'main', detached: false, commit: '1f0c2b3a4d5e' },
    to: { branch: 'main', detached: false, commit: '1f0c2b3a4d5e' },
    operation: { kind: 'merge', ref: undefined },
    action: undefined,
    steps: undefined,
    message: undefined,
  },
  { paths: 2, ownCommand: true, ownFilesKept: false, maxPathBytes: limits.maxPathBytes },
)

const messages: readonly [string, string, RenderedNotice][] = [
  ['changes', 'Files that the session has used, and others', renderChanges([...used, ...others], 0, limits)],
  ['changes', 'Only files that it has not used', renderChanges(others, 0, limits)],
  [
    'changes',
    'What changed in small text files whose read the model still sees',
    renderChanges(compared, 0, limits),
  ],
  [
    'changes',
    'Who changed it, where that is known',
    renderChanges(attributed, 0, { ...limits, maxOwnCommandPaths: 5 }),
  ],
  ['changes', 'Shapes of their own', renderChanges(shaped, 0, limits)],
  ['changes', 'A move of HEAD', renderChanges([...used, ...many], 0, limits, switched)],
  ['changes', 'Something that git has begun while HEAD stays', renderChanges(used, 0, limits, mergeBegun)],
  [
    'changes',
    'Many, here with `maxNoticePaths: 2`',
    renderChanges(many, 0, { ...limits, maxNoticePaths: 2 }),
  ],
  [
    'changes',
    'A used file that the filesystem service cannot answer for',
    renderChanges([{ action: 'unverified', path: 'src/a.ts', used: true }], 0, limits),
  ],
  [
    'resume',
    'A resumed session, some of whose files changed meanwhile',
    renderResume({ ...resumed, changes: lost, unchanged: 16 }, resumeLimits),
  ],
  ['resume', 'A resumed session, none of whose files changed', renderResume(resumed, resumeLimits)],
  [
    'resume',
    'A resumed session whose history was compacted, of which something is not known, and with more files than the first request waits for',
    renderResume(
      { ...resumed, changes: lost.slice(0, 1), unseen: 4, unknown: ['src/e.ts'], unchecked: 3_000 },
      resumeLimits,
    ),
  ],
  [
    'resume',
    'What is told of the rest when it is checked',
    renderResume({ ...resumed, origin: 'rest', changes: lost.slice(3), unchanged: 2_999 }, resumeLimits),
  ],
  [
    'resume',
    'A session that begins with the history of another one',
    renderResume({ ...resumed, origin: 'continued' }, resumeLimits),
  ],
  ['resume', 'A resumed session that had used files, of which nothing is remembered', resumeReminder],
  ['activation', 'The plugin was mounted in the middle of such a session', activationReminder],
  ['compaction', 'The conversation was compacted', compactionReminder],
  [
    'coverage',
    'Watching is limited, here by the limit of file watches',
    degradedNotice(faultOf({ code: 'ENOSPC' })),
  ],
  [
    'coverage',
    'A part of the workspace is not watched',
    uncoveredNotice(faultOf({ code: 'ENOSPC' }), ['"packages/generated"', '2 more']),
  ],
  ['coverage', 'Watching works again', recoveredNotice],
  ['changes', 'Instruction files changed while the model gave its last answer', instructionsChangedNotice],
]

const instruction = (
  action: 'set' | 'replace' | 'remove',
  path: string,
  text: string,
): Parameters<typeof renderBaseline>[0][number] => ({
  key: path,
  change: { action, scope: path, path, digest: '' },
  directory: path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.',
  text: action === 'remove' ? undefined : text,
})

const instructionMessages: readonly [string, string, { readonly text: string }][] = [
  [
    'agent-instructions',
    'Instructions that apply from the start',
    renderBaseline([instruction('set', 'AGENTS.md', 'Run the tests.')], false, 65_536),
  ],
  [
    'agent-instructions',
    'Instructions of a directory that the session has reached',
    renderTransitions([instruction('set', 'web/AGENTS.md', 'Use the design tokens.')], 65_536),
  ],
  [
    'agent-instructions',
    'An instruction file was changed, emptied or removed',
    renderTransitions(
      [
        instruction('replace', 'AGENTS.md', 'Run the tests and the linter.'),
        instruction('replace', 'CLAUDE.md', ''),
        instruction('remove', 'web/AGENTS.md', ''),
      ],
      65_536,
    ),
  ],
]

const messagesPart = (): string =>
  [...messages, ...instructionMessages]
    .map(([category, title, { text }]) => {
      const bytes = Buffer.byteLength(text)
      return `${title} (category \`${category}\`, ${bytes} bytes, about ${Math.ceil(bytes / 4)} tokens):\n\n\`\`\`text\n${text}\n\`\`\``
    })
    .join('\n\n')

const configPart = (): string =>
  [
    // Aligned, the table would be as wide as its longest cell.
    '<!-- prettier-ignore -->',
    '| key | meaning | allowed |',
    '| --- | --- | --- |',
    ...describeConfig().map(({ key, description, allowed }) => {
      // As code: a `*` in a name would be taken for emphasis.
      const shown = allowed.replace(/\(default (.*)\)$/, '(default `$1`)')
      return `| \`${key}\` | ${description} | ${shown} |`
    }),
  ].join('\n')

const replacePart = (readme: string, name: string, content: string): string => {
  const [start, end] = [`<!-- ${name}:start -->`, `<!-- ${name}:end -->`]
  const from = readme.indexOf(start)
  const to = readme.indexOf(end)
  if (from < 0 || to < from) throw new Error(`README.md has no part "${name}"`)
  return `${readme.slice(0, from + start.length)}\n\n${content}\n\n${readme.slice(to)}`
}

/** README.md with its generated parts made anew. */
export const generateReadme = (readme: string): string =>
  replacePart(replacePart(readme, 'messages', messagesPart()), 'config', configPart())

if (process.argv[1] === import.meta.filename) {
  const path = join(import.meta.dirname, '..', 'README.md')
  writeFileSync(path, generateReadme(readFileSync(path, 'utf8')))
}
