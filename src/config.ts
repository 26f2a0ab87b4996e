/**
 * The configuration of the bundle: schema, defaults and checks.
 *
 * The schema library lets unknown keys and `NaN` pass and turns `null` into the default, so
 * {@link checkConfig} looks at the raw value first and reports every fault with the key, the value
 * and what is allowed.
 *
 * @module dsh-live-workspace/config
 */
import { inspect } from 'node:util'
import z from '@deepseek-ai/schemastery'
import { hasNativeBackend } from './watch/platform.ts'
import { resume } from './manifest/config.ts'
import { SECRET_FILES } from './notice/secret.ts'
import { SILENT_FILESYSTEMS } from './watch/mounts.ts'
import { instructions, type InstructionsConfig, isOff } from './instructions/config.ts'

const count = (min: number, max: number, fallback: number) =>
  z.number().step(1).min(min).max(max).default(fallback)
const oneOf = <const T extends string>(values: readonly T[], fallback: T): z<T> =>
  z.union(values.map((value) => z.const(value))).default(fallback)
const names = (fallback: string[]) => z.array(z.string()).default(fallback)

const watch = {
  backend: oneOf(['auto', 'native', 'chokidar', 'polling', 'off'], 'auto').description(
    'How files are watched. `native` is for Linux alone, where `auto` takes it; `off` keeps only the check of the files that a session has used.',
  ),
  usePolling: z.boolean().default(false).description('The same as `backend: polling`.'),
  debounceMs: count(0, 60_000, 75).description(
    'Quiet time in ms that ends the wait at a boundary where no exact barrier exists.',
  ),
  maxWaitMs: count(1, 60_000, 500).description(
    'Longest wait in ms at one boundary for the watcher and the used files; other files may take half as long again.',
  ),
  pollIntervalMs: count(10, 600_000, 100).description('Time in ms between two scans when polling.'),
  ignoredDirectories: names(['.git', 'node_modules']).description(
    'Names of directories that are neither watched nor reported, at any depth.',
  ),
  respectGitignore: z
    .boolean()
    .default(true)
    .description(
      'Whether directories that git ignores go unwatched, and files that it ignores unmentioned, unless a session has used them.',
    ),
  maxIgnoreFileBytes: count(0, 104_857_600, 262_144).description(
    'Size in bytes of one ignore file; a larger one is not applied.',
  ),
  maxIgnoreDirectories: count(1, 10_000_000, 100_000).description(
    'Directories whose ignore rules are kept in memory.',
  ),
  gitTimeoutMs: count(1, 60_000, 2_000).description(
    "Longest wait in ms for git's settings; without them git's defaults count.",
  ),
  rootMarkers: names(['.git']).description('Names whose presence makes a directory the root of a workspace.'),
  sweepBudget: count(0, 1_000_000, 32).description(
    'Used files checked at a boundary inside a turn while the watcher is live.',
  ),
  maxJournalPaths: count(1, 10_000_000, 50_000).description(
    'Changed paths kept per root; beyond it only their number is known.',
  ),
  maxWatchedDirectories: count(1, 10_000_000, 100_000).description(
    'Directories watched by one process; files in further ones are compared at boundaries instead.',
  ),
  watchLimitPercent: count(1, 100, 60).description(
    "Share of the user's limit of watches that is used at the most, in percent.",
  ),
  maxUncoveredParts: count(1, 1_000_000, 1_000).description(
    'Unwatched directories kept apart per root; more of them are taken together by the directories around them.',
  ),
  maxComparedFiles: count(0, 10_000_000, 100_000).description(
    'Files compared in the unwatched directories of one root; changes of further ones may go unmentioned.',
  ),
  compareWaitMs: count(0, 60_000, 100).description(
    'Longest wait in ms at one boundary for that comparison; what it finds later is told at the next one.',
  ),
  scanSliceMs: count(1, 1_000, 8).description('Time in ms after which a scan lets other work go on.'),
  silentFilesystems: names(SILENT_FILESYSTEMS).description(
    'Types of filesystems that do not report every change, with `*` for any characters: on them only the files that a session has used are checked, unless `backend` is `polling`.',
  ),
  probeEvents: z
    .boolean()
    .default(true)
    .description(
      "Whether one file is made and removed in the repository's own directory to prove that changes are reported.",
    ),
  probeTimeoutMs: count(1, 600_000, 2_000).description(
    'Longest wait in ms for the event of that file; it is tried twice.',
  ),
  restartDelayMs: count(1, 3_600_000, 1_000).description(
    'Delay in ms before the first restart of a failed watcher; it doubles with each further one.',
  ),
  maxRestartDelayMs: count(1, 86_400_000, 60_000).description(
    'Longest delay in ms between two restarts of a failed watcher, apart from what chance adds.',
  ),
  restartJitterPercent: count(0, 100, 20).description(
    'Share of the delay that chance adds to it at the most, in percent.',
  ),
  maxRestarts: count(1, 100_000, 30).description(
    'Restarts of the watcher of one root within `restartWindowMs`; a further one waits.',
  ),
  restartWindowMs: count(1, 604_800_000, 3_600_000).description('Time in ms for which a restart counts.'),
  maxFaultHistory: count(1, 10_000, 20).description('Past faults kept per root for the status.'),
}

const notice = {
  maxNoticePaths: count(1, 10_000, 50).description('Paths named in one notice; the rest is counted.'),
  maxNoticeBytes: count(512, 1_048_576, 4_096).description('Size in bytes of one notice, frame included.'),
  maxPathBytes: count(32, 65_536, 300).description(
    'Size in bytes of one path in a notice; a longer one is shortened in the middle.',
  ),
  showHunks: z.boolean().default(true).description('Show what changed in small text files.'),
  maxHunkBytes: count(0, 65_536, 1_200).description(
    'Size in bytes of what is shown of the change of one file; a larger change is told as numbers of lines.',
  ),
  maxLineBytes: count(32, 65_536, 300).description(
    'Size in bytes of one shown line; a longer one loses its end.',
  ),
  hunkContextLines: count(0, 20, 1).description('Unchanged lines shown around a change.'),
  maxDigestBytes: count(0, 1_073_741_824, 4_194_304).description(
    'Size in bytes up to which the content of a used file is read to find out whether it is another one.',
  ),
  maxDigests: count(1, 10_000_000, 10_000).description(
    'Contents remembered by their digest for one session.',
  ),
  racyWindowMs: count(0, 600_000, 2_000).description(
    'Time in ms after a reading within which an event counts although the version of the file is the same.',
  ),
  maxTextBytes: count(0, 16_777_216, 65_536).description(
    'Size in bytes up to which the text of a used file is kept to show what changed.',
  ),
  maxKeptTextBytes: count(0, 1_073_741_824, 4_194_304).description(
    'Size in bytes of all texts kept for one session.',
  ),
  secretFiles: names(SECRET_FILES).description(
    'Names of files whose content is never shown, with `*` for any characters; letter case does not matter.',
  ),
  commandTools: names([
    'bash',
    'pwsh',
    'bash_persistent',
    'pwsh_persistent',
    'run_code',
    'shell',
  ]).description('Names of tools that run commands: what changes while one runs is told as such.'),
  maxOwnCommandPaths: count(0, 10_000, 5).description(
    'Paths named of those that a command of the session changed and the session has not used.',
  ),
  maxOtherPaths: count(0, 10_000, 20).description(
    'Changed files named in directories of which the session has used none; of more, only those alone in their directory are.',
  ),
  maxCheckedPaths: count(1, 1_000_000, 200).description(
    'Changed files that the session has not used and that are looked at one by one at a boundary; of more, those that a notice would name come first, and the others are only counted.',
  ),
  maxMoveReads: count(0, 10_000, 50).description(
    'New files read at one boundary to find out whether a used file was moved there.',
  ),
  statConcurrency: count(1, 1_024, 16).description('Files checked at the same time.'),
  maxHangingChecks: count(1, 1_024, 2).description(
    'Checks without an answer after which no further one is begun; each may keep a thread of the process.',
  ),
  verifyAtTurnStop: z.boolean().default(true).description('Check once more before a turn ends.'),
  turnStopScope: oneOf(['workspace', 'session'], 'workspace').description(
    'Which changes may cause a further step when a turn is about to end: `session` only those of files that the session has used, `workspace` others too, but once a turn.',
  ),
  maxSteersPerTurn: count(0, 100, 3).description('Further steps that changes may cause in one turn.'),
}

const rooms = { watch, notice, instructions, resume }

type KeySchema = z<never, unknown>
type Shape = Record<string, KeySchema>
type Values<S extends Shape> = { readonly [K in keyof S]: ReturnType<S[K]> }

/** Settings of `src/watch`. Delays in ms. */
export type WatchConfig = Values<typeof watch>
/** Settings of `src/notice` and of the boundary. Sizes in bytes. */
export type NoticeConfig = Values<typeof notice>
/** Settings of `src/manifest`. Times in ms, sizes in bytes. */
export type ResumeConfig = Values<typeof resume>
/** A complete, checked configuration. */
export interface LiveWorkspaceConfig {
  readonly watch: WatchConfig
  readonly notice: NoticeConfig
  /** Settings of `src/instructions`; `false` turns that room off. */
  readonly instructions: InstructionsConfig | false
  readonly resume: ResumeConfig
}

/** A key or a value is shown in terminals and logs: what would act there is shown as an escape. */
const visibly = (character: string): string =>
  String.raw`\u` + (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')

/** One wrong setting. `message` names the key, the value and what is allowed. */
export class ConfigError extends z.ValidationError {
  constructor(message: string) {
    super(message.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, visibly), {})
  }
}

/** A wrong value as a person wrote it, whatever it is. */
const shown = (value: unknown): string => {
  try {
    const text = JSON.stringify(value)
    if (text !== undefined && typeof value !== 'number') return text
  } catch {
    // Cyclic, or of a type that JSON does not have.
  }
  return inspect(value, { breakLength: Infinity, depth: 2 })
}

const reject = (key: string, value: unknown, allowed: string): never => {
  throw new ConfigError(`dsh-live-workspace: ${key} is ${shown(value)}; allowed: ${allowed}`)
}

/** What a schema accepts, in words. */
const allowedBy = (schema: KeySchema): string => {
  const fallback = `default ${JSON.stringify(schema.meta.default)}`
  if (schema.type === 'union') {
    return `${(schema.list ?? []).map((item) => JSON.stringify(item.value)).join(', ')} (${fallback})`
  }
  if (schema.type === 'array') return `a list of strings (${fallback})`
  if (schema.type === 'boolean') return `true or false (${fallback})`
  if (schema.type === 'string') return `a string (${fallback})`
  if (schema.meta.min === undefined) return `a number (${fallback})`
  return `a whole number from ${schema.meta.min} to ${schema.meta.max} (${fallback})`
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What the schema library would take for the default, or could not even refuse. */
const isPlainData = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.every((item) => item !== undefined && isPlainData(item))
    : value !== null && (typeof value !== 'number' || Number.isFinite(value))

/** Levenshtein distance, for the nearest known name of a mistyped key. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [i, left] of Array.from(a).entries()) {
    const next = [i + 1]
    for (const [j, right] of Array.from(b).entries()) {
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (left === right ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

const unknownKey = (key: string, path: string, known: readonly string[], value: unknown): never => {
  const home = Object.entries(rooms).find(([, shape]) => Object.hasOwn(shape, key))
  const hint = path === '' && home ? `it belongs into the room "${home[0]}": ${home[0]}.${key}` : undefined
  const nearest = known.toSorted((a, b) => distance(key, a) - distance(key, b))[0]
  return reject(
    `${path}${key} (unknown key)`,
    value,
    hint ?? `${known.join(', ')}${nearest === undefined ? '' : `; did you mean "${path}${nearest}"?`}`,
  )
}

const checkRoom = <S extends Shape>(room: string, shape: S, raw: unknown): Values<S> => {
  if (raw !== undefined && !isPlainObject(raw))
    return reject(
      room,
      raw,
      room === 'instructions' ? 'a group of settings, or false' : 'a group of settings',
    )
  const given = raw ?? {}
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(shape, key)) unknownKey(key, `${room}.`, Object.keys(shape), given[key])
  }
  const checked = Object.entries(shape).map(([key, schema]): [string, unknown] => {
    const value = given[key]
    if (!isPlainData(value)) return reject(`${room}.${key}`, value, allowedBy(schema))
    try {
      // Whether the value fits is what the schema finds out.
      return [key, schema(value as never)]
    } catch {
      return reject(`${room}.${key}`, value, allowedBy(schema))
    }
  })
  // Every key of the shape was just resolved by its own schema.
  return Object.fromEntries(checked) as Values<S>
}

const checkNames = (key: string, values: readonly string[]): void => {
  for (const value of values) {
    if (value === '' || value === '.' || value === '..' || /[/\\\0]/.test(value)) {
      reject(key, value, 'plain file names without a separator')
    }
  }
}

/** The room may be switched off; a budget of nothing, or of no number, switches it off too. */
const checkInstructions = (raw: unknown): InstructionsConfig | false => {
  if (raw === false) return false
  if (isPlainObject(raw) && typeof raw['maxBytes'] === 'number' && isOff({ maxBytes: raw['maxBytes'] })) {
    checkRoom('instructions', instructions, { ...raw, maxBytes: 1 })
    return false
  }
  return checkRoom('instructions', instructions, raw)
}

/**
 * Resolve and check a raw configuration.
 * @param raw - what the row, or the settings document, gives; `undefined` and `null` mean "all defaults".
 * @returns the complete configuration.
 * @throws {ConfigError} for the first fault, naming key, value and what is allowed.
 */
export const checkConfig = (raw: unknown): LiveWorkspaceConfig => {
  if (raw !== undefined && raw !== null && !isPlainObject(raw)) reject('config', raw, 'groups of settings')
  const given = isPlainObject(raw) ? raw : {}
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(rooms, key)) unknownKey(key, '', Object.keys(rooms), given[key])
  }
  const checked = {
    watch: checkRoom('watch', watch, given['watch']),
    notice: checkRoom('notice', notice, given['notice']),
    instructions: checkInstructions(given['instructions']),
    resume: checkRoom('resume', resume, given['resume']),
  }
  const { debounceMs, maxWaitMs, restartDelayMs, maxRestartDelayMs, usePolling, backend } = checked.watch
  if (maxWaitMs < debounceMs) {
    reject('watch.maxWaitMs', maxWaitMs, `at least watch.debounceMs (${debounceMs})`)
  }
  if (maxRestartDelayMs < restartDelayMs) {
    reject('watch.maxRestartDelayMs', maxRestartDelayMs, `at least watch.restartDelayMs (${restartDelayMs})`)
  }
  if (backend === 'native' && !hasNativeBackend()) {
    reject('watch.backend', backend, `"auto", "chokidar", "polling", "off" on ${process.platform}`)
  }
  if (usePolling && backend !== 'auto' && backend !== 'polling') {
    reject('watch.usePolling', usePolling, `false beside watch.backend "${backend}"`)
  }
  checkNames('watch.ignoredDirectories', checked.watch.ignoredDirectories)
  checkNames('watch.rootMarkers', checked.watch.rootMarkers)
  return usePolling ? { ...checked, watch: { ...checked.watch, backend: 'polling' } } : checked
}

/** One setting, in words. */
export interface SettingDescription {
  readonly key: string
  /** What is allowed, with the default. */
  readonly allowed: string
  readonly description: string
}

/** Every setting, for documentation. */
export const describeConfig = (): SettingDescription[] =>
  Object.entries<Shape>(rooms).flatMap(([room, shape]) =>
    Object.entries(shape).map(([key, schema]) => ({
      key: `${room}.${key}`,
      allowed: allowedBy(schema),
      description: typeof schema.meta.description === 'string' ? schema.meta.description : '',
    })),
  )

/**
 * The schema that the host validates a value with: the raw one goes through {@link checkConfig}.
 * @param wrong - told of every value that is refused.
 */
export const schemaReporting = (wrong: (error: unknown) => void): z<unknown, LiveWorkspaceConfig> =>
  z
    .transform(z.any(), (raw: unknown) => {
      try {
        return checkConfig(raw)
      } catch (error) {
        wrong(error)
        throw error
      }
    })
    .default(checkConfig({}))
