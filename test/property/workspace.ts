/** A repository on the disk, and somebody who works in it beside the sessions. */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { FILES, type Outside } from './deeds.ts'

const first = (path: string): string => `head\nfirst text of ${path}\ntail\n`

const git = (cwd: string, ...args: readonly string[]): void => {
  const config = ['-c', 'user.name=n', '-c', 'user.email=n@example.org', '-c', 'commit.gpgsign=false']
  execFileSync('git', [...config, ...args], { cwd, stdio: 'ignore' })
}

/** A repository with two branches, made once and copied for each run. */
export const makeTemplate = (): string => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'live-workspace-template-')))
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const path of FILES) put(path, first(path))
  symlinkSync('v1', join(root, 'link'))
  git(root, 'init', '-q', '-b', 'main')
  rmSync(join(root, '.git', 'hooks'), { recursive: true, force: true })
  git(root, 'add', '-A')
  git(root, 'commit', '-q', '-m', 'first')
  git(root, 'checkout', '-q', '-b', 'other')
  put('a.ts', 'another branch\n')
  put('d/x.ts', 'another branch, and longer\n')
  put('o.ts', 'only on this branch\n')
  git(root, 'add', '-A')
  git(root, 'commit', '-q', '-m', 'second')
  git(root, 'checkout', '-q', 'main')
  return root
}

/** The other writer. Every text is longer than all before it, so that no two states have one version. */
export class Workspace {
  readonly root: string
  readonly #staging: string
  #number = 0

  constructor(template: string, root: string, staging: string) {
    cpSync(template, root, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
    this.root = root
    this.#staging = staging
  }

  path(path: string): string {
    return join(this.root, path)
  }

  freshText(): string {
    this.#number += 1
    return `head\ntext ${this.#number}${'.'.repeat(100 + this.#number)}\ntail\n`
  }

  #isFile(path: string): boolean {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
  }

  /** Does it, unless there is nothing to do it to. */
  act(outside: Outside): void {
    switch (outside.act) {
      case 'create': {
        const path = this.path(outside.path)
        if (existsSync(path)) return
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, this.freshText())
        return
      }
      case 'rename': {
        const [from, to] = [this.path(outside.path), this.path(outside.to)]
        if (this.#isFile(from) && existsSync(dirname(to))) renameSync(from, to)
        return
      }
      case 'move directory': {
        const [from, to] = existsSync(this.path('d')) ? ['d', 'e'] : ['e', 'd']
        if (existsSync(this.path(from)) && !existsSync(this.path(to)))
          renameSync(this.path(from), this.path(to))
        return
      }
      case 'retarget': {
        const link = this.path('link')
        const target = existsSync(link) && realpathSync(link).endsWith('v1') ? 'v2' : 'v1'
        unlinkSync(link)
        symlinkSync(target, link)
        return
      }
      case 'checkout': {
        const main = join(this.root, '.git', 'HEAD')
        const onMain = execFileSync('cat', [main], { encoding: 'utf8' }).includes('main')
        git(this.root, 'checkout', '-q', '-f', onMain ? 'other' : 'main')
        return
      }
      default:
        this.#change(outside.act, outside.path)
    }
  }

  #change(
    act: 'modify' | 'append' | 'truncate' | 'touch' | 'chmod' | 'delete' | 'replace' | 'put back',
    name: string,
  ): void {
    const path = this.path(name)
    if (!this.#isFile(path)) return
    switch (act) {
      case 'modify':
        writeFileSync(path, this.freshText())
        return
      case 'append':
        appendFileSync(path, `appended ${this.freshText().length}\n`)
        return
      case 'truncate':
        truncateSync(path)
        return
      case 'touch':
        utimesSync(path, new Date(), new Date())
        return
      case 'chmod':
        chmodSync(path, (statSync(path).mode & 0o100) === 0 ? 0o755 : 0o644)
        return
      case 'delete':
        rmSync(path)
        return
      case 'replace':
        writeFileSync(this.#staging, this.freshText())
        renameSync(this.#staging, path)
        return
      case 'put back':
        writeFileSync(path, first(name))
        return
      default:
        throw new Error(`unknown act ${String(act satisfies never)}`)
    }
  }
}
