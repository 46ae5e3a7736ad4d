import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../helpers/clock.ts";
import type { Acknowledged } from "./acknowledged.ts";
import { inspect } from "./inspect.ts";

const CHILD = fileURLToPath(new URL("child.ts", import.meta.url));
const ROUND_DEADLINE_MS = 60_000;
/** The child is killed after so many acknowledgements, more or less. */
const ACKNOWLEDGED_MIN = 20;
const ACKNOWLEDGED_SPREAD = 1_500;

export interface CrashRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

/**
 * Kills a process with -9 while it writes to an embedded store, opens the store again and looks: nothing that was acknowledged may
 * be missing, nothing may be half there. Throws with every finding; the seed replays the moments, not the machine's timing.
 */
export async function crashRounds({ rounds, seed, log }: CrashRounds): Promise<{ readonly acknowledged: number }> {
  const random = seededRandom(seed);
  const dir = await mkdtemp(join(tmpdir(), "odp-crash-"));
  const acknowledged: Acknowledged[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      const killAfter = ACKNOWLEDGED_MIN + Math.floor(random.next() * ACKNOWLEDGED_SPREAD);
      const fresh = await runAndKill([dir, String(round), String(seed + round)], killAfter);
      acknowledged.push(...fresh);
      const findings = await inspect(dir, acknowledged);
      log(`round ${round} of ${rounds}: killed after ${fresh.length} acknowledged writes, ${findings.length} findings`);
      if (findings.length > 0) throw new Error(`Seed ${seed}, round ${round}:\n${findings.slice(0, 20).join("\n")}`);
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  return { acknowledged: acknowledged.length };
}

/** What the child had said by the time it was dead. */
async function runAndKill(args: readonly string[], killAfter: number): Promise<readonly Acknowledged[]> {
  const child = spawn(process.execPath, ["--import", "tsx", CHILD, ...args], { stdio: ["ignore", "pipe", "pipe"] });
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
  if (lines.length < killAfter) throw new Error(`The writing process ended by itself after ${lines.length} writes:\n${errors.join("")}`);
  return lines.map((line) => JSON.parse(line) as Acknowledged);
}

function exit(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once("exit", () => resolve()));
}
