import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { arrayOf, isObject, objectOf, parseJson, stringOf, type JsonObject } from './json.ts'

export interface ToolCall {
  readonly name: string
  readonly args: JsonObject
}

export type Reply =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tools'; readonly calls: readonly ToolCall[]; readonly text?: string }
  | { readonly kind: 'error'; readonly status: number; readonly message: string }

export const say = (text: string): Reply => ({ kind: 'text', text })
export const callTool = (name: string, args: JsonObject): Reply => callTools({ name, args })
export const callTools = (...calls: readonly ToolCall[]): Reply => ({ kind: 'tools', calls })
export const failWith = (status: number, message: string): Reply => ({ kind: 'error', status, message })

/** The tools of dsh that most scripts need. */
export const callRead = (path: string): Reply => callTool('read', { file_path: path })
export const callWrite = (path: string, content: string): Reply =>
  callTool('write', { file_path: path, content })
export const callBash = (command: string): Reply =>
  callTool('bash', { command, description: 'scripted command' })

export interface WireMessage {
  readonly role: string
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
}

/** `conversation` is a step of an agent, `compaction` a summary of one, `aux` all else (titles). */
export type RequestKind = 'conversation' | 'compaction' | 'aux'

export interface ModelRequest {
  readonly kind: RequestKind
  readonly session: string
  /** Counts the conversation requests of its session from 1; 0 for other kinds. */
  readonly step: number
  /** Milliseconds since the model was started. */
  readonly at: number
  readonly messages: readonly WireMessage[]
  readonly toolNames: readonly string[]
}

export type Script = (request: ModelRequest) => Reply | Promise<Reply>

/** One reply for each step; a function is called when its step is asked for. */
export const inSteps =
  (...replies: readonly (Reply | Script)[]): Script =>
  (request) => {
    const reply = replies[request.step - 1]
    if (reply === undefined) throw new Error(`no reply for step ${request.step} of ${replies.length}`)
    return typeof reply === 'function' ? reply(request) : reply
  }

export interface ScriptedModel {
  readonly baseURL: string
  readonly requests: readonly ModelRequest[]
  /** The steps of all agents, or of one, in order of arrival. */
  conversation(session?: string): readonly ModelRequest[]
  /** Stops listening; throws what the script threw, because dsh only saw a refused request. */
  close(): Promise<void>
}

export const API_KEY = 'scripted-key'

export const textOf = (message: WireMessage): string => message.text

/** The texts of all user-role messages: the prompts and whatever was put in beside them. */
export const injectedTexts = (request: ModelRequest): readonly string[] =>
  request.messages.filter(({ role }) => role === 'user').map(textOf)

export const promptOf = (request: ModelRequest): string => injectedTexts(request)[0] ?? ''

/** The reminders in a request that are not the harness's own list of instruction files. */
export const noticesIn = (request: ModelRequest): readonly string[] =>
  injectedTexts(request).filter(
    (text) => text.includes('<system-reminder>') && !text.includes('instructions may be relevant'),
  )

const asides: Readonly<Record<Exclude<RequestKind, 'conversation'>, Reply>> = {
  compaction: say('A summary of the conversation so far.'),
  aux: say('A title'),
}

export async function startScriptedModel(script: Script): Promise<ScriptedModel> {
  const startedAt = performance.now()
  const requests: ModelRequest[] = []
  const steps = new Map<string, number>()
  const thrown: unknown[] = []

  const record = (incoming: IncomingMessage, body: JsonObject): ModelRequest => {
    const session = String(incoming.headers['x-deepseek-harness-session-id'] ?? '')
    const toolNames = readToolNames(body)
    const kind = kindOf(incoming, toolNames)
    const step = kind === 'conversation' ? (steps.get(session) ?? 0) + 1 : 0
    if (step > 0) steps.set(session, step)
    const at = Math.round(performance.now() - startedAt)
    const request = { kind, session, step, at, messages: readMessages(body), toolNames }
    requests.push(request)
    return request
  }

  const answer = async (incoming: IncomingMessage): Promise<{ reply: Reply; model: string }> => {
    if (incoming.method !== 'POST' || incoming.url?.endsWith('/chat/completions') !== true)
      return { reply: failWith(404, `no such route: ${incoming.method} ${incoming.url}`), model: '' }
    if (incoming.headers.authorization !== `Bearer ${API_KEY}`)
      return { reply: failWith(401, 'wrong key'), model: '' }
    const text = (await buffer(incoming)).toString('utf8')
    const body = objectOf(parseJson(text, 'the request'), 'the request')
    const request = record(incoming, body)
    const model = stringOf(body['model'], 'model')
    return { reply: request.kind === 'conversation' ? await script(request) : asides[request.kind], model }
  }

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    try {
      const { reply, model } = await answer(incoming)
      send(outgoing, reply, { model, id: `reply-${requests.length}` })
    } catch (error) {
      thrown.push(error)
      // 400, since dsh would send the request again after a 5xx.
      send(outgoing, failWith(400, `the script threw: ${String(error)}`), { model: '', id: '' })
    }
  }

  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing))
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(0, '127.0.0.1', resolve)
  await listening
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the scripted model has no port')

  return {
    baseURL: `http://127.0.0.1:${address.port}/v1`,
    requests,
    conversation: (session) =>
      requests.filter(
        (request) =>
          request.kind === 'conversation' && (session === undefined || request.session === session),
      ),
    async close() {
      const { promise: closed, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      server.closeAllConnections()
      await closed
      if (thrown.length > 0)
        throw new AggregateError(thrown, `the script threw: ${thrown.map(String).join('; ')}`)
    },
  }
}

function kindOf(incoming: IncomingMessage, toolNames: readonly string[]): RequestKind {
  if (incoming.headers['x-deepseek-harness-compact'] !== undefined) return 'compaction'
  return toolNames.length > 0 ? 'conversation' : 'aux'
}

const readToolNames = (body: JsonObject): readonly string[] =>
  arrayOf(body['tools'] ?? [], 'tools').map((tool) =>
    stringOf(objectOf(objectOf(tool, 'a tool')['function'], 'its function')['name'], 'its name'),
  )

const readMessages = (body: JsonObject): readonly WireMessage[] =>
  arrayOf(body['messages'], 'messages').map((value) => {
    const message = objectOf(value, 'a message')
    return {
      role: stringOf(message['role'], 'role'),
      text: readText(message['content']),
      toolCalls: arrayOf(message['tool_calls'] ?? [], 'tool_calls').map(readCall),
    }
  })

function readText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .filter(isObject)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

function readCall(value: unknown): ToolCall {
  const call = objectOf(objectOf(value, 'a tool call')['function'], 'its function')
  const args = stringOf(call['arguments'], 'its arguments')
  return {
    name: stringOf(call['name'], 'its name'),
    args: objectOf(parseJson(args, 'arguments'), 'arguments'),
  }
}

function send(outgoing: ServerResponse, reply: Reply, { model, id }: { model: string; id: string }): void {
  // dsh may have given up on a reply that was held back.
  if (outgoing.destroyed) return
  if (reply.kind === 'error') {
    outgoing.writeHead(reply.status, { 'content-type': 'application/json' })
    outgoing.end(JSON.stringify({ error: { message: reply.message, type: 'scripted', code: reply.status } }))
    return
  }
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const created = Math.floor(Date.now() / 1000)
  const event = (delta: JsonObject, finish: string | null, extra: JsonObject = {}): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }]
    const chunk = { id, object: 'chat.completion.chunk', created, model, choices, ...extra }
    outgoing.write(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  event({ role: 'assistant', content: reply.text ?? '' }, null)
  const calls = reply.kind === 'tools' ? reply.calls : []
  for (const [index, call] of calls.entries()) {
    const head = { index, id: `${id}-call-${index}`, type: 'function' }
    event({ tool_calls: [{ ...head, function: { name: call.name, arguments: '' } }] }, null)
    event({ tool_calls: [{ index, function: { arguments: JSON.stringify(call.args) } }] }, null)
  }
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  event({ content: '' }, calls.length > 0 ? 'tool_calls' : 'stop', { usage })
  outgoing.end('data: [DONE]\n\n')
}
