import { readdirSync, readFileSync } from "node:fs";

/**
 * Environment variable that marks all processes of a command. They inherit it, even if they leave its process group and
 * its session.
 */
export const COMMAND_VARIABLE = "ODP_COMMAND_PROCESS";

/**
 * Kills all processes of a command, also those that have left its process group. Processes that removed the variable
 * from their environment are not found. Only Linux shows the environment of other processes; on other systems nothing
 * is found.
 */
export function killMarked(value: string, pause: () => void = pauseForStarts): void {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { ended, isUnsure } = killOnce(value);
    if (ended === 0 && !isUnsure) return;
    // A process may start another one just before it is killed. The next round finds that one.
    if (ended === 0) pause();
  }
}

const ROUNDS_MAX = 8;
/** Maximum time that a process needs to replace its program (`exec`), even on a busy host. */
const START_PAUSE_MS = 10;

/**
 * Blocks the only thread of the agent, so all its other work waits. This is acceptable because commands are seldom
 * ended like this.
 */
function pauseForStarts(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, START_PAUSE_MS);
}

/**
 * Kills the marked processes that are there now. `isUnsure`: a process has an empty environment, perhaps because it is
 * just replacing its program.
 */
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
      // The process has ended already.
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

/**
 * The variables of a process, each with a NUL byte at its end. Undefined when the process has ended or cannot be read.
 */
function environmentOf(pid: number): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch {
    return undefined;
  }
}

/** `PF_KTHREAD` of the kernel's `sched.h`. */
const KERNEL_THREAD = 0x00200000;

/** True for a process that has not ended and is no kernel thread, by state and flags in `stat` (`proc(5)`). */
function isProgram(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state = "Z", , , , , , flags] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return !"ZX".includes(state) && (Number(flags) & KERNEL_THREAD) === 0;
  } catch {
    return false;
  }
}
