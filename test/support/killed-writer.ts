/**
 * A session that reads files which somebody else keeps changing, remembers what it saw, and is killed.
 * Run as a process of its own: `node killed-writer.ts <folder> <seed> <fault> <call>`.
 *
 * The log is appended after the session has moved on, as the harness does it, so the manifest may be ahead
 * of it. Faults kill at the n-th writing of a manifest: in the middle of the bytes, before or after the
 * rename. Without a fault the parent process kills at a moment of its choice.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { FsTarget } from '@deepseek-ai/dsh-fs'
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import { checkConfig } from '../../src/config.ts'
import { SessionState } from '../../src/session.ts'

const [folder = '', seed = '1', fault = 'none', call = '1'] = process.argv.slice(2)

export const SESSION = 'session-killed'
export const CREATED_AT = 1_000
export const FILES = 8

let draws = Number(seed)
/** A number from 0 to `below` - 1, the same for the same seed. */
const draw = (below: number): number => {
  draws = (Math.imul(draws, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((draws / 2 ** 32) * below)
}

const die = (): never => {
  process.kill(process.pid, 'SIGKILL')
  // Nothing runs after the signal, but it is delivered by the system.
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

/** Kill at the n-th writing. Before anything has taken hold of the functions. */
const arm = (): void => {
  const { writeFile, rename } = fsPromises
  let left = Number(call)
  const due = (): boolean => --left === 0
  if (fault === 'half-written') {
    fsPromises.writeFile = async (path, content, options) => {
      if (!due()) return writeFile(path, content, options)
      const text = typeof content === 'string' ? content : ''
      await writeFile(path, text.slice(0, draw(text.length)), options)
      die()
    }
  } else if (fault === 'before-rename' || fault === 'after-rename') {
    fsPromises.rename = async (from, to) => {
      if (!due()) return rename(from, to)
      if (fault === 'after-rename') await rename(from, to)
      die()
    }
  }
  syncBuiltinESMExports()
}

const versionOf = (path: string): string => {
  const info = statSync(path, { bigint: true })
  return `${info.dev}:${info.ino}:${info.size}:${info.mtimeNs}:${info.ctimeNs}`
}

const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

const work = async (): Promise<void> => {
  arm()
  const { SessionMemory } = await import('../../src/manifest/memory.ts')
  const { ManifestStore } = await import('../../src/manifest/store.ts')
  const { resume } = checkConfig({ resume: { saveDelayMs: 0 } })
  const report = (problem: string) => process.stderr.write(`${problem}\n`)
  const memory = new SessionMemory({
    config: resume,
    racyWindowMs: 50,
    concurrency: 4,
    store: new ManifestStore(join(folder, 'manifests'), resume, report),
    report,
    detached: (make) => make(),
    fs: () => undefined,
    living: () => undefined,
  })
  const events: SessionEvent[] = []
  const waiting: SessionEvent[] = []
  const header = { version: 0, id: SESSION, createdAt: CREATED_AT, cwd: folder }
  // As much of a session as the memory looks at.
  const session = { id: SESSION, header, events } as unknown as Session
  const state = new SessionState(SESSION, 1_000_000, 1_000)
  memory.begin(session, state, undefined)
  const append = (type: string, data: unknown): number => {
    const event = { type, seq: events.length, time: Date.now(), data, surfaceOp: 'append' }
    events.push(event as unknown as SessionEvent)
    waiting.push(event as unknown as SessionEvent)
    return event.seq
  }
  for (let step = 0; step < 100_000; step += 1) {
    // From here on there is something to lose.
    if (step === 10) process.stdout.write('started\n')
    const reads = 1 + draw(2)
    for (let index = 0; index < reads; index += 1) {
      const name = `f${draw(FILES)}.txt`
      const path = join(folder, name)
      // Somebody else writes, mostly as many bytes as there were, sometimes within the same tick.
      const change = () => writeFileSync(path, `content ${draw(4)} of ${name}\n`)
      if (draw(3) === 0) change()
      const callId = `call-${events.length}`
      const [version, digest] = [versionOf(path), digestOf(path)]
      append('tool/call', { callId, name: 'read', arguments: JSON.stringify({ file_path: path }) })
      // What the host makes of a target; only its own services look into it.
      const target = { targetKey: path, displayPath: path } as unknown as FsTarget
      const token = Symbol(callId)
      state.ledger.stage(token, { key: path, target, seen: { kind: 'present', version }, tool: 'read' })
      state.ledger.settle(token, { failed: false, parent: undefined, callId })
      state.shelf.put(path, { version, readAt: performance.now(), digest, size: 1, text: undefined })
      // The digest stands for the text that the model was shown.
      const seq = append('tool/result', {
        digest,
        path,
        message: { source: { callId }, content: [{ isError: false }] },
      })
      state.ledger.logged(callId, seq)
      if (draw(3) === 0) change()
    }
    state.followedTo = append('step/end', {})
    state.committed(state.ledger.stepEnded().committed, undefined)
    // The harness appends later, and not everything at once.
    if (draw(2) === 0) {
      const lines = waiting.splice(0, 1 + draw(waiting.length))
      appendFileSync(join(folder, 'log.jsonl'), lines.map((event) => `${JSON.stringify(event)}\n`).join(''))
    }
    if (draw(10) === 0) {
      // What a boundary does that misses nothing: a second write within one tick is noticed.
      for (const { key, seen } of state.ledger.entries()) {
        const content = state.shelf.get(key)
        if (seen.kind === 'present' && versionOf(key) === seen.version && digestOf(key) !== content?.digest) {
          state.racy.add(key)
        }
      }
      state.completeAt = performance.now()
    }
    if (draw(4) === 0) await pause(draw(8))
    else await nextTurn()
  }
}

if (process.argv[1] === import.meta.filename) await work()
