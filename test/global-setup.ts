import { spawnSync } from 'node:child_process'

/**
 * The end-to-end tests install what `lib/` holds, so it is built from the sources under test. The
 * compiler writes its output also when types do not fit; that is for the type check to report.
 */
export default (): void => {
  const { error } = spawnSync('pnpm', ['run', '--silent', 'build'], { stdio: 'inherit' })
  if (error) throw error
}
