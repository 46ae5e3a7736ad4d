import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import config from "../../vitest.config.ts";
import { FAILURES_FILE } from "./failures.ts";

/**
 * `npm test`: all projects of vitest, those that are measured against deadlines one after the other. The last of them
 * mostly wait for programs and members, and the simulation waits for nothing and has no deadlines: it runs beside them
 * with what they leave of the processors. What failed in any of them is printed once more at the end. What is given
 * after `npm test --` goes to vitest.
 */
const LAST = ["e2e", "ring"];
const BESIDE = "sim";
/** Characters printed of all failures. */
const FAILURES_SHOWN_MAX = 10_000;

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

const runs = [await vitest(projects().filter((name) => !LAST.includes(name) && name !== BESIDE)).ended];
const sim = vitest([BESIDE], { isBeside: true });
for (const name of LAST) if (!stopped) runs.push(await vitest([name]).ended);
runs.push(await sim.ended);
console.log(sim.said());

for (const { names, code, seconds } of runs) console.log(`${names.join(", ")}: exit ${code} after ${seconds} s`);
const failed = readFileSync(failures, "utf8");
if (failed.length > FAILURES_SHOWN_MAX) console.log(`${failed.length} characters of failures, the first of them:`);
console.log(failed.slice(0, FAILURES_SHOWN_MAX));
rmSync(folder, { recursive: true });
process.exitCode = !stopped && runs.every(({ code }) => code === 0) ? 0 : 1;

function projects(): string[] {
  return (config.test?.projects ?? []).map((project) => {
    const name = typeof project === "object" && "test" in project ? project.test?.name : undefined;
    if (typeof name !== "string") throw new Error("A project of vitest.config.ts has no name.");
    return name;
  });
}

interface Run {
  readonly ended: Promise<{
    readonly names: readonly string[];
    readonly code: number | null;
    readonly seconds: number;
  }>;
  /** What a quiet one has printed. */
  said(): string;
}

/** One that runs beside others takes what they leave, and prints nothing meanwhile. */
function vitest(names: readonly string[], { isBeside = false } = {}): Run {
  const wanted = [
    ...names.flatMap((name) => ["--project", name]),
    ...["--reporter", "default", "--reporter", "./test/tools/failures.ts"],
    ...given,
    ...(given.length > 0 ? ["--passWithNoTests"] : []),
  ];
  const started = performance.now();
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...wanted], {
    stdio: isBeside ? ["ignore", "pipe", "pipe"] : "inherit",
    env: { ...process.env, [FAILURES_FILE]: failures },
  });
  // Before it starts any process or thread that matters: they are as it is.
  if (isBeside && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  children.add(child);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => output.push(piece));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code))).then((code) => {
    children.delete(child);
    return { names, code, seconds: Math.round((performance.now() - started) / 1_000) };
  });
  return { ended, said: () => Buffer.concat(output).toString() };
}
