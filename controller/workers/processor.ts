import { readFileSync, readlinkSync } from "node:fs";

/** Length of a tick in `/proc`, which Linux gives to programs as a hundredth of a second on every machine. */
const TICK_MS = 10;
/** Places of user and system time behind the name of a thread, which is in brackets (proc_pid_stat(5)). */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;

/** The number by which the operating system knows this thread; absent where it does not say it, as outside of Linux. */
export function ownThread(): number | undefined {
  try {
    return Number(readlinkSync("/proc/thread-self").split("/").at(-1));
  } catch {
    return undefined;
  }
}

/**
 * Processor time of a thread of this process so far. Node tells that of another thread from version 24 on only, and not
 * at once; so it is read where Linux keeps it. Of a thread that is gone or has no number: that of the whole process.
 */
export function threadProcessorMs(thread: number | undefined): number {
  return (thread && accountOf(thread)) ?? processMs();
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
