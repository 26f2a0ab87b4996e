import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PACKAGE } from './dsh.ts'
import { arrayOf, isObject, objectOf, parseJson, stringOf, type JsonObject } from './json.ts'

export interface SessionEvent {
  readonly seq: number
  readonly type: string
  readonly data: JsonObject
}

export interface SessionLog {
  readonly id: string
  readonly events: readonly SessionEvent[]
}

export interface OurMessage {
  readonly seq: number
  readonly category: string
  readonly summary: string
  readonly text: string
}

/** All session logs under a DSH_HOME; they have to be written with `overlay.yml`, which leaves them plain. */
export function sessionLogs(dshHome: string): readonly SessionLog[] {
  const folder = join(dshHome, 'sessions')
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => basename(path) === 'session.jsonl')
    .map((path) => readLog(join(folder, path)))
}

export function sessionLog(dshHome: string, id: string): SessionLog {
  const logs = sessionLogs(dshHome)
  const log = logs.find((candidate) => candidate.id === id)
  if (log === undefined) throw new Error(`no log of ${id}, only of ${logs.map((each) => each.id).join(', ')}`)
  return log
}

function readLog(path: string): SessionLog {
  const [, ...lines] = readFileSync(path, 'utf8').split('\n')
  // The first line is the header of the session; the last one is empty, or cut off by a living writer.
  const events = lines.slice(0, -1).map((line) => readEvent(parseJson(line, path)))
  return { id: basename(dirname(path)), events }
}

export function readEvent(value: unknown): SessionEvent {
  const event = objectOf(value, 'a session event')
  if (typeof event['seq'] !== 'number') throw new Error(`an event without seq: ${JSON.stringify(value)}`)
  const data = isObject(event['data']) ? event['data'] : {}
  return { seq: event['seq'], type: stringOf(event['type'], 'type'), data }
}

/** What this plugin told the model, as the session remembers it. */
export const ourMessages = ({ events }: Pick<SessionLog, 'events'>): readonly OurMessage[] =>
  events.flatMap(({ seq, type, data }) => {
    const source = data['source']
    if (type !== 'user/message' || !isObject(source)) return []
    if (source['kind'] !== 'plugin' || source['plugin'] !== PACKAGE) return []
    const category = stringOf(source['category'], 'category')
    return [{ seq, category, summary: stringOf(source['summary'], 'summary'), text: textOfBlocks(data) }]
  })

const textOfBlocks = (data: JsonObject): string =>
  arrayOf(data['content'], 'content')
    .map((block) => stringOf(objectOf(block, 'a block')['text'], 'text'))
    .join('')
