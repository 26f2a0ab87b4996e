import { renameSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { boot, quiet, read, textOf } from '../support/harness.ts'

const withRead = async (files: Readonly<Record<string, string>>, used: string) => {
  const harness = await boot({ files })
  const agent = await harness.agent('main')
  await harness.live()
  await agent.prompt()
  await agent.call(read(used))
  return { harness, agent }
}

const NAMES = [
  '.env~',
  '.env_prod',
  '.env-local',
  '.envs/prod',
  '.dev.vars',
  '.vault-token',
  '_netrc',
  '.my.cnf',
  '.dockercfg',
  'kubeconfig.yaml',
  'my_id_rsa',
  'deploy_key',
  'server.key.old',
  'key.pem.txt',
  'client_secret_1.json',
  'secret.json',
  'secrets/db.txt',
  'application-secrets.properties',
  'terraform.tfstate',
  'password.txt',
  '.config/gh/hosts.yml',
]

describe('what looks like a secret is not shown', () => {
  it.each(NAMES)('in %s', async (name) => {
    const { harness, agent } = await withRead({ [name]: 'T=one\n' }, name)
    harness.write(name, 'T=hunter2\n')
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain(`- modified "${name}"`)
    expect(textOf(agent.told)).not.toContain('hunter2')
    await agent.end()
  })

  it('where it was moved over a used file', async () => {
    const { harness, agent } = await withRead({ '.env': 'T=hunter2\n', 'config.txt': 'c\n' }, 'config.txt')
    renameSync(harness.path('.env'), harness.path('config.txt'))
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "config.txt" (+1 −1 lines)')
    expect(textOf(agent.told)).not.toContain('hunter2')
    await agent.end()
  })

  it('where a private key was put into a used file', async () => {
    const { harness, agent } = await withRead({ 'notes.txt': 'n\n' }, 'notes.txt')
    const key = ['-----BEGIN OPENSSH PRIVATE KEY-----', 'b3BlbnNzaC1r', '-----END OPENSSH PRIVATE KEY-----']
    harness.write('notes.txt', `n\n${key.join('\n')}\n`)
    await agent.call(quiet)
    expect(textOf(agent.told)).toContain('- modified "notes.txt" (+3 −0 lines)')
    expect(textOf(agent.told)).not.toContain('b3BlbnNzaC1r')
    await agent.end()
  })
})

it('a used text that became binary is told as such', async () => {
  const { harness, agent } = await withRead({ 'a.txt': 'text\n' }, 'a.txt')
  harness.write('a.txt', 'te\0xt\n')
  await agent.call(quiet)
  expect(textOf(agent.told)).toContain('- modified "a.txt" (binary or not UTF-8 now)')
  await agent.end()
})
