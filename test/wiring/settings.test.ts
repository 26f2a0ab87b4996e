import { describe, expect, it } from 'vitest'
import { boot, type Harness, quiet, read, type TestAgent, textOf } from '../support/harness.ts'
import { commandText, type SettingsFile, withCommands, withSettings } from '../support/services.ts'

const LIMIT_MS = 10_000

const withSection = async (
  yaml: string | undefined,
  config: Record<string, Record<string, unknown>> = {},
): Promise<{ harness: Harness; agent: TestAgent; settings: SettingsFile }> => {
  const harness = await boot({ files: { 'a.ts': 'one\n', 'b.ts': 'one\n' }, config })
  await withCommands(harness)
  const settings = await withSettings(harness, yaml)
  const agent = await harness.agent('main')
  await agent.prompt()
  return { harness, agent, settings }
}

const says = async (harness: Harness, agent: TestAgent, part: string): Promise<void> => {
  await expect
    .poll(async () => commandText(harness, agent, '/workspace'), { timeout: LIMIT_MS, interval: 20 })
    .toContain(part)
}

describe('a section in the settings document', () => {
  it('is in force over the row from the start', async () => {
    const { harness, agent } = await withSection('live-workspace:\n  watch: { backend: "off" }\n')
    await says(harness, agent, 'Coverage: off (')
    await says(harness, agent, "Settings: the settings document over the profile's row")
    await agent.end()
  })

  it('is applied while sessions live, which lose nothing of what they have seen', async () => {
    const { harness, agent, settings } = await withSection(undefined)
    await agent.call(read('a.ts'))
    await says(harness, agent, "Settings: the profile's row")
    settings.write('live-workspace:\n  watch: { backend: "off" }\n  notice: { showHunks: false }\n')
    await says(harness, agent, 'Coverage: off (')
    harness.write('a.ts', 'two\n')
    await agent.call(quiet)

    expect(textOf(agent.told)).toContain('- modified "a.ts"\n')
    expect(textOf(agent.told)).not.toContain('+two')
    expect(textOf(agent.notices)).not.toContain('from now on')
    await agent.end()
  })

  it('gives way to the row when it is removed', async () => {
    const { harness, agent, settings } = await withSection('live-workspace:\n  watch: { backend: "off" }\n')
    await says(harness, agent, 'Coverage: off (')
    settings.write('{}\n')
    await says(harness, agent, 'Coverage: live (')
    await says(harness, agent, "Settings: the profile's row")
    await agent.end()
  })

  it('gives way to the row when the service goes', async () => {
    const { harness, agent, settings } = await withSection('live-workspace:\n  watch: { backend: "off" }\n')
    await says(harness, agent, 'Coverage: off (')
    await settings.remove()
    await says(harness, agent, 'Coverage: live (')
    await agent.end()
  })
})

describe('a wrong value in the section', () => {
  it('is reported, and the last good settings stay until it is corrected', async () => {
    const { harness, agent, settings } = await withSection('live-workspace:\n  watch: { backend: "off" }\n')
    await says(harness, agent, 'Coverage: off (')
    settings.write('live-workspace:\n  watch: { backend: "of" }\n')
    await says(
      harness,
      agent,
      'refused, the last good ones stay: dsh-live-workspace: watch.backend is "of"; allowed:',
    )
    await says(harness, agent, 'Coverage: off (')
    expect(harness.errors.join()).toContain(
      'the section "live-workspace" of the settings is not applied: dsh-live-workspace: watch.backend is "of"',
    )

    settings.write('live-workspace:\n  watch: { backend: auto }\n')
    await says(harness, agent, 'Coverage: live (')
    expect(await commandText(harness, agent, '/workspace')).not.toContain('refused')
    await agent.end()
  })

  it('at the start leaves the row in force, and a correction is applied', async () => {
    const { harness, agent, settings } = await withSection('live-workspace:\n  wotch: {}\n', {
      watch: { backend: 'off' },
    })
    await says(harness, agent, 'wotch (unknown key)')
    await says(harness, agent, 'Coverage: off (')
    expect(harness.errors.join()).toContain('wotch (unknown key)')
    settings.write('live-workspace:\n  watch: { backend: auto }\n')
    await says(harness, agent, 'Coverage: live (')
    await agent.end()
  })

  it.each(['live-workspace:\n', 'live-workspace: 5\n'])(
    'that is no group of keys is reported: %j',
    async (yaml) => {
      const { harness, agent } = await withSection(yaml)
      await says(harness, agent, 'must be an object of keys')
      await says(harness, agent, 'Coverage: live (')
      expect(harness.errors.join()).toContain('start the harness again')
      await agent.end()
    },
  )
})

describe('settings that change in quick succession', () => {
  it('end with the last ones, and leave one watcher', async () => {
    const { harness, agent, settings } = await withSection(undefined)
    for (const most of [10, 20, 30, 40]) {
      settings.write(`live-workspace:\n  watch: { backend: "off" }\n  notice: { maxNoticePaths: ${most} }\n`)
    }
    settings.write('live-workspace:\n  watch: { backend: auto, sweepBudget: 5 }\n')
    await says(harness, agent, "Settings: the settings document over the profile's row")
    await says(harness, agent, 'Coverage: live (')
    harness.write('b.ts', 'two\n')
    await expect
      .poll(async () => commandText(harness, agent, '/workspace'), { timeout: LIMIT_MS, interval: 20 })
      .toContain('"b.ts"')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('"b.ts"')
    await agent.end()
  })
})
