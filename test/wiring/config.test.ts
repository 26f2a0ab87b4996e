import { Context } from '@deepseek-ai/cordis'
import { Loader } from '@deepseek-ai/cordis-plugin-loader'
import { AgentRegistry } from '@deepseek-ai/dsh-agent'
import { describe, expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../support/wait.ts'

const MODULE = new URL('../../src/index.ts', import.meta.url).href

/** Mount the module as a row of a profile does. */
const load = async (config?: unknown) => {
  const ctx = new Context()
  const errors: string[] = []
  ctx.logger.exporter({
    export: ({ type, args }) => {
      if (type === 'error') errors.push(args.map(String).join(' '))
    },
  })
  const agents = ctx.plugin(AgentRegistry)
  await agents
  const row = ctx.plugin(Loader)
  await row
  onTestFinished(async () => {
    await row.dispose()
    await agents.dispose()
  })
  const id = await ctx.loader.create({ name: MODULE, ...(config === undefined ? {} : { config }) })
  await ctx.loader.await()
  return { ctx, id, errors }
}

describe('the row without a configuration', () => {
  it.each([
    ['none at all', undefined],
    ['an empty one', {}],
    ['empty rooms', { watch: {}, notice: {} }],
  ])('mounts: %s', async (_what, config) => {
    await expect(load(config)).resolves.toBeDefined()
  })
})

describe('a wrong setting fails the load and says which, what it is and what is allowed', () => {
  it.each([
    // A kind of value that the key does not take.
    [
      { watch: { backend: 'inotify' } },
      'watch.backend',
      '"inotify"',
      '"auto", "native", "chokidar", "polling", "off"',
    ],
    [{ watch: { backend: null } }, 'watch.backend', 'null', '"auto"'],
    [{ watch: { usePolling: 'yes' } }, 'watch.usePolling', '"yes"', 'true or false'],
    [{ watch: { debounceMs: '75' } }, 'watch.debounceMs', '"75"', 'a whole number from 0 to 60000'],
    [{ watch: { ignoredDirectories: 'dist' } }, 'watch.ignoredDirectories', '"dist"', 'a list of strings'],
    [{ watch: { rootMarkers: [1] } }, 'watch.rootMarkers', '[1]', 'a list of strings'],
    [{ notice: { turnStopScope: 'all' } }, 'notice.turnStopScope', '"all"', '"workspace", "session"'],
    [{ notice: { verifyAtTurnStop: 1 } }, 'notice.verifyAtTurnStop', '1', 'true or false'],
    // A number out of bounds.
    [{ watch: { maxWaitMs: 0 } }, 'watch.maxWaitMs', '0', 'a whole number from 1 to 60000'],
    [{ watch: { maxWaitMs: 1.5, debounceMs: 0 } }, 'watch.maxWaitMs', '1.5', 'a whole number'],
    [{ watch: { pollIntervalMs: 9 } }, 'watch.pollIntervalMs', '9', 'from 10 to'],
    [{ watch: { sweepBudget: -1 } }, 'watch.sweepBudget', '-1', 'from 0 to'],
    [{ watch: { maxJournalPaths: 0 } }, 'watch.maxJournalPaths', '0', 'from 1 to'],
    [{ watch: { restartDelayMs: 0 } }, 'watch.restartDelayMs', '0', 'from 1 to'],
    [{ notice: { maxNoticePaths: 0 } }, 'notice.maxNoticePaths', '0', 'from 1 to'],
    [{ notice: { maxNoticeBytes: 100 } }, 'notice.maxNoticeBytes', '100', 'from 512 to'],
    [{ notice: { maxPathBytes: 8 } }, 'notice.maxPathBytes', '8', 'from 32 to'],
    [{ notice: { statConcurrency: 0 } }, 'notice.statConcurrency', '0', 'from 1 to'],
    [{ notice: { maxSteersPerTurn: -1 } }, 'notice.maxSteersPerTurn', '-1', 'from 0 to'],
    [{ notice: { maxSteersPerTurn: Number.NaN } }, 'notice.maxSteersPerTurn', 'NaN', 'from 0 to'],
    [{ notice: { maxNoticePaths: Infinity } }, 'notice.maxNoticePaths', 'Infinity', 'from 1 to'],
    // A key that does not exist.
    [{ watch: { debounce: 75 } }, 'watch.debounce (unknown key)', '75', 'did you mean "watch.debounceMs"?'],
    [{ notices: {} }, 'notices (unknown key)', '{}', 'did you mean "notice"?'],
    [{ debounceMs: 75 }, 'debounceMs (unknown key)', '75', 'watch.debounceMs'],
    // A room that is no room.
    [{ watch: true }, 'watch', 'true', 'a group of settings'],
    [{ notice: [] }, 'notice', '[]', 'a group of settings'],
    ['chokidar', 'config', '"chokidar"', 'groups of settings'],
    // Settings that contradict each other.
    [{ watch: { debounceMs: 600 } }, 'watch.maxWaitMs', '500', 'at least watch.debounceMs (600)'],
    [
      { watch: { restartDelayMs: 100_000 } },
      'watch.maxRestartDelayMs',
      '60000',
      'at least watch.restartDelayMs (100000)',
    ],
    [{ watch: { usePolling: true, backend: 'off' } }, 'watch.usePolling', 'true', 'false beside'],
    [{ watch: { ignoredDirectories: ['a/b'] } }, 'watch.ignoredDirectories', '"a/b"', 'plain file names'],
    [{ watch: { rootMarkers: ['..'] } }, 'watch.rootMarkers', '".."', 'plain file names'],
  ])('%j', async (config, key, value, allowed) => {
    const message = await load(config).then(
      () => 'it loaded',
      (error: unknown) => (error instanceof Error ? messages(error) : String(error)),
    )

    expect(message).toContain(`${key} is ${value}; allowed: `)
    expect(message).toContain(allowed)
  })
})

describe('a wrong edit of a running row', () => {
  it('is reported once, and the last good settings stay', async () => {
    const { ctx, id, errors } = await load({ watch: { backend: 'off' } })
    const warnings: string[] = []
    const note = ({ message }: Error) => warnings.push(message)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const edit = async () => ctx.loader.update(id, { config: { watch: { backend: 'of' } } })
    await expect(edit()).rejects.toThrow('watch.backend is "of"')

    const said = errors.filter((text) => text.includes('Remedy:'))
    expect(said).toEqual([
      expect.stringContaining(
        'an edit of this plugin\'s configuration is not applied: dsh-live-workspace: watch.backend is "of"; allowed:',
      ),
    ])
    await waitFor(() => warnings.length > 0, { timeoutMs: 5_000, describe: 'the warning on stderr' })
    expect(warnings).toEqual(said)
  })
})

/** Messages of an error and of its causes. */
const messages = (error: Error): string =>
  [error.message, ...(error.cause instanceof Error ? [messages(error.cause)] : [])].join('\n')
