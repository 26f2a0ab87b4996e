/**
 * What passes between the instructions room and the boundary.
 *
 * @module dsh-live-workspace/instructions/view
 */
import type { FileSystem } from '@deepseek-ai/dsh-fs'
import type { InstructionSource } from './protocol.ts'

/** A message that has to be told. */
export interface InstructionMessage {
  readonly text: string
  readonly source: InstructionSource
  /** Absolute paths of the files that it speaks of, by every spelling known: a change notice leaves them out. */
  readonly summaryPaths: readonly string[]
  /** The texts that stand in it whole and unchanged, by the same paths. */
  readonly wholeTexts: ReadonlyMap<string, string>
  /**
   * Whether anything in it is new to the session. What a compaction took away, or a budget left for
   * later, is not: it can wait for the next request.
   */
  readonly news: boolean
}

/** One moment of a session. */
export interface InstructionView {
  readonly fs: FileSystem
  /** Working directory of the session as it was given. */
  readonly cwd: string
  readonly signal: AbortSignal
  /** Sources of the user messages that the model can see, in their order. */
  readonly visible: readonly unknown[]
  /** Sources of the batch that is about to enter, in their order; `undefined` where no batch does. */
  readonly entering: readonly unknown[] | undefined
  /** Whether every change since the last look has come as a suspicion. */
  readonly live: boolean
  /** Whether an absolute real path is ignored in the workspace. */
  readonly ignored: (absolutePath: string) => boolean
  /** Another loader may act in this session although no batch has shown it. Default false. */
  readonly otherLoader?: boolean
}

/** What has to be watched for {@link InstructionView.live} to be true. */
export interface Followed {
  /** Absolute real paths of directories in which one of `names` may appear, change or vanish. */
  readonly directories: readonly string[]
  /** Absolute real paths of files elsewhere to which links lead. */
  readonly files: readonly string[]
  readonly names: readonly string[]
}

/** What the room needs from around it. */
export interface InstructionDeps {
  /** Absolute path of the harness home. */
  readonly dshHome: string
  /** Tell the person who runs the host. The same problem is reported as long as it is met. */
  report(this: void, problem: string, remedy: string): void
}
