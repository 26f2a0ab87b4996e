/**
 * Says what an installation of dsh lacks of what this bundle rests on: versions of the peers, rows that
 * the patch addresses, exported names, events and services.
 *
 *     pnpm check:dsh                  the installation of this checkout
 *     pnpm check:dsh ../somewhere     that of another folder (one with node_modules/@deepseek-ai/dsh)
 *     pnpm check:dsh 0.1.0-rc.8       that version, installed into a temporary folder
 *
 * Ends with 1 when something differs. It reads names, not behaviour: the end-to-end tests decide.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { satisfies, valid } from 'semver'

const checkout = join(import.meta.dirname, '..')
const SCOPE = '@deepseek-ai/'
const DSH = `${SCOPE}dsh`
/** The row that our patch disables, and packages whose patches are expected to speak of it. */
const STOCK_ROW = 'agent-instructions'
const ROW_OWNERS = [`${SCOPE}dsh-base`, `${SCOPE}dsh-web-app`]

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const manifestAt = (folder: string): Readonly<Record<string, unknown>> => {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (!isRecord(manifest)) throw new Error(`${folder}/package.json holds no object`)
  return manifest
}

const stringsOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(isRecord(value) ? value : {}).map(([key, text]) => [key, String(text)]))

/** A package as another one finds it, whatever that one's `exports` hide. */
const folderOf = (name: string, from: string): string | undefined => {
  const paths = createRequire(join(from, 'package.json')).resolve.paths(name) ?? []
  const found = paths.map((path) => join(path, name)).find((path) => existsSync(join(path, 'package.json')))
  return found === undefined ? undefined : realpathSync(found)
}

const filesBelow = (folder: string, ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .map((name) => join(folder, name))

const sources = (): readonly string[] =>
  filesBelow(join(checkout, 'src'), '.ts').map((path) => readFileSync(path, 'utf8'))

/** Names that the sources import to use, not only as types, by package. */
const importedNames = (): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const source of sources()) {
    for (const [, names = '', from = ''] of source.matchAll(
      /^import \{([^}]*)\} from '(@deepseek-ai\/[^']+)'/gm,
    )) {
      const known = found.get(from) ?? new Set<string>()
      for (const name of names.split(',').map((each) => each.trim())) {
        if (name !== '' && !name.startsWith('type ')) known.add(name.split(' as ')[0] ?? name)
      }
      found.set(from, known)
    }
  }
  return found
}

/** Events that the sources listen to or emit, and services that they ask for. */
const usedNames = (pattern: RegExp): ReadonlySet<string> =>
  new Set(sources().flatMap((source) => Array.from(source.matchAll(pattern), ([, name = '']) => name)))

const EVENTS = /ctx\s*\.(?:on|emit)\(\s*'([a-z-]+\/[a-z/-]+)'/g
const SERVICES = /\.(?:inject\(\[|get\()'([a-zA-Z]+)'/g

/** Declarations of all packages of the scope that lie beside a package. */
const declarationsNear = (dsh: string): string => {
  // Not what the environment adds (NODE_PATH): that belongs to another installation.
  const [real, store = ''] = [realpathSync(dsh), /^.*\/\.pnpm(?=\/)/.exec(realpathSync(dsh))?.[0]]
  const around = (createRequire(join(real, 'package.json')).resolve.paths(DSH) ?? []).filter((path) =>
    real.startsWith(dirname(path) + sep),
  )
  const scopes = [...around, ...(store === '' ? [] : [join(store, 'node_modules')])].map((path) =>
    join(path, SCOPE),
  )
  const packages = new Set(
    scopes
      .filter((path) => existsSync(path))
      .flatMap((path) => readdirSync(path).map((name) => realpathSync(join(path, name)))),
  )
  return [...packages]
    .flatMap((path) => filesBelow(path, '.d.ts'))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')
}

/**
 * @param folder - a folder from which dsh is found.
 * @returns the version of dsh, how much was looked at, and one line for each difference.
 */
export const checkAgainst = async (
  folder: string,
): Promise<{
  readonly version: string
  readonly checked: number
  readonly differences: readonly string[]
}> => {
  const dsh = folderOf(DSH, folder)
  if (dsh === undefined) throw new Error(`there is no ${DSH} to be found from ${folder}`)
  const differences: string[] = []
  let checked = 0
  const expectThat = (holds: boolean, otherwise: string): void => {
    checked += 1
    if (!holds) differences.push(otherwise)
  }

  for (const [name, range] of Object.entries(stringsOf(manifestAt(checkout)['peerDependencies']))) {
    const found = folderOf(name, dsh)
    const version = found && String(manifestAt(found)['version'])
    expectThat(
      version !== undefined && satisfies(version, range),
      `peer ${name}: we allow ${range}, it has ${version ?? 'none'}`,
    )
  }
  for (const [name, names] of importedNames()) {
    const ours = name in stringsOf(manifestAt(checkout)['dependencies'])
    const found = ours ? undefined : folderOf(name, dsh)
    if (!found) {
      expectThat(ours, `package ${name}: not there`)
      continue
    }
    const entry = createRequire(join(dsh, 'package.json')).resolve(found)
    const module: unknown = names.size === 0 ? {} : await import(pathToFileURL(entry).href)
    for (const each of names) expectThat(isRecord(module) && each in module, `${name} exports no ${each}`)
  }
  for (const owner of ROW_OWNERS) {
    const found = folderOf(owner, dsh)
    const patch = found && join(found, 'cordis.patch.yml')
    expectThat(
      patch !== undefined && existsSync(patch) && readFileSync(patch, 'utf8').includes(`id: ${STOCK_ROW}\n`),
      `${owner}: no row "${STOCK_ROW}", which our patch disables and the web profile has in its presets`,
    )
  }
  const declared = declarationsNear(dsh)
  for (const event of usedNames(EVENTS)) {
    expectThat(
      declared.includes(`'${event}'`) || declared.includes(`"${event}"`),
      `event ${event}: declared nowhere`,
    )
  }
  for (const service of usedNames(SERVICES)) {
    const isDeclared = new RegExp(`interface Context \\{[^}]*\\b${service}\\??:`).test(declared)
    expectThat(isDeclared, `service ctx.${service}: declared nowhere`)
  }
  return { version: String(manifestAt(dsh)['version']), checked, differences }
}

/** Install one version into a folder, with the pins of this checkout. */
const install = (version: string, folder: string): void => {
  const manifest = {
    private: true,
    packageManager: manifestAt(checkout)['packageManager'],
    dependencies: { [DSH]: version },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  cpSync(join(checkout, 'pnpm-workspace.yaml'), join(folder, 'pnpm-workspace.yaml'))
  execFileSync('pnpm', ['install', '--ignore-scripts', '--no-frozen-lockfile'], {
    cwd: folder,
    stdio: 'inherit',
  })
}

if (process.argv[1] === import.meta.filename) {
  const wanted = process.argv[2] ?? '.'
  const temporary = valid(wanted) === null ? undefined : mkdtempSync(join(tmpdir(), 'live-workspace-check-'))
  try {
    if (temporary !== undefined) install(wanted, temporary)
    const folder = temporary ?? resolve(wanted)
    const { version, checked, differences } = await checkAgainst(folder)
    for (const line of differences) console.log(`- ${line}`)
    console.log(`dsh ${version}: ${checked} things looked at, ${differences.length} differ.`)
    process.exitCode = differences.length === 0 ? 0 : 1
  } finally {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true })
  }
}
