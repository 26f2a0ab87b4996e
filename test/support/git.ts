import { execFileSync } from 'node:child_process'

/** Nothing of the machine's own git configuration, and somebody who commits. */
export const gitEnvironment: NodeJS.ProcessEnv = {
  ...process.env,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_AUTHOR_NAME: 'somebody',
  GIT_AUTHOR_EMAIL: 'somebody@example.org',
  GIT_COMMITTER_NAME: 'somebody',
  GIT_COMMITTER_EMAIL: 'somebody@example.org',
}

/** Somebody runs git to its end. @throws when git fails. */
export const git = (cwd: string, ...args: readonly string[]): void => {
  execFileSync('git', ['-c', 'gc.auto=0', ...args], { cwd, env: gitEnvironment, stdio: 'pipe' })
}
