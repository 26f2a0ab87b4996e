/**
 * The size of our messages over a mix of typical scenarios: `node test/bench/messages.ts`.
 *
 * Beside each stands what a plain list of the changed names would take.
 */
import { fileURLToPath } from 'node:url'
import { checkConfig } from '../../src/config.ts'
import { bytesOf } from '../../src/notice/escape.ts'
import type { HeadMove, HeadPlace } from '../../src/notice/git-head.ts'
import { headLine } from '../../src/notice/head-line.ts'
import { differenceOf } from '../../src/notice/hunk.ts'
import type { Change } from '../../src/notice/line.ts'
import {
  activationReminder,
  compactionReminder,
  degradedNotice,
  recoveredNotice,
  resumeReminder,
} from '../../src/notice/reminders.ts'
import { frame, renderChanges } from '../../src/notice/render.ts'
import { table } from './numbers.ts'

const { notice: limits } = checkConfig({})

interface Scenario {
  readonly name: string
  readonly changes?: readonly Change[]
  readonly head?: HeadMove
  readonly unlisted?: number
  /** A text that names nothing. */
  readonly fixed?: string
}

export interface MessageSize {
  readonly name: string
  readonly paths: number
  readonly bytes: number
  /** Bytes of a plain list of the same names, all its messages together. */
  readonly listBytes: number
  readonly listMessages: number
}

export interface MessageSizes {
  readonly budget: number
  readonly median: number
  readonly max: number
  readonly listMedian: number
  readonly listMax: number
  readonly overBudget: readonly string[]
  readonly messages: readonly MessageSize[]
}

type Action = Change['action']

const file = (path: string, action: Action = 'modified', more: Partial<Change> = {}): Change => ({
  key: `/${path}`,
  action,
  path,
  used: false,
  ...more,
})

const used = (path: string, action: Action = 'modified', more: Partial<Change> = {}): Change =>
  file(path, action, { used: true, ...more })

const many = (count: number, pathOf: (n: number) => string, action: Action = 'modified'): Change[] =>
  Array.from({ length: count }, (_, n) => file(pathOf(n), action))

const source = (lines: number): string[] =>
  Array.from({ length: lines }, (_, n) => `export const value${n} = compute(input, ${n})`)

const joined = (lines: readonly string[]): string => `${lines.join('\n')}\n`

/** A used source file of which some lines are others now. */
const rewritten = (path: string, lines: number, changed: readonly number[], more: Partial<Change> = {}) => {
  const before = source(lines)
  const after = before.map((line, n) => (changed.includes(n) ? line.replace('compute', 'calculate') : line))
  return used(path, 'modified', { difference: differ(joined(before), joined(after)), ...more })
}

const differ = (before: string, after: string) =>
  differenceOf(before, after, { ...limits, contextLines: limits.hunkContextLines })

const commit = (digit: string): string => digit.repeat(40)
const on = (branch: string, digit: string): HeadPlace => ({
  branch,
  detached: false,
  commit: commit(digit),
})

const move = (kind: HeadMove['kind'], action: HeadMove['action'], to: HeadPlace): HeadMove => ({
  kind,
  from: on('main', 'a'),
  to,
  operation: undefined,
  action,
  steps: 1,
  message: undefined,
})

const inTree = (n: number): string => `packages/module${n % 60}/src/component${n}.ts`
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n)
const long = (n: number): string => `docs/${`a rather long directory name ${n}/`.repeat(12)}page.md`

const fixed = (name: string, { text }: { readonly text: string }): Scenario => ({ name, fixed: text })

const scenarios: readonly Scenario[] = [
  { name: 'one line of a used file', changes: [rewritten('src/app.ts', 40, [12])] },
  { name: 'one line of a file with 4,000 lines', changes: [rewritten('src/large.ts', 4_000, [1_999])] },
  { name: 'three places of a used file', changes: [rewritten('src/app.ts', 200, [4, 90, 160])] },
  { name: 'a used file formatted anew', changes: [rewritten('src/app.ts', 400, range(400))] },
  { name: 'a used file replaced by another one', changes: [replaced('src/app.ts')] },
  { name: 'other line endings', changes: [withEndings('src/app.ts')] },
  { name: 'a used file that is not shown', changes: [used('.env')] },
  { name: 'a used file deleted', changes: [used('src/old.ts', 'deleted')] },
  { name: 'a used file that cannot be looked at', changes: [used('src/a.ts', 'unverified')] },
  { name: 'a used file as it was again', changes: [used('src/a.ts', 'restored')] },
  { name: 'an own edit undone', changes: [used('src/a.ts', 'undone')] },
  { name: 'a used file moved', changes: [used('src/a.ts', 'moved', { to: 'src/b.ts' })] },
  { name: 'a directory moved', changes: [used('src/', 'moved', { to: 'lib/', alongside: 300 })] },
  { name: 'an edit by another session', changes: [rewritten('src/app.ts', 40, [3], byOther())] },
  { name: 'a file that keeps changing', changes: [rewritten('src/log.ts', 40, [3], { untold: 7 })] },
  { name: 'a new file', changes: [file('notes.md', 'created')] },
  { name: 'a new file beside used ones', changes: [file('src/new.ts', 'created', { near: true })] },
  { name: 'a used file and three others', changes: [rewritten('src/app.ts', 40, [3]), ...many(3, inTree)] },
  { name: '40 files that nobody used', changes: many(40, inTree) },
  { name: '400 files, one used', changes: [rewritten('src/app.ts', 40, [3]), ...many(400, inTree)] },
  { name: '60 files of an own command', changes: ofOwnCommand(60) },
  { name: 'five used files formatted', changes: fiveUsed() },
  { name: 'git switch, 3,000 files, 4 used', changes: switched(), head: to('checkout') },
  { name: 'git pull, 120 files', changes: many(120, inTree), head: pulled() },
  { name: 'git commit, no file', head: moved('commit') },
  { name: 'a tree of 10,000 files unpacked', changes: many(10_000, (n) => `vendor/${inTree(n)}`, 'created') },
  { name: '70,000 names that were not kept', unlisted: 70_000 },
  { name: '50 very long names', changes: many(50, long, 'created') },
  fixed('resumed', resumeReminder),
  fixed('compacted', compactionReminder),
]

/** Those fixed notices that are no scenario of a change have a budget all the same. */
const others = [
  activationReminder,
  recoveredNotice,
  degradedNotice({
    code: 'watch-limit',
    reason: 'the system allows no more watches',
    remedy: 'raise the limit of watches',
  }),
]

function replaced(path: string): Change {
  const after = Array.from({ length: 900 }, (_, n) => `something else ${n * 7}`)
  return used(path, 'modified', { difference: differ(joined(source(900)), joined(after)) })
}

function withEndings(path: string): Change {
  const text = joined(source(80))
  return used(path, 'modified', { difference: differ(text, text.replaceAll('\n', '\r\n')) })
}

function byOther(): Partial<Change> {
  return { by: 'session "Tidy up the tests", 12 s ago' }
}

function ofOwnCommand(count: number): Change[] {
  return many(count, (n) => `out/chunk${n}.js`, 'created').map((change) => ({ ...change, ownCommand: true }))
}

function fiveUsed(): Change[] {
  return range(5).map((n) => rewritten(`src/part${n}.ts`, 60, [n, n + 20, n + 40]))
}

function switched(): Change[] {
  const read = range(4).map((n) => rewritten(`packages/module${n}/src/read${n}.ts`, 40, [n]))
  const near = many(20, (n) => `packages/module0/src/near${n}.ts`)
  return [...read, ...near.map((change) => ({ ...change, near: true })), ...many(2_976, inTree)]
}

function to(action: HeadMove['action']): HeadMove {
  return move('switched', action, on('feature/new-parser', 'b'))
}

function pulled(): HeadMove {
  return moved('pull')
}

function moved(action: HeadMove['action']): HeadMove {
  return move('moved', action, on('main', 'b'))
}

const textOf = ({ changes = [], head, unlisted = 0, fixed: text }: Scenario): string => {
  if (text !== undefined) return text
  const headline =
    head &&
    headLine(head, {
      paths: changes.length,
      ownCommand: false,
      ownFilesKept: false,
      maxPathBytes: limits.maxPathBytes,
    })
  return renderChanges(changes, unlisted, limits, headline).text
}

const NAMES_IN_LIST = 50
const LIST_TITLE = 'These files changed outside of this session:'

/** A plain list of names: as many messages as it takes, each with its frame. */
const plainList = (changes: readonly Change[]): { bytes: number; messages: number } => {
  const names = changes.flatMap(({ path, to: target, alongside = 0 }) => [
    path,
    ...(target === undefined ? [] : [target]),
    // A list knows no moves: each file is there twice, in its old place and in its new one.
    ...range(alongside).flatMap((n) => [`${path}part${n}.ts`, `${target ?? path}part${n}.ts`]),
  ])
  let bytes = 0
  let messages = 0
  for (let at = 0; at < names.length; at += NAMES_IN_LIST) {
    const lines = names.slice(at, at + NAMES_IN_LIST).map((name) => `- ${JSON.stringify(name)}`)
    bytes += bytesOf(frame([LIST_TITLE, ...lines]))
    messages += 1
  }
  return { bytes, messages }
}

const medianOf = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
}

/** Render every scenario and measure it. */
export const measureMessages = (): MessageSizes => {
  const messages = scenarios.map((scenario) => {
    const list = plainList(scenario.changes ?? [])
    return {
      name: scenario.name,
      paths: (scenario.changes?.length ?? 0) + (scenario.unlisted ?? 0),
      bytes: bytesOf(textOf(scenario)),
      listBytes: list.bytes,
      listMessages: list.messages,
    }
  })
  const sizes = messages.map(({ bytes }) => bytes)
  // Where a list has nothing to name, there is nothing to compare with.
  const lists = messages.map(({ listBytes }) => listBytes).filter((bytes) => bytes > 0)
  const budget = limits.maxNoticeBytes
  return {
    budget,
    median: medianOf(sizes),
    max: Math.max(...sizes),
    listMedian: medianOf(lists),
    listMax: Math.max(...lists),
    overBudget: [
      ...messages.filter(({ bytes }) => bytes > budget).map(({ name }) => name),
      ...others.filter(({ text }) => bytesOf(text) > budget).map(({ summary }) => summary),
    ],
    messages,
  }
}

/** Measure and print. @returns the figures; `overBudget` must be empty. */
export const reportMessages = (): MessageSizes => {
  const sizes = measureMessages()
  const { budget, median, max, listMedian, listMax, overBudget, messages } = sizes
  console.log(
    table(
      ['scenario', 'paths', 'bytes', 'plain list', 'in messages'],
      messages.map(({ name, paths, bytes, listBytes, listMessages }) => [
        name,
        paths,
        bytes,
        listMessages === 0 ? '-' : listBytes,
        listMessages === 0 ? '-' : listMessages,
      ]),
    ),
  )
  console.log(
    `\n  ${messages.length} messages: median ${median} bytes, maximum ${max} of ${budget} allowed. A plain list of ` +
      `names (where there are any): median ${listMedian}, maximum ${listMax}.` +
      `\n  ${overBudget.length === 0 ? 'No message is above its budget.' : `ABOVE THE BUDGET: ${overBudget.join(', ')}`}`,
  )
  return sizes
}

if (process.argv[1] === fileURLToPath(import.meta.url) && reportMessages().overBudget.length > 0)
  process.exitCode = 1
