/**
 * Which blocks of a message fit into its budget. Pure.
 *
 * Whole broader blocks go first, then the most specific one is cut between two characters. What was
 * left out or cut is named in a line of its own, as far as names fit, and counted beyond that.
 *
 * @module dsh-live-workspace/instructions/budget
 */
import { bytesOf, cutToBytes } from './text.ts'

/** One block of a message, from broad to specific. Everything is escaped already. */
export interface Block {
  /** Path as it is shown. */
  readonly path: string
  /** Heading and statement. */
  readonly lead: string
  /** The only part that may be cut; `undefined` where there is no content. */
  readonly content: string | undefined
}

/** A message within its budget. */
export interface Fitted {
  readonly text: string
  /** Number of blocks left out at the beginning. */
  readonly omitted: number
  /** The last block was cut, to so many bytes of its content. */
  readonly cutTo: number | undefined
}

const OPEN = '<system-reminder>'
const CLOSE = '</system-reminder>'
const GAP = '\n\n'

/** Share of the budget that names of omitted files may take. */
const SHARE_FOR_NAMES = 0.25

const frame = (parts: readonly string[]): string => `${OPEN}\n${parts.join(GAP)}\n${CLOSE}`

const bodyOf = ({ lead, content }: Block): string => (content === undefined ? lead : lead + GAP + content)

const sizeOf = ({ content }: Block): number => (content === undefined ? 0 : bytesOf(content))

/** The first names that fit, and the number of the others. */
const listed = (blocks: readonly Block[], room: number): string => {
  const names: string[] = []
  let left = room
  for (const block of blocks) {
    const name = block.content === undefined ? block.path : `${block.path} (${sizeOf(block)} bytes)`
    left -= bytesOf(name) + 2
    if (left < 0) break
    names.push(name)
  }
  const more = blocks.slice(names.length)
  if (more.length === 0) return names.join(', ')
  const total = more.reduce((sum, block) => sum + sizeOf(block), 0)
  return [...names, `${names.length > 0 ? 'and ' : ''}${more.length} more (${total} bytes)`].join(', ')
}

const notice = (
  maxBytes: number,
  omitted: readonly Block[],
  cut?: { readonly block: Block; readonly to: number },
): string => {
  const parts: string[] = []
  if (omitted.length > 0) parts.push(`left out ${listed(omitted, maxBytes * SHARE_FOR_NAMES)}`)
  if (cut) parts.push(`cut ${cut.block.path} from ${sizeOf(cut.block)} to ${cut.to} bytes`)
  return [
    `Workspace instruction budget of ${maxBytes} bytes`,
    ...(parts.length > 0 ? [parts.join('; ')] : []),
  ].join(': ')
}

/** The last block alone, its content cut where it has to be. */
const fitLast = (
  last: Block,
  omitted: readonly Block[],
  heads: readonly string[],
  maxBytes: number,
): Fitted | undefined => {
  const size = sizeOf(last)
  const compose = (content: string, to: number) =>
    frame([notice(maxBytes, omitted, { block: last, to }), ...heads, bodyOf({ ...last, content })])
  // No number in the line is longer than the size itself, so the room is never overestimated.
  const content = cutToBytes(last.content ?? '', maxBytes - bytesOf(compose('', size)))
  const to = bytesOf(content)
  return to === 0 ? undefined : { text: compose(content, to), omitted: omitted.length, cutTo: to }
}

/**
 * Fit blocks into a budget.
 * @param head - a paragraph before the blocks; it goes where otherwise nothing of any content is left.
 * @returns a text of at most `maxBytes` bytes. With every block omitted it holds the notice alone, as
 *   much of it as fits.
 */
export const fit = (blocks: readonly Block[], head: string | undefined, maxBytes: number): Fitted => {
  const heads = head === undefined ? [] : [head]
  const bodies = blocks.map(bodyOf)
  const whole = frame([...heads, ...bodies])
  if (bytesOf(whole) <= maxBytes) return { text: whole, omitted: 0, cutTo: undefined }

  let size = bytesOf(whole)
  for (let omitted = 1; omitted < blocks.length; omitted += 1) {
    size -= bytesOf(GAP + (bodies[omitted - 1] ?? ''))
    const line = notice(maxBytes, blocks.slice(0, omitted))
    if (size + bytesOf(line + GAP) > maxBytes) continue
    return { text: frame([line, ...heads, ...bodies.slice(omitted)]), omitted, cutTo: undefined }
  }

  const last = blocks.at(-1)
  const before = blocks.slice(0, -1)
  const fallbacks = head === undefined ? [heads] : [heads, []]
  const fitted = last?.content ? fallbacks.map((heads) => fitLast(last, before, heads, maxBytes)) : []
  const lastFitted = fitted.find((one) => one !== undefined)
  if (lastFitted) return lastFitted
  const line = notice(maxBytes, blocks)
  const alone = frame([line])
  const text = bytesOf(alone) <= maxBytes ? alone : cutToBytes(line, maxBytes)
  return { text, omitted: blocks.length, cutTo: undefined }
}
