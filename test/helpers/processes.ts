import { readFileSync } from "node:fs";

/** True while the process runs. One that has ended and that its parent has not asked for yet runs no more. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
