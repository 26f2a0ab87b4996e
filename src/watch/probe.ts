/**
 * Finds out whether a filesystem reports its changes at all.
 *
 * Some accept a watch and never say anything (sandboxes, shared folders). One file is made and removed
 * inside the repository's own directory, where neither a person nor git looks for such a name.
 *
 * @module dsh-live-workspace/watch/probe
 */
import { closeSync, type FSWatcher, lstatSync, openSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf } from '../errors.ts'

/** `skipped` says why nothing was found out. */
export type ProbeResult =
  | { readonly kind: 'heard' }
  | { readonly kind: 'silent' }
  | { readonly kind: 'skipped'; readonly reason: string }

/** What is needed of the system; replaced in tests that have no silent filesystem. */
export interface ProbeSystem {
  readonly watch: (directory: string, heard: (name: string | null) => void) => Pick<FSWatcher, 'close'>
}

const realSystem: ProbeSystem = {
  watch: (directory, heard) => {
    const watcher = watch(directory, { persistent: false }, (_event, name) => heard(name))
    // Its loss is silence, which is what is asked about.
    watcher.on('error', () => undefined)
    return watcher
  },
}

let next = 0

const skipped = (reason: string): ProbeResult => ({ kind: 'skipped', reason })

/** A directory of the repository on the same filesystem as the root. */
const placeIn = (root: string): string | undefined => {
  try {
    const { dev } = lstatSync(root)
    const git = lstatSync(join(root, '.git'))
    if (!git.isDirectory() || git.dev !== dev) return undefined
    const info = join(root, '.git', 'info')
    // Editors look at what appears directly in the repository's directory, but no deeper.
    return lstatSync(info, { throwIfNoEntry: false })?.isDirectory() ? info : join(root, '.git')
  } catch {
    return undefined
  }
}

/**
 * Make one event and wait for it.
 * @param root - real path of the root, all of which is watched by now.
 * @param limitMs - longest wait in ms.
 * @param signal - ends the wait, as skipped. Never rejects.
 * @returns at once where the probe is skipped.
 */
export const probe = (
  root: string,
  limitMs: number,
  signal: AbortSignal,
  system: ProbeSystem = realSystem,
): ProbeResult | Promise<ProbeResult> => {
  const directory = placeIn(root)
  if (directory === undefined) return skipped('there is no repository directory on the same filesystem')
  const name = `dsh-live-workspace-probe-${process.pid}-${next++}`
  const path = join(directory, name)
  const heard = Promise.withResolvers<ProbeResult>()
  let watcher: Pick<FSWatcher, 'close'> | undefined
  try {
    watcher = system.watch(directory, (changed) => {
      if (changed === null || changed === name) heard.resolve({ kind: 'heard' })
    })
    closeSync(openSync(path, 'wx'))
    unlinkSync(path)
  } catch (error) {
    watcher?.close()
    return skipped(messageOf(error))
  }
  return wait(heard, limitMs, signal).finally(() => watcher.close())
}

const wait = async (
  heard: PromiseWithResolvers<ProbeResult>,
  limitMs: number,
  signal: AbortSignal,
): Promise<ProbeResult> => {
  const giveUp = () => heard.resolve(skipped('the watcher was closed'))
  signal.addEventListener('abort', giveUp, { once: true })
  // A loop that was blocked meets its timers first and the events after them.
  const timer = setTimeout(() => {
    void nextTurn()
      .then(() => nextTurn())
      .then(() => heard.resolve({ kind: 'silent' }))
  }, limitMs)
  timer.unref()
  try {
    return await heard.promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}
