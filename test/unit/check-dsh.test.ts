import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkAgainst } from '../../scripts/check-dsh.ts'

const checkout = join(import.meta.dirname, '..', '..')
const require = createRequire(import.meta.url)

test('the installed dsh has everything that the bundle rests on', async () => {
  const { version, checked, differences } = await checkAgainst(checkout)
  expect(differences).toEqual([])
  expect(version).toBe('0.1.0-rc.8')
  // Peers, names, rows, events and services: none of the patterns may have stopped to match.
  expect(checked).toBeGreaterThan(24)
})

test('an installation that differs is described, line by line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'live-workspace-check-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const make = (name: string, version: string, files: Readonly<Record<string, string>>) => {
    const path = join(folder, 'node_modules', name)
    mkdirSync(path, { recursive: true })
    const manifest = { name, version, type: 'module', main: 'index.js', exports: { '.': './index.js' } }
    for (const [file, text] of Object.entries({ ...files, 'package.json': JSON.stringify(manifest) }))
      writeFileSync(join(path, file), text)
  }
  make('@deepseek-ai/dsh', '0.2.0', {})
  make('@deepseek-ai/dsh-home-paths', '0.2.0', { 'index.js': 'export const other = 1\n' })
  make('@deepseek-ai/dsh-base', '0.2.0', { 'cordis.patch.yml': '- id: something\n' })
  const llm = dirname(require.resolve('@deepseek-ai/dsh-llm/package.json'))
  symlinkSync(llm, join(folder, 'node_modules', '@deepseek-ai', 'dsh-llm'))
  const { version, differences } = await checkAgainst(folder)

  expect(version).toBe('0.2.0')
  expect(differences).toEqual(
    expect.arrayContaining([
      'peer @deepseek-ai/dsh-agent: we allow 0.1.0-rc.8, it has none',
      'peer @deepseek-ai/dsh-home-paths: we allow 0.1.0-rc.8, it has 0.2.0',
      '@deepseek-ai/dsh-home-paths exports no resolveDshHome',
      '@deepseek-ai/dsh-base: no row "agent-instructions", which our patch disables and the web profile has in its presets',
      'event agent/pre-step: declared nowhere',
      'event fs/observed: declared nowhere',
      'service ctx.commands: declared nowhere',
    ]),
  )
  expect(differences.filter((line) => line.includes('dsh-llm'))).toEqual([])
})
