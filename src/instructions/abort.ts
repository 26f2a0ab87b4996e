/**
 * Waiting that ends with a signal, also where what is waited for does not look at it.
 *
 * @module dsh-live-workspace/instructions/abort
 */

/**
 * @returns what the work gives.
 * @throws the reason of the signal, as soon as it aborts.
 */
export const unlessAborted = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  // Its failure is of no interest once nobody waits any more.
  work.catch(() => undefined)
  signal.throwIfAborted()
  let stop: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
