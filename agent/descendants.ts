import { readdirSync, readFileSync } from "node:fs";

/** Every process a command starts inherits it, also one that leaves its process group and its session. */
export const COMMAND_VARIABLE = "ODP_COMMAND_PROCESS";

/**
 * Ends what a command started and what these started, wherever they went; those that took the variable out of their
 * environment are not found. Linux alone shows the environment of processes; elsewhere nothing is found.
 */
export function killMarked(value: string): void {
  // One that is just being started by another is found the next time.
  for (let ended = killOnce(value), rounds = 1; ended > 0 && rounds < ROUNDS_MAX; rounds++) ended = killOnce(value);
}

const ROUNDS_MAX = 8;

function killOnce(value: string): number {
  const marker = Buffer.from(`\0${COMMAND_VARIABLE}=${value}\0`);
  let ended = 0;
  for (const pid of processes()) {
    if (!environmentOf(pid).includes(marker)) continue;
    try {
      process.kill(pid, "SIGKILL");
      ended++;
    } catch {
      // It has ended already.
    }
  }
  return ended;
}

function processes(): number[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== process.pid);
  } catch {
    return [];
  }
}

/** Begins and ends with a zero; empty for one that ended, or that is not for us to see. */
function environmentOf(pid: number): Buffer {
  try {
    return Buffer.concat([Buffer.of(0), readFileSync(`/proc/${pid}/environ`)]);
  } catch {
    return Buffer.alloc(0);
  }
}
