import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pLimit from "p-limit";
import { bundle } from "../../helpers/programs/bundle.ts";
import { seededRandom } from "../../helpers/time/clock.ts";
import type { Acknowledged } from "./acknowledged.ts";
import { inspect } from "./inspect.ts";

const ROUND_DEADLINE_MS = 60_000;
/** Bounds of the random number of acknowledgements after which the child is killed. */
const ACKNOWLEDGED_MIN = 20;
const ACKNOWLEDGED_SPREAD = 800;
/** Rounds on one store, one after the other. Then a new store follows, so that the inspection does not grow longer. */
const ROUNDS_PER_STORE = 5;

export interface CrashRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

/**
 * Kills a process with -9 while it writes to an embedded store and an agent's outbox, then opens and inspects them:
 * no acknowledged write may be missing, and no write may be stored in part. Throws with every finding. The seed replays
 * the moments, not the machine's timing.
 */
export async function crashRounds({ rounds, seed, log }: CrashRounds): Promise<{ readonly acknowledged: number }> {
  await using writer = await bundled();
  const lane = pLimit(Math.min(2, availableParallelism()));
  const stores = Array.from({ length: Math.ceil(rounds / ROUNDS_PER_STORE) }, (_, index) => index);
  const counts = await Promise.all(
    stores.map((index) =>
      lane(() =>
        onOneStore({
          writer: writer.file,
          log,
          seed: seed + index,
          first: index * ROUNDS_PER_STORE + 1,
          last: Math.min(rounds, (index + 1) * ROUNDS_PER_STORE),
        }),
      ),
    ),
  );
  return { acknowledged: counts.reduce((sum, count) => sum + count, 0) };
}

interface StoreRounds {
  readonly writer: string;
  readonly seed: number;
  readonly first: number;
  readonly last: number;
  readonly log: (line: string) => void;
}

async function onOneStore({ writer, seed, first, last, log }: StoreRounds): Promise<number> {
  const random = seededRandom(seed);
  const dir = await mkdtemp(join(tmpdir(), "odp-crash-"));
  const acknowledged: Acknowledged[] = [];
  try {
    for (let round = first; round <= last; round++) {
      const killAfter = ACKNOWLEDGED_MIN + Math.floor(random.next() * ACKNOWLEDGED_SPREAD);
      acknowledged.push(...(await runAndKill([writer, dir, String(round), String(seed + round)], killAfter)));
      const findings = await inspect(dir, acknowledged);
      if (findings.length > 0) throw new Error(`Seed ${seed}, round ${round}:\n${findings.slice(0, 20).join("\n")}`);
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  log(`rounds ${first} to ${last}, seed ${seed}: ${acknowledged.length} acknowledged writes, all there`);
  return acknowledged.length;
}

/** The child as one bundled file, which starts in a fraction of the time that its sources take. */
async function bundled(): Promise<{ readonly file: string } & AsyncDisposable> {
  const file = await bundle(join(import.meta.dirname, "child.ts"), `crash/child-${process.pid}.mjs`);
  return { file, [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}

/** Writes that the child had reported by the time it was dead. */
async function runAndKill(args: readonly string[], killAfter: number): Promise<readonly Acknowledged[]> {
  const child = spawn(process.execPath, [...args], { stdio: ["ignore", "pipe", "pipe"] });
  const overdue = setTimeout(() => child.kill("SIGKILL"), ROUND_DEADLINE_MS);
  const errors: string[] = [];
  child.stderr.on("data", (chunk: Buffer) => errors.push(String(chunk)));
  const ended = exit(child);
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === killAfter) child.kill("SIGKILL");
  }
  clearTimeout(overdue);
  await ended;
  if (lines.length < killAfter)
    throw new Error(`The writing process ended by itself after ${lines.length} writes:\n${errors.join("")}`);
  return lines.map((line) => JSON.parse(line) as Acknowledged);
}

function exit(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once("exit", () => resolve()));
}
