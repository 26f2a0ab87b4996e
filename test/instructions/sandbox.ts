import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A directory of its own for one test: `project` is a workspace, `home` a harness home. */
export interface Sandbox {
  readonly base: string
  readonly project: string
  readonly home: string
  write(path: string, text: string): void
  remove(): void
}

export const makeSandbox = (): Sandbox => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'instructions-')))
  const project = join(base, 'project')
  const home = join(base, 'home')
  mkdirSync(join(project, '.git'), { recursive: true })
  mkdirSync(home)
  return {
    base,
    project,
    home,
    write: (path, text) => {
      const file = join(project, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    },
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
}
