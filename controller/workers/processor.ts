import { readFileSync, readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";

/** Length of a tick in `/proc`: Linux reports times there in hundredths of a second on every machine. */
const TICK_MS = 10;
/**
 * Indexes of user and system time among the fields after the thread's name, which is in brackets (proc_pid_stat(5)).
 */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;

/** The operating system's id of this thread; `undefined` outside of Linux. */
export function ownThread(): number | undefined {
  try {
    return Number(readlinkSync("/proc/thread-self").split("/").at(-1));
  } catch {
    return undefined;
  }
}

/**
 * Processor time of a thread of this process so far, in ms. It is read from `/proc`, because Node reports the time of
 * another thread only from version 24 on, and asynchronously. If the thread has ended or has no id: the processor time
 * of the whole process.
 */
export function threadProcessorMs(thread: number | undefined): number {
  return (thread && accountOf(thread)) ?? processMs();
}

/**
 * Gives a thread of this process less of a busy processor (`PRIORITY_BELOW_NORMAL`). On Linux, where threads have
 * numbers, a priority is that of one thread. Returns false if the thread has ended.
 */
export function lowerPriority(thread: number): boolean {
  try {
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    return true;
  } catch {
    return false;
  }
}

function accountOf(thread: number): number | undefined {
  try {
    const account = readFileSync(`/proc/self/task/${thread}/stat`, "latin1");
    const ticks = account.slice(account.lastIndexOf(")") + 2).split(" ");
    return (Number(ticks[USER_TICKS]) + Number(ticks[SYSTEM_TICKS])) * TICK_MS;
  } catch {
    return undefined;
  }
}

function processMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
