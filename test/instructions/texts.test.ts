import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Block, fit } from '../../src/instructions/budget.ts'
import { fingerprint, parseScope, readSource } from '../../src/instructions/protocol.ts'
import { renderBaseline, renderChanges, type Transition } from '../../src/instructions/render.ts'
import { bytesOf, cutToBytes, digestOf, escapeFrame, showPath } from '../../src/instructions/text.ts'

const FRAME = /^<system-reminder>\n[^]*\n<\/system-reminder>$/

const block = (path: string, content: string): Block => ({
  path,
  lead: `Instructions from: ${path}`,
  content,
})

const set = (path: string, text: string): Transition => ({
  key: path,
  change: { action: 'set', scope: path, path, digest: digestOf(text) },
  directory: path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.',
  text,
})

describe('escaping', () => {
  it('keeps content and paths from closing the frame', () => {
    expect(escapeFrame('a</system-reminder>b</ SYSTEM-REMINDER\n>')).toBe(
      String.raw`a<\/system-reminder>b<\/ SYSTEM-REMINDER` + '\n>',
    )
    expect(escapeFrame('</system></system-reminders>')).toBe('</system></system-reminders>')
  })

  it('shows control, bidirectional and zero-width characters of a path, and keeps it on one line', () => {
    expect(showPath('a\nb\u202ec\u200b/é😀/</system-reminder>')).toBe(
      String.raw`a\u000ab\u202ec\u200b/é😀/<\/system-reminder>`,
    )
    expect(showPath('\ud800')).toBe(String.raw`\ud800`)
  })

  it('holds for any text', () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom('</system-reminder>', '<', '/', 'system-reminder', ' ', '>'),
    )
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        expect(escapeFrame(parts.join(''))).not.toMatch(/<\/\s*system-reminder\s*>/i)
      }),
    )
  })
})

describe('cutting', () => {
  it('ends between two characters, at the last one that fits', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(60), (text, most) => {
        const cut = cutToBytes(text, most)
        expect(text.startsWith(cut)).toBe(true)
        expect(bytesOf(cut)).toBeLessThanOrEqual(most)
        const next = Array.from(text.slice(cut.length))[0] ?? ' '.repeat(most + 1)
        expect(bytesOf(cut + next)).toBeGreaterThan(most)
      }),
    )
  })
})

describe('the budget', () => {
  const blocks = [
    block('AGENTS.md', 'r'.repeat(500)),
    block('a/AGENTS.md', 'é'.repeat(150)),
    block('a/b/AGENTS.md', '😀'.repeat(100)),
  ]

  it('is never exceeded, however small', () => {
    const sizes = [
      1, 2, 3, 10, 20, 38, 39, 50, 80, 100, 130, 160, 200, 250, 300, 400, 500, 700, 1_000, 1_300, 2_000,
    ]
    for (const maxBytes of sizes) {
      const { text, omitted, cutTo } = fit(blocks, 'An introduction.', maxBytes)
      expect(bytesOf(text)).toBeLessThanOrEqual(maxBytes)
      expect(text).not.toContain('\ufffd')
      if (omitted === 0 && cutTo === undefined) continue
      const notice = text.replace(/^<system-reminder>\n/, '')
      expect('Workspace instruction budget'.startsWith(notice.slice(0, 28))).toBe(true)
    }
  })

  it('leaves out whole broader files, and then cuts the most specific one', () => {
    expect(fit(blocks, undefined, 1_000).text).toMatch(
      /^<system-reminder>\nWorkspace instruction budget of 1000 bytes: left out AGENTS\.md \(500 bytes\)\n\nInstructions from: a\/AGENTS\.md\n\né+\n\nInstructions from: a\/b\/AGENTS\.md\n\n😀+\n<\/system-reminder>$/u,
    )
    const cut = fit(blocks, undefined, 300)
    expect(cut).toMatchObject({ omitted: 2, cutTo: 88 })
    expect(cut.text).toContain(
      'left out AGENTS.md (500 bytes), a/AGENTS.md (300 bytes); cut a/b/AGENTS.md from 400 to 88 bytes\n',
    )
    expect(cut.text).toContain(`\n\n${'😀'.repeat(22)}\n</system-reminder>`)
  })

  it('counts what it cannot name', () => {
    const many = Array.from({ length: 200 }, (_, index) =>
      block(`directory-${index}/AGENTS.md`, 'x'.repeat(50)),
    )
    const { text } = fit(many, undefined, 1_000)
    expect(text).toMatch(/and \d+ more \(\d+ bytes\)/)
    expect(bytesOf(text)).toBeLessThanOrEqual(1_000)
  })

  it('gives up the introduction before the last content', () => {
    const [introduction, content] = ['i'.repeat(200), 'c'.repeat(300)]
    const { text, cutTo } = fit([block('AGENTS.md', content)], introduction, 300)
    expect(text).not.toContain(introduction)
    expect(cutTo).toBeGreaterThan(100)
  })

  it('holds for any blocks and any budget', () => {
    const content = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.constant(''))
    fc.assert(
      fc.property(
        fc.array(content, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 2_000 }),
        (contents, maxBytes) => {
          const transitions = contents.map((text, index) => set(`d${index}/AGENTS.md`, text))
          for (const rendered of [
            renderBaseline(transitions, true, maxBytes),
            renderChanges(transitions, maxBytes),
          ]) {
            expect(bytesOf(rendered.text)).toBeLessThanOrEqual(maxBytes)
            expect([...rendered.omitted, ...rendered.told]).toEqual(transitions)
            // What counts as told is there, at least in part.
            for (const { change, text = '' } of rendered.told) {
              expect(rendered.text).toMatch(FRAME)
              expect(rendered.text).toContain(`from: ${change.path}\n\n`)
              expect(rendered.text).toContain(
                `\n\n${cutToBytes(escapeFrame(text), rendered.cutTo ?? Infinity)}`,
              )
            }
            expect(rendered.cutTo ?? 1).toBeGreaterThan(0)
          }
        },
      ),
    )
  })
})

describe('the protocol', () => {
  it('reads scopes in one spelling and refuses others', () => {
    expect(parseScope('.\0AGENTS.md')).toEqual({ directory: '.', name: 'AGENTS.md' })
    expect(parseScope('./a\0X')).toEqual({ directory: 'a', name: 'X' })
    expect(parseScope('user-global\0AGENTS.md')).toEqual({ directory: 'user-global', name: 'AGENTS.md' })
    expect(parseScope('user-global\0CLAUDE.md')).toEqual({ directory: './user-global', name: 'CLAUDE.md' })
    expect(parseScope('./user-global\0AGENTS.md')).toEqual({ directory: './user-global', name: 'AGENTS.md' })
    for (const odd of ['', 'a', 'a\0', '\0X', 'a\0b\0c', '../a\0X', '/a\0X', 'a//b\0X', 'a\0b/c']) {
      expect(parseScope(odd)).toBeUndefined()
    }
  })

  it('reads sources and leaves out what is malformed, one by one', () => {
    const good = { action: 'set', scope: '.\0A', path: 'A', digest: 'd' }
    const source = {
      kind: 'agent-instructions',
      form: 'instructions',
      baseline: true,
      baselineIdentity: 'i',
      changes: [good, { ...good, action: 'add' }, { ...good, digest: 5 }, { ...good, path: 5 }, [], 'x'],
    }
    expect(readSource(source)).toEqual({ ...source, changes: [good] })
    expect(readSource({ ...source, changes: {} })).toBeUndefined()
    expect(readSource({ ...source, kind: 'plugin' })).toBeUndefined()
  })

  it('knows a copy of a source again', () => {
    const source = readSource({
      kind: 'agent-instructions',
      changes: [{ action: 'remove', scope: '.\0A', path: 'A' }],
    })
    if (!source) throw new Error('not read')
    expect(fingerprint(structuredClone(source))).toBe(fingerprint(source))
    expect(fingerprint({ ...source, baseline: true })).not.toBe(fingerprint(source))
  })
})
