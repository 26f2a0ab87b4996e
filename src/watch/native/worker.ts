/**
 * The thread of the native backend: connects its port with the desk.
 *
 * @module dsh-live-workspace/watch/native/worker
 */
import { parentPort } from 'node:worker_threads'
import { Desk } from './desk.ts'
import type { Letter, Request } from './messages.ts'

const port = parentPort
if (port) {
  const post = (letter: Letter) => port.postMessage(letter)
  const desk = new Desk(post)
  port.on('message', (request: Request) => {
    // Without the port nothing holds the thread any more.
    if (request.kind === 'end') port.close()
    else void desk.serve(request)
  })
  post({ started: true })
}
