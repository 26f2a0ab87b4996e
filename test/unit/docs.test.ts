import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const checkout = join(import.meta.dirname, '..', '..')
const readText = (name: string): string => readFileSync(join(checkout, name), 'utf8')
const pages = [
  ...readdirSync(checkout).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(checkout, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

describe('links in the documentation', () => {
  it.each(pages)('%s leads only to files that are there', (page) => {
    const targets = Array.from(
      readText(page).matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g),
      ([, target = '']) => target,
    )
    const local = targets.filter((target) => !/^[a-z]+:/.test(target))
    const missing = local.filter((target) => !existsSync(resolve(checkout, dirname(page), target)))
    expect(missing).toEqual([])
  })
})

describe('the comparison with others', () => {
  const text = readText('docs/peers.md')
  const named = Array.from(text.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g), ([, file = '', name = '']) => ({
    file,
    name,
  }))

  it.each(named)('$file has "$name"', ({ file, name }) => {
    const source = readText(file)
    expect(["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`))).toBe(true)
  })

  it('names a test for each row', () => {
    for (const part of text.split('\n## ').slice(1)) {
      const rows = Array.from(part.matchAll(/^\| (\d+)\. /gm), ([, number]) => number)
      const tests = Array.from(part.matchAll(/\((\d+)\) (?:`test|as \()/g), ([, number]) => number)
      expect(rows.length).toBeGreaterThan(5)
      expect(tests).toEqual(rows)
    }
  })
})
