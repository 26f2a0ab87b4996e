import { spawn, type ChildProcess } from 'node:child_process'
import { within } from './wait.ts'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

export interface Outcome {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly done: Promise<Outcome>
  stdout(): string
  /** The command and what it has printed, for error texts. */
  report(): string
  signal(signal: NodeJS.Signals): void
}

const GRACE_MS = 5000
const windows = process.platform === 'win32'
const living = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of living) signalGroup(child, 'SIGKILL')
})

/** Started as the leader of a group of its own, so that the tools it starts end with it. */
export function start({ file, args, cwd, env }: Command): Running {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: !windows })
  living.add(child)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const { promise: done, resolve, reject } = Promise.withResolvers<Outcome>()
  child.once('error', (error) => {
    living.delete(child)
    reject(error)
  })
  child.once('close', (code, signal) => {
    living.delete(child)
    resolve({ code, signal, stdout: stdout(), stderr: stderr() })
  })
  return {
    done,
    stdout,
    report: () => `${[file, ...args].join(' ')}\nstdout:\n${stdout()}\nstderr:\n${stderr()}`,
    signal: (signal) => signalGroup(child, signal),
  }
}

/** Runs a command to its end; at the time-out, its whole group is ended. */
export async function run(command: Command & { readonly timeoutMs: number }): Promise<Outcome> {
  const running = start(command)
  try {
    return await finish(running, command.timeoutMs)
  } catch (error) {
    await end(running).catch(() => undefined)
    throw error
  }
}

const finish = async (running: Running, timeoutMs: number): Promise<Outcome> =>
  within(running.done, { timeoutMs, describe: () => `the end of ${running.report()}` })

/** Asks first: dsh then ends the commands of its agents, which have process groups of their own. */
export async function end(running: Running): Promise<Outcome> {
  running.signal('SIGTERM')
  try {
    return await finish(running, GRACE_MS)
  } catch (error) {
    running.signal('SIGKILL')
    throw error
  }
}

export async function runSuccessfully(command: Command & { readonly timeoutMs: number }): Promise<string> {
  const { code, signal, stdout, stderr } = await run(command)
  if (code === 0) return stdout
  const line = [command.file, ...command.args].join(' ')
  throw new Error(`${line} ended with ${signal ?? code}\nstdout:\n${stdout}\nstderr:\n${stderr}`)
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  if (windows) {
    child.kill(signal)
    return
  }
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // The group may have ended by itself.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
