/**
 * The text of `/workspace`. Pure.
 *
 * @module dsh-live-workspace/status/render-workspace
 */
import { ago, counted, labelled, listed, quoted } from './text.ts'
import type { WorkspaceStatus } from './workspace.ts'

const namesOf = (paths: readonly string[]): string => paths.map(quoted).join(', ')

const settingsLine = ({ source, refused }: WorkspaceStatus['settings']): string =>
  (source === 'row' ? "the profile's row" : "the settings document over the profile's row") +
  (refused === undefined ? '' : `; refused, the last good ones stay: ${refused}`)

const barrierLine = (status: WorkspaceStatus, now: number): string => {
  const { barrier } = status
  if (!barrier) return 'none yet'
  const outcome = {
    clean: 'every event had come',
    'best-effort': 'best effort: this way of watching has no exact barrier',
    unclean: 'events may have been missing; used files were checked one by one',
  }[barrier.outcome]
  return `${ago(barrier.at, now)}, ${barrier.ms} ms, ${outcome}`
}

const ignoredLines = ({ ignored }: WorkspaceStatus): string[] => {
  const { directories, git, files, refused, own } = ignored
  return [
    ...(directories.length > 0 ? [`directories named ${namesOf(directories)}`] : []),
    git ? `what git ignores, by ${counted(files.length, 'file')} of rules` : 'git rules are not applied',
    ...files.map((file) => `  ${quoted(file)}`),
    ...refused.map(({ path, why }) => `  not applied: ${quoted(path)}: ${why}`),
    ...(own.length > 0 ? [`the harness's own ${namesOf(own)}`] : []),
  ]
}

const pendingLines = ({ pending }: WorkspaceStatus): string[] => [
  ...pending.paths.map(quoted),
  ...(pending.unlisted > 0
    ? [`at least ${counted(pending.unlisted, 'path')} whose names were not kept`]
    : []),
  ...pending.reminders.map((reminder) => `the reminder "${reminder}"`),
  ...(pending.travelling > 0 ? [`${counted(pending.travelling, 'message')} on the way to the model`] : []),
]

/**
 * @param now - ms since the epoch.
 * @returns lines; the first one is a summary by itself.
 */
export const renderWorkspace = (status: WorkspaceStatus, now: number): string => {
  const { coverage, backend, uncovered = [], history = [], seen, told, manifest } = status
  const pending = pendingLines(status)
  const summary = [
    `Watching: ${coverage.kind}`,
    `${counted(seen.length, 'file')} seen`,
    `${pending.length} waiting`,
    `${counted(told.length, 'notice')} told`,
  ].join(', ')
  return [
    summary,
    '',
    labelled('Root', status.root === undefined ? 'not found yet' : quoted(status.root)),
    ...(status.directory === undefined ? [] : [labelled('Directory', quoted(status.directory))]),
    labelled('Coverage', `${coverage.kind} (${coverage.why})`),
    ...(coverage.remedy === undefined ? [] : [labelled('Remedy', coverage.remedy)]),
    labelled(
      'Watcher',
      backend
        ? `${backend.name}, ${counted(backend.watchedDirectories, 'directory', 'directories')}`
        : 'none',
    ),
    labelled('Last wait', barrierLine(status, now)),
    labelled('Settings', settingsLine(status.settings)),
    ...(manifest === undefined ? [] : [labelled('Kept in', quoted(manifest))]),
    '',
    ...listed('Ignored unless this session has used it:', ignoredLines(status)),
    ...(uncovered.length > 0
      ? ['', ...listed('Not watched, although the rest is:', uncovered.map(quoted))]
      : []),
    ...(history.length > 0
      ? [
          '',
          ...listed(
            'Watching was limited:',
            history.map(
              ({ from, to, reason }) =>
                `${ago(from, now)}${to === undefined ? ', still' : ` until ${ago(to, now)}`}: ${reason}`,
            ),
          ),
        ]
      : []),
    '',
    ...listed(
      seen.length === 0 ? 'Files seen: none' : 'Files seen, the latest first:',
      seen.map(
        ({ path, state, tool, outdated }) =>
          `${quoted(path)}  ${tool}${state === 'absent' ? ', was not there' : ''}${outdated ? ', told to be out of date' : ''}`,
      ),
    ),
    '',
    ...listed(
      pending.length === 0 ? 'Waiting for the next request: nothing' : 'Waiting for the next request:',
      pending,
    ),
    '',
    ...listed(
      told.length === 0 ? 'Told: nothing' : 'Told, the latest first:',
      told
        .toReversed()
        .map(
          ({ at, category, summary: said, visible }) =>
            `${ago(at, now)}  ${category}: ${said}${visible ? '' : ' (not visible to the model any more)'}`,
        ),
    ),
  ].join('\n')
}
