import { randomUUID } from 'node:crypto'
import { overlay, startDsh } from './dsh.ts'
import { arrayOf, isObject, objectOf, parseJson, stringOf, type JsonObject } from './json.ts'
import { end, type Outcome } from './process.ts'
import { readEvent, type SessionEvent } from './session-log.ts'
import { waitFor } from './wait.ts'

const START_TIMEOUT_MS = 30_000
const TURN_TIMEOUT_MS = 20_000

export interface DshWeb {
  readonly url: string
  rpc(method: string, payload: JsonObject): Promise<unknown>
  createSession(cwd: string): Promise<string>
  sessions(): Promise<readonly string[]>
  history(sessionId: string): Promise<readonly SessionEvent[]>
  /** Sends a prompt, which also resumes a session of an earlier process, and waits for its turn to end. */
  prompt(sessionId: string, text: string): Promise<void>
  /** Runs a slash command, as the composer does. @returns its text. */
  command(sessionId: string, line: string): Promise<string>
  /** Ends the process; calling it again is harmless. */
  stop(): Promise<Outcome>
  /** Ends the process in the middle of whatever it does. */
  kill(): Promise<Outcome>
}

export async function startWeb(options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<DshWeb> {
  const args = ['--profile', 'web', '--patch', overlay, '--port', '0', '--no-open']
  const running = startDsh({ args, ...options })
  let ended: Outcome | undefined
  void running.done.then((outcome) => {
    ended = outcome
  })

  const stop = async (): Promise<Outcome> => ended ?? end(running)

  const address = (): string | undefined => {
    if (ended !== undefined) throw new Error(`dsh web ended with ${ended.code}: ${running.report()}`)
    return /http:\/\/127\.0\.0\.1:\d+/.exec(running.stdout())?.[0]
  }
  const url = await waitFor(address, {
    timeoutMs: START_TIMEOUT_MS,
    describe: () => `the URL of ${running.report()}`,
  }).catch(async (error: unknown) => {
    await stop()
    throw error
  })

  const rpc = async (method: string, payload: JsonObject): Promise<unknown> => {
    const response = await fetch(`${url}/api/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'client-request', rpcId: randomUUID(), method, payload }),
    })
    const text = await response.text()
    const answer = objectOf(parseJson(text, `the answer of ${method}`), `the answer of ${method}`)
    const result = answer['result']
    if (!isObject(result) || result['ok'] !== true)
      throw new Error(`${method} was answered ${response.status}: ${text}`)
    return result['value']
  }

  const history = async (sessionId: string): Promise<readonly SessionEvent[]> => {
    const value = objectOf(await rpc('session.history', { sessionId, maxMessages: 500 }), 'the history')
    return arrayOf(value['events'], 'events').map((entry) => readEvent(objectOf(entry, 'an entry')['event']))
  }

  const turnsEnded = async (sessionId: string): Promise<number> =>
    (await history(sessionId)).filter(({ type }) => type === 'turn/end').length

  return {
    url,
    rpc,
    history,
    stop,
    async kill() {
      running.signal('SIGKILL')
      return running.done
    },
    async createSession(cwd) {
      return stringOf(objectOf(await rpc('session.create', { cwd }), 'the session')['sessionId'], 'sessionId')
    },
    async sessions() {
      const items = arrayOf(objectOf(await rpc('session.list', {}), 'the list')['items'], 'items')
      return items.map((item) => stringOf(objectOf(item, 'an item')['sessionId'], 'sessionId'))
    },
    async command(sessionId, line) {
      const value = await rpc('commands/execute', { args: { agentId: sessionId, line, images: [] } })
      const result = objectOf(objectOf(value, 'the execution')['result'], 'its result')
      const text = typeof result['text'] === 'string' ? result['text'] : ''
      if (result['kind'] !== 'success') throw new Error(`${line}: ${text}`)
      return text
    },
    async prompt(sessionId, text) {
      const before = await turnsEnded(sessionId)
      await rpc('session.prompt', { sessionId, mode: 'queue', content: [{ type: 'text', text }] })
      await waitFor(async () => (await turnsEnded(sessionId)) > before, {
        timeoutMs: TURN_TIMEOUT_MS,
        describe: () => `the end of the turn "${text}" of ${sessionId}: ${running.report()}`,
      })
    },
  }
}
