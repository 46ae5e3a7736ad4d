import { spawn } from "node:child_process";
import { once } from "node:events";
import { runHistories } from "../../sim/histories.ts";
import { crashRounds } from "../crash/rounds.ts";

/** Tests that CI runs in small numbers. */
export interface SoakPart {
  /** The option that sets the amount. */
  readonly name: string;
  readonly unit: string;
  /** Amount without the option, in `unit`. */
  readonly count: number;
  /** Amount of one turn with `--minutes`, in `unit`. */
  readonly portion: number;
  /** Test files of this part, or folders of them. */
  readonly files: readonly string[];
  /** Rejects with the failure. All output goes to `print`. */
  readonly run: (count: number, seed: number, print: Print) => Promise<void>;
}

export type Print = (text: string) => void;

/** Tests that multiply their cases by `TIMES` of test/helpers/time/times.ts, or that take all cases instead of some. */
const RANDOM_TESTS = [
  "agent/plugins/log-policy/rotation/histories.test.ts",
  "agent/plugins/log-policy/rotation/lookalikes.test.ts",
  "agent/plugins/log-policy/rotation/rotation.test.ts",
  "common/calendar",
  "common/mql/print.test.ts",
  "common/schedule/zones.test.ts",
  "common/text/text-stream.test.ts",
  "controller/areas/appcontext/age.test.ts",
  "controller/areas/audit/edits.test.ts",
  "controller/areas/audit/tampering.test.ts",
  "controller/areas/config/many.test.ts",
  "controller/areas/files/folders.test.ts",
  "controller/areas/files/history/deaths.test.ts",
  "controller/areas/files/search/search.test.ts",
  "controller/areas/files/versions/aged.test.ts",
  "controller/areas/files/versions/deaths.test.ts",
  "controller/areas/files/work.test.ts",
  "controller/areas/hosts/changes.test.ts",
  "controller/areas/ingest/holders.test.ts",
  "controller/areas/jobs/context/contexts.test.ts",
  "controller/areas/jobs/definitions/definitions.test.ts",
  "controller/areas/jobs/groups/groups.test.ts",
  "controller/areas/jobs/runs/takeover.test.ts",
  "controller/areas/objects/model.test.ts",
  "controller/areas/objects/writing/times/futuretimes.test.ts",
  "controller/areas/objects/writing/races.test.ts",
  "controller/areas/query/accepted.test.ts",
  "controller/areas/query/batch/random.test.ts",
  "controller/areas/query/graph/random.test.ts",
  "controller/areas/query/patterns.test.ts",
  "controller/areas/query/search/random.test.ts",
  "controller/areas/rules/parsing/fuzz.test.ts",
  "controller/areas/tables/service.test.ts",
  "controller/areas/triggers/after.test.ts",
  "controller/areas/triggers/several.test.ts",
  "controller/areas/users/credentials/slowdown.test.ts",
  "controller/cli/reference/shells.test.ts",
  "controller/scripting/javascript/javascript.test.ts",
  "controller/store/journal/deaths.test.ts",
  "test/durability",
  "test/mql/random.test.ts",
  "test/security/forms.test.ts",
  "test/security/other-sites.test.ts",
  "test/security/passwords.test.ts",
  "test/values/values.test.ts",
];
/** Tests of which every run takes a part on the cluster. */
const RANDOM_ON_CLUSTER = ["controller/areas/triggers/takeover.test.ts", "test/mql/scripts.test.ts"];
const OF_AGE_ON_ONE_NODE = [
  "controller/store/cluster/age.cluster.test.ts",
  "controller/store/cluster/upkeep/sweeps.cluster.test.ts",
  "controller/store/cluster/upkeep/late-changes.cluster.test.ts",
];
const OF_AGE_ON_RING = ["test/ring/age.test.ts", "test/ring/churn.test.ts"];
/** Each row is on three of these nodes. */
const FIVE_NODES = { ODP_RING_NODES: "5" };
const ROTATIONS = ["test/e2e/rotations.test.ts"];
const ON_PROGRAMS = ["test/e2e/agent-nodes.test.ts", "test/e2e/effects.test.ts", "test/e2e/exactly-once.test.ts"];
/** Tests that compare measured times with their bounds (`ARE_TIMES_BOUND` of test/helpers/time/times.ts). */
const TIMED = [
  "common/agent/records.test.ts",
  "common/regex/pattern.test.ts",
  "controller/areas/rules/definitions/compile.test.ts",
  "test/security/event-loop.test.ts",
  "test/security/hostile-bodies.test.ts",
];
const TIMED_ON_CLUSTER = ["controller/outage.cluster.test.ts", "controller/store/cluster/faults.cluster.test.ts"];
/** Tests that measure times have the machine for themselves. */
const ALONE = "--no-file-parallelism";
const BOUND_TIMES = { ODP_TEST_TIMED: "1" };
const ON_NODE_ALONE = ["unit", "whole"];
const FUZZ = ["test/security/rights-fuzz.test.ts"];
const SCHEDULES = ["test/sim/schedules.test.ts"];
const LOSSES = ["test/ring/loss.test.ts"];
const LOSSES_OF_CONFIGURATION = ["test/ring/config.test.ts"];
const LEADERS = ["test/e2e/leaders.test.ts"];
/** Timeout of tests and hooks that state none of their own. */
const TEST_MAX_MS = 3_600_000;
const SCHEDULES_PER_PROCESS = 100;

export const SOAK_PARTS: readonly SoakPart[] = [
  {
    name: "rounds",
    unit: "crash rounds",
    count: 1_000,
    portion: 100,
    files: ["controller/store/embedded/crash.test.ts"],
    async run(count, seed, print) {
      await crashRounds({ rounds: count, seed, log: (line) => print(`${line}\n`) });
    },
  },
  {
    name: "times",
    unit: "times the cases of random tests",
    count: 10,
    // Every run of the tests does 1 of them.
    portion: 2,
    files: [...RANDOM_TESTS, ...RANDOM_ON_CLUSTER, ...ON_PROGRAMS],
    async run(count, seed, print) {
      const numbers = { ODP_TEST_TIMES: String(count), ODP_TEST_SEED: String(seed) };
      await tests(ON_NODE_ALONE, RANDOM_TESTS, numbers, print);
      await tests(["areas-cluster"], RANDOM_ON_CLUSTER, numbers, print);
      await tests(["e2e"], ON_PROGRAMS, numbers, print);
    },
  },
  {
    name: "timed",
    unit: "rounds of measured times",
    count: 3,
    portion: 1,
    files: [...TIMED, ...TIMED_ON_CLUSTER],
    run: (count, _seed, print) =>
      repeated(count, async () => {
        await tests(ON_NODE_ALONE, [ALONE, ...TIMED], BOUND_TIMES, print);
        await tests(["cluster"], TIMED_ON_CLUSTER, BOUND_TIMES, print);
      }),
  },
  {
    name: "areas",
    unit: "rounds of areas on the cluster",
    count: 1,
    portion: 1,
    files: [],
    run: (count, seed, print) => repeated(count, () => tests(["areas-soak"], [], seeded(seed), print)),
  },
  {
    name: "calls",
    unit: "calls of those with few rights",
    count: 1_000_000,
    portion: 100_000,
    files: FUZZ,
    run: (count, seed, print) => tests(ON_NODE_ALONE, FUZZ, { ...seeded(seed), ODP_FUZZ_CALLS: String(count) }, print),
  },
  {
    name: "histories",
    unit: "simulated histories",
    count: 10_000,
    portion: 500,
    files: ["test/sim/histories.test.ts"],
    run: simulate,
  },
  {
    name: "schedules",
    unit: "histories of schedules",
    count: 1_000,
    portion: 100,
    files: SCHEDULES,
    run: simulateSchedules,
  },
  {
    name: "ring",
    unit: "rounds of losses on a ring",
    count: 20,
    portion: 2,
    files: [...LOSSES, ...LOSSES_OF_CONFIGURATION],
    run: loseMembers,
  },
  {
    name: "lines",
    unit: "lines through every kind of rotation",
    count: 1_000_000,
    portion: 100_000,
    files: ROTATIONS,
    run: (count, _seed, print) => tests(["e2e"], ROTATIONS, { ODP_TEST_LINES: String(count) }, print),
  },
  {
    name: "leaders",
    unit: "rounds with another leader",
    count: 30,
    portion: 3,
    files: LEADERS,
    run: (count, seed, print) =>
      tests(["e2e"], LEADERS, { ODP_LEADER_ROUNDS: String(count), ODP_TEST_SEED: String(seed) }, print),
  },
  {
    name: "answers",
    unit: "calls of each operation by schemathesis",
    count: 50,
    portion: 10,
    files: [],
    run: answersAsDescribed,
  },
  {
    name: "age",
    unit: "times the changes of age",
    count: 20,
    portion: 2,
    files: [...OF_AGE_ON_ONE_NODE, ...OF_AGE_ON_RING],
    run: grow,
  },
];

async function loseMembers(count: number, seed: number, print: Print): Promise<void> {
  const numbers = { ...seeded(seed), ...BOUND_TIMES, ODP_RING_TIMES: String(count) };
  await tests(["ring"], LOSSES, numbers, print);
  await tests(["ring-soak"], LOSSES_OF_CONFIGURATION, numbers, print);
}

async function answersAsDescribed(count: number, seed: number, print: Print): Promise<void> {
  const numbers = { ODP_SCHEMA_EXAMPLES: String(count), ODP_SCHEMA_SEED: String(seed) };
  await run(["--import", "tsx", "test/tools/clients.ts"], numbers, print);
}

async function grow(count: number, seed: number, print: Print): Promise<void> {
  const numbers = { ...seeded(seed), ODP_TEST_AGE: String(count) };
  await tests(["cluster"], OF_AGE_ON_ONE_NODE, numbers, print);
  await tests(["ring-soak"], OF_AGE_ON_RING, numbers, print);
  await tests(["ring-soak"], [], FIVE_NODES, print);
}

/** Passes the first seed of a portion to tests that draw. */
function seeded(seed: number): Readonly<Record<string, string>> {
  return { ODP_TEST_SEED: String(seed) };
}

async function simulate(count: number, seed: number): Promise<void> {
  const { wrong } = await runHistories({ from: seed, count });
  if (wrong.size > 0) throw new Error(`Histories that went wrong: ${[...wrong.keys()].join(", ")}`);
}

/** Runs schedules in several processes, because each history leaves much memory behind. */
async function simulateSchedules(count: number, seed: number, print: Print): Promise<void> {
  for (let done = 0; done < count; done += SCHEDULES_PER_PROCESS)
    await tests(
      ["sim"],
      SCHEDULES,
      { ODP_SIM_FROM: String(seed + done), ODP_SIM_SCHEDULES: String(Math.min(SCHEDULES_PER_PROCESS, count - done)) },
      print,
    );
}

async function repeated(count: number, work: () => Promise<void>): Promise<void> {
  for (let done = 0; done < count; done += 1) await work();
}

/** Runs files of some projects of vitest; without files, the projects as a whole. */
async function tests(
  projects: readonly string[],
  files: readonly string[],
  numbers: Readonly<Record<string, string>>,
  print: Print,
): Promise<void> {
  const chosen = projects.flatMap((project) => ["--project", project]);
  const vitest = ["node_modules/vitest/vitest.mjs", "run", ...chosen];
  const times = ["--testTimeout", `${TEST_MAX_MS}`, "--hookTimeout", `${TEST_MAX_MS}`];
  const again = `npx vitest run ${[...chosen, ...files].join(" ")}`;
  await run([...vitest, ...times, ...files], numbers, print, again);
}

/** Runs a program of Node. The failure says how to run it again. */
async function run(
  args: readonly string[],
  numbers: Readonly<Record<string, string>>,
  print: Print,
  again = `node ${args.join(" ")}`,
): Promise<void> {
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...numbers },
  });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => print(piece.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code === 0) return;
  const settings = Object.entries(numbers).map(([name, value]) => `${name}=${value} `);
  throw new Error(`Ended with ${code}. Again: ${settings.join("")}${again}`);
}
