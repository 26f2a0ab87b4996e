/**
 * The process that changes files: reads lists of steps from one FIFO, one a line, does them and answers
 * through another with one line, empty when all went well.
 */
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import type { Step } from './steps.ts'

let written = 0

/** Differs from every other one, in its length too. */
const content = (): string => {
  written += 1
  return `content ${written}${'.'.repeat(written % 97)}\n`
}

const perform = (step: Step): void => {
  switch (step.do) {
    case 'write':
      writeFileSync(step.path, content())
      return
    case 'append':
      appendFileSync(step.path, content())
      return
    case 'replace': {
      const staged = `${step.path}.${written}.tmp`
      writeFileSync(staged, content())
      renameSync(staged, step.path)
      return
    }
    case 'empty':
      closeSync(openSync(step.path, 'w'))
      return
    case 'unlink':
      unlinkSync(step.path)
      return
    case 'mkdir':
      mkdirSync(step.path, { recursive: true })
      return
    case 'remove':
      rmSync(step.path, { recursive: true, force: true })
      return
    case 'rename':
      renameSync(step.path, step.to)
  }
}

const [, , requests = '', answers = ''] = process.argv
const input = openSync(requests, 'r')
const output = openSync(answers, 'w')
const chunk = Buffer.alloc(65_536)
let text = ''

for (;;) {
  const length = readSync(input, chunk)
  if (length === 0) break
  text += chunk.toString('utf8', 0, length)
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
    const steps = JSON.parse(text.slice(0, end)) as readonly Step[]
    text = text.slice(end + 1)
    let answer = ''
    try {
      for (const step of steps) perform(step)
    } catch (error) {
      answer = String(error).replaceAll('\n', ' ')
    }
    writeSync(output, `${answer}\n`)
  }
}
