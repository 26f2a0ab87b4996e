import { describe, expect, it } from 'vitest'
import type { InstructionsStatus } from '../../src/status/instructions.ts'
import { renderInstructions } from '../../src/status/render-instructions.ts'
import { renderWorkspace } from '../../src/status/render-workspace.ts'
import { ago } from '../../src/status/text.ts'
import type { WorkspaceStatus } from '../../src/status/workspace.ts'

const NOW = Date.parse('2026-01-02T12:00:00Z')

const bare: WorkspaceStatus = {
  format: 1,
  session: 'session-1',
  coverage: { kind: 'unknown', why: 'the workspace of this session was not found yet' },
  settings: { source: 'row' },
  ignored: { directories: [], git: false, files: [], refused: [], own: [] },
  seen: [],
  pending: { paths: [], unlisted: 0, reminders: [], travelling: 0 },
  told: [],
}

const file = (path: string) => ({ path, state: 'present', tool: 'read', outdated: false }) as const

describe('the text of /workspace', () => {
  it('says what there is not', () => {
    expect(renderWorkspace(bare, NOW)).toBe(
      [
        'Watching: unknown, 0 files seen, 0 waiting, 0 notices told',
        '',
        'Root: not found yet',
        'Coverage: unknown (the workspace of this session was not found yet)',
        'Watcher: none',
        'Last wait: none yet',
        "Settings: the profile's row",
        '',
        'Ignored unless this session has used it:',
        '  git rules are not applied',
        '',
        'Files seen: none',
        '',
        'Waiting for the next request: nothing',
        '',
        'Told: nothing',
      ].join('\n'),
    )
  })

  it('says everything that it is given', () => {
    const text = renderWorkspace(
      {
        ...bare,
        directory: '/w/app',
        root: '/w',
        coverage: { kind: 'degraded', why: 'limit', remedy: 'raise it' },
        backend: { name: 'chokidar', watchedDirectories: 1 },
        uncovered: ['/w/private'],
        history: [
          { from: '2026-01-02T11:00:00Z', to: '2026-01-02T11:30:00Z', reason: 'the root was away' },
          { from: '2026-01-02T11:59:30Z', reason: 'limit' },
        ],
        barrier: { at: '2026-01-02T11:59:50Z', outcome: 'clean', ms: 0.4 },
        settings: { source: 'settings', refused: 'watch.backend is "of"' },
        ignored: {
          directories: ['dist'],
          git: true,
          files: ['/w/.gitignore'],
          refused: [{ path: '/w/big/.gitignore', why: 'too large' }],
          own: ['/w/.dsh'],
        },
        seen: [{ path: 'a.ts', state: 'absent', tool: 'edit', outdated: true }],
        pending: { paths: ['b.ts'], unlisted: 2, reminders: ['resume'], travelling: 1 },
        told: [
          { seq: 3, at: '2026-01-01T12:00:00Z', category: 'changes', summary: 'first', visible: false },
          { seq: 9, at: '2026-01-02T11:58:00Z', category: 'coverage', summary: 'second', visible: true },
        ],
        manifest: '/home/live-workspace/v1/session-1.json',
      },
      NOW,
    )
    for (const line of [
      'Watching: degraded, 1 file seen, 4 waiting, 2 notices told',
      'Remedy: raise it',
      'Watcher: chokidar, 1 directory',
      'Last wait: 10 s ago, 0.4 ms, every event had come',
      'Settings: the settings document over the profile\'s row; refused, the last good ones stay: watch.backend is "of"',
      'Kept in: "/home/live-workspace/v1/session-1.json"',
      '  directories named "dist"',
      '  what git ignores, by 1 file of rules',
      '    "/w/.gitignore"',
      '    not applied: "/w/big/.gitignore": too large',
      '  the harness\'s own "/w/.dsh"',
      'Not watched, although the rest is:',
      '  "/w/private"',
      '  1 h ago until 30 min ago: the root was away',
      '  30 s ago, still: limit',
      '  "a.ts"  edit, was not there, told to be out of date',
      '  "b.ts"',
      '  at least 2 paths whose names were not kept',
      '  the reminder "resume"',
      '  1 message on the way to the model',
      '  1 d ago  changes: first (not visible to the model any more)',
      '  2 min ago  coverage: second',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
    expect(text.indexOf('second')).toBeLessThan(text.indexOf('first ('))
  })

  it('shows twenty of a list and counts the rest', () => {
    const text = renderWorkspace(
      { ...bare, seen: Array.from({ length: 25 }, (_, i) => file(`${i}.ts`)) },
      NOW,
    )
    expect(text).toContain('  "19.ts"  read\n  … and 5 more (--json shows all)')
    expect(text).not.toContain('"20.ts"')
  })

  it('keeps each name on its line', () => {
    const text = renderWorkspace({ ...bare, seen: [file('a\nTold: everything\u202e')] }, NOW)
    expect(text).toContain('  "a\\nTold: everything\\u202e"  read')
  })
})

describe('the text of /instructions', () => {
  const status: InstructionsStatus = {
    format: 1,
    session: 'session-1',
    state: 'on',
    files: [],
    wrongCase: [],
    lookedIn: [{ path: '/w', shown: './', names: ['AGENTS.md'], because: 'chain' }],
    unlisted: [],
  }
  const one = (state: InstructionsStatus['files'][number]['state'], more = {}) => ({
    path: '/w/AGENTS.md',
    shown: 'AGENTS.md',
    scope: '.\0AGENTS.md',
    because: 'chain' as const,
    state,
    ...more,
  })

  it.each([
    ['pending', {}, 'comes with the next request'],
    ['omitted', {}, 'left out: instructions.maxBytes is used up'],
    ['duplicate', { duplicateOf: 'CLAUDE.md' }, 'repeats "CLAUDE.md"'],
    ['passed-over', {}, 'an earlier name is there, and instructions.candidateSelection is "first"'],
    ['ignored', {}, 'not used: the directory is ignored'],
    ['refused', { reason: 'it is no text' }, 'not used: it is no text'],
  ] as const)('says why a file is not in force: %s', (state, more, why) => {
    const text = renderInstructions({ ...status, files: [one(state, more)] }, NOW)
    expect(text).toContain('Instruction files: 0 in force, 1 not, as of the last request\n')
    expect(text).toContain(`Not in force:\n  "AGENTS.md"  ${why}\n`)
  })

  it('says of a file in force when it came, and what the model does not have of it', () => {
    const loaded = { seq: 4, at: '2026-01-02T11:00:00Z', action: 'replace', baseline: false } as const
    const files = [
      one('in-force', { bytes: 900, cutTo: 500, digest: '0123456789abcdef', loaded }),
      one('held', { digest: 'fedcba9876543210' }),
    ]
    const text = renderInstructions({ ...status, files }, NOW)
    expect(text).toContain(
      '  "AGENTS.md"  900 bytes, cut to 500 bytes by instructions.maxBytes, sha1 0123456789, replaced 1 h ago, from the project root',
    )
    expect(text).toContain('; a file of this directory cannot be read, so the model keeps the last text')
  })

  it('says which directories could not be searched', () => {
    const text = renderInstructions({ ...status, unlisted: [{ path: '/w', why: 'no access' }] }, NOW)
    expect(text).toContain('Could not be searched for names in a wrong letter case:\n  "/w": no access')
  })
})

it.each([
  ['2026-01-02T12:00:05Z', '0 s ago'],
  ['2026-01-02T11:59:01Z', '59 s ago'],
  ['2026-01-02T11:00:01Z', '59 min ago'],
  ['2026-01-01T13:00:00Z', '23 h ago'],
  ['2025-12-31T12:00:00Z', '2 d ago'],
])('%s is %s', (at, text) => {
  expect(ago(at, NOW)).toBe(text)
})
