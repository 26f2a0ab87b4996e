/** Another process that changes files while ours stands still. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { codeOf } from '../../src/errors.ts'
import { waitFor } from '../support/wait.ts'
import type { Step } from './steps.ts'

const PROGRAM = fileURLToPath(new URL('writer.ts', import.meta.url))
const START_LIMIT_MS = 10_000

export class Somebody {
  readonly #child: ChildProcess
  readonly #requests: number
  readonly #answers: number
  readonly #chunk = Buffer.alloc(4_096)

  private constructor(child: ChildProcess, requests: number, answers: number) {
    this.#child = child
    this.#requests = requests
    this.#answers = answers
  }

  /** @param directory - where the two FIFOs are made; it must not be watched. */
  static async start(directory: string): Promise<Somebody> {
    const paths = [join(directory, 'requests'), join(directory, 'answers')] as const
    execFileSync('mkfifo', paths)
    const child = spawn(process.execPath, [PROGRAM, ...paths], { stdio: ['ignore', 'inherit', 'inherit'] })
    // Opening a FIFO waits for its other end for ever, if that never comes; so ask without waiting.
    const requests = await waitFor(() => openIfRead(paths[0]), {
      timeoutMs: START_LIMIT_MS,
      describe: 'the start of the process that writes',
    })
    return new Somebody(child, requests, openSync(paths[1], 'r'))
  }

  /** Let the steps happen and come back when they have; this process's loop does not turn meanwhile. */
  perform(steps: readonly Step[]): void {
    writeSync(this.#requests, `${JSON.stringify(steps)}\n`)
    let answer = ''
    while (!answer.endsWith('\n')) {
      const length = readSync(this.#answers, this.#chunk)
      if (length === 0) throw new Error('the process that writes has ended')
      answer += this.#chunk.toString('utf8', 0, length)
    }
    if (answer !== '\n') throw new Error(`${answer.trim()} in ${JSON.stringify(steps)}`)
  }

  /** Its end of the FIFO closes, so it ends by itself. */
  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    const alive = this.#child.exitCode === null && this.#child.signalCode === null
    closeSync(this.#requests)
    closeSync(this.#answers)
    if (alive) await ended
  }
}

const openIfRead = (path: string): number | undefined => {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENXIO') return undefined
    throw error
  }
}
