/**
 * What `/workspace` knows of one session, as plain values. What is not known is left out.
 *
 * @module dsh-live-workspace/status/workspace
 */
import type { Session } from '@deepseek-ai/dsh-session'
import type { WatchConfig } from '../config.ts'
import { PLUGIN } from '../messages.ts'
import type { SessionState } from '../session.ts'
import type { BarrierOutcome } from '../watch/contract.ts'
import type { Coverage } from '../watch/coverage.ts'
import type { RootReader } from '../watch/registry.ts'
import type { RulesInForce } from '../watch/silence.ts'

/** Coverage as a person is told it. */
export interface CoverageStatus {
  /** `unknown`: the session has no workspace yet. */
  readonly kind: Coverage['kind'] | 'unknown'
  /** Why it is so, or what it means. */
  readonly why: string
  /** What helps, for a fault. */
  readonly remedy?: string
}

/** A file that the session has read or written. */
export interface SeenFile {
  /** As the model is shown it. */
  readonly path: string
  readonly state: 'present' | 'absent'
  /** Tool that saw it last. */
  readonly tool: string
  /** The session was told of a newer state and has not read it since. */
  readonly outdated: boolean
}

/** A notice in the session log. */
export interface ToldNotice {
  /** Number of its event in the session log. */
  readonly seq: number
  /** ISO 8601. */
  readonly at: string
  readonly category: string
  readonly summary: string
  /** Whether the model can still see it. */
  readonly visible: boolean
}

/** Status of one session's workspace; the JSON form is this as it is. */
export interface WorkspaceStatus {
  /** Grows when the meaning of a field changes. */
  readonly format: 1
  readonly session: string
  readonly directory?: string
  readonly root?: string
  readonly coverage: CoverageStatus
  readonly backend?: { readonly name: string; readonly watchedDirectories: number }
  /** Directories that cannot be watched although the rest is. */
  readonly uncovered?: readonly string[]
  /** When watching was limited, the latest last. Times in ISO 8601. */
  readonly history?: readonly {
    readonly from: string
    readonly to?: string
    readonly reason: string
  }[]
  /** The latest wait for the watcher. Its length in ms. */
  readonly barrier?: { readonly at: string; readonly outcome: BarrierOutcome; readonly ms: number }
  readonly settings: {
    readonly source: 'row' | 'settings'
    /** A wrong value in the settings document, which is not in force. */
    readonly refused?: string
  }
  readonly ignored: RulesInForce & {
    /** Names of directories, at any depth. */
    readonly directories: readonly string[]
    /** Whether git's rules count. */
    readonly git: boolean
  }
  /** Latest first. */
  readonly seen: readonly SeenFile[]
  readonly pending: {
    /** Paths to be looked at before the next request, as the model would be shown them. */
    readonly paths: readonly string[]
    /** Changed paths whose names were not kept. */
    readonly unlisted: number
    /** Reminders that are due. */
    readonly reminders: readonly string[]
    /** Messages that are on their way into the log. */
    readonly travelling: number
  }
  readonly told: readonly ToldNotice[]
  /** Where the durable state of this session is kept. */
  readonly manifest?: string
}

/** What the status is collected from. */
export interface WorkspaceParts {
  readonly state: SessionState
  readonly session: Session
  readonly watch: WatchConfig
  readonly settings: WorkspaceStatus['settings']
  /** Where the durable state of this session is kept; absent where nothing is kept. */
  readonly manifest?: string | undefined
}

const WHY: Readonly<Record<Exclude<Coverage['kind'], 'degraded'>, string>> = {
  starting: 'the first scan runs; until it ends only files that the session has used are followed',
  live: 'every change below the root is followed',
  remote:
    "the files are not on this machine's disk; files that the session has used are checked at each request",
  off: 'watch.backend is "off"; files that the session has used are checked at each request',
}

const coverageOf = (coverage: Coverage | undefined): CoverageStatus => {
  if (!coverage) return { kind: 'unknown', why: 'the workspace of this session was not found yet' }
  if (coverage.kind !== 'degraded') return { kind: coverage.kind, why: WHY[coverage.kind] }
  const { reason, detail, remedy } = coverage.fault
  return { kind: 'degraded', why: detail === undefined ? reason : `${reason} (${detail})`, remedy }
}

const seenBy = (state: SessionState): SeenFile[] =>
  Array.from(state.ledger.entries(), ({ key, target, seen, tool }) => ({
    path: state.shownTarget(key, target),
    state: seen.kind,
    tool,
    outdated: state.receipts.lastWord(key) !== undefined,
  })).toReversed()

const pendingOf = (state: SessionState): WorkspaceStatus['pending'] => {
  const paths = new Set<string>()
  for (const path of state.waitingPaths()) {
    const entry = state.entryAt(path)
    paths.add(entry ? state.shownTarget(entry.key, entry.target) : state.shown(path))
  }
  for (const [key, target] of state.doubtful) paths.add(state.shownTarget(key, target))
  return {
    paths: [...paths].toSorted(),
    unlisted: state.unlisted,
    reminders: [...state.reminders],
    travelling: state.receipts.travelling.size,
  }
}

/** Notices of this package in a session log. */
export const toldIn = ({ events, surface }: Session): ToldNotice[] => {
  const nodes = new Set(surface.nodes)
  return events.flatMap((event) => {
    if (event.type !== 'user/message') return []
    const source: Readonly<Record<string, unknown>> = { ...event.data.source }
    if (source['kind'] !== 'plugin' || source['plugin'] !== PLUGIN) return []
    return [
      {
        seq: event.seq,
        at: new Date(event.time).toISOString(),
        category: String(source['category']),
        summary: String(source['summary']),
        visible: nodes.has(event.seq),
      },
    ]
  })
}

const isoOf = (ms: number): string => new Date(ms).toISOString()

/** What is not watched, and when watching was limited. */
const watchedIn = (reader: RootReader | undefined): Pick<WorkspaceStatus, 'uncovered' | 'history'> => {
  const { directories = [], unknown = false } = reader?.uncovered ?? {}
  const faults = reader?.status.faults ?? []
  const uncovered = [...directories, ...(unknown ? ['a part that is not known'] : [])]
  return {
    ...(uncovered.length > 0 ? { uncovered } : {}),
    ...(faults.length > 0
      ? {
          history: faults.map(({ at, lastedMs, reason }) => ({
            from: isoOf(at),
            ...(lastedMs === undefined ? {} : { to: isoOf(at + lastedMs) }),
            reason,
          })),
        }
      : {}),
  }
}

/** The status as it is now. */
export const workspaceStatus = ({
  state,
  session,
  watch,
  settings,
  manifest,
}: WorkspaceParts): WorkspaceStatus => {
  const { place, reader, lastBarrier } = state
  const backend = reader?.backend
  return {
    format: 1,
    session: state.id,
    ...(place ? { directory: place.lexical, root: place.root } : {}),
    coverage: coverageOf(reader?.coverage),
    ...(backend ? { backend: { name: backend.name, watchedDirectories: backend.watchedDirectories } } : {}),
    ...watchedIn(reader),
    ...(lastBarrier
      ? {
          barrier: {
            at: isoOf(lastBarrier.at),
            outcome: lastBarrier.outcome,
            ms: Math.round(lastBarrier.ms * 10) / 10,
          },
        }
      : {}),
    settings,
    ignored: {
      directories: watch.ignoredDirectories,
      git: watch.respectGitignore,
      ...(reader?.rules ?? { files: [], refused: [], own: [] }),
    },
    seen: seenBy(state),
    pending: pendingOf(state),
    told: toldIn(session),
    ...(manifest === undefined ? {} : { manifest }),
  }
}
