import { readFileSync } from "node:fs";

/** True while the process runs. A zombie, which its parent has not waited for, does not run. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
