import { type FileSystem, type FsInfo, type FsTarget, FsTargetKey, FsVersion } from '@deepseek-ai/dsh-fs'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Deadline, type Question, Revalidator } from '../../src/revalidate.ts'

type Asked = Pick<FileSystem, 'resolve' | 'stat'>

const targetOf = (path: string): FsTarget => ({ targetKey: FsTargetKey(`key:${path}`), displayPath: path })

const fileAt = (version: string): FsInfo => ({ version: FsVersion(version), type: 'file' })

/** A service of which the revalidator may use these two methods alone. */
class FakeService implements Asked {
  readonly resolved: string[] = []
  readonly asked: string[] = []
  answer: (target: FsTarget) => Promise<FsInfo | undefined> = () => Promise.resolve(fileAt('v1'))
  find: (path: string) => Promise<FsTarget> = (path) => Promise.resolve(targetOf(path))

  resolve(path: string): Promise<FsTarget> {
    this.resolved.push(path)
    return this.find(path)
  }

  stat(target: FsTarget): Promise<FsInfo | undefined> {
    this.asked.push(target.displayPath)
    return this.answer(target)
  }
}

/** Whatever else of the service might be used is missing, which fails the test. */
const whole = (asked: Asked): FileSystem => asked as FileSystem

/** A service that answers when the test says so. */
class HeldService extends FakeService {
  readonly #held = new Map<string, (info: FsInfo | undefined) => void>()
  override answer = (target: FsTarget): Promise<FsInfo | undefined> =>
    new Promise((resolve) => {
      this.#held.set(target.displayPath, resolve)
    })

  release(path: string, info: FsInfo | undefined): void {
    const resolve = this.#held.get(path)
    if (!resolve) throw new Error(`${path} was not asked for`)
    this.#held.delete(path)
    resolve(info)
  }

  get held(): readonly string[] {
    return [...this.#held.keys()]
  }
}

const HOUR = 3_600_000
const never = new AbortController().signal

beforeEach(() => {
  // What is late here is so because the test says it, never because a machine is slow.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

/** A boundary that ends when the test says so. */
const boundary = (): { readonly deadline: Deadline; readonly end: () => void } => {
  return { deadline: new Deadline(HOUR, never), end: () => void vi.advanceTimersByTime(HOUR) }
}

const about = (path: string): Question => ({ target: targetOf(path) })

describe('Deadline', () => {
  it('is reached after its time', async () => {
    const deadline = new Deadline(100, never)
    vi.advanceTimersByTime(99)
    expect(deadline.expired).toBe(false)
    vi.advanceTimersByTime(1)
    expect(deadline.expired).toBe(true)
    await deadline.reached
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is reached at once when the signal aborts, and leaves no timer', async () => {
    const aborting = new AbortController()
    const deadline = new Deadline(HOUR, aborting.signal)
    aborting.abort()
    expect(deadline.expired).toBe(true)
    await deadline.reached
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is reached already when the signal was aborted before', async () => {
    const deadline = new Deadline(HOUR, AbortSignal.abort())
    expect(deadline.expired).toBe(true)
    await deadline.reached
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leaves neither timer nor listener when it is cancelled', () => {
    const aborting = new AbortController()
    const deadline = new Deadline(HOUR, aborting.signal)
    deadline.cancel()
    expect(vi.getTimerCount()).toBe(0)
    aborting.abort()
    expect(deadline.expired).toBe(false)
  })
})

describe('Revalidator', () => {
  it.each(['file', 'directory', 'other'] as const)('says what a present %s is', async (type) => {
    const service = new FakeService()
    service.answer = () => Promise.resolve({ version: FsVersion('v7'), type })
    const answer = await new Revalidator(whole(service), 4, 2).ask(about('/a'), boundary().deadline)
    expect(answer).toEqual({
      kind: 'known',
      target: targetOf('/a'),
      now: { kind: 'present', version: 'v7', type },
    })
    expect(service.resolved).toEqual([])
  })

  it('says that a target is absent', async () => {
    const service = new FakeService()
    service.answer = () => Promise.resolve(undefined)
    const answer = await new Revalidator(whole(service), 4, 2).ask(about('/a'), boundary().deadline)
    expect(answer).toEqual({ kind: 'known', target: targetOf('/a'), now: { kind: 'absent' } })
  })

  it('resolves a path first, and names the target it found', async () => {
    const service = new FakeService()
    service.find = () => Promise.resolve(targetOf('/real'))
    const answer = await new Revalidator(whole(service), 4, 2).ask({ path: '/link' }, boundary().deadline)
    expect(answer).toMatchObject({ kind: 'known', target: targetOf('/real') })
    expect([service.resolved, service.asked]).toEqual([['/link'], ['/real']])
  })

  it.each([
    ['an error', new Error('no\npermission'), 'no permission'],
    ['anything else', 'closed', 'closed'],
    ['nothing', undefined, 'undefined'],
  ])('says "failed" when the service throws %s', async (_what, thrown, reason) => {
    const service = new FakeService()
    service.answer = () => Promise.reject(thrown)
    const revalidator = new Revalidator(whole(service), 4, 2)
    expect(await revalidator.ask(about('/a'), boundary().deadline)).toEqual({
      kind: 'failed',
      target: targetOf('/a'),
      reason,
    })
    service.find = () => Promise.reject(thrown)
    expect(await revalidator.ask({ path: '/a' }, boundary().deadline)).toEqual({
      kind: 'failed',
      target: undefined,
      reason,
    })
  })

  it('contains a throw that is no rejection', async () => {
    const service = new FakeService()
    service.answer = () => {
      throw new Error('at once')
    }
    const answer = await new Revalidator(whole(service), 4, 2).ask(about('/a'), boundary().deadline)
    expect(answer).toMatchObject({ kind: 'failed', reason: 'at once' })
  })

  it('asks again after a failure', async () => {
    const service = new FakeService()
    const revalidator = new Revalidator(whole(service), 1, 2)
    service.answer = () => Promise.reject(new Error('down'))
    await revalidator.ask(about('/a'), boundary().deadline)
    service.answer = () => Promise.resolve(fileAt('v2'))
    expect(await revalidator.ask(about('/a'), boundary().deadline)).toMatchObject({ kind: 'known' })
  })

  it('asks anew for each question: an answer under way may be older than the boundary', async () => {
    const service = new FakeService()
    const revalidator = new Revalidator(whole(service), 4, 2)
    const { deadline } = boundary()
    const versions = ['v1', 'v2']
    service.answer = () => Promise.resolve(fileAt(versions.shift() ?? 'none'))
    const answers = await Promise.all([
      revalidator.ask(about('/a'), deadline),
      revalidator.ask(about('/a'), deadline),
    ])
    expect(answers.map((answer) => answer.kind === 'known' && answer.now)).toMatchObject([
      { version: 'v1' },
      { version: 'v2' },
    ])
  })

  it('asks nothing after the deadline', async () => {
    const service = new FakeService()
    const { deadline, end } = boundary()
    end()
    const revalidator = new Revalidator(whole(service), 4, 2)
    expect(await revalidator.ask(about('/a'), deadline)).toEqual({ kind: 'late', target: targetOf('/a') })
    expect(await revalidator.ask({ path: '/b' }, deadline)).toEqual({ kind: 'late', target: undefined })
    expect([service.asked, service.resolved]).toEqual([[], []])
  })

  it('waits no longer than its boundary for a service that hangs', async () => {
    const service = new HeldService()
    const { deadline, end } = boundary()
    const asking = new Revalidator(whole(service), 4, 2).ask(about('/a'), deadline)
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    end()
    expect(await asking).toEqual({ kind: 'late', target: targetOf('/a') })
  })

  it('waits no longer for a path that hangs while it is resolved', async () => {
    const service = new FakeService()
    service.find = () => new Promise(() => undefined)
    const revalidator = new Revalidator(whole(service), 4, 2)
    const { deadline, end } = boundary()
    const asking = revalidator.ask({ path: '/a' }, deadline)
    await vi.waitFor(() => expect(service.resolved).toEqual(['/a']))
    end()
    expect(await asking).toEqual({ kind: 'late', target: undefined })
    expect(await revalidator.ask({ path: '/a' }, boundary().deadline)).toMatchObject({ kind: 'failed' })
    expect(service.resolved).toEqual(['/a'])
  })

  it('does not ask for a target again while an older question hangs, and does so afterwards', async () => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), 4, 2)
    const first = boundary()
    const late = revalidator.ask(about('/a'), first.deadline)
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    first.end()
    await late
    const refused = await revalidator.ask(about('/a'), boundary().deadline)
    expect(refused).toMatchObject({ kind: 'failed', target: targetOf('/a') })
    expect(service.asked).toEqual(['/a'])

    service.release('/a', fileAt('old'))
    service.answer = () => Promise.resolve(fileAt('new'))
    await vi.waitFor(async () => {
      const answer = await revalidator.ask(about('/a'), boundary().deadline)
      expect(answer).toMatchObject({ kind: 'known', now: { version: 'new' } })
    })
  })

  it('does not take a question to hang that stood behind others for most of the boundary', async () => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), 1, 2)
    const { deadline, end } = boundary()
    const first = revalidator.ask(about('/a'), deadline)
    const second = revalidator.ask(about('/b'), deadline)
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    service.release('/a', fileAt('one'))
    expect(await first).toMatchObject({ kind: 'known' })
    await vi.waitFor(() => expect(service.held).toEqual(['/b']))
    end()
    expect(await second).toMatchObject({ kind: 'late' })

    const again = revalidator.ask(about('/b'), boundary().deadline)
    service.release('/b', fileAt('old'))
    await vi.waitFor(() => expect(service.held).toEqual(['/b']))
    service.release('/b', fileAt('new'))
    expect(await again).toMatchObject({ kind: 'known', now: { version: 'new' } })
  })

  it('waits for a question that an abort has left behind, and then asks anew', async () => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), 4, 2)
    const aborting = new AbortController()
    const abandoned = revalidator.ask(about('/a'), new Deadline(HOUR, aborting.signal))
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    aborting.abort()
    expect(await abandoned).toMatchObject({ kind: 'late' })

    const asking = revalidator.ask(about('/a'), boundary().deadline)
    service.release('/a', fileAt('old'))
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    service.release('/a', fileAt('new'))
    expect(await asking).toMatchObject({ kind: 'known', now: { version: 'new' } })
    expect(service.asked).toEqual(['/a', '/a'])
  })

  it('takes a question that an abort has left behind to hang when it outlasts the next boundary', async () => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), 4, 2)
    const aborting = new AbortController()
    const abandoned = revalidator.ask(about('/a'), new Deadline(HOUR, aborting.signal))
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    aborting.abort()
    await abandoned
    const next = boundary()
    const asking = revalidator.ask(about('/a'), next.deadline)
    next.end()
    expect(await asking).toMatchObject({ kind: 'late' })
    expect(await revalidator.ask(about('/a'), boundary().deadline)).toMatchObject({ kind: 'failed' })
    expect(service.asked).toEqual(['/a'])
  })

  it('never starts a question whose boundary is over, and forgets that it was put', async () => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), 1, 2)
    const first = boundary()
    const answers = [
      revalidator.ask(about('/a'), first.deadline),
      revalidator.ask(about('/b'), first.deadline),
    ]
    await vi.waitFor(() => expect(service.held).toEqual(['/a']))
    first.end()
    expect(await Promise.all(answers)).toMatchObject([{ kind: 'late' }, { kind: 'late' }])

    const second = boundary()
    const asking = revalidator.ask(about('/b'), second.deadline)
    service.release('/a', fileAt('v1'))
    await vi.waitFor(() => expect(service.held).toEqual(['/b']))
    service.release('/b', undefined)
    expect(await asking).toMatchObject({ kind: 'known', now: { kind: 'absent' } })
    // Once for the second boundary, never for the first.
    expect(service.asked).toEqual(['/a', '/b'])
  })

  it('asks for nothing more of a service that lets two questions hang', async () => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), 8, 2)
    const first = boundary()
    const late = ['/a', '/b'].map((path) => revalidator.ask(about(path), first.deadline))
    await vi.waitFor(() => expect(service.held).toEqual(['/a', '/b']))
    first.end()
    await Promise.all(late)

    const second = boundary()
    const asking = revalidator.ask(about('/c'), second.deadline)
    second.end()
    expect(await asking).toMatchObject({ kind: 'failed', target: targetOf('/c') })
    expect(service.asked).toEqual(['/a', '/b'])
  })

  it.each([1, 3, 16])('has at most %d questions under way, and that many', async (concurrency) => {
    const service = new HeldService()
    const revalidator = new Revalidator(whole(service), concurrency, 2)
    const { deadline } = boundary()
    const paths = Array.from({ length: 40 }, (_, index) => `/${index}`)
    const answers = Promise.all(paths.map((path) => revalidator.ask(about(path), deadline)))
    let most = 0
    while (service.asked.length < paths.length || service.held.length > 0) {
      await vi.waitFor(() => expect(service.held).not.toHaveLength(0))
      most = Math.max(most, service.held.length)
      service.release(service.held[0] ?? '', fileAt('v1'))
    }
    expect((await answers).every(({ kind }) => kind === 'known')).toBe(true)
    expect(most).toBe(concurrency)
  })
})
