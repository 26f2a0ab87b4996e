/**
 * The bundle at work in the real `dsh`, with a scripted model in place of a real one. Everything lives in a
 * temporary folder that is removed at the end; no key is needed.
 */
import { execFileSync } from 'node:child_process'
import { constants } from 'node:os'
import { basename, join } from 'node:path'
import { styleText } from 'node:util'
import { installBundle, packBundle, scratchHome, type ScratchHome } from '../test/support/dsh.ts'
import { withAgents, type Turn } from '../test/support/headless.ts'
import {
  callBash,
  callRead,
  callWrite,
  noticesIn,
  say,
  type ModelRequest,
  type Script,
} from '../test/support/scripted-model.ts'
import { gate, within } from '../test/support/wait.ts'

const WAIT_MS = 10_000
const startedAt = performance.now()

function heading(text: string): void {
  console.log(`\n${styleText('bold', text)}`)
}

function note(who: string, text: string): void {
  const time = `${Math.round(performance.now() - startedAt)} ms`.padStart(9)
  console.log(`${styleText('dim', time)}  ${styleText('cyan', who.padEnd(8))}  ${text}`)
}

function quote(text: string): void {
  for (const line of text.trimEnd().split('\n'))
    console.log(`${' '.repeat(21)}${styleText('yellow', `│ ${line}`)}`)
}

/** Shows what our plugin put into a request; says nothing when that was nothing. */
function showNotices(who: string, request: ModelRequest): void {
  const notices = noticesIn(request)
  if (notices.length === 0) return
  note(who, `request ${request.step} tells the model, word for word:`)
  notices.forEach(quote)
}

function appendFromOutside(path: string, text: string): void {
  const program = "require('node:fs').appendFileSync(process.argv[1], process.argv[2])"
  execFileSync(process.execPath, ['-e', program, path, text])
}

const isToldOf = (turn: Turn, path: string): boolean =>
  turn.told.some(({ text }) => text.includes(basename(path)))

const firstRequestThatTells = (turn: Turn, path: string): ModelRequest | undefined =>
  turn.requests.find((request) => noticesIn(request).some((text) => text.includes(basename(path))))

async function editedFromOutside(home: ScratchHome): Promise<readonly string[]> {
  heading('Act 1: a file changes while the model is thinking')
  const workspace = home.makeWorkspace({ 'notes.md': 'Ship on Monday.\n', 'todo.md': 'Write the plan.\n' })
  const notes = join(workspace, 'notes.md')
  const lastStep = 4

  const script: Script = (request) => {
    showNotices('agent', request)
    if (request.step === 1) {
      note('model', 'reads notes.md')
      return callRead(notes)
    }
    if (request.step === 2) {
      note('model', 'has read notes.md and is thinking about request 2 …')
      appendFromOutside(notes, 'No: ship on Friday.\n')
      note('somebody', 'appends "No: ship on Friday." to notes.md, in a process of their own')
      note('model', 'answers request 2: it wants to read todo.md')
      return callRead(join(workspace, 'todo.md'))
    }
    if (noticesIn(request).length > 0) return say('The plan is for Friday.')
    if (request.step === lastStep) return say('The plan is for Monday.')
    note('model', `request ${request.step} says nothing of the change; the model goes on`)
    return callBash('true')
  }

  const prompt = 'Make a plan from notes.md.'
  note('user', `$ dsh --profile headless "${prompt}"`)
  const turn = await withAgents({ home, workspace }, async (runAgent) => runAgent(prompt, script))
  note('agent', `dsh ends with exit code ${turn.outcome.code} and prints: ${turn.outcome.stdout.trim()}`)

  const told = firstRequestThatTells(turn, notes)
  const missing: string[] = []
  if (turn.outcome.code !== 0) missing.push(`dsh ended with ${turn.outcome.code}: ${turn.outcome.stderr}`)
  if (told === undefined || !isToldOf(turn, notes))
    missing.push('the model was not told that notes.md changed')
  else if (told.step < 3) missing.push(`the model was told of notes.md in request ${told.step}, too early`)
  return missing
}

async function writtenByAnotherAgent(home: ScratchHome): Promise<readonly string[]> {
  heading('Act 2: two agents, two processes, one checkout')
  const workspace = home.makeWorkspace({ 'shared.md': 'colour: red\n' })
  const shared = join(workspace, 'shared.md')
  const readByA = gate()
  const writtenByB = gate()

  const scriptOfA: Script = async (request) => {
    showNotices('agent A', request)
    if (request.step === 1) {
      note('model A', 'reads shared.md')
      return callRead(shared)
    }
    if (request.step === 2) {
      note('model A', 'has read shared.md and is thinking about request 2 …')
      readByA.open()
      await within(writtenByB.passed, { timeoutMs: WAIT_MS, describe: 'the write of agent B' })
      note('model A', 'answers request 2: it wants to run a command')
      return callBash('true')
    }
    return say('A is done.')
  }
  const scriptOfB: Script = async (request) => {
    showNotices('agent B', request)
    if (request.step === 1) {
      await within(readByA.passed, { timeoutMs: WAIT_MS, describe: 'the read of agent A' })
      note('model B', 'reads shared.md')
      return callRead(shared)
    }
    if (request.step === 2) {
      note('model B', 'writes shared.md')
      return callWrite(shared, 'colour: blue\n')
    }
    if (request.step === 3) {
      if (noticesIn(request).length === 0)
        note('agent B', 'request 3 carries no notice: the write was its own')
      writtenByB.open()
      return callBash('true')
    }
    return say('B is done.')
  }

  note('user', '$ dsh --profile headless "Agent A"    and beside it    $ dsh --profile headless "Agent B"')
  const [a, b] = await withAgents({ home, workspace }, async (runAgent) =>
    Promise.all([runAgent('Agent A', scriptOfA), runAgent('Agent B', scriptOfB)]),
  )
  note('both', `dsh ends with exit codes ${a.outcome.code} and ${b.outcome.code}`)

  const missing: string[] = []
  for (const [name, { outcome }] of Object.entries({ A: a, B: b })) {
    if (outcome.code !== 0) missing.push(`dsh of agent ${name} ended with ${outcome.code}: ${outcome.stderr}`)
  }
  if (!isToldOf(a, shared) || firstRequestThatTells(a, shared)?.step !== 3)
    missing.push('agent A was not told with its next request that B wrote shared.md')
  if (isToldOf(b, shared)) missing.push('agent B was told of its own write')
  return missing
}

async function demo(): Promise<readonly string[]> {
  const home = scratchHome('demo')
  try {
    heading('Installing this checkout as a user does')
    note('user', '$ pnpm pack')
    note('user', '$ dsh plugin --profile headless add <the archive>')
    await installBundle({ profile: 'headless', home, tarball: packBundle(home.root) })
    return [...(await editedFromOutside(home)), ...(await writtenByAnotherAgent(home))]
  } finally {
    home.remove()
  }
}

// Leaving by exit() is what ends the children and removes the folders.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]))
}

const missing = await demo().catch((error: unknown) => {
  console.error(error)
  return ['the demo could not be run to its end']
})
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
if (missing.length === 0) {
  console.log(
    `\n${styleText(['bold', 'green'], 'VERDICT: told.')} The model learned of both changes with its next request, ` +
      `and nobody was told of their own write (${seconds} s).`,
  )
} else {
  console.log(`\n${styleText(['bold', 'red'], 'VERDICT: not told.')} ${missing.join('; ')} (${seconds} s).`)
  process.exitCode = 1
}
