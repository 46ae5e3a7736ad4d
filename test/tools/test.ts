import { spawn, type ChildProcess } from "node:child_process";
import { constants, setPriority } from "node:os";
import config from "../../vitest.config.ts";

/**
 * `npm test`: all projects of vitest, those that are measured against deadlines one after the other. The ring mostly waits for its members, and the
 * simulation waits for nothing and has no deadlines: it runs beside the ring with what that leaves of the processors. What is given after
 * `npm test --` goes to vitest.
 */
const LAST = "ring";
const BESIDE = "sim";

const given = process.argv.slice(2);
const children = new Set<ChildProcess>();
let stopped = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    stopped = true;
    for (const child of children) child.kill(signal);
  });
}

const first = await vitest(projects().filter((name) => name !== LAST && name !== BESIDE)).ended;
if (stopped) process.exit(1);
const ring = vitest([LAST]);
// Of this process, and so of what it starts from now on.
setPriority(constants.priority.PRIORITY_LOW);
const sim = vitest([BESIDE], { quiet: true });
const codes = [first, await ring.ended, await sim.ended];
console.log(sim.said());
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;

function projects(): string[] {
  return (config.test?.projects ?? []).map((project) => {
    const name = typeof project === "object" && "test" in project ? project.test?.name : undefined;
    if (typeof name !== "string") throw new Error("A project of vitest.config.ts has no name.");
    return name;
  });
}

interface Run {
  readonly ended: Promise<number | null>;
  /** What a quiet one has printed. */
  said(): string;
}

function vitest(names: readonly string[], { quiet = false } = {}): Run {
  const wanted = [...names.flatMap((name) => ["--project", name]), ...given, ...(given.length > 0 ? ["--passWithNoTests"] : [])];
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...wanted], { stdio: quiet ? ["ignore", "pipe", "pipe"] : "inherit" });
  children.add(child);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => output.push(piece));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  return { ended: ended.finally(() => children.delete(child)), said: () => Buffer.concat(output).toString() };
}
