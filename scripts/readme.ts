// Writes the generated parts of README.md: the settings and the messages, from the code that they come
// from.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeConfig } from '../src/config.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  recoveredNotice,
  resumeReminder,
} from '../src/notice/reminders.ts'
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

const messages: readonly [string, string, RenderedNotice][] = [
  ['changes', 'Files that the session has used, and others', renderChanges([...used, ...others], 0, limits)],
  ['changes', 'Only files that it has not used', renderChanges(others, 0, limits)],
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
  ['resume', 'A resumed session that had used files', resumeReminder],
  ['activation', 'The plugin was mounted in the middle of such a session', activationReminder],
  ['compaction', 'The conversation was compacted', compactionReminder],
  [
    'coverage',
    'Watching is limited, here by the limit of file watches',
    degradedNotice(faultOf({ code: 'ENOSPC' })),
  ],
  ['coverage', 'Watching works again', recoveredNotice],
]

const messagesPart = (): string =>
  messages
    .map(([category, title, { text }]) => {
      const bytes = Buffer.byteLength(text)
      return `${title} (category \`${category}\`, ${bytes} bytes, about ${Math.ceil(bytes / 4)} tokens):\n\n\`\`\`text\n${text}\n\`\`\``
    })
    .join('\n\n')

const configPart = (): string =>
  [
    '| key | meaning | allowed |',
    '| --- | --- | --- |',
    ...describeConfig().map(
      ({ key, description, allowed }) => `| \`${key}\` | ${description} | ${allowed} |`,
    ),
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
