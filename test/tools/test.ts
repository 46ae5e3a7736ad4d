import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import config, { BESIDE_OTHERS, SOAK_PROJECTS } from "../../vitest.config.ts";
import { DURATIONS_FILE } from "./durations.ts";
import { FAILURES_FILE } from "./failures.ts";

/**
 * `npm test`: all vitest projects except the soak's, in three sequences side by side. The projects of the first mostly
 * wait for stores and programs, and `ring`, the second, for its members; the third takes the rest of the processors:
 * first `unit` and `whole`, then `sim`, which waits for nothing. What runs beside the first is printed project by project. All
 * failures are printed once more at the end, and the time of each test file is in `.reports/durations.tsv`. Arguments
 * after `npm test --` go to vitest.
 */
const LAST = ["e2e"];
/** Projects and priorities of the other sequences. `unit`, `whole` and `ring` have generous deadlines, `sim` has none. */
const BESIDE: readonly (readonly (readonly [names: readonly string[], priority: number])[])[] = [
  [[["ring"], constants.priority.PRIORITY_NORMAL]],
  [
    [["unit", "whole"], constants.priority.PRIORITY_BELOW_NORMAL],
    [["sim"], constants.priority.PRIORITY_LOW],
  ],
];
/** Characters printed of all failures. */
const FAILURES_SHOWN_MAX = 10_000;

const REPORTS = ".reports";
const SLOWEST_SHOWN = 25;

const given = process.argv.slice(2);
const children = new Set<ChildProcess>();
let stopped = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    stopped = true;
    for (const child of children) child.kill(signal);
  });
}

const folder = mkdtempSync(join(tmpdir(), "odp-tests-"));
const failures = join(folder, "failures");
writeFileSync(failures, "");
mkdirSync(REPORTS, { recursive: true });
const durations = join(REPORTS, "durations.tsv");
writeFileSync(durations, "");

const beside = Promise.all(BESIDE.map(runOneAfterAnother));
const elsewhere = [...SOAK_PROJECTS, ...LAST, ...BESIDE.flat().flatMap(([names]) => names)];
const others = projects().filter((name) => !elsewhere.includes(name));
const runs: Ended[] = [];
for (const names of [others, ...LAST.map((name) => [name])]) if (!stopped) runs.push(await vitest(names).ended);
runs.push(...(await beside).flat());

for (const { names, code, seconds } of runs) console.log(`${names.join(", ")}: exit ${code} after ${seconds} s`);
console.log(`The slowest of the test files in ${durations}:\n${slowest(readFileSync(durations, "utf8"))}`);
const failed = readFileSync(failures, "utf8");
if (failed.length > FAILURES_SHOWN_MAX) console.log(`${failed.length} characters of failures, the first of them:`);
console.log(failed.slice(0, FAILURES_SHOWN_MAX));
rmSync(folder, { recursive: true });
process.exitCode = !stopped && runs.every(({ code }) => code === 0) ? 0 : 1;

/** Slowest lines of the report, the longest time first. */
function slowest(report: string): string {
  const lines = report.split("\n").filter(Boolean);
  const secondsOf = (line: string): number => Number(line.split("\t")[2]);
  return lines
    .sort((a, b) => secondsOf(b) - secondsOf(a))
    .slice(0, SLOWEST_SHOWN)
    .join("\n");
}

function projects(): string[] {
  return (config.test?.projects ?? []).map((project) => {
    const name = typeof project === "object" && "test" in project ? project.test?.name : undefined;
    if (typeof name !== "string") throw new Error("A project of vitest.config.ts has no name.");
    return name;
  });
}

async function runOneAfterAnother(sequence: (typeof BESIDE)[number]): Promise<readonly Ended[]> {
  const all: Ended[] = [];
  for (const [names, priority] of sequence) {
    if (stopped) break;
    const run = vitest(names, priority);
    all.push(await run.ended);
    console.log(run.said());
  }
  return all;
}

interface Ended {
  readonly names: readonly string[];
  readonly code: number | null;
  readonly seconds: number;
}

interface Run {
  readonly ended: Promise<Ended>;
  /** Output so far of a run with a priority; empty for others. */
  said(): string;
}

/** Starts vitest. A run with a priority runs beside others and prints nothing meanwhile. */
function vitest(names: readonly string[], priority?: number): Run {
  const wanted = [
    ...names.flatMap((name) => ["--project", name]),
    ...["--reporter", "default", "--reporter", "./test/tools/failures.ts", "--reporter", "./test/tools/durations.ts"],
    ...given,
    ...(given.length > 0 ? ["--passWithNoTests"] : []),
  ];
  const started = performance.now();
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...wanted], {
    stdio: priority === undefined ? "inherit" : ["ignore", "pipe", "pipe"],
    env: { ...process.env, [FAILURES_FILE]: failures, [DURATIONS_FILE]: durations, [BESIDE_OTHERS]: "1" },
  });
  // Set before it starts any process or thread that matters, because they inherit the priority.
  if (priority !== undefined && child.pid !== undefined) setPriority(child.pid, priority);
  children.add(child);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => output.push(piece));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code))).then((code) => {
    children.delete(child);
    return { names, code, seconds: Math.round((performance.now() - started) / 1_000) };
  });
  return { ended, said: () => Buffer.concat(output).toString() };
}
