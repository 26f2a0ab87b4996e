/**
 * From when on a change of a file is new, by the time that the file itself gives.
 *
 * @module dsh-live-workspace/watch/freshness
 */

/** How much older than the last inspection a changed entry may look: coarse clocks, tick by tick. */
const CLOCK_GRAIN_MS = 50

/** Remembers when everything had last been looked at. */
export class Freshness {
  #wall = Date.now()
  #monotonic = performance.now()

  /**
   * Everything from before a moment has been looked at.
   * @param wall - its time of the day in ms.
   * @param monotonic - the same moment by the process's monotonic clock.
   */
  settled(wall: number, monotonic: number): void {
    this.#wall = wall
    this.#monotonic = monotonic
  }

  /** Time of the day in ms from which on a change is new, also when the clock was set back meanwhile. */
  get newFrom(): number {
    return Math.min(this.#wall, Date.now() - (performance.now() - this.#monotonic)) - CLOCK_GRAIN_MS
  }
}
