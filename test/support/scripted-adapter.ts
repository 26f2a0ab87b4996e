import {
  CallId,
  isAgentLoopRequest,
  LlmAdapter,
  type GenerateOptions,
  type Message,
  type StreamChunk,
} from '@deepseek-ai/dsh-llm'

/** One tool call as the model would write it. */
export interface ToolCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

export type Reply = { readonly text: string } | { readonly calls: readonly ToolCall[] }

let callNumber = 0

/** One request of the agent loop; the stream stays open until somebody replies or the turn is aborted. */
export class ModelRequest {
  readonly sessionId: string
  readonly messages: readonly Message[]
  readonly #reply = Promise.withResolvers<Reply>()

  constructor(options: GenerateOptions) {
    this.sessionId = String(options.sessionId)
    this.messages = options.messages
    const { signal } = options
    signal?.addEventListener('abort', () => this.#reply.reject(signal.reason), { once: true })
    // An aborted request may have no reader any more.
    this.#reply.promise.catch(() => undefined)
  }

  reply(reply: Reply): void {
    this.#reply.resolve(reply)
  }

  get answered(): Promise<Reply> {
    return this.#reply.promise
  }
}

/** A model that says what the test tells it to, and summarizes by itself. */
export class ScriptedAdapter extends LlmAdapter {
  readonly #arrived: (request: ModelRequest) => void

  constructor(arrived: (request: ModelRequest) => void) {
    super()
    this.#arrived = arrived
  }

  override async *stream(options: GenerateOptions): AsyncGenerator<StreamChunk> {
    if (!isAgentLoopRequest(options)) {
      yield* textChunks('Summary.')
      return
    }
    const request = new ModelRequest(options)
    this.#arrived(request)
    const reply = await request.answered
    yield* 'text' in reply ? textChunks(reply.text) : callChunks(reply.calls)
  }
}

function* textChunks(text: string): Generator<StreamChunk> {
  yield { type: 'block-start', index: 0, blockType: 'text' }
  yield { type: 'text-delta', index: 0, text }
  yield { type: 'block-end', index: 0, block: { type: 'text', text } }
  yield { type: 'finish', reason: { kind: 'stop' } }
}

function* callChunks(calls: readonly ToolCall[]): Generator<StreamChunk> {
  for (const [index, { name, args }] of calls.entries()) {
    const id = CallId(`call-${++callNumber}`)
    const block = { type: 'tool-call', id, name, arguments: JSON.stringify(args) } as const
    yield { type: 'block-start', index, blockType: 'tool-call' }
    yield { type: 'tool-call-delta', index, id, name, argumentsDelta: block.arguments }
    yield { type: 'block-end', index, block }
  }
  yield { type: 'finish', reason: { kind: 'tool-calls' } }
}
