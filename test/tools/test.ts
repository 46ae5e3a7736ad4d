import { spawn, type ChildProcess } from "node:child_process";
import { constants, setPriority } from "node:os";
import config from "../../vitest.config.ts";

/**
 * `npm test`: all projects of vitest, those that are measured against deadlines one after the other. The last of them
 * mostly wait for programs and members, and the simulation waits for nothing and has no deadlines: it runs beside them
 * with what they leave of the processors. What is given after `npm test --` goes to vitest.
 */
const LAST = ["e2e", "ring"];
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

const codes = [await vitest(projects().filter((name) => !LAST.includes(name) && name !== BESIDE)).ended];
const sim = vitest([BESIDE], { isBeside: true });
for (const name of LAST) if (!stopped) codes.push(await vitest([name]).ended);
codes.push(await sim.ended);
console.log(sim.said());
process.exitCode = !stopped && codes.every((code) => code === 0) ? 0 : 1;

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

/** One that runs beside others takes what they leave, and prints nothing meanwhile. */
function vitest(names: readonly string[], { isBeside = false } = {}): Run {
  const wanted = [
    ...names.flatMap((name) => ["--project", name]),
    ...given,
    ...(given.length > 0 ? ["--passWithNoTests"] : []),
  ];
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...wanted], {
    stdio: isBeside ? ["ignore", "pipe", "pipe"] : "inherit",
  });
  // Before it starts any process or thread that matters: they are as it is.
  if (isBeside && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  children.add(child);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => output.push(piece));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  return { ended: ended.finally(() => children.delete(child)), said: () => Buffer.concat(output).toString() };
}
