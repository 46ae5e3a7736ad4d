import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../common/errors.ts";

/**
 * When the process began, as the kernel counts; a process id alone may have been given again. Undefined where there is
 * no /proc.
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
 * One agent per folder: `AppError("conflict")` while another lives. The lock of a dead one counts for
 * nothing.
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
