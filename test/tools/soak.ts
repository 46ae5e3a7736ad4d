import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { runHistories } from "../sim/histories.ts";
import { crashRounds } from "./crash/rounds.ts";

/**
 * `npm run soak -- [--seed N] [--rounds N] [--times N] [--calls N] [--histories N] [--schedules N] [--ring N] [--leaders N]
 * [--age N]`: what CI does in small numbers, in numbers too large for every day: crash rounds of the stores, random tests
 * with so many times their cases, random calls by those with few rights, simulated histories, those of schedules by
 * themselves, rounds of losses on a ring of etcd under readers and writers of configuration, rounds in which the controller
 * that fires schedules is killed, paused or cut off, N times the changes of the tests of age on Cassandra, with
 * losses on a ring of five. 0 leaves one out.
 */
const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    rounds: { type: "string", default: "1000" },
    times: { type: "string", default: "10" },
    calls: { type: "string", default: "1000000" },
    histories: { type: "string", default: "10000" },
    schedules: { type: "string", default: "1000" },
    ring: { type: "string", default: "20" },
    leaders: { type: "string", default: "30" },
    age: { type: "string", default: "20" },
  },
});
const [seed, rounds, times, calls, histories, schedules, ring, leaders, age] = [
  values.seed,
  values.rounds,
  values.times,
  values.calls,
  values.histories,
  values.schedules,
  values.ring,
  values.leaders,
  values.age,
].map(Number);

/** Those that multiply their cases by `TIMES` of test/helpers/times.ts. */
const RANDOM_TESTS = [
  "agent/plugins/log-policy/lookalikes.test.ts",
  "agent/plugins/log-policy/rotation.test.ts",
  "common/schedule/zones.test.ts",
  "controller/areas/objects/writing/races.test.ts",
  "controller/areas/query/accepted.test.ts",
  "controller/areas/query/search/random.test.ts",
  "controller/areas/triggers/several.test.ts",
  "controller/store/journal/journal.test.ts",
  "test/durability",
  "test/mql/random.test.ts",
  "test/security/forms.test.ts",
];
/** Where a row lies on three nodes of five. */
const ON_RING_OF_FIVE = ["test/ring/churn.test.ts", "test/ring/tenants.test.ts", "test/ring/repairs.test.ts"];
/** For a test, and for what it starts, that states no time of its own. */
const TEST_MAX_MS = 3_600_000;
const SCHEDULES_PER_PROCESS = 100;

await timed(`${rounds} crash rounds from seed ${seed}`, rounds, (count) =>
  crashRounds({ rounds: count, seed: seed ?? 1, log: (line: string) => console.log(line) }),
);
await timed(`random tests with ${times} times their cases`, times, multiply);
await timed(`${calls} calls of those with few rights`, calls, callEverything);
await timed(`${histories} histories from seed ${seed}`, histories, simulate);
await timed(`${schedules} histories of schedules from seed ${seed}`, schedules, simulateSchedules);
await timed(`${ring} rounds of losses on a ring`, ring, loseMembers);
await timed(`${leaders} rounds with another leader`, leaders, changeHands);
await timed(`${age} times the changes of age`, age, grow);

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

async function multiply(count: number): Promise<void> {
  await tests("unit", RANDOM_TESTS, { ODP_TEST_TIMES: String(count) });
  await tests("e2e", ["test/e2e/effects.test.ts"], { ODP_TEST_TIMES: String(count) });
}

function callEverything(count: number): Promise<void> {
  return tests("unit", ["test/security/rights-fuzz.test.ts"], { ODP_FUZZ_CALLS: String(count) });
}

function loseMembers(count: number): Promise<void> {
  return tests("ring", ["test/ring/config.test.ts"], { ODP_RING_TIMES: String(count) });
}

function changeHands(count: number): Promise<void> {
  return tests("e2e", ["test/e2e/leaders.test.ts"], { ODP_LEADER_ROUNDS: String(count), ODP_TEST_SEED: String(seed) });
}

async function grow(count: number): Promise<void> {
  await tests(
    "cluster",
    ["controller/store/cluster/age.cluster.test.ts", "controller/store/cluster/sweeps.cluster.test.ts"],
    { ODP_TEST_AGE: String(count) },
  );
  await tests("ring", ["test/ring/age.test.ts", "test/ring/churn.test.ts"], { ODP_TEST_AGE: String(count) });
  await tests("ring", ON_RING_OF_FIVE, { ODP_RING_NODES: "5" });
}

async function tests(
  project: string,
  files: readonly string[],
  numbers: Readonly<Record<string, string>>,
): Promise<void> {
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--project", project];
  const times = ["--testTimeout", `${TEST_MAX_MS}`, "--hookTimeout", `${TEST_MAX_MS}`];
  const child = spawn(process.execPath, [...vitest, ...times, ...files], {
    stdio: "inherit",
    env: { ...process.env, ...numbers },
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${files.join(", ")} ended with ${code}.`);
}

async function simulate(count: number): Promise<void> {
  const { wrong } = await runHistories({ from: seed ?? 1, count });
  if (wrong.size > 0) throw new Error(`Histories that went wrong: ${[...wrong.keys()].join(", ")}`);
}

/** In processes of their own: what a history leaves behind is much. */
async function simulateSchedules(count: number): Promise<void> {
  for (let done = 0; done < count; done += SCHEDULES_PER_PROCESS)
    await tests("sim", ["test/sim/schedules.test.ts"], {
      ODP_SIM_FROM: String((seed ?? 1) + done),
      ODP_SIM_SCHEDULES: String(Math.min(SCHEDULES_PER_PROCESS, count - done)),
    });
}
