import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { arrayOf, objectOf, parseJson } from './json.ts'
import { run, runSuccessfully, start, type Outcome, type Running } from './process.ts'
import { API_KEY } from './scripted-model.ts'

export const checkout = resolve(import.meta.dirname, '..', '..')
export const overlay = join(import.meta.dirname, 'overlay.yml')
export const PACKAGE = 'dsh-live-workspace'

const INSTALL_TIMEOUT_MS = 90_000
const RUN_TIMEOUT_MS = 25_000

/** dsh's own file: starting it with Node is quicker than through a package manager, and signals reach it. */
export function dshBin(): string {
  const require = createRequire(join(checkout, 'package.json'))
  return join(dirname(require.resolve('@deepseek-ai/dsh/package.json')), 'lib', 'bin.js')
}

export interface ScratchHome {
  readonly root: string
  readonly home: string
  readonly dshHome: string
  /** A new folder that counts as the root of a project, with the given files in it. */
  makeWorkspace(files: Readonly<Record<string, string>>): string
  /** The environment of dsh itself: nothing of the caller's keys, homes or proxies. */
  runEnv(modelURL: string): NodeJS.ProcessEnv
  remove(): void
}

const homes = new Set<ScratchHome>()

process.once('exit', () => {
  for (const home of homes) home.remove()
})

export function scratchHome(label: string): ScratchHome {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `live-workspace-${label}-`)))
  const home = join(root, 'home')
  const dshHome = join(home, '.dsh')
  mkdirSync(home)
  const scratch: ScratchHome = {
    root,
    home,
    dshHome,
    makeWorkspace(files) {
      const workspace = mkdtempSync(join(root, 'workspace-'))
      // A real repository is not needed: its folder marks the root of the project.
      mkdirSync(join(workspace, '.git'))
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(workspace, name)), { recursive: true })
        writeFileSync(join(workspace, name), content)
      }
      return workspace
    },
    runEnv: (modelURL) => ({
      ...isolatedEnv(scratch),
      DEEPSEEK_BASE_URL: modelURL,
      DEEPSEEK_API_KEY: API_KEY,
      DSH_PERMISSION_MODE: 'danger-full-access',
    }),
    remove() {
      homes.delete(scratch)
      rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
  homes.add(scratch)
  return scratch
}

function isolatedEnv({ home, dshHome }: ScratchHome): NodeJS.ProcessEnv {
  return {
    ...callers(/^(path|pathext|systemroot|comspec|tmpdir|temp|tmp)$/i),
    HOME: home,
    USERPROFILE: home,
    DSH_HOME: dshHome,
    LANG: 'C.UTF-8',
    CI: '1',
    NO_COLOR: '1',
    DSH_TELEMETRY_DISABLED: '1',
  }
}

const callers = (names: RegExp): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => names.test(name)))

/**
 * The environment in which `dsh plugin` starts pnpm. Its home is empty too, so pnpm is told where the
 * caller's registry, certificates, cache and store are: what the checkout needed is there already.
 */
export async function installEnv(scratch: ScratchHome): Promise<NodeJS.ProcessEnv> {
  const registry = process.env['npm_config_registry'] ?? process.env['NPM_CONFIG_REGISTRY']
  const [config, cache] =
    process.platform === 'darwin' ? ['Library/Preferences', 'Library/Caches'] : ['.config', '.cache']
  return {
    ...isolatedEnv(scratch),
    // npm's variable, which pnpm 11 does not read by itself.
    ...(registry === undefined ? {} : { pnpm_config_registry: registry }),
    npm_config_userconfig: join(homedir(), '.npmrc'),
    XDG_CONFIG_HOME: join(homedir(), config),
    XDG_CACHE_HOME: join(homedir(), cache),
    ...callers(/^(https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(file|dir)|localappdata)$/i),
    ...callers(/^xdg_(config|cache)_home$/i),
    ...callers(/^pnpm_config_|^npm_config_(userconfig$|\/\/)/i),
    pnpm_config_store_dir: await storeOfCheckout(),
    pnpm_config_prefer_offline: 'true',
  }
}

let storePath: Promise<string> | undefined

async function storeOfCheckout(): Promise<string> {
  storePath ??= pnpm(['store', 'path'])
  return (await storePath).trim()
}

async function pnpm(args: readonly string[]): Promise<string> {
  const [file, ...first]: [string, ...string[]] =
    process.platform === 'win32' ? ['cmd.exe', '/d', '/c', 'pnpm'] : ['pnpm']
  const timeoutMs = INSTALL_TIMEOUT_MS
  return runSuccessfully({ file, args: [...first, ...args], cwd: checkout, env: process.env, timeoutMs })
}

export interface DshOptions {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly timeoutMs?: number
}

export const startDsh = ({ args, cwd, env }: DshOptions): Running =>
  start({ file: process.execPath, args: [dshBin(), ...args], cwd, env })

export async function runDsh({ args, cwd, env, timeoutMs = RUN_TIMEOUT_MS }: DshOptions): Promise<Outcome> {
  return run({ file: process.execPath, args: [dshBin(), ...args], cwd, env, timeoutMs })
}

/** The checkout as a user gets it: resolves with the path of the archive, which is put into the folder. */
export async function packBundle(folder: string): Promise<string> {
  if (!existsSync(join(checkout, 'lib', 'index.js')))
    throw new Error('lib/ is not built: run "pnpm run build" first')
  const tarball = join(folder, 'bundle.tgz')
  // lib/ is built already, once for all tests.
  await pnpm(['--config.ignore-scripts=true', 'pack', '--out', tarball])
  return tarball
}

export interface Installation {
  readonly profile: string
  readonly home: ScratchHome
  readonly tarball: Promise<string>
}

export async function installBundle({ profile, home, tarball }: Installation): Promise<void> {
  const [env, archive] = await Promise.all([installEnv(home), tarball])
  const args = [dshBin(), 'plugin', '--profile', profile, 'add', archive]
  const timeoutMs = INSTALL_TIMEOUT_MS
  await runSuccessfully({ file: process.execPath, args, cwd: home.root, env, timeoutMs })
  const bundles = bundlesOf(join(home.dshHome, 'profiles', profile, 'package.json'))
  if (!bundles.includes(PACKAGE))
    throw new Error(`${PACKAGE} is not among the bundles of ${profile}: ${bundles.join(', ')}`)
}

function bundlesOf(path: string): readonly unknown[] {
  const manifest = objectOf(parseJson(readFileSync(path, 'utf8'), path), path)
  const dsh = objectOf(manifest['dsh'], 'dsh')
  return arrayOf(objectOf(dsh['profile'], 'dsh.profile')['bundles'], 'dsh.profile.bundles')
}
