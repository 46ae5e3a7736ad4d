import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { drawn, type Mutant } from "./mutants/draw.ts";
import { mutationsOf } from "./mutants/mutations.ts";
import { nearTests, sourcesBelow } from "./mutants/near-tests.ts";
import { SET_CHANGES_PER_FILE, SET_FILES, SET_SEED } from "./mutants/set.ts";
import type { Trial } from "./mutants/vitest.mutants.ts";

/**
 * `npm run mutants -- <file or folder> … [--most N] [--seed N] [--tests <file> …] [--least PERCENT]`: changes lines of
 * the named files, one at a time, and reports the changes that no near test notices. `--most` draws that many changes
 * by the seed; `--tests` names further tests that count as near; with `--least` the exit code is 1 if fewer changes are
 * noticed.
 *
 * `npm run mutants -- --set [<file or folder> …]`: always makes the same changes of the same files (`mutants/set.ts`),
 * or of the named ones among them, so that results of two runs can be compared.
 */
const DEADLINE_MIN_MS = 60_000;
/** A change that makes the tests this many times slower counts as noticed, because it never ends. */
const DEADLINE_FACTOR = 4;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    set: { type: "boolean", default: false },
    most: { type: "string" },
    seed: { type: "string" },
    tests: { type: "string", multiple: true, default: [] },
    least: { type: "string" },
  },
});
const files = values.set ? filesOfSet() : filesNamed();
const mutants = values.set
  ? files.flatMap((file) => drawn(mutantsOf(file), { most: SET_CHANGES_PER_FILE, seed: SET_SEED }))
  : drawn(files.flatMap(mutantsOf), { most: Number(values.most ?? 40), seed: values.seed ?? "1" });
console.log(`${mutants.length} changes in ${files.length} files`);

const deadlines = new Map<string, number>();
const noticedOf = new Map<string, boolean[]>();
for (const [at, mutant] of mutants.entries()) {
  const isNoticed = await notices(mutant);
  const {
    file,
    mutation: { line, before, after },
  } = mutant;
  noticedOf.set(file, [...(noticedOf.get(file) ?? []), isNoticed]);
  const share = `${at + 1}/${mutants.length}`;
  console.log(`${share} ${isNoticed ? "noticed " : "SURVIVED"} ${file}:${line}  ${before}  →  ${after}`);
}
for (const [file, each] of noticedOf) console.log(`${count(each)}/${each.length}  ${file}`);
const noticed = count([...noticedOf.values()].flat());
const percent = mutants.length === 0 ? 100 : Math.round((noticed / mutants.length) * 100);
console.log(`${noticed} of ${mutants.length} changes noticed: ${percent} %`);
if (values.least !== undefined && percent < Number(values.least)) process.exitCode = 1;

function filesNamed(): readonly string[] {
  if (positionals.length === 0) throw new Error("Name the files or folders whose lines are to be changed, or --set.");
  return positionals.flatMap((path) => sourcesBelow(relative(process.cwd(), resolve(path))));
}

function filesOfSet(): readonly string[] {
  if (values.most !== undefined || values.seed !== undefined)
    throw new Error("--set has its own number of changes and its own seed: --most and --seed go with files alone.");
  const wanted = positionals.map((path) => relative(process.cwd(), resolve(path)));
  const found = SET_FILES.filter(
    (file) => wanted.length === 0 || wanted.some((path) => file === path || file.startsWith(`${path}/`)),
  );
  if (found.length === 0) throw new Error(`No file of the set is below ${wanted.join(", ")}.`);
  return found;
}

function mutantsOf(file: string): readonly Mutant[] {
  return mutationsOf(readFileSync(file, "utf8")).map((mutation) => ({ file, mutation }));
}

function count(each: readonly boolean[]): number {
  return each.filter(Boolean).length;
}

async function notices({ file, mutation }: Mutant): Promise<boolean> {
  for (const tests of nearTests(file, values.tests)) {
    const deadlineMs = deadlines.get(tests.join()) ?? (await measured(file, tests));
    if (!(await passes({ file: resolve(file), tests, mutation }, deadlineMs))) return true;
  }
  return false;
}

/** Runs the tests without a change. They must pass, and their time determines the deadline of further runs, in ms. */
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
    // A separate process group, so that the processes that run the tests end with it.
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
