/**
 * A process that keeps a part of the tree busy: about so many operations a second, each one a write, an
 * atomic replace, a temporary file or a temporary directory. Ends when told to stop, or with its parent.
 */
import { mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const TICK_MS = 10
const DIRECTORIES = 20
const FILES = 10

const [, , directory = '', rate = '0'] = process.argv
const places = Array.from({ length: DIRECTORIES }, (_, index) => join(directory, `busy${index}`))
for (const place of places) {
  mkdirSync(place, { recursive: true })
  for (let index = 0; index < FILES; index += 1) writeFileSync(join(place, `f${index}`), '')
}

const operate = (turn: number): void => {
  const place = places[turn % DIRECTORIES] ?? directory
  const file = join(place, `f${turn % FILES}`)
  switch (turn % 4) {
    case 0:
      writeFileSync(file, `write ${turn}`)
      return
    case 1:
      writeFileSync(`${file}.tmp`, `replace ${turn}`)
      renameSync(`${file}.tmp`, file)
      return
    case 2:
      writeFileSync(join(place, `t${turn}`), '')
      unlinkSync(join(place, `t${turn}`))
      return
    default:
      mkdirSync(join(place, `d${turn}`))
      writeFileSync(join(place, `d${turn}`, 'f'), 'f')
      rmSync(join(place, `d${turn}`), { recursive: true })
  }
}

const startedAt = performance.now()
let done = 0
const timer = setInterval(() => {
  // What a late tick owes is caught up, but never in one long burst.
  const due = ((performance.now() - startedAt) / 1_000) * Number(rate)
  const most = done + (Number(rate) / 1_000) * TICK_MS * 4
  for (; done < due && done < most; done += 1) operate(done)
}, TICK_MS)

process.once('message', () => {
  clearInterval(timer)
  process.send?.((done * 1_000) / (performance.now() - startedAt))
  process.disconnect()
})
process.once('disconnect', () => clearInterval(timer))
process.send?.('started')
