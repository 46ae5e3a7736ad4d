import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { runHistories } from "../sim/histories.ts";
import { crashRounds } from "./crash/rounds.ts";

/**
 * `npm run soak -- [--seed N] [--rounds N] [--queries N] [--histories N] [--ring N]`: what CI does in small numbers, in
 * numbers too large for every day: crash rounds of the stores, random queries, simulated histories, rounds of losses on
 * a ring of etcd under readers and writers of configuration. 0 leaves one out.
 */
const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    rounds: { type: "string", default: "1000" },
    queries: { type: "string", default: "100000" },
    histories: { type: "string", default: "10000" },
    ring: { type: "string", default: "20" },
  },
});
const [seed, rounds, queries, histories, ring] = [
  values.seed,
  values.rounds,
  values.queries,
  values.histories,
  values.ring,
].map(Number);

await timed(`${rounds} crash rounds from seed ${seed}`, rounds, (count) =>
  crashRounds({ rounds: count, seed: seed ?? 1, log: (line: string) => console.log(line) }),
);
await timed(`${queries} random queries`, queries, compareQueries);
await timed(`${histories} histories from seed ${seed}`, histories, simulate);
await timed(`${ring} rounds of losses on a ring`, ring, loseMembers);

async function timed(
  what: string,
  count: number | undefined,
  work: (count: number) => Promise<unknown>,
): Promise<void> {
  if (!count) return;
  const started = performance.now();
  await work(count);
  console.log(`${what} in ${((performance.now() - started) / 1_000).toFixed(0)} s: nothing lost, nothing wrong`);
}

/** What `test/mql/random.test.ts` compares by itself. */
const QUERIES_AT_ONCE = 10_000;

function compareQueries(count: number): Promise<void> {
  return tests("unit", "test/mql/random.test.ts", { ODP_RANDOM_TIMES: String(Math.ceil(count / QUERIES_AT_ONCE)) });
}

function loseMembers(count: number): Promise<void> {
  return tests("ring", "test/ring/config.test.ts", { ODP_RING_TIMES: String(count) });
}

async function tests(project: string, file: string, numbers: Readonly<Record<string, string>>): Promise<void> {
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--project", project, file], {
    stdio: "inherit",
    env: { ...process.env, ...numbers },
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${file} ended with ${code}.`);
}

async function simulate(count: number): Promise<void> {
  const { wrong } = await runHistories({ from: seed ?? 1, count });
  if (wrong.size > 0) throw new Error(`Histories that went wrong: ${[...wrong.keys()].join(", ")}`);
}
