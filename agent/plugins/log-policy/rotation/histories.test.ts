import { expect, test } from "vitest";
import { faultsOf, randomSteps, type LogKind } from "../../../../test/helpers/hosts/log-histories.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { seedsOf } from "../../../../test/helpers/time/times.ts";

/**
 * Histories of a log in which the writer writes at any time between copy, truncation, compression and the looks of the
 * agent. Each step is one after another, so a history has one outcome. `log-histories.ts` explains the letters.
 */

const HEADING = `${"#".repeat(50)}\n`.repeat(10);
const ALSO_ROTATED = "^app\\.log(\\.\\d+)?$";

test.each<[promise: string, steps: string, kind?: LogKind]>([
  ["lines that came and went in an empty file are told", "wt"],
  ["also between a copy and the truncation, when another copied life followed", "wcwtwct"],
  ["also after an earlier truncation", "wlctclwt"],
  ["also in a file that is newer than the last look", "mwt"],
  ["also when a shorter life than the one before came and went", "wWltwt"],
  ["also behind a copy of a longer life", "wlwctwt", { heading: HEADING }],
  ["bytes of a life with the same heading are not told as lost", "wltwlclts", { names: "dates", heading: HEADING }],
  [
    "the same, where a copy of the later life begins like the one before",
    "wltlsc",
    { names: "dates", heading: HEADING },
  ],
  ["also behind a copy that has the lines before", "lwcwtw"],
  ["a life as long as the one before is another", "wltsctw"],
  ["a copied life comes before the next one, when the life before is packed", "wlctwzkctw"],
  ["the same, while the agent was stopped", "wKctwzctw"],
  ["the same, after a rename", "wlmzwctw"],
  ["the same, where the rotated names match", "wlctzwctw", { match: ALSO_ROTATED }],
  ["the same, when the next one was rotated too before it was read", "wltWctwkrct", { names: "dates" }],
  ["the same, by renaming", "wlmzwmwrm", { heading: HEADING }],
  ["a life that waits for the one before is told when it is truncated", "wctlzwRltw"],
  ["an unread life takes no packed file of another", "wlmwziKmz", { names: "dates", heading: HEADING }],
  ["the rest of a life comes before a packed later one", "wlWctwctzW", { names: "dates" }],
  ["a packed life comes before the next one with the same heading", "wltlmwctzs", { names: "dates", heading: HEADING }],
  ["bytes of a copied later life are not told as lost", "wltwct"],
  ["bytes of a packed later life are not told as lost", "wltwctz"],
  ["a life is read on in its packed file, not in a copy of the next", "wwlctwzc", { heading: HEADING }],
  ["the same, after another truncation", "Wlctwzcwt", { match: ALSO_ROTATED, heading: HEADING }],
])("%s: %s", async (_, steps, kind) => {
  expect(await faultsOf(steps, kind)).toEqual([]);
});

/** Seeds that found something once. */
const FOUND: readonly number[] = [];

test.each(seedsOf(FOUND, 6))("seed %i: every line once, in order, or told as lost", async (seed) => {
  const steps = randomSteps(seededRandom(seed));
  expect(await faultsOf(steps, kindOf(seed)), steps).toEqual([]);
});

function kindOf(seed: number): LogKind {
  const names = seed % 2 === 0 ? "numbers" : "dates";
  return {
    names,
    ...(seed % 3 === 0 && { heading: HEADING }),
    ...(seed % 5 === 0 && names === "numbers" && { match: ALSO_ROTATED }),
  };
}
