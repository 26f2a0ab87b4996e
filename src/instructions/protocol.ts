/**
 * The durable form of instruction state: sources of messages in the session log. Pure.
 *
 * It is the protocol of the host's own loader, so that a session may be continued by either of the two.
 *
 * @module dsh-live-workspace/instructions/protocol
 */

/** What a message says about one scope. */
export interface InstructionChange {
  readonly action: 'set' | 'replace' | 'remove'
  /** Directory relative to the project root, NUL, file name. */
  readonly scope: string
  /** Path as the model was shown it. */
  readonly path: string
  /** SHA-1, in hex, of the exact text; absent for a removal. */
  readonly digest?: string
}

/** Source of an instruction message. */
export interface InstructionSource {
  readonly kind: 'agent-instructions'
  readonly form: 'instructions'
  /** The message is a complete baseline. */
  readonly baseline?: true
  /** What the baseline was made by; another string means that it has to be replaced. */
  readonly baselineIdentity?: string
  readonly changes: readonly InstructionChange[]
}

/** Directory part of the scope of the user-global file. */
export const GLOBAL_DIRECTORY = 'user-global'
/** Name of the user-global file. */
export const GLOBAL_FILE = 'AGENTS.md'

const SEPARATOR = '\0'

/**
 * Directory part of the scopes of a project directory. One that is called like the user-global scope
 * is written with a leading `./`, which other readers take for the same directory.
 * @param relative - path relative to the project root, with `/`; empty for the root itself.
 */
export const directoryId = (relative: string): string => {
  if (relative === '') return '.'
  return relative === GLOBAL_DIRECTORY ? `./${relative}` : relative
}

/** Inverse of {@link directoryId}, for every directory but the user-global one. */
export const relativeOf = (id: string): string => {
  if (id === '.') return ''
  return id.startsWith('./') ? id.slice(2) : id
}

export const scopeKey = (directory: string, name: string): string => `${directory}${SEPARATOR}${name}`

/** Directory and name of a scope, in the one spelling that this room compares; `undefined` for anything else. */
export const parseScope = (scope: string): { directory: string; name: string } | undefined => {
  const [written, name, ...more] = scope.split(SEPARATOR)
  if (written === undefined || written === '' || !name || more.length > 0 || /[/\\]/.test(name))
    return undefined
  if (written === GLOBAL_DIRECTORY && name === GLOBAL_FILE) return { directory: written, name }
  const relative = relativeOf(written)
  const segments = relative.split('/')
  if (relative !== '' && segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    return undefined
  }
  return { directory: directoryId(relative), name }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const isAction = (value: unknown): value is InstructionChange['action'] =>
  value === 'set' || value === 'replace' || value === 'remove'

const readChange = (value: unknown): InstructionChange | undefined => {
  if (!isRecord(value)) return undefined
  const { action, scope, path, digest } = value
  if (!isAction(action) || typeof scope !== 'string' || typeof path !== 'string') return undefined
  if (!parseScope(scope)) return undefined
  if (action === 'remove') return { action, scope, path }
  return typeof digest === 'string' ? { action, scope, path, digest } : undefined
}

/**
 * Read the source of a message.
 * @param value - anything that a log may hold.
 * @returns the source with those of its changes that are well formed, or `undefined` for another kind.
 */
export const readSource = (value: unknown): InstructionSource | undefined => {
  if (!isRecord(value) || value['kind'] !== 'agent-instructions') return undefined
  const { changes, baseline, baselineIdentity } = value
  if (!Array.isArray(changes)) return undefined
  return {
    kind: 'agent-instructions',
    form: 'instructions',
    ...(baseline === true ? { baseline } : {}),
    ...(typeof baselineIdentity === 'string' ? { baselineIdentity } : {}),
    changes: changes.flatMap((change: unknown) => readChange(change) ?? []),
  }
}

/** The same for equal sources, whatever copy of them is at hand. */
export const fingerprint = ({ baseline, baselineIdentity, changes }: InstructionSource): string =>
  JSON.stringify([
    baseline === true,
    baselineIdentity ?? null,
    ...changes.map(({ action, scope, path, digest }) => [action, scope, path, digest ?? null]),
  ])
