import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { generateReadme } from '../../scripts/readme.ts'

test('the settings and messages in the README are those of the code', async () => {
  const path = join(import.meta.dirname, '..', '..', 'README.md')
  const readme = readFileSync(path, 'utf8')
  const options = { ...(await resolveConfig(path)), filepath: path }
  expect(readme).toBe(await format(generateReadme(readme), options))
})
