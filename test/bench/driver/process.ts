import { readdirSync, readFileSync } from "node:fs";

const CLOCK_TICKS_PER_SECOND = 100;

/**
 * Resources that a process has used so far and holds now, as Linux counts them. Other processes do not count, so the
 * figures are valid on a shared machine.
 */

/** User and system time of all threads (proc(5), fields 14 and 15 of stat, in clock ticks). */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

/** Like `cpuSeconds`, but exact to the microsecond, for the present threads only (schedstat: ns on a processor). */
export function threadSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ns = threads.map((id) => Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ")[0]));
  return ns.reduce((sum, one) => sum + one, 0) / 1e9;
}

export function residentMb(pid: number): number {
  return statusMb(pid, "VmRSS");
}

/** Anonymous memory in MB, without pages of files: a memory-mapped store holds as many of these as fit in memory. */
export function anonymousMb(pid: number): number {
  return statusMb(pid, "RssAnon");
}

function statusMb(pid: number, field: string): number {
  const line = readFileSync(`/proc/${pid}/status`, "utf8")
    .split("\n")
    .find((text) => text.startsWith(`${field}:`));
  return Number(/(\d+) kB/.exec(line ?? "")?.[1]) / 1_024;
}
