/**
 * Settings of what a session remembers over a restart.
 *
 * @module dsh-live-workspace/manifest/config
 */
import z from '@deepseek-ai/schemastery'

const count = (min: number, max: number, fallback: number) =>
  z.number().step(1).min(min).max(max).default(fallback)

/** One schema for each key, as the other rooms have them. */
export const resume = {
  enabled: z
    .boolean()
    .default(true)
    .description(
      'Remember on disk which files a session has seen, and say after a restart which of them changed. Without it a resumed session gets one general reminder.',
    ),
  tellUnchanged: z
    .boolean()
    .default(true)
    .description('Say it also when nothing changed, in one short line.'),
  saveDelayMs: count(0, 600_000, 250).description(
    'Time in ms after something new was seen at which it is written, with everything else up to then.',
  ),
  flushMs: count(1, 600_000, 2_000).description(
    'Longest wait in ms when a session ends for contents that are still being read, before the last writing.',
  ),
  maxFiles: count(1, 1_000_000, 10_000).description(
    'Files remembered for one session; those used longest ago are forgotten first.',
  ),
  maxManifestBytes: count(1_024, 268_435_456, 4_194_304).description(
    'Size in bytes of what is remembered for one session; those used longest ago are forgotten first.',
  ),
  firstStepFiles: count(1, 1_000_000, 5_000).description(
    'Files checked before the first request after a restart, the latest used first; the rest is checked while the model works.',
  ),
  firstStepMs: count(0, 60_000, 30).description(
    'Time in ms after which no further files are checked before that request; some dozens always are.',
  ),
  maxResumePaths: count(1, 10_000, 50).description(
    'Paths named in the message after a restart; the rest is counted.',
  ),
  maxResumeBytes: count(1_024, 1_048_576, 4_096).description(
    'Size in bytes of the message after a restart, frame included.',
  ),
  keepMs: count(0, 315_360_000_000, 2_592_000_000).description(
    'Time in ms after which what was remembered for a session that no longer exists is removed.',
  ),
  maxSessions: count(1, 1_000_000, 1_000).description(
    'Sessions remembered; beyond that those used longest ago are forgotten.',
  ),
  maxSetAside: count(0, 10_000, 8).description('Unusable files kept for a look at them.'),
  unfinishedMs: count(0, 86_400_000, 60_000).description(
    'Time in ms after which an unfinished file, which a killed process has left, is removed.',
  ),
}
