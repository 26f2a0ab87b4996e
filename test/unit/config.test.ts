import { describe, expect, it, onTestFinished } from 'vitest'
import { checkConfig, ConfigError } from '../../src/config.ts'
import { Config } from '../../src/index.ts'
import { SILENT_FILESYSTEMS } from '../../src/watch/mounts.ts'

type Settings = Readonly<Record<string, unknown>>

interface NumberKey {
  readonly room: 'watch' | 'notice' | 'instructions' | 'resume'
  readonly key: string
  readonly min: number
  readonly max: number
  /** Settings that the smallest or largest value needs beside it. */
  readonly beside?: Settings
}

const numberKeys: readonly NumberKey[] = [
  { room: 'instructions', key: 'maxSourceBytes', min: 1, max: 1_073_741_824 },
  { room: 'instructions', key: 'maxPassBytes', min: 1, max: 1_073_741_824 },
  { room: 'watch', key: 'debounceMs', min: 0, max: 60_000, beside: { maxWaitMs: 60_000 } },
  { room: 'watch', key: 'maxWaitMs', min: 1, max: 60_000, beside: { debounceMs: 0 } },
  { room: 'watch', key: 'pollIntervalMs', min: 10, max: 600_000 },
  { room: 'watch', key: 'maxIgnoreFileBytes', min: 0, max: 104_857_600 },
  { room: 'watch', key: 'maxIgnoreDirectories', min: 1, max: 10_000_000 },
  { room: 'watch', key: 'gitTimeoutMs', min: 1, max: 60_000 },
  { room: 'watch', key: 'sweepBudget', min: 0, max: 1_000_000 },
  { room: 'watch', key: 'maxJournalPaths', min: 1, max: 10_000_000 },
  { room: 'watch', key: 'maxWatchedDirectories', min: 1, max: 10_000_000 },
  { room: 'watch', key: 'watchLimitPercent', min: 1, max: 100 },
  { room: 'watch', key: 'maxUncoveredParts', min: 1, max: 1_000_000 },
  { room: 'watch', key: 'maxComparedFiles', min: 0, max: 10_000_000 },
  { room: 'watch', key: 'compareWaitMs', min: 0, max: 60_000 },
  { room: 'watch', key: 'scanSliceMs', min: 1, max: 1_000 },
  { room: 'watch', key: 'probeTimeoutMs', min: 1, max: 600_000 },
  { room: 'watch', key: 'restartJitterPercent', min: 0, max: 100 },
  { room: 'watch', key: 'maxRestarts', min: 1, max: 100_000 },
  { room: 'watch', key: 'restartWindowMs', min: 1, max: 604_800_000 },
  { room: 'watch', key: 'maxFaultHistory', min: 1, max: 10_000 },
  { room: 'watch', key: 'restartDelayMs', min: 1, max: 3_600_000, beside: { maxRestartDelayMs: 3_600_000 } },
  { room: 'watch', key: 'maxRestartDelayMs', min: 1, max: 86_400_000, beside: { restartDelayMs: 1 } },
  { room: 'notice', key: 'maxNoticePaths', min: 1, max: 10_000 },
  { room: 'notice', key: 'maxNoticeBytes', min: 512, max: 1_048_576 },
  { room: 'notice', key: 'maxPathBytes', min: 32, max: 65_536 },
  { room: 'notice', key: 'statConcurrency', min: 1, max: 1_024 },
  { room: 'notice', key: 'maxHangingChecks', min: 1, max: 1_024 },
  { room: 'notice', key: 'maxSteersPerTurn', min: 0, max: 100 },
  { room: 'notice', key: 'maxOwnCommandPaths', min: 0, max: 10_000 },
  { room: 'notice', key: 'maxOtherPaths', min: 0, max: 10_000 },
  { room: 'notice', key: 'maxCheckedPaths', min: 1, max: 1_000_000 },
  { room: 'notice', key: 'maxMoveReads', min: 0, max: 10_000 },
  { room: 'notice', key: 'racyWindowMs', min: 0, max: 600_000 },
  { room: 'notice', key: 'maxHunkBytes', min: 0, max: 65_536 },
  { room: 'notice', key: 'maxLineBytes', min: 32, max: 65_536 },
  { room: 'notice', key: 'hunkContextLines', min: 0, max: 20 },
  { room: 'notice', key: 'maxDigestBytes', min: 0, max: 1_073_741_824 },
  { room: 'notice', key: 'maxDigests', min: 1, max: 10_000_000 },
  { room: 'notice', key: 'maxTextBytes', min: 0, max: 16_777_216 },
  { room: 'notice', key: 'maxKeptTextBytes', min: 0, max: 1_073_741_824 },
  { room: 'resume', key: 'saveDelayMs', min: 0, max: 600_000 },
  { room: 'resume', key: 'flushMs', min: 1, max: 600_000 },
  { room: 'resume', key: 'maxFiles', min: 1, max: 1_000_000 },
  { room: 'resume', key: 'maxManifestBytes', min: 1_024, max: 268_435_456 },
  { room: 'resume', key: 'firstStepFiles', min: 1, max: 1_000_000 },
  { room: 'resume', key: 'firstStepMs', min: 0, max: 60_000 },
  { room: 'resume', key: 'maxResumePaths', min: 1, max: 10_000 },
  { room: 'resume', key: 'maxResumeBytes', min: 1_024, max: 1_048_576 },
  { room: 'resume', key: 'keepMs', min: 0, max: 315_360_000_000 },
  { room: 'resume', key: 'maxSessions', min: 1, max: 1_000_000 },
  { room: 'resume', key: 'maxSetAside', min: 0, max: 10_000 },
  { room: 'resume', key: 'unfinishedMs', min: 0, max: 86_400_000 },
]

const choiceKeys = [
  { room: 'watch', key: 'backend', values: ['auto', 'native', 'chokidar', 'polling', 'off'] },
  { room: 'notice', key: 'turnStopScope', values: ['workspace', 'session'] },
  { room: 'instructions', key: 'candidateSelection', values: ['distinct', 'first'] },
] as const

const switchKeys = [
  { room: 'watch', key: 'usePolling' },
  { room: 'notice', key: 'verifyAtTurnStop' },
  { room: 'watch', key: 'respectGitignore' },
  { room: 'watch', key: 'probeEvents' },
  { room: 'instructions', key: 'loadIgnoredDirectories' },
  { room: 'notice', key: 'showHunks' },
  { room: 'resume', key: 'enabled' },
  { room: 'resume', key: 'tellUnchanged' },
] as const

const listKeys = [
  { room: 'notice', key: 'commandTools' },
  { room: 'instructions', key: 'projectRootMarkers' },
  { room: 'instructions', key: 'instructionFileCandidates' },
  { room: 'instructions', key: 'localInstructionFileCandidates' },
  { room: 'watch', key: 'ignoredDirectories' },
  { room: 'watch', key: 'rootMarkers' },
  { room: 'watch', key: 'silentFilesystems' },
  { room: 'notice', key: 'secretFiles' },
] as const

const nameListKeys = ['ignoredDirectories', 'rootMarkers'] as const

const defaults = {
  watch: {
    backend: 'auto',
    usePolling: false,
    debounceMs: 75,
    maxWaitMs: 500,
    pollIntervalMs: 100,
    ignoredDirectories: ['.git', 'node_modules'],
    respectGitignore: true,
    maxIgnoreFileBytes: 262_144,
    maxIgnoreDirectories: 100_000,
    gitTimeoutMs: 2_000,
    rootMarkers: ['.git'],
    sweepBudget: 32,
    maxJournalPaths: 50_000,
    maxWatchedDirectories: 100_000,
    watchLimitPercent: 60,
    maxUncoveredParts: 1_000,
    maxComparedFiles: 100_000,
    compareWaitMs: 100,
    scanSliceMs: 8,
    silentFilesystems: SILENT_FILESYSTEMS,
    probeEvents: true,
    probeTimeoutMs: 2_000,
    restartDelayMs: 1_000,
    maxRestartDelayMs: 60_000,
    restartJitterPercent: 20,
    maxRestarts: 30,
    restartWindowMs: 3_600_000,
    maxFaultHistory: 20,
  },
  notice: {
    maxNoticePaths: 50,
    maxNoticeBytes: 4_096,
    maxPathBytes: 300,
    showHunks: true,
    maxHunkBytes: 1_200,
    maxLineBytes: 300,
    hunkContextLines: 1,
    maxDigestBytes: 4_194_304,
    maxDigests: 10_000,
    racyWindowMs: 2_000,
    maxTextBytes: 65_536,
    maxKeptTextBytes: 4_194_304,
    // Too long to stand twice; what it must hold is tested where it is used.
    secretFiles: expect.arrayContaining(['.env*', '*.pem*', '*id_rsa*']) as unknown,
    commandTools: ['bash', 'pwsh', 'bash_persistent', 'pwsh_persistent', 'run_code', 'shell'],
    maxOwnCommandPaths: 5,
    maxOtherPaths: 20,
    maxCheckedPaths: 200,
    maxMoveReads: 50,
    statConcurrency: 16,
    maxHangingChecks: 2,
    verifyAtTurnStop: true,
    turnStopScope: 'workspace',
    maxSteersPerTurn: 3,
  },
  resume: {
    enabled: true,
    tellUnchanged: true,
    saveDelayMs: 250,
    flushMs: 2_000,
    maxFiles: 10_000,
    maxManifestBytes: 4_194_304,
    firstStepFiles: 5_000,
    firstStepMs: 30,
    maxResumePaths: 50,
    maxResumeBytes: 4_096,
    keepMs: 2_592_000_000,
    maxSessions: 1_000,
    maxSetAside: 8,
    unfinishedMs: 60_000,
  },
  instructions: {
    dshHome: '',
    projectRootMarkers: ['.git'],
    maxBytes: 65_536,
    maxSourceBytes: 1_048_576,
    maxPassBytes: 8_388_608,
    instructionFileCandidates: ['AGENTS.md', 'CLAUDE.md'],
    localInstructionFileCandidates: ['AGENTS.local.md', 'CLAUDE.local.md'],
    candidateSelection: 'distinct',
    loadIgnoredDirectories: false,
  },
}

/** The message with which a configuration is turned down. */
const rejection = (raw: unknown): string => {
  try {
    checkConfig(raw)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error(`accepted: ${JSON.stringify(raw)}`)
}

const resolved = (room: string, settings: Settings): Settings => {
  const found = new Map<string, object | false>(Object.entries(checkConfig({ [room]: settings }))).get(room)
  return { ...found }
}

describe('defaults', () => {
  it.each([undefined, null, {}, { watch: {} }, { notice: {}, watch: undefined }])(
    '%j gives the documented ones',
    (raw) => {
      expect(checkConfig(raw)).toEqual(defaults)
    },
  )

  it('cover every key that these tests know, and no other', () => {
    const keys = [...numberKeys, ...choiceKeys, ...switchKeys, ...listKeys]
    const tested = keys.map(({ room, key }) => `${room}.${key}`)
    // The two with rules of their own.
    tested.push('instructions.dshHome', 'instructions.maxBytes')
    const known = Object.entries(defaults).flatMap(([room, keys]) =>
      Object.keys(keys).map((key) => `${room}.${key}`),
    )
    expect(tested.toSorted()).toEqual(known.toSorted())
  })

  it('are kept for the keys that are not given', () => {
    expect(checkConfig({ watch: { debounceMs: 10 }, notice: { statConcurrency: 4 } })).toEqual({
      watch: { ...defaults.watch, debounceMs: 10 },
      notice: { ...defaults.notice, statConcurrency: 4 },
      instructions: defaults.instructions,
      resume: defaults.resume,
    })
  })

  it('cannot be changed through a configuration that was handed out', () => {
    checkConfig({}).watch.ignoredDirectories.push('mine')
    expect(checkConfig({}).watch.ignoredDirectories).toEqual(['.git', 'node_modules'])
  })
})

describe.each(numberKeys)('$key of $room', ({ room, key, min, max, beside }) => {
  const allowed = `a whole number from ${min} to ${max} (default `

  it.each([
    ['text', '75', '"75"'],
    ['a switch', true, 'true'],
    ['a list', [75], '[75]'],
    ['a group', { ms: 75 }, '{"ms":75}'],
    ['null', null, 'null'],
    ['NaN', NaN, 'NaN'],
    ['infinity', Infinity, 'Infinity'],
    ['negative infinity', -Infinity, '-Infinity'],
    ['a fraction', min + 0.5, String(min + 0.5)],
    ['one below the smallest', min - 1, String(min - 1)],
    ['one above the largest', max + 1, String(max + 1)],
  ])('rejects %s', (_what, value, shown) => {
    const message = rejection({ [room]: { [key]: value } })
    expect(message).toContain(`${room}.${key} is ${shown}; allowed: ${allowed}`)
  })

  it('takes the smallest and the largest value', () => {
    for (const value of [min, max]) expect(resolved(room, { ...beside, [key]: value })[key]).toBe(value)
  })
})

describe('the instructions room', () => {
  it.each([false, { maxBytes: 0 }, { maxBytes: -1 }, { maxBytes: NaN }, { maxBytes: Infinity }])(
    'is off with %j',
    (instructions) => {
      expect(checkConfig({ instructions }).instructions).toBe(false)
    },
  )

  it.each([true, null, 'off', [], 0])('rejects %j, which is no group of settings', (instructions) => {
    expect(rejection({ instructions })).toContain('instructions is ')
  })

  it.each([null, '65536', true])('rejects %j as maxBytes', (maxBytes) => {
    expect(rejection({ instructions: { maxBytes } })).toContain('instructions.maxBytes is ')
  })

  it('does not let another fault pass because it is off', () => {
    expect(rejection({ instructions: { maxBytes: 0, maxSourceBytes: 0 } })).toContain('maxSourceBytes')
  })
})

describe.each(choiceKeys)('$key of $room', ({ room, key, values }) => {
  it.each(['inotify', '', 'AUTO', 1, true, null, NaN, ['auto'], {}])('rejects %j', (value) => {
    const message = rejection({ [room]: { [key]: value } })
    expect(message).toContain(`${room}.${key} is `)
    for (const each of values) expect(message).toContain(JSON.stringify(each))
  })

  it('takes each of its values', () => {
    for (const value of values) expect(resolved(room, { [key]: value })[key]).toBe(value)
  })
})

describe.each(switchKeys)('$key of $room', ({ room, key }) => {
  it.each(['true', 'false', '', 0, 1, null, NaN, [], {}])('rejects %j', (value) => {
    const message = rejection({ [room]: { [key]: value } })
    expect(message).toContain(`${room}.${key} is `)
    expect(message).toContain('true or false')
  })

  it('takes both of its values', () => {
    for (const value of [true, false]) expect(resolved(room, { [key]: value })[key]).toBe(value)
  })
})

describe.each(listKeys)('$key of $room', ({ room, key }) => {
  it.each([
    ['dist'],
    [['dist', 1]],
    [['dist', null]],
    [['dist', ['x']]],
    [{ 0: 'dist' }],
    [null],
    [NaN],
    [7],
  ])('rejects %j, which is no list of strings', (value) => {
    const message = rejection({ [room]: { [key]: value } })
    expect(message).toContain(`${room}.${key} is `)
    expect(message).toContain('a list of strings')
  })

  it('takes strings, also none', () => {
    for (const strings of [[], ['dist'], ['a', 'b']])
      expect(resolved(room, { [key]: strings })[key]).toEqual(strings)
  })
})

describe.each(nameListKeys)('watch.%s', (key) => {
  it.each(['', '.', '..', 'a/b', '/a', 'a\\b', 'a\0b'])('rejects %j, which is no name', (name) => {
    const message = rejection({ watch: { [key]: ['dist', name] } })
    expect(message).toContain(`watch.${key} is ${JSON.stringify(name)}`)
    expect(message).toContain('plain file names')
  })

  it('takes names, also none and unusual ones', () => {
    for (const names of [[], ['dist'], ['...', ' ', 'ä b', '-x']])
      expect(resolved('watch', { [key]: names })[key]).toEqual(names)
  })
})

describe('the shape of a configuration', () => {
  it.each(['watch', 7, true, [], ['watch'], NaN])('rejects %j instead of the whole', (raw) => {
    expect(rejection(raw)).toContain('config is ')
  })

  it.each(['watch', 'notice'])('rejects anything but a group as %s', (room) => {
    for (const value of [null, 7, 'x', false, [], NaN])
      expect(rejection({ [room]: value })).toMatch(
        new RegExp(`: ${room} is .+; allowed: a group of settings`),
      )
  })
})

describe('values that JSON cannot show', () => {
  it.each([
    'watch.debounceMs',
    'watch.backend',
    'watch.ignoredDirectories',
    'watch.nothing',
    'watch',
    'other',
  ])('are turned down as %s like every other', (key) => {
    const cyclic: Record<string, unknown> = {}
    cyclic['self'] = cyclic
    const [room = '', name] = key.split('.')
    for (const value of [75n, [cyclic]])
      expect(rejection({ [room]: name === undefined ? value : { [name]: value } })).toContain(key)
  })
})

describe('unknown keys', () => {
  it('are answered with the nearest name of the room', () => {
    expect(rejection({ watch: { debouncMs: 75 } })).toContain('did you mean "watch.debounceMs"?')
    expect(rejection({ notice: { maxNoticePath: 5 } })).toContain('did you mean "notice.maxNoticePaths"?')
    expect(rejection({ watch: { ignoreDirectories: [] } })).toContain(
      'did you mean "watch.ignoredDirectories"?',
    )
  })

  it('name the key, its value and the known names', () => {
    const message = rejection({ watch: { debouncMs: 12 } })
    expect(message).toContain('watch.debouncMs (unknown key) is 12')
    for (const known of Object.keys(defaults.watch)) expect(message).toContain(known)
  })

  it('of the whole are answered with the nearest room', () => {
    expect(rejection({ wach: {} })).toContain('did you mean "watch"?')
    expect(rejection({ notices: {} })).toContain('did you mean "notice"?')
  })

  it('are found even when their value is undefined', () => {
    expect(rejection({ watch: { nothing: undefined } })).toContain('watch.nothing (unknown key)')
  })

  it.each([...numberKeys, ...choiceKeys, ...switchKeys, ...listKeys])(
    '$key without its room names $room',
    (each) => {
      expect(rejection({ [each.key]: 75 })).toContain(
        `it belongs into the room "${each.room}": ${each.room}.${each.key}`,
      )
    },
  )

  it('of another room are unknown', () => {
    expect(rejection({ watch: { maxNoticePaths: 5 } })).toContain('watch.maxNoticePaths (unknown key)')
  })

  it.each(['toString', 'constructor', '__proto__'])('%s is no key', (key) => {
    const raw: unknown = JSON.parse(`{"watch":{"${key}":1}}`)
    expect(rejection(raw)).toContain(`watch.${key} (unknown key)`)
  })
})

describe('settings that do not fit each other', () => {
  it('maxWaitMs is at least debounceMs', () => {
    expect(rejection({ watch: { debounceMs: 501 } })).toContain(
      'watch.maxWaitMs is 500; allowed: at least watch.debounceMs (501)',
    )
    expect(checkConfig({ watch: { debounceMs: 501, maxWaitMs: 501 } }).watch.maxWaitMs).toBe(501)
  })

  it('maxRestartDelayMs is at least restartDelayMs', () => {
    expect(rejection({ watch: { restartDelayMs: 60_001 } })).toContain(
      'watch.maxRestartDelayMs is 60000; allowed: at least watch.restartDelayMs (60001)',
    )
    expect(checkConfig({ watch: { restartDelayMs: 60_000 } }).watch.restartDelayMs).toBe(60_000)
  })

  it('takes the native backend for a wrong value where the system has no such watches', () => {
    const { platform } = process
    Object.defineProperty(process, 'platform', { value: 'darwin' })
    onTestFinished(() => {
      Object.defineProperty(process, 'platform', { value: platform })
    })
    expect(rejection({ watch: { backend: 'native' } })).toContain(
      'watch.backend is "native"; allowed: "auto", "chokidar", "polling", "off" on darwin',
    )
    expect(checkConfig({ watch: { backend: 'chokidar' } }).watch.backend).toBe('chokidar')
  })

  it.each(['native', 'chokidar', 'off'])('usePolling cannot stand beside backend "%s"', (backend) => {
    expect(rejection({ watch: { usePolling: true, backend } })).toContain(
      `watch.usePolling is true; allowed: false beside watch.backend "${backend}"`,
    )
    expect(checkConfig({ watch: { usePolling: false, backend } }).watch.backend).toBe(backend)
  })

  it.each([{}, { backend: 'auto' }, { backend: 'polling' }])(
    'usePolling beside %j means polling',
    (beside) => {
      expect(checkConfig({ watch: { usePolling: true, ...beside } }).watch.backend).toBe('polling')
    },
  )
})

describe('Config, as the host calls it', () => {
  it('resolves like checkConfig', () => {
    expect(Config(undefined)).toEqual(defaults)
    expect(Config({ watch: { usePolling: true } }).watch.backend).toBe('polling')
  })

  it('throws the same errors, with the message a person reads', () => {
    expect(() => Config({ watch: { debouncMs: 1 } })).toThrow('did you mean "watch.debounceMs"?')
    expect(() => Config({ notice: { maxNoticeBytes: NaN } })).toThrow('notice.maxNoticeBytes is NaN')
  })
})

describe('a message about a wrong setting', () => {
  it('shows what would act on a terminal as an escape', () => {
    const message = rejection({ watch: { 'bad\u001b[31mkey\u202e': true } })
    expect(message).toContain(String.raw`bad\u001b[31mkey\u202e`)
    expect(rejection({ notice: { turnStopScope: 'a\u202eb' } })).toContain(String.raw`a\u202eb`)
  })
})
