/**
 * The instruction files of one session: what has to be told of them at a boundary.
 *
 * What the model knows is read from the messages that it can see, never from memory. Memory only says
 * what the files were at the last look, so that nothing has to be looked at when no event came.
 *
 * @module dsh-live-workspace/instructions/room
 */
import { dirname, join, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { resolveDshHome } from '@deepseek-ai/dsh-home-paths'
import { messageOf } from '../errors.ts'
import { type Choice, choose } from './choose.ts'
import { type InstructionsConfig, isOff, withPlainCandidates } from './config.ts'
import { Facts, Pass } from './facts.ts'
import { findFrame, type Frame, frameOf } from './frame.ts'
import { baselineIdentity, readIdentity } from './identity.ts'
import { Memory } from './memory.ts'
import { OtherLoader } from './other-loader.ts'
import { type Plan, plan, type Planned } from './plan.ts'
import {
  fingerprint,
  type InstructionChange,
  type InstructionSource,
  parseScope,
  readSource,
  scopeKey,
} from './protocol.ts'
import { renderBaseline, renderChanges, type Rendered, type Transition, wholeIn } from './render.ts'
import { reportRefusals } from './reports.ts'
import type { Scope } from './scopes.ts'
import { Standing } from './standing.ts'
import { lookedIn, type LookedIn, type ScopeStatus, statusOf } from './status.ts'
import { Territory } from './territory.ts'
import type { Followed, InstructionDeps, InstructionMessage, InstructionView } from './view.ts'

/** Instruction files of one session. */
export class InstructionRoom {
  readonly #config: InstructionsConfig
  readonly #deps: InstructionDeps
  readonly #territory: Territory
  readonly #facts = new Facts()
  readonly #memory = new Memory()
  readonly #others = new OtherLoader()
  /** Directories that were touched and are not looked at yet, by the path that was given. */
  readonly #touched = new Set<string>()
  readonly #learned = new Set<string>()
  /** Scopes that the log speaks of. */
  readonly #recalled = new Set<string>()
  #everythingInDoubt = true
  #placeInDoubt = true
  /** What was visible when the last look, with everything followed, had nothing to tell. */
  #quiet: readonly unknown[] | undefined
  #last: { readonly choice: Choice; readonly standing: Standing } | undefined

  constructor(config: InstructionsConfig, deps: InstructionDeps) {
    this.#config = withPlainCandidates(config)
    this.#deps = deps
    this.#territory = new Territory(
      this.#config,
      config.dshHome === '' ? deps.dshHome : resolveDshHome(config.dshHome),
    )
  }

  /** A tool of the session has reached this path, and the session log holds that. */
  touch(absolutePath: string): void {
    this.#doubt(absolutePath)
    const directory = dirname(absolutePath)
    if (this.#learned.has(directory)) return
    this.#touched.add(directory)
    this.#quiet = undefined
  }

  /** A path may have changed. Any path may be given. */
  suspect(absolutePath: string): void {
    this.#doubt(absolutePath)
    if (this.#config.projectRootMarkers.some((marker) => absolutePath.endsWith(sep + marker))) {
      this.#placeInDoubt = true
      this.#quiet = undefined
    }
  }

  #doubt(absolutePath: string): void {
    for (const key of this.#territory.keysAt(absolutePath)) {
      this.#facts.doubt(key)
      this.#quiet = undefined
    }
  }

  /** Anything may have changed. */
  suspectAll(): void {
    this.#everythingInDoubt = true
    this.#placeInDoubt = true
    this.#quiet = undefined
  }

  /** Whether nothing can have become due since the last look. */
  isQuiet({ live, visible, entering }: InstructionView): boolean {
    const last = this.#quiet
    if (!live || !last || last.length !== visible.length) return false
    return visible.every((source, index) => source === last[index]) && !entering?.some((it) => readSource(it))
  }

  /**
   * Learn from the whole log of a session which directories it has reached.
   * @param sources - sources of all its user messages, also of those that the model cannot see any more.
   */
  recall(sources: readonly unknown[]): void {
    this.#quiet = undefined
    const log = new Standing(sources)
    this.#memory.meet(log)
    for (const key of log.words.keys()) this.#recalled.add(key)
  }

  /** What has to be watched, as far as it is known. */
  followed(): Followed {
    const { directories, scopes, names } = this.#territory
    const files = [...this.#facts.all].flatMap(([key, fact]) => {
      const scope = scopes.get(key)
      if (fact.kind !== 'loaded' || !scope) return []
      return fact.real === join(scope.directory.real, scope.name) ? [] : [fact.real]
    })
    return { directories: directories.map(({ real }) => real), files, names: [...names] }
  }

  /** Whether the model knows this file as it was at the last look, its removal too. Any path may be given. */
  has(absolutePath: string): boolean {
    const standing = this.#last?.standing
    return [...this.#territory.keysAt(absolutePath)].some((key) => {
      const fact = this.#facts.all.get(key)
      if (fact?.kind === 'loaded') return standing?.inForce(key)?.digest === fact.digest
      const word = standing?.words.get(key)
      return fact?.kind === 'absent' && word !== undefined && word.digest === undefined
    })
  }

  /**
   * What is in force, and what became of the other files, as of the last look.
   * @param visible - sources of the user messages that the model can see now; without them, at the last look.
   */
  inForce(visible?: readonly unknown[]): readonly ScopeStatus[] {
    if (!this.#last) return []
    const { choice } = this.#last
    const standing = visible ? new Standing(visible) : this.#last.standing
    return statusOf({
      scopes: this.#territory.scopes,
      facts: this.#facts.all,
      verdicts: choice.verdicts,
      standing,
      omitted: (key) => !standing.inForce(key) && this.#memory.isOmitted(key, standing),
      cutTo: (key, digest) => this.#memory.cutTo(key, digest),
    })
  }

  /** Where instruction files are looked for, as of the last look. */
  lookedIn(): readonly LookedIn[] {
    return lookedIn(this.#territory.directories)
  }

  /**
   * Find out what has to be told now. Nothing is consumed by that: what does not become visible is told
   * again.
   * @returns at most a baseline and the transitions beside it, in the order in which they belong.
   * @throws only the reason of the signal.
   */
  async compose(view: InstructionView): Promise<readonly InstructionMessage[]> {
    if (isOff(this.#config)) return []
    view.signal.throwIfAborted()
    if (this.isQuiet(view)) return []
    this.#quiet = undefined
    const isOurs = (print: string) => this.#memory.isOurs(print)
    this.#others.notice(view.entering ?? [], isOurs)
    const standing = new Standing([...view.visible, ...(view.entering ?? [])])
    const other = this.#others.present(view.otherLoader === true, standing, isOurs)
    const frame = await this.#locate(view, standing, other)
    if (!frame) return []
    await this.#learn(view, standing)
    const pass = new Pass(this.#facts, view.fs, this.#config, view.signal)
    await this.#refresh(pass, view.live)
    const identity = baselineIdentity(this.#config, frame.cwd, frame.root)
    const found = await this.#settlePlan(pass, { view, standing, other, identity })
    const messages = this.#render(found, pass, identity)
    const settled =
      messages.length === 0 && [...this.#territory.scopes.keys()].every((key) => !this.#facts.isDue(key))
    this.#quiet = settled && view.live ? view.visible : undefined
    return messages
  }

  /** Find the project, unless it is known. @returns nothing if the working directory cannot be asked. */
  async #locate(view: InstructionView, standing: Standing, other: boolean): Promise<Frame | undefined> {
    const { fs, cwd, signal } = view
    const { baseline } = standing
    const known = this.#territory.frame
    const shadowed = !baseline && this.#last?.standing.baseline !== undefined
    try {
      let frame = known
      // The root of a baseline stays what it is for as long as the baseline can be seen.
      if (!frame || shadowed || (!baseline && (this.#placeInDoubt || !view.live))) {
        this.#placeInDoubt = false
        frame = await findFrame(fs, cwd, this.#config.projectRootMarkers, signal)
        if (frame.doubt !== undefined) this.#reportPlace(cwd, frame.doubt)
      }
      if (baseline && (other || (!known && frame.doubt !== undefined))) {
        const { projectRoot } = readIdentity(baseline.identity)
        if (projectRoot !== undefined) frame = (await frameOf(fs, frame, projectRoot, signal)) ?? frame
      }
      if (known && isDeepStrictEqual({ ...known, doubt: frame.doubt }, frame)) return known
      const forgotten = await this.#territory.enter(frame, view)
      this.#facts.clear()
      this.#learned.clear()
      for (const directory of forgotten) this.#touched.add(directory)
      return frame
    } catch (error) {
      this.#placeInDoubt = true
      signal.throwIfAborted()
      this.#reportPlace(cwd, messageOf(error))
      return undefined
    }
  }

  #reportPlace(cwd: string, why: string): void {
    this.#deps.report(
      `the project root of ${cwd} cannot be determined, and no instructions from above it are loaded: ${why}`,
      'make the directory and those above it readable',
    )
  }

  async #learn(view: InstructionView, standing: Standing): Promise<void> {
    await this.#territory.learnScopes([...standing.words.keys(), ...this.#recalled], view)
    this.#recalled.clear()
    // By name: which of several parallel calls was the first to see its file says nothing.
    for (const directory of [...this.#touched].toSorted()) {
      if (await this.#territory.learn(directory, view)) this.#learned.add(directory)
      this.#touched.delete(directory)
    }
  }

  async #refresh(pass: Pass, live: boolean): Promise<void> {
    const all = !live || this.#everythingInDoubt
    const scopes = [...this.#territory.scopes.values()].filter(({ key }) => all || this.#facts.isDue(key))
    this.#everythingInDoubt = false
    await pass.refresh(scopes)
    this.#note(scopes)
  }

  #note(scopes: readonly Scope[]): void {
    for (const { key } of scopes) {
      const fact = this.#facts.all.get(key)
      if (fact?.kind === 'loaded') this.#territory.index(fact.real, key)
    }
    reportRefusals(scopes, this.#facts.all, this.#deps.report)
  }

  /** Plan, and read what the plan needs, until all of it is at hand. */
  async #settlePlan(pass: Pass, moment: Moment): Promise<Plan> {
    const { view, standing, other, identity } = moment
    const { directories, scopes } = this.#territory
    const { candidateSelection: selection, maxBytes } = this.#config
    const superseding = !other && standing.baseline !== undefined && standing.baseline.identity !== identity
    for (;;) {
      const choice = choose(directories, this.#facts.all, standing, { selection, superseding })
      this.#memory.look(choice, standing, maxBytes)
      this.#last = { choice, standing }
      const gone = other && view.entering && !standing.baseline && this.#others.isGone(choice, standing)
      const found = plan({
        directories,
        facts: this.#facts.all,
        choice,
        standing,
        identity,
        otherNames: other && !gone ? this.#others.names(standing) : undefined,
        omitted: (key) => this.#memory.isOmitted(key, standing),
        selection,
      })
      const missing = [...(found.baseline?.items ?? []), ...found.changes]
        .filter(({ change, key }) => change.action !== 'remove' && !pass.texts.has(key))
        .flatMap(({ key }) => scopes.get(key) ?? [])
      if (missing.length === 0) return found
      await pass.read(missing)
      this.#note(missing)
    }
  }

  #render({ baseline, changes }: Plan, pass: Pass, identity: string): InstructionMessage[] {
    const { maxBytes } = this.#config
    const messages: InstructionMessage[] = []
    const withText = (item: Planned): Transition => ({ ...item, text: pass.texts.get(item.key) })
    if (baseline) {
      const rendered = renderBaseline(baseline.items.map(withText), baseline.superseding, maxBytes)
      messages.push(this.#message(rendered, { baseline: true, baselineIdentity: identity }, baseline.gone))
    }
    const rendered = this.#renderDue(changes.filter((item) => !this.#memory.isStuck(item)).map(withText))
    if (rendered) messages.push(this.#message(rendered, {}, []))
    return messages
  }

  /** As many of the transitions as fit; one of which nothing fits waits until it is another text. */
  #renderDue(items: readonly Transition[]): Rendered | undefined {
    for (let due = items; due.length > 0; due = due.slice(0, -1)) {
      for (const some of [due, due.slice(-1)]) {
        const rendered = renderChanges(some, this.#config.maxBytes)
        if (rendered.told.length > 0) return rendered
      }
      this.#memory.stick(due.at(-1))
    }
    return undefined
  }

  #message(
    rendered: Rendered,
    marks: Pick<InstructionSource, 'baseline' | 'baselineIdentity'>,
    gone: readonly InstructionChange[],
  ): InstructionMessage {
    const changes = [...gone, ...rendered.told.map(({ change }) => change)]
    const source: InstructionSource = { kind: 'agent-instructions', form: 'instructions', ...marks, changes }
    const news = this.#memory.isNews(rendered)
    this.#memory.issued(fingerprint(source), rendered, marks.baseline === true)
    const summaryPaths = this.#pathsOf(changes)
    const wholeTexts = new Map(
      wholeIn(rendered).flatMap(({ change, text }) =>
        this.#pathsOf([change]).map((path) => [path, text] as const),
      ),
    )
    return { text: rendered.text, source, summaryPaths, wholeTexts, news }
  }

  #pathsOf(changes: readonly InstructionChange[]): string[] {
    const paths = changes.flatMap((change) => {
      const parsed = parseScope(change.scope)
      const key = parsed ? scopeKey(parsed.directory, parsed.name) : ''
      const scope = this.#territory.scopes.get(key)
      const fact = this.#facts.all.get(key)
      return [
        ...(scope ? [scope.path, join(scope.directory.real, scope.name)] : []),
        ...(fact?.kind === 'loaded' ? [fact.real] : []),
      ]
    })
    return [...new Set(paths)]
  }
}

/** What one boundary has found out before it plans. */
interface Moment {
  readonly view: InstructionView
  readonly standing: Standing
  readonly other: boolean
  readonly identity: string
}
