import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkout, packBundle, PACKAGE } from '../support/dsh.ts'
import { objectOf, parseJson, stringOf } from '../support/json.ts'
import { run } from '../support/process.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-package-')))
const modules = join(folder, 'node_modules')
/** The archive as a consumer has it, beside the packages of the harness. */
const installed = join(modules, PACKAGE)
const manifestAt = (path: string) => objectOf(parseJson(readFileSync(path, 'utf8'), path), path)
const filesIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .toSorted()

beforeAll(async () => {
  const archive = await packBundle(folder)
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', archive, '-C', installed, '--strip-components=1'])
  for (const name of readdirSync(join(checkout, 'node_modules')).filter((entry) => !entry.startsWith('.'))) {
    if (name !== PACKAGE) symlinkSync(join(checkout, 'node_modules', name), join(modules, name))
  }
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const checkTypes = async (source: string) => {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  writeFileSync(join(folder, 'consumer.ts'), source)
  const options = {
    compilerOptions: {
      module: 'nodenext',
      moduleResolution: 'nodenext',
      target: 'es2024',
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      types: ['node'],
    },
    files: ['consumer.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options))
  const tsc = join(
    dirname(realpathSync(join(checkout, 'node_modules/typescript/package.json'))),
    'bin',
    'tsc',
  )
  const { stdout } = await run({
    file: process.execPath,
    args: [tsc, '-p', folder],
    cwd: folder,
    env: process.env,
    timeoutMs: 60_000,
  })
  return stdout.split('\n').filter((line) => line.includes('error'))
}

describe('the archive', () => {
  test('holds what runs, what is read, and nothing else', () => {
    const others = filesIn(installed).filter((name) => !/^lib\/.*\.(js|d\.ts)$/.test(name))
    expect(others).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'cordis.patch.yml', 'package.json'])
    const sources = filesIn(join(checkout, 'src')).map((name) => name.replace(/\.ts$/, ''))
    for (const ending of ['.js', '.d.ts']) {
      const built = filesIn(join(installed, 'lib')).filter((name) => name.endsWith(ending))
      expect(built.map((name) => name.slice(0, -ending.length)).toSorted()).toEqual(sources.toSorted())
    }
  })

  test('names no map and no file outside itself', () => {
    const telling = filesIn(join(installed, 'lib')).filter((name) => {
      const text = readFileSync(join(installed, 'lib', name), 'utf8')
      return text.includes('sourceMappingURL') || text.includes(checkout)
    })
    expect(telling).toEqual([])
  })

  test('has a manifest that leads to files that are there', () => {
    const manifest = manifestAt(join(installed, 'package.json'))
    const bundle = objectOf(objectOf(manifest['dsh'], 'dsh')['bundle'], 'dsh.bundle')
    const exported = objectOf(objectOf(manifest['exports'], 'exports')['.'], 'exports["."]')
    const paths = [bundle['patch'], exported['types'], exported['default'], manifest['types']]
    for (const path of paths) expect(existsSync(join(installed, stringOf(path, 'a path')))).toBe(true)
    expect(manifest['version']).toBe(manifestAt(join(checkout, 'package.json'))['version'])
    const changelog = readFileSync(join(installed, 'CHANGELOG.md'), 'utf8')
    // Before a release its entries stand under "Unreleased".
    const version = stringOf(manifest['version'], 'version').replaceAll('.', String.raw`\.`)
    expect(changelog).toMatch(new RegExp(`^## \\[?(Unreleased|${version})`, 'm'))
    expect(JSON.stringify(manifest['dependencies'])).not.toMatch(/catalog:|workspace:|file:/)
    expect(JSON.stringify(manifest['peerDependencies'])).not.toMatch(/catalog:|workspace:|file:/)
  })

  test('asks for nothing that its manifest does not name', () => {
    const manifest = manifestAt(join(installed, 'package.json'))
    const named = ['dependencies', 'peerDependencies'].flatMap((field) =>
      Object.keys(objectOf(manifest[field], field)),
    )
    const asked = filesIn(join(installed, 'lib'))
      .filter((name) => name.endsWith('.js'))
      .flatMap((name) => [
        ...readFileSync(join(installed, 'lib', name), 'utf8').matchAll(
          /(?:from|import) ['"]([^.'"][^'"]*)['"]/g,
        ),
      ])
      .map(([, specifier = '']) => specifier)
      .filter((specifier) => !specifier.startsWith('node:'))
    const packages = asked.map((name) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/'),
    )
    expect(packages.length).toBeGreaterThan(5)
    expect([...new Set(packages)].filter((name) => !named.includes(name))).toEqual([])
  })

  test('is loaded by plain Node with what hosts look for', async () => {
    const script = `const m = await import('${PACKAGE}'); console.log(Object.keys(m).toSorted().join(), m.name)`
    const { stdout, stderr } = await run({
      file: process.execPath,
      args: ['--input-type=module', '-e', script],
      cwd: folder,
      env: process.env,
      timeoutMs: 30_000,
    })
    expect([stderr, stdout.trim()]).toEqual(['', 'Config,apply,inject,name live-workspace'])
  })

  test('has types that resolve under NodeNext, and that refuse what is wrong', async () => {
    const errors =
      await checkTypes(`import { apply, Config, type LiveWorkspaceConfig, type NoticeSource } from '${PACKAGE}'
import type { Context } from '@deepseek-ai/cordis'
export const config: LiveWorkspaceConfig = Config({ watch: { maxWaitMs: 400 } })
export const wait: number = config.watch.maxWaitMs
export const mount = (ctx: Context): void => apply(ctx, config)
export const categoryOf = (source: NoticeSource): string => source.category
export const wrong: string = config.watch.maxWaitMs
`)
    const ours = errors.filter((line) => /consumer|dsh-live-workspace/.test(line))
    expect(ours).toEqual([
      expect.stringMatching(/^consumer\.ts.*'number' is not assignable to type 'string'/),
    ])
  })
})
