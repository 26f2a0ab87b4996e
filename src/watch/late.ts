/**
 * Waits that end in time.
 *
 * @module dsh-live-workspace/watch/late
 */

/**
 * Wait for an answer, but not for ever.
 * @param limitMs - longest wait in ms.
 * @param signal - ends the wait at once.
 * @param late - what counts as the answer when there is none in time.
 */
export const unlessLate = async <T>(
  answer: Promise<T>,
  limitMs: number,
  signal: AbortSignal,
  late: T,
): Promise<T> => {
  const gaveUp = Promise.withResolvers<T>()
  const giveUp = () => gaveUp.resolve(late)
  const timer = setTimeout(giveUp, limitMs)
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([answer, gaveUp.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}
