import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../common/errors.ts";

/**
 * Start time of a process, in units of the kernel. It identifies the process together with its id, because ids are used
 * again. Undefined when the process has ended, or when the system has no `/proc`.
 */
export function birthOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/**
 * Locks a folder for this agent. `AppError("conflict")` while another running agent has locked it. The lock of an agent
 * that has ended is replaced. Without `/proc` (`birthOf`), a lock is always replaced.
 */
export function lockFolder(folder: string): void {
  const path = join(folder, "agent.pid");
  const [pid = "", birth] = read(path).split(" ");
  if (birth && Number(pid) !== process.pid && birthOf(Number(pid)) === birth) {
    throw new AppError("conflict", `An agent (process ${pid}) works in ${folder} already.`);
  }
  writeFileSync(path, `${process.pid} ${birthOf(process.pid) ?? ""}`, { mode: 0o600 });
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
