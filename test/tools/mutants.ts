import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../helpers/clock.ts";
import { mutationsOf, type Mutation } from "./mutants/mutations.ts";
import { nearTests, sourcesBelow } from "./mutants/near-tests.ts";
import type { Trial } from "./mutants/vitest.mutants.ts";

/**
 * `npm run mutants -- <file or folder> … [--most N] [--seed N] [--tests <file> …] [--least PERCENT]`: changes lines of
 * the files that are named, one at a time, and tells which change no near test notices. `--most` draws that many
 * changes by the seed; `--tests` names further tests that count as near; with `--least` fewer noticed changes end it
 * with 1.
 */
const DEADLINE_MIN_MS = 60_000;
/** A change that makes the tests so many times slower counts as noticed: it is one that never ends. */
const DEADLINE_FACTOR = 4;

interface Mutant {
  readonly file: string;
  readonly mutation: Mutation;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    most: { type: "string", default: "40" },
    seed: { type: "string", default: "1" },
    tests: { type: "string", multiple: true, default: [] },
    least: { type: "string" },
  },
});
if (positionals.length === 0) throw new Error("Name the files or folders whose lines are to be changed.");

const files = positionals.flatMap((path) => sourcesBelow(relative(process.cwd(), resolve(path))));
const mutants = drawn(
  files.flatMap((file) => mutationsOf(readFileSync(file, "utf8")).map((mutation) => ({ file, mutation }))),
);
console.log(`${mutants.length} changes in ${files.length} files`);

const deadlines = new Map<string, number>();
let noticed = 0;
for (const [at, mutant] of mutants.entries()) {
  const isNoticed = await notices(mutant);
  if (isNoticed) noticed++;
  const {
    file,
    mutation: { line, before, after },
  } = mutant;
  const share = `${at + 1}/${mutants.length}`;
  console.log(`${share} ${isNoticed ? "noticed " : "SURVIVED"} ${file}:${line}  ${before}  →  ${after}`);
}
const percent = mutants.length === 0 ? 100 : Math.round((noticed / mutants.length) * 100);
console.log(`${noticed} of ${mutants.length} changes noticed: ${percent} %`);
if (values.least !== undefined && percent < Number(values.least)) process.exitCode = 1;

/** In the order of files and lines, so that the report reads like the code. */
function drawn(all: readonly Mutant[]): readonly Mutant[] {
  const random = seededRandom(Number(values.seed));
  const kept = all.map((mutant, at) => ({ mutant, at, chance: random.next() })).sort((a, b) => a.chance - b.chance);
  return kept
    .slice(0, Number(values.most))
    .sort((a, b) => a.at - b.at)
    .map(({ mutant }) => mutant);
}

async function notices({ file, mutation }: Mutant): Promise<boolean> {
  for (const tests of nearTests(file, values.tests)) {
    const deadlineMs = deadlines.get(tests.join()) ?? (await measured(file, tests));
    if (!(await passes({ file: resolve(file), tests, mutation }, deadlineMs))) return true;
  }
  return false;
}

/** The tests as they are: they must pass, and tell how long a run of them may take. */
async function measured(file: string, tests: readonly string[]): Promise<number> {
  const began = performance.now();
  if (!(await passes({ file: resolve(file), tests }, Infinity)))
    throw new Error(`They fail as they are: ${tests.join(" ")}`);
  const deadlineMs = Math.max(DEADLINE_MIN_MS, (performance.now() - began) * DEADLINE_FACTOR);
  deadlines.set(tests.join(), deadlineMs);
  return deadlineMs;
}

function passes(trial: Trial, deadlineMs: number): Promise<boolean> {
  const config = "test/tools/mutants/vitest.mutants.ts";
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--config", config, "--root", "."], {
    env: { ...process.env, ODP_TEST_MUTANT: JSON.stringify(trial) },
    stdio: "ignore",
    // A group of its own, so that the processes which run the tests end with it.
    detached: true,
  });
  const timer =
    deadlineMs === Infinity ? undefined : setTimeout(() => process.kill(-(child.pid ?? 0), "SIGKILL"), deadlineMs);
  return new Promise((done, failed) => {
    child.once("error", failed);
    child.once("close", (code) => {
      clearTimeout(timer);
      done(code === 0);
    });
  });
}
