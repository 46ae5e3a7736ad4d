import type { Clock, Random } from "../../../common/time.ts";

/** The real clock, for tests that need no control over time. */
export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The same clock with another time of day. */
export function shiftedClock(clock: Clock, byMs: number): Clock {
  return {
    nowMs: () => clock.nowMs() + byMs,
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
  };
}

const DEADLINE_MS = 1_000;
const TIMES = 20;

/**
 * The real clock with deadlines twenty times as long; shorter waits stay the same. For tests of something else, which
 * must not reach a deadline on a busy machine.
 */
export class PatientClock implements Clock {
  #isOver = false;

  nowMs(): number {
    return realClock.nowMs();
  }

  monotonicMs(): number {
    return realClock.monotonicMs();
  }

  after(delayMs: number, callback: () => void): () => void {
    const waitMs = delayMs < DEADLINE_MS ? delayMs : delayMs * TIMES;
    return realClock.after(this.#isOver ? 0 : waitMs, callback);
  }

  /** Ends all waits from now on, because closing may still wait for something that was killed. */
  end(): void {
    this.#isOver = true;
  }
}

/** A random generator that repeats for the same seed (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const bytes = (count: number): Uint8Array => {
    const drawn = new Uint8Array(count);
    for (let at = 0; at < count; at += 1) drawn[at] = next() * 256;
    return drawn;
  };
  return { next, bytes };
}
