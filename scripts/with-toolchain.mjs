// Runs a script of package.json with the Node and the pnpm that this project asks for:
//
//   node scripts/with-toolchain.mjs <package script> [arguments…]
//
// What the machine has is used if it fits. What it lacks is fetched once from npm into `.toolchain/`;
// nothing outside this folder changes. As it may be started by an old Node, it has no dependencies and
// keeps to what Node 16 understands.
/* oxlint-disable typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call,
   typescript/no-unsafe-member-access, typescript/no-unsafe-return
   -- plain JavaScript outside the TypeScript project has no types to be safe by */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_VERSION = '24.22.3'

const checkout = dirname(dirname(fileURLToPath(import.meta.url)))
const manifest = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
const PNPM_VERSION = manifest.packageManager.replace(/^pnpm@/, '')
const windows = process.platform === 'win32'

class Failure extends Error {}

class Interrupted extends Error {
  constructor(signal) {
    super(`interrupted by ${signal}`)
    this.signal = signal
  }
}

/** `engines.node` of package.json: ^22.22.0 || >=24.0.0 */
function nodeFits(version) {
  const [major, minor] = version.replace(/^v/, '').split('.').map(Number)
  return (major === 22 && minor >= 22) || major >= 24
}

/** npm's packages of bare Node binaries; unlike the package `node`, they need no install script. */
function nodePackage() {
  const os = windows ? 'win' : process.platform
  const stem = os === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node'
  return `${stem}-${os}-${process.arch}`
}

const env = cleanEnv()
const pathName = Object.keys(env).find((name) => name.toUpperCase() === 'PATH') || 'PATH'

/**
 * npm describes its own run to its scripts in npm_* variables. Handed on, they would read as settings:
 * of another prefix, another user agent, and a proxy exception list that is always empty.
 */
function cleanEnv() {
  const ofTheRun = /^npm_(package|lifecycle)_|^npm_(command|execpath|node_execpath)$/i
  const ofItsPlace = /^npm_config_(local_prefix|global_prefix|prefix|user_agent|noproxy|npm_version)$/i
  const kept = Object.entries(process.env).filter(([name]) => !ofTheRun.test(name) && !ofItsPlace.test(name))
  const clean = Object.fromEntries(kept)
  // pnpm 11 does not read this one of npm's.
  const registry = clean.npm_config_registry || clean.NPM_CONFIG_REGISTRY
  if (registry && !clean.pnpm_config_registry && !clean.PNPM_CONFIG_REGISTRY) {
    clean.pnpm_config_registry = registry
  }
  return clean
}

/** pnpm and npm are .cmd files on Windows, which only a shell starts. */
function commandLine(file, args) {
  if (!windows) return [file, args, {}]
  const quoted = args.map((arg) => (/^[\w@./:=-]+$/.test(arg) ? arg : `"${arg.replace(/"/g, '""')}"`))
  return [[file, ...quoted].join(' '), [], { shell: true }]
}

function versionOf(file) {
  const [command, args, options] = commandLine(file, ['--version'])
  const asked = spawnSync(command, args, {
    ...options,
    cwd: checkout,
    // Another pnpm would fetch the version that package.json names instead of telling its own.
    env: {
      ...env,
      npm_config_manage_package_manager_versions: 'false',
      pnpm_config_pm_on_fail: 'ignore',
      COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
    },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 60000,
  })
  return asked.status === 0 ? String(asked.stdout).trim() : ''
}

const passedOn = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Runs a command to its end. It leads a process group of its own, and signals go to the whole group:
 * pnpm does not hand them to the script that it runs.
 */
function run(file, args, { cwd = checkout, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const [command, list, options] = commandLine(file, args)
    const stdio = quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit'
    const child = spawn(command, list, { ...options, cwd, env, stdio, detached: !windows })
    let output = ''
    let received
    for (const stream of [child.stdout, child.stderr]) {
      if (stream) stream.setEncoding('utf8').on('data', (text) => (output += text))
    }
    const passOn = (signal) => {
      received = signal
      if (windows) child.kill(signal)
      else if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal)
    }
    for (const signal of passedOn) process.on(signal, passOn)
    const settle = () => passedOn.forEach((signal) => process.off(signal, passOn))
    child.once('error', (error) => {
      settle()
      reject(new Failure(`${file} could not be started: ${error.message}`))
    })
    child.once('close', (code, signal) => {
      settle()
      // npm and pnpm end with a plain 1 when they are interrupted.
      if (quiet && (received || signal)) reject(new Interrupted(received || signal))
      else resolve({ code, signal, output })
    })
  })
}

/** Ends this process as the child ended. */
function endLike({ code, signal }) {
  if (signal) {
    process.kill(process.pid, signal)
    // Where that does not end this process: the exit code by which shells report a signal.
    code = 128 + constants.signals[signal]
  }
  process.exit(code)
}

/**
 * Puts one npm package into `.toolchain/` and returns its folder of executables. It is installed beside
 * its place and renamed into it, so that what stands there is complete and of two first runs one wins.
 */
async function fetchTool(name, version) {
  const place = join(checkout, '.toolchain', `${name}-${version}`)
  const bin = join(place, 'node_modules', '.bin')
  if (existsSync(place)) return bin
  process.stderr.write(`Fetching ${name} ${version} into .toolchain/ (only this once) …\n`)
  const staging = `${place}.${process.pid}`
  try {
    mkdirSync(staging, { recursive: true })
    writeFileSync(join(staging, 'package.json'), '{ "private": true }\n')
    const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--engine-strict=false']
    const silence = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error']
    const outcome = await run('npm', ['install', ...flags, ...silence, `${name}@${version}`], {
      cwd: staging,
      quiet: true,
    })
    if (outcome.code !== 0) {
      throw new Failure(
        `npm could not fetch ${name}@${version}:\n${outcome.output}\n` +
          `To do without, put Node ${manifest.engines.node} and pnpm ${PNPM_VERSION} on PATH.`,
      )
    }
    try {
      renameSync(staging, place)
    } catch (error) {
      if (!existsSync(place)) throw error
    }
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
  return bin
}

function putOnPath(bin) {
  env[pathName] = [bin, env[pathName]].filter(Boolean).join(delimiter)
}

async function prepareTools() {
  // Not process.version: what counts is the Node that the scripts will find.
  if (!nodeFits(versionOf('node'))) {
    putOnPath(await fetchTool(nodePackage(), NODE_VERSION))
    const version = versionOf('node')
    if (version !== `v${NODE_VERSION}`) {
      throw new Failure(
        `The fetched Node does not run here (${process.platform} ${process.arch}); ` +
          `put Node ${manifest.engines.node} on PATH.`,
      )
    }
  }
  if (versionOf('pnpm') !== PNPM_VERSION) putOnPath(await fetchTool('pnpm', PNPM_VERSION))
}

async function installDependencies() {
  if (!existsSync(join(checkout, 'node_modules'))) process.stderr.write('Installing dependencies …\n')
  // A node_modules of another package manager has to go first, and nobody can be asked here.
  const args = ['install', '--frozen-lockfile', '--config.confirm-modules-purge=false']
  const outcome = await run('pnpm', args, { quiet: true })
  if (outcome.code !== 0) throw new Failure(`pnpm install failed:\n${outcome.output}`)
}

async function main([script, ...args]) {
  const scripts = Object.keys(manifest.scripts)
  if (!scripts.includes(script)) {
    const known = scripts.join(', ')
    throw new Failure(`Usage: node scripts/with-toolchain.mjs <script> [arguments…]\nScripts: ${known}`)
  }
  await prepareTools()
  await installDependencies()
  endLike(await run('pnpm', ['run', script, ...args]))
}

main(process.argv.slice(2)).catch((error) => {
  if (error instanceof Interrupted) endLike(error)
  process.stderr.write(`${error instanceof Failure ? error.message : error.stack}\n`)
  process.exit(1)
})
