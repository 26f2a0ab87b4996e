/** Other processes at work in the tree while something is measured. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { within } from '../support/wait.ts'

const PROGRAM = fileURLToPath(new URL('busy.ts', import.meta.url))
const ANSWER_LIMIT_MS = 10_000

/** Operations a second that are asked for. */
export const BUSY_RATE = 800

/**
 * Do the work while another process writes below the directory.
 * @returns what the work returned, and the operations a second that really happened.
 */
export const besideLoad = async <T>(
  directory: string,
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly rate: number }> => {
  const child = fork(PROGRAM, [directory, String(BUSY_RATE)], { execArgv: [] })
  try {
    await answerOf(child, 'the start of the process that keeps the tree busy')
    const value = await work()
    child.send('stop')
    return { value, rate: Number(await answerOf(child, 'the count of the process that keeps the tree busy')) }
  } finally {
    if (child.connected) child.disconnect()
  }
}

const answerOf = async (child: ChildProcess, describe: string): Promise<unknown> =>
  within(new Promise((resolve) => child.once('message', resolve)), { timeoutMs: ANSWER_LIMIT_MS, describe })
