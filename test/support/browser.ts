/** A headless Chromium, driven over its DevTools protocol, which needs no package. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { arrayOf, isObject, objectOf, parseJson, stringOf, type JsonObject } from './json.ts'
import { end, start } from './process.ts'
import { waitFor, within } from './wait.ts'

const START_TIMEOUT_MS = 30_000
const CALL_TIMEOUT_MS = 20_000
const DEBIAN = '/usr/bin/chromium'

/** The browser to use, or why there is none. */
export const findBrowser = (): { readonly path: string } | { readonly missing: string } => {
  const given = process.env['CHROMIUM_PATH']
  if (given !== undefined && given !== '') {
    return existsSync(given) ? { path: given } : { missing: `CHROMIUM_PATH is ${given}, which is not there` }
  }
  return existsSync(DEBIAN)
    ? { path: DEBIAN }
    : { missing: `there is no ${DEBIAN}; install it, or set CHROMIUM_PATH` }
}

/** One page. */
export interface Page {
  goto(url: string): Promise<void>
  /** Value of a JavaScript expression in the page. */
  evaluate(expression: string): Promise<unknown>
  /** Waits until an expression is true in the page. */
  until(expression: string, describe: string): Promise<void>
  /** @param left - pixels left out at the left. @returns the picture as PNG. */
  screenshot(left?: number): Promise<Buffer>
  close(): Promise<void>
}

type Send = (method: string, params?: JsonObject) => Promise<JsonObject>

/** Sends commands and matches their answers. */
const speak = (socket: WebSocket): Send => {
  let last = 0
  const waiting = new Map<number, (answer: JsonObject) => void>()
  socket.addEventListener('message', ({ data }) => {
    const message = objectOf(parseJson(String(data), 'a message of the browser'), 'a message of the browser')
    const id = message['id']
    if (typeof id !== 'number') return
    waiting.get(id)?.(message)
    waiting.delete(id)
  })
  return async (method, params = {}) => {
    const id = ++last
    const { promise, resolve } = Promise.withResolvers<JsonObject>()
    waiting.set(id, resolve)
    socket.send(JSON.stringify({ id, method, params }))
    const answer = await within(promise, { timeoutMs: CALL_TIMEOUT_MS, describe: `the answer to ${method}` })
    if (isObject(answer['error'])) throw new Error(`${method}: ${JSON.stringify(answer['error'])}`)
    return objectOf(answer['result'], `the result of ${method}`)
  }
}

const connect = async (url: string): Promise<WebSocket> => {
  const socket = new WebSocket(url)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.addEventListener('open', () => resolve())
  socket.addEventListener('error', () => reject(new Error(`no connection to ${url}`)))
  await promise
  return socket
}

/** Start the browser with one page. */
export const openBrowser = async (
  path: string,
  size: { readonly width: number; readonly height: number },
): Promise<Page> => {
  const profile = mkdtempSync(join(tmpdir(), 'live-workspace-browser-'))
  const running = start({
    file: path,
    args: [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--lang=en-US',
      '--remote-debugging-port=0',
      `--user-data-dir=${profile}`,
      `--window-size=${size.width},${size.height}`,
      'about:blank',
    ],
    cwd: profile,
    env: { PATH: process.env['PATH'], HOME: profile, LANG: 'C.UTF-8' },
  })
  const close = async (): Promise<void> => {
    await end(running).catch(() => undefined)
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  }
  try {
    const origin = await waitFor(() => /ws:\/\/(127\.0\.0\.1:\d+)/.exec(running.report())?.[1], {
      timeoutMs: START_TIMEOUT_MS,
      describe: () => `the address of ${running.report()}`,
    })
    const targets: unknown = await (await fetch(`http://${origin}/json/list`)).json()
    const target = arrayOf(targets, 'the pages').find((each) => isObject(each) && each['type'] === 'page')
    const socket = await connect(
      stringOf(objectOf(target, 'the page')['webSocketDebuggerUrl'], 'webSocketDebuggerUrl'),
    )
    const send = speak(socket)
    await send('Page.enable')
    const evaluate = async (expression: string): Promise<unknown> => {
      const params = { expression, returnByValue: true, awaitPromise: true }
      const { result, exceptionDetails } = await send('Runtime.evaluate', params)
      if (exceptionDetails !== undefined)
        throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`)
      return objectOf(result, 'the result')['value']
    }
    return {
      evaluate,
      goto: async (url) => void (await send('Page.navigate', { url })),
      until: async (expression, describe) =>
        void (await waitFor(
          async () => evaluate(`(() => { try { return Boolean(${expression}) } catch { return false } })()`),
          {
            timeoutMs: CALL_TIMEOUT_MS,
            describe,
          },
        )),
      screenshot: async (left = 0) => {
        // The window is higher than what it shows of the page.
        const height = Number(await evaluate('innerHeight'))
        const clip = { x: left, y: 0, width: size.width - left, height, scale: 1 }
        const { data } = await send('Page.captureScreenshot', { clip })
        return Buffer.from(stringOf(data, 'the picture'), 'base64')
      },
      close: async () => {
        socket.close()
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}
