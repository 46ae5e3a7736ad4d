import type { Schedule } from "./schedule.ts";

const FIRST_WINDOW_MS = 60_000;

/** The first `count` times after `afterMs`; fewer if there are no more. */
export function nextTimes(schedule: Pick<Schedule, "next">, afterMs: number, count: number): readonly number[] {
  const times: number[] = [];
  for (let next = schedule.next(afterMs); next !== undefined && times.length < count; next = schedule.next(next))
    times.push(next);
  return times;
}

/** The last time after `afterMs`, up to and including `untilMs`; `undefined` if there is none. */
export function lastTime(
  schedule: Pick<Schedule, "next">,
  { afterMs, untilMs }: { readonly afterMs: number; readonly untilMs: number },
): number | undefined {
  // The windows double backwards, so at most twice as many times are counted as in the smallest window that suffices.
  for (let windowMs = FIRST_WINDOW_MS; ; windowMs *= 2) {
    const fromMs = Math.max(afterMs, untilMs - windowMs);
    let last: number | undefined;
    for (let next = schedule.next(fromMs); next !== undefined && next <= untilMs; next = schedule.next(next))
      last = next;
    if (last !== undefined || fromMs === afterMs) return last;
  }
}

/** Delay of one firing: the same on every controller, and spread evenly over firings. */
export function jitterMs({ jitterMs }: Pick<Schedule, "jitterMs">, name: string, dueMs: number): number {
  if (jitterMs === 0) return 0;
  // FNV-1a with the final mix of murmur3, because the texts differ mostly in their last characters.
  let hash = 0x811c9dc5;
  for (const character of `${name}\n${dueMs}`)
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return Math.floor((((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000) * jitterMs);
}
