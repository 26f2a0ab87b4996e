/**
 * Settings of the instructions room.
 *
 * @module dsh-live-workspace/instructions/config
 */
import z from '@deepseek-ai/schemastery'

const bytes = (fallback: number) => z.number().step(1).min(1).max(1_073_741_824).default(fallback)
const names = (fallback: string[]) => z.array(z.string()).default(fallback)

/** One schema for each key, as the other rooms have them. */
export const instructions = {
  dshHome: z
    .string()
    .default('')
    .description('Directory of the user-global AGENTS.md. Empty: the home of the harness.'),
  projectRootMarkers: names(['.git']).description(
    'Names whose presence makes a directory the root of a project, from where instructions are loaded.',
  ),
  maxBytes: z
    .number()
    .default(65_536)
    .description('Size in bytes of one instruction message. 0 or less, or no finite number: load nothing.'),
  maxSourceBytes: bytes(1_048_576).description(
    'Size in bytes of one instruction file; a larger one is refused.',
  ),
  maxPassBytes: bytes(8_388_608).description(
    'Bytes read from instruction files at one boundary, all together.',
  ),
  instructionFileCandidates: names(['AGENTS.md', 'CLAUDE.md']).description(
    'Names of instruction files, looked for in each directory in this order. What is not a plain file name is ignored.',
  ),
  localInstructionFileCandidates: names(['AGENTS.local.md', 'CLAUDE.local.md']).description(
    'Names of local additions, loaded after the instruction files of the same directory.',
  ),
  candidateSelection: z
    .union([z.const('distinct' as const), z.const('first' as const)])
    .default('distinct')
    .description(
      '`distinct` loads every candidate of a directory whose content differs from the earlier ones, `first` only the first one of each list.',
    ),
  loadIgnoredDirectories: z
    .boolean()
    .default(false)
    .description('Load instructions from ignored directories and from node_modules too.'),
}

/** A complete configuration of the room. Sizes in bytes of UTF-8. */
export interface InstructionsConfig {
  readonly dshHome: string
  readonly projectRootMarkers: readonly string[]
  readonly maxBytes: number
  readonly maxSourceBytes: number
  readonly maxPassBytes: number
  readonly instructionFileCandidates: readonly string[]
  readonly localInstructionFileCandidates: readonly string[]
  readonly candidateSelection: 'distinct' | 'first'
  readonly loadIgnoredDirectories: boolean
}

/** Whether these settings turn the room off. */
export const isOff = ({ maxBytes }: Pick<InstructionsConfig, 'maxBytes'>): boolean =>
  !Number.isFinite(maxBytes) || maxBytes < 1

/** Whether an entry is the name of something in the same directory. */
export const isPlainName = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name)

/** The settings without the candidate entries that are no plain names. */
export const withPlainCandidates = (config: InstructionsConfig): InstructionsConfig => ({
  ...config,
  instructionFileCandidates: config.instructionFileCandidates.filter(isPlainName),
  localInstructionFileCandidates: config.localInstructionFileCandidates.filter(isPlainName),
})
