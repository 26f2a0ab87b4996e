/**
 * What one session knows of the disk, and whether what it was told is right and enough. It shares nothing
 * with the code under test: it reads the disk, the session log and the texts of the notices.
 */
import { resolve } from 'node:path'
import { ABSENT, type DiskState, NO_FILE, realAt, signatureAt, signaturesBelow, stateAt } from './disk.ts'
import { applyHunk, type NamedChange, readNotice, type ReadNotice } from './notice-text.ts'

/** What a tool of the session saw of a file. */
export interface Observation {
  /** Absolute path as the session used it. */
  readonly name: string
  readonly real: string
  readonly content: DiskState
  readonly signature: string | undefined
  readonly nested: boolean
}

interface Told {
  readonly state: DiskState
  readonly signature: string | undefined
  readonly seq: number
}

/** A file that the session has used. */
interface Known extends Observation {
  content: DiskState
  signature: string | undefined
  /**
   * Nothing happened to it between the tool and the next boundary, so that its content could be read:
   * without that, a moved version may be told although the content is equal.
   */
  certain: boolean | undefined
  /** Log events that what the session knows of it rests on. */
  shownBy: number[]
  told: Told | undefined
  unverified: number | undefined
  /** Times that it was told to be modified since the session knew it, and the boundary of the last one. */
  tellings: number
  toldAt: number
  /** It was only counted, or might have been: nothing can be said until the session knows it again. */
  vague: boolean
}

/** One message of ours in the session log. */
export interface Message {
  readonly seq: number
  readonly category: string
  readonly text: string
}

/** What has happened at one boundary. */
export interface BoundaryFacts {
  readonly kind: 'request' | 'end of the turn'
  /** The first request of a turn. */
  readonly fresh: boolean
  readonly messages: readonly Message[]
  /** Whether the model can still see an event of the log. */
  readonly visible: (seq: number) => boolean
  readonly failing: ReadonlySet<string>
  /** Whether the turn may go on for a change. */
  readonly maySteer: boolean
}

export interface OracleOptions {
  readonly root: string
  readonly cwd: string
  readonly maxNoticeBytes: number
  readonly maxNoticePaths: number
}

export class SessionOracle {
  readonly #options: OracleOptions
  readonly #known = new Map<string, Known>()
  /** Signatures of files that the session has not used, as it was told of them. */
  readonly #others = new Map<string, string>()
  /** Signatures of the tree up to which nothing is missing; `undefined` while the watcher is not trusted. */
  #accounted: Map<string, string> | undefined
  /** Files that tools of this session have written, committed or not. */
  readonly #written = new Set<string>()
  /** What files held at the latest boundary. */
  #atBoundary: ReadonlyMap<string, DiskState> = new Map()
  #boundaries = 0
  #coverage: string | undefined

  constructor(options: OracleOptions) {
    this.#options = options
  }

  get used(): readonly string[] {
    return [...this.#known.keys()]
  }

  /** A tool of the session wrote; whether the model saw the result is another question. */
  wrote(real: string): void {
    this.#written.add(real)
  }

  /** The model has durably seen a tool's result. */
  commit(observation: Observation, resultSeq: number): void {
    for (const [real, { name }] of this.#known) if (name === observation.name) this.#known.delete(real)
    this.#others.delete(observation.real)
    this.#known.set(observation.real, {
      ...observation,
      certain: undefined,
      shownBy: [resultSeq],
      told: undefined,
      unverified: undefined,
      tellings: 0,
      toldAt: 0,
      vague: false,
    })
  }

  /** The session goes on in a process that knows nothing of it. */
  forgetAll(): void {
    this.#known.clear()
    this.#others.clear()
    this.#coverage = undefined
    this.distrust()
  }

  /** The watcher may have missed something. */
  distrust(): void {
    this.#accounted = undefined
  }

  /** The watcher is live: from now on nothing may be missing. */
  trust(): void {
    this.#accounted ??= signaturesBelow(this.#options.root)
  }

  /** A boundary was reached that led to no request and to no end: nothing may have been consumed. */
  lost(): void {
    this.#boundaries += 1
  }

  judge(facts: BoundaryFacts): void {
    this.#boundaries += 1
    const notices: ReadNotice[] = []
    for (const { seq, category, text } of facts.messages) {
      if (Buffer.byteLength(text) > this.#options.maxNoticeBytes) fail(`a notice of too many bytes: ${text}`)
      if (category === 'coverage') this.#judgeCoverage(text)
      if (category !== 'changes') continue
      const notice = readNotice(text)
      if (notice.changes.length > this.#options.maxNoticePaths) fail(`too many paths: ${text}`)
      notices.push(notice)
      this.#read(notice, seq, facts)
    }
    if (notices.length > 1) fail(`${notices.length} notices of changes at one boundary`)
    this.#demandUsed(notices[0], facts)
    this.#demandOthers(notices[0], facts)
    this.#atBoundary = new Map(
      [...signaturesBelow(this.#options.root).keys()].map((path) => [path, stateAt(path)]),
    )
  }

  #judgeCoverage(text: string): void {
    if (text === this.#coverage) fail(`told twice in a row: ${text}`)
    this.#coverage = text
  }

  #path(path: string): string {
    return resolve(this.#options.cwd, path)
  }

  /** Check what a notice says and take it in. */
  #read({ changes, counted, countedUsed }: ReadNotice, seq: number, facts: BoundaryFacts): void {
    const named = new Set<string>()
    for (const change of changes) {
      const path = this.#path(change.path)
      if (named.has(path)) fail(`named twice in one notice: ${path}`)
      named.add(path)
      if (change.verb === 'moved') this.#readMove(change, seq)
      else if (change.used) this.#readUsed(change, seq, facts)
      else this.#readOther(change)
    }
    if (countedUsed > counted) fail(`${countedUsed} of ${counted} counted paths are used`)
  }

  #readMove({ path, to = '' }: NamedChange, seq: number): void {
    const [from, target] = [this.#path(path), this.#path(to)]
    const directory = path.endsWith('/')
    const gone = this.#all().filter(({ name }) =>
      directory ? name.startsWith(`${from}/`) && stateAt(name) === ABSENT : name === from,
    )
    const moved = gone.flatMap((known) => {
      const name = directory ? target + known.name.slice(from.length) : target
      return stateAt(name) === known.content ? [{ known, name }] : []
    })
    if (moved.length < (directory ? 2 : 1)) fail(`moved, but not known, or something else: ${from}`)
    if (directory && stateAt(from) !== ABSENT) fail(`moved, but still there: ${from}`)
    for (const { known, name } of moved) {
      if (stateAt(known.name) !== ABSENT) fail(`moved, but still there: ${known.name}`)
      if (known.told?.state === ABSENT) fail(`told twice to be gone: ${known.name}`)
      this.#follow(known, name, seq)
    }
  }

  /** What a session knows of a file goes with it. */
  #follow(known: Known, name: string, seq: number): void {
    const real = realAt(name)
    for (const [key, each] of this.#known) if (each === known) this.#known.delete(key)
    this.#others.delete(real)
    if (this.#known.has(real)) return
    const signature = signatureAt(name)
    const shownBy = [...known.shownBy, seq]
    this.#known.set(real, { ...known, name, real, signature, shownBy, told: undefined, certain: undefined })
  }

  #readUsed(change: NamedChange, seq: number, facts: BoundaryFacts): void {
    const path = this.#path(change.path)
    const known = this.#all().find(({ name, real }) => name === path || real === path)
    if (!known) fail(`told as used, but never used: ${path}`)
    this.#withdrawInvisible(known, facts)
    if (change.verb === 'could not verify') {
      if (!this.#fails(known, facts)) fail(`could be verified: ${path}`)
      if (known.unverified !== undefined) fail(`told twice as not verified: ${path}`)
      known.unverified = seq
      return
    }
    // A link that leads elsewhere now is asked about there.
    if (facts.failing.has(realAt(known.name) ?? known.name))
      fail(`cannot have been verified: ${path} (${change.verb})`)
    const now = stateAt(known.name)
    const signature = signatureAt(known.name)
    if ((change.verb === 'deleted') !== (now === ABSENT)) fail(`${change.verb}, but it is not so: ${path}`)
    const { told } = known
    // What a link leads to that was put there meanwhile is not read, so its versions count.
    const certain = known.certain === true && (now === ABSENT || realAt(known.name) === known.real)
    const restored = change.verb === 'again as this session saw it:'
    if (restored && (now !== known.content || told === undefined)) fail(`not as it was: ${path}`)
    if (told && !restored && (told.signature === signature || (certain && told.state === now)))
      fail(`told twice: ${path} (${change.verb})`)
    if (!told && now === known.content && (certain || signature === known.signature))
      fail(`told, but it is as the session saw it: ${path} (${change.verb})`)
    if (change.hunk.length > 0 || restored) {
      if (change.hunk.length > 0) this.#checkHunk(change, known, now, facts)
      Object.assign(known, { content: now, signature, certain: true, told: undefined, tellings: 0 })
      known.shownBy.push(seq)
      return
    }
    known.told = { state: now, signature, seq }
    known.tellings += change.verb === 'modified' ? 1 : 0
    known.toldAt = this.#boundaries
  }

  #checkHunk({ hunk, path }: NamedChange, known: Known, now: DiskState, { visible }: BoundaryFacts): void {
    if (known.nested || !known.shownBy.every(visible)) fail(`shown against what nobody can see: ${path}`)
    if (typeof known.content !== 'string') fail(`shown against nothing: ${path}`)
    if (applyHunk(known.content, hunk) !== now) fail(`what is shown is not what changed: ${path}`)
  }

  #readOther({ path: shown, verb }: NamedChange): void {
    const path = this.#path(shown)
    if (this.#all().some(({ name, real }) => name === path || real === path))
      fail(`used, but told as another file: ${path}`)
    const signature = signatureAt(path)
    if ((verb === 'deleted') !== (signature === undefined)) fail(`${verb}, but it is not so: ${path}`)
    if (this.#others.get(path) === (signature ?? 'absent')) fail(`told twice: ${path} (${verb})`)
    this.#others.set(path, signature ?? 'absent')
  }

  #all(): Known[] {
    return [...this.#known.values()]
  }

  #fails({ name, real }: Known, { failing }: BoundaryFacts): boolean {
    return failing.has(real) || failing.has(name)
  }

  #withdrawInvisible(known: Known, { visible }: BoundaryFacts): void {
    if (known.told && !visible(known.told.seq)) known.told = undefined
    if (known.unverified !== undefined && !visible(known.unverified)) known.unverified = undefined
  }

  /** Nothing about a used file may be missing. */
  #demandUsed(notice: ReadNotice | undefined, facts: BoundaryFacts): void {
    let counted = notice?.countedUsed ?? 0
    const spoken = notice !== undefined
    for (const known of this.#all()) {
      this.#withdrawInvisible(known, facts)
      const now = stateAt(known.name)
      const signature = signatureAt(known.name)
      known.certain ??= signature === known.signature
      if (this.#fails(known, facts)) {
        // Of a link that leads elsewhere now either answer may be had.
        if (!facts.failing.has(realAt(known.name))) known.vague = true
        if (known.unverified !== undefined || facts.kind !== 'request') continue
        if (counted > 0) counted -= 1
        else if (!known.vague) fail(`not told that it cannot be verified: ${known.name}`)
        known.vague = true
        continue
      }
      known.unverified = undefined
      if (known.vague) continue
      const last: DiskState = known.told ? known.told.state : known.content
      if (now === last) {
        // Under another version the session may have been told of equal content by a mere count.
        if (counted > 0 && !known.certain && signature !== known.signature) known.vague = true
        continue
      }
      const late = facts.kind === 'request' && !facts.fresh && !spoken
      if (late && this.#mayWait(known, now)) continue
      if (!facts.maySteer) continue
      if (counted === 0) fail(`missed: ${known.name} is ${shown(now)}, the session knows ${shown(last)}`)
      counted -= 1
      known.vague = true
    }
    if (counted > 0 && !this.#all().some(({ vague }) => vague)) fail(`${counted} used files too many counted`)
  }

  /** A file that keeps changing is told after 1, 2, 4, … boundaries. */
  #mayWait({ told, tellings, toldAt, content }: Known, now: DiskState): boolean {
    if (tellings === 0 || told?.state === ABSENT || now === ABSENT || now === content) return false
    return this.#boundaries < toldAt + 2 ** (tellings - 1)
  }

  /** With a trusted watcher nothing about other files may be missing either, before a request. */
  #demandOthers(notice: ReadNotice | undefined, { kind, failing }: BoundaryFacts): void {
    if (!this.#accounted || kind !== 'request') return
    const now = signaturesBelow(this.#options.root)
    const named = new Set(
      notice?.changes.flatMap(({ path, to }) => [path, ...(to === undefined ? [] : [to])]),
    )
    const paths = [...named].map((path) => this.#path(path))
    let counted = (notice?.counted ?? 0) - (notice?.countedUsed ?? 0)
    const isUsed = (path: string) => this.#all().some(({ name, real }) => name === path || real === path)
    for (const [path, signature] of now) {
      const before = this.#accounted.get(path)
      if (before === signature) continue
      if (failing.has(path)) {
        // Told once the service can look at it.
        if (before === undefined) now.delete(path)
        else now.set(path, before)
        continue
      }
      if (isUsed(path) || this.#written.has(path)) continue
      if (paths.some((named) => path === named || path.startsWith(`${named}/`))) continue
      if (this.#others.get(path) === signature) continue
      // Away and back since then, by way of git.
      if (before !== undefined && this.#atBoundary.get(path) === stateAt(path)) continue
      if (counted === 0) fail(`missed: ${path}, which the session has not used`)
      counted -= 1
      this.#others.set(path, signature)
    }
    this.#accounted = now
  }
}

const shown = (state: DiskState): string =>
  state === ABSENT ? 'absent' : state === NO_FILE ? 'no file' : JSON.stringify(state)

function fail(problem: string): never {
  throw new Error(problem)
}
