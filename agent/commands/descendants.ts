import { readdirSync, readFileSync } from "node:fs";

/** Every process a command starts inherits it, also one that leaves its process group and its session. */
export const COMMAND_VARIABLE = "ODP_COMMAND_PROCESS";

/**
 * Ends what a command started and what these started, wherever they went; those that took the variable out of their
 * environment are not found. Linux alone shows the environment of processes; elsewhere nothing is found.
 */
export function killMarked(value: string, pause: () => void = pauseForStarts): void {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { ended, isUnsure } = killOnce(value);
    if (ended === 0 && !isUnsure) return;
    // A process may start another one just before it ends: the next round finds that.
    if (ended === 0) pause();
  }
}

const ROUNDS_MAX = 8;
/** Longest time that a process needs to replace its program (`exec`), even on a busy host. */
const START_PAUSE_MS = 10;

/** Blocks the agent's only thread, so everything else waits. Acceptable because commands seldom end this way. */
function pauseForStarts(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, START_PAUSE_MS);
}

/** `isUnsure` when a process has no environment to look at: another program is just taking its place, or it has none. */
function killOnce(value: string): { readonly ended: number; readonly isUnsure: boolean } {
  const marker = Buffer.from(`\0${COMMAND_VARIABLE}=${value}\0`);
  let ended = 0;
  let isUnsure = false;
  for (const pid of processes()) {
    const environment = environmentOf(pid);
    if (environment?.length === 0) isUnsure ||= isProgram(pid);
    if (!environment || !Buffer.concat([Buffer.of(0), environment]).includes(marker)) continue;
    try {
      process.kill(pid, "SIGKILL");
      ended++;
    } catch {
      // It has ended already.
    }
  }
  return { ended, isUnsure };
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

/** Variables that end in a zero; `undefined` for a process that ended, or that is not for us to see. */
function environmentOf(pid: number): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch {
    return undefined;
  }
}

/** `PF_KTHREAD` of the kernel's `sched.h`. */
const KERNEL_THREAD = 0x00200000;

/** Neither ended nor a thread of the kernel: `proc(5)`, state and flags in `stat`. */
function isProgram(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state = "Z", , , , , , flags] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return !"ZX".includes(state) && (Number(flags) & KERNEL_THREAD) === 0;
  } catch {
    return false;
  }
}
