import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { drawn, type Mutant } from "./mutants/draw.ts";
import { mutationsOf } from "./mutants/mutations.ts";
import { nearTests, sourcesBelow } from "./mutants/near-tests.ts";
import { plansFor, type Drawn } from "./mutants/plan.ts";
import { passesAlone, tryAll } from "./mutants/processes.ts";
import { SET_CHANGES_PER_FILE, SET_FILES, SET_SEED } from "./mutants/set.ts";
import { eventsOf, isBroken, noticed, report } from "./mutants/trials.ts";

/**
 * `npm run mutants -- <file or folder> … [--most N] [--seed N] [--only N,N …] [--resume] [--tests <file> …]
 * [--least PERCENT]`: changes lines of the named files, one at a time, and reports the changes that no near test
 * notices. `--most` draws that many changes by the seed; `--only` tries these of the drawn changes, by their numbers;
 * `--tests` names further tests that count as near; with `--least` the exit code is 1 if fewer changes are noticed.
 * `--resume` continues a run of the same changes that was stopped: its events are in `.reports/mutants`.
 *
 * `npm run mutants -- --set [<file or folder> …]`: always makes the same changes of the same files (`mutants/set.ts`),
 * or of the named ones among them, so that results of two runs can be compared.
 */
const REPORTS = ".reports/mutants";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    set: { type: "boolean", default: false },
    most: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
    resume: { type: "boolean", default: false },
    tests: { type: "string", multiple: true, default: [] },
    least: { type: "string" },
  },
});
const files = values.set ? filesOfSet() : filesNamed();
const all = (
  values.set
    ? files.flatMap((file) => drawn(mutantsOf(file), { most: SET_CHANGES_PER_FILE, seed: SET_SEED }))
    : drawn(files.flatMap(mutantsOf), { most: Number(values.most ?? 40), seed: values.seed ?? "1" })
).map((mutant, at): Drawn => ({ ...mutant, number: at + 1 }));
const wanted = values.only?.split(",").map(Number);
const changes = all.filter(({ number }) => wanted?.includes(number) ?? true);
const path = eventsPath();
const plans = plansFor(changes, values.tests, path);
console.log(`${changes.length} changes in ${files.length} files, events in ${path}`);
if (!values.resume) rmSync(path, { force: true });

for (const plan of plans) await tryAll(plan);
for (const change of changes) await tryAlone(change);
tellResult();

function filesNamed(): readonly string[] {
  if (positionals.length === 0) throw new Error("Name the files or folders whose lines are to be changed, or --set.");
  return positionals.flatMap((name) => sourcesBelow(relative(process.cwd(), resolve(name))));
}

function filesOfSet(): readonly string[] {
  if (values.most !== undefined || values.seed !== undefined)
    throw new Error("--set has its own number of changes and its own seed: --most and --seed go with files alone.");
  const named = positionals.map((name) => relative(process.cwd(), resolve(name)));
  const found = SET_FILES.filter(
    (file) => named.length === 0 || named.some((name) => file === name || file.startsWith(`${name}/`)),
  );
  if (found.length === 0) throw new Error(`No file of the set is below ${named.join(", ")}.`);
  return found;
}

function mutantsOf(file: string): readonly Mutant[] {
  return mutationsOf(readFileSync(file, "utf8")).map((mutation) => ({ file, mutation }));
}

/** Events of these changes: they are of no use for others. */
function eventsPath(): string {
  mkdirSync(REPORTS, { recursive: true });
  return join(REPORTS, `${createHash("sha256").update(JSON.stringify(changes)).digest("hex").slice(0, 16)}.jsonl`);
}

/** Code that runs once, when it is loaded, takes a process for each change. */
async function tryAlone({ number, file, mutation }: Drawn): Promise<void> {
  const events = eventsOf(path);
  const isLoaded = events.some((event) => event.kind === "loaded" && event.reached.includes(number));
  const isTried = events.some((event) => event.kind === "alone" && event.number === number);
  if (noticed(events).has(number) || isTried || !(mutation.around.isAtLoad || isLoaded)) return;
  const tests = nearTests(file, values.tests)
    .flat()
    .filter((test) => !isBroken(test, events));
  const sources = { [resolve(file)]: [{ number, mutation }] };
  if (!(await passesAlone({ sources, tests, near: {}, events: path, number })))
    report(path, { kind: "noticed", test: "all", number, why: "in a process of its own" });
  report(path, { kind: "alone", number });
}

function tellResult(): void {
  const events = eventsOf(path);
  const found = noticed(events);
  for (const { number, file, mutation } of changes) {
    const { line, before, after } = mutation;
    console.log(`${number} ${found.has(number) ? "noticed " : "SURVIVED"} ${file}:${line}  ${before}  →  ${after}`);
  }
  for (const file of new Set(changes.map((change) => change.file))) {
    const each = changes.filter((change) => change.file === file);
    console.log(`${each.filter(({ number }) => found.has(number)).length}/${each.length}  ${file}`);
  }
  const broken = [...new Set(plans.flatMap(({ tests }) => tests))].filter((test) => isBroken(test, events));
  if (broken.length > 0) console.log(`Left out, as they fail without a change: ${broken.join(" ")}`);
  const percent = changes.length === 0 ? 100 : Math.round((found.size / changes.length) * 100);
  console.log(`${found.size} of ${changes.length} changes noticed: ${percent} %`);
  if (broken.length > 0 || (values.least !== undefined && percent < Number(values.least))) process.exitCode = 1;
}
