import { expect, test } from "vitest";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { crashRounds } from "../../../test/tools/crash/rounds.ts";

/** Rounds with two stores; `npm run soak` runs a thousand. */
const ROUNDS = 6;
const ROUND_MAX_MS = 60_000;

test("killed with -9 while writing, the store has everything it acknowledged and nothing torn", {
  timeout: ROUNDS * ROUND_MAX_MS,
}, async () => {
  const seed = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
  console.log(`crash rounds: seed ${seed}`);
  const { acknowledged } = await crashRounds({ rounds: ROUNDS, seed, log: (line) => console.log(line) });
  expect(acknowledged).toBeGreaterThan(ROUNDS);
  prove("store-crash-rounds", { rounds: ROUNDS, seed, "acknowledged writes": acknowledged });
});
