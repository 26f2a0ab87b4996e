import { execFileSync } from 'node:child_process'

/** The end-to-end tests install what `lib/` holds, so it is built from the sources under test. */
export default (): void => {
  execFileSync('pnpm', ['run', '--silent', 'build'], { stdio: 'inherit' })
}
