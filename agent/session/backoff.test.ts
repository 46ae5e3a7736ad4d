import { expect, it } from "vitest";
import { SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS } from "../../common/limits.ts";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { Backoff } from "./backoff.ts";

const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);

it.each(SEEDS)("seed %i: after each of many outages the agent is back within twice the time it lasted", (seed) => {
  const backoff = new Backoff(seededRandom(seed));
  for (let outage = 0; outage < 30; outage++) {
    const outageMs = 4_000;
    // Sessions that break soon come now and then, so that their number stays small.
    backoff.note(outage % 4 === 3 ? "steady" : "short");
    expect(awayMs(backoff, outageMs)).toBeLessThan(2 * outageMs + 16 * SESSION_BACKOFF_MIN_MS);
  }
});

it("after a long outage the agent is back soon after the controllers are", () => {
  const backoff = new Backoff(seededRandom(1));
  backoff.note("steady");
  const outageMs = 3_600_000;
  expect(awayMs(backoff, outageMs) - outageMs).toBeLessThanOrEqual(SESSION_BACKOFF_MAX_MS);
});

it("sessions that always break soon are tried ever more slowly", () => {
  const backoff = new Backoff(seededRandom(1));
  for (let session = 0; session < 16; session++) {
    backoff.note("short");
    backoff.nextPauseMs();
  }
  backoff.note("short");
  expect(backoff.nextPauseMs()).toBeGreaterThanOrEqual(SESSION_BACKOFF_MAX_MS / 2);
});

it("one session that held for a while makes up for all", () => {
  const backoff = new Backoff(seededRandom(1));
  for (let round = 0; round < 16; round++) backoff.nextPauseMs();
  backoff.note("steady");
  expect(backoff.nextPauseMs()).toBeLessThanOrEqual(SESSION_BACKOFF_MIN_MS);
});

/** From the break of a session to the first attempt after the outage. */
function awayMs(backoff: Backoff, outageMs: number): number {
  let atMs = backoff.nextPauseMs();
  for (; atMs < outageMs; backoff.note("none")) atMs += backoff.nextPauseMs();
  return atMs;
}
