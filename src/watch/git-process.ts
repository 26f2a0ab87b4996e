/**
 * Asking git itself, where files alone do not tell: rarely, within a time, and without a lock.
 *
 * @module dsh-live-workspace/watch/git-process
 */
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'

/** Variables that tie git to another repository than the one it is asked about (git-rev-parse(1)). */
const FOREIGN =
  /^GIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|PREFIX|NAMESPACE|OBJECT_DIRECTORY|CONFIG(_(PARAMETERS|COUNT))?)$/

export interface GitLimits {
  /** Longest wait in ms; then git is killed. */
  readonly timeoutMs: number
  /** Size in bytes of the answer; a longer one is none. */
  readonly maxBytes: number
  /** Environment for `PATH`, `HOME` and git itself. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
}

/**
 * Run git for one answer. It takes no optional locks and starts no filesystem monitor.
 * @param directory - the work tree that git is asked about.
 * @returns what it printed; `undefined` without git, when it fails, or when it does not answer in time.
 *   Never rejects.
 */
export const askGit = (
  directory: string,
  args: readonly string[],
  { timeoutMs, maxBytes, env = process.env }: GitLimits,
): Promise<string | undefined> =>
  new Promise((settle) => {
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => !FOREIGN.test(name)))
    const child = execFile(
      'git',
      ['--no-optional-locks', '-c', 'core.fsmonitor=false', '-C', directory, ...args],
      // Not started in the work tree: some systems would look for the program there first.
      {
        cwd: tmpdir(),
        env: own,
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: maxBytes,
        windowsHide: true,
      },
      (error, stdout) => settle(error ? undefined : stdout),
    )
    // It is told nothing, and may have ended already.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end()
  })
