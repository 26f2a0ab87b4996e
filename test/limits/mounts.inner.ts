import { execFileSync } from 'node:child_process'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesystemOf } from '../../src/watch/mounts.ts'
import { quiet, read, textOf } from '../support/harness.ts'
import { waitFor } from '../support/wait.ts'
import { coverageTexts, provesAttention, using } from './scene.ts'

const mount = (path: string): void => {
  execFileSync('mount', ['-t', 'tmpfs', 'none', path])
  onTestFinished(() => {
    execFileSync('sh', ['-c', 'umount "$0" 2>/dev/null || true', path])
  })
}
const unmount = (path: string): void => {
  execFileSync('umount', [path])
}

describe('a filesystem mounted over the root', () => {
  it('is a lost root and never "every file deleted"; after the unmount everything is looked at', async () => {
    const { harness, agent } = await using(5)
    await harness.live()
    mount(harness.workspace)
    expect(filesystemOf(harness.path('used.ts'))).toBe('tmpfs')
    await agent.call(read('/nowhere'))
    expect(coverageTexts(agent)).toEqual([expect.stringContaining('moved, replaced or removed')])
    expect(textOf(agent.notices)).not.toContain('deleted')
    unmount(harness.workspace)
    harness.write('used.ts', 'behind the mount\n')
    await harness.live()
    await agent.call(quiet)
    await agent.call(quiet)
    expect(textOf(agent.notices)).toContain('behind the mount')
    await provesAttention(harness, agent)
    await agent.end()
    expect(coverageTexts(agent)).toHaveLength(2)
    expect(harness.errors).toHaveLength(1)
  })

  it('of a type that is not trusted is not watched', async () => {
    const { harness, agent } = await using(5, { silentFilesystems: ['tmpfs'] })
    await harness.live()
    mount(harness.workspace)
    // Lost first, and looked at again a moment later.
    await waitFor(
      async () => {
        await agent.call(read('/nowhere'))
        return coverageTexts(agent).at(-1)?.includes('does not report every change')
      },
      { timeoutMs: 10_000, describe: () => coverageTexts(agent).join('\n') },
    )
    await agent.cancel()
    const texts = coverageTexts(agent)
    expect(texts).toHaveLength(2)
  })
})
