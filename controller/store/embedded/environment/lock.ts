import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../../../common/errors.ts";
import { diskFull, isFull } from "../blobs/files.ts";

/** A take-over is short; one older than this was left by a crash. */
const TAKEOVER_STALE_MS = 10_000;

interface Holder {
  readonly pid: number;
  /** Start of the process in the kernel's unit; it distinguishes processes that reuse a pid. */
  readonly started: string;
  readonly boot: string;
}

/**
 * Allows one controller per folder. The lock is a file, created exclusively, that names its holder. The lock of a dead
 * process is taken over. `AppError("conflict")` while the holder lives. The returned function releases the lock.
 */
export function lockFolder(folder: string, nowMs: number): () => void {
  const path = join(folder, "controller.lock");
  const self = describe(process.pid);
  if (!createExclusive(path, JSON.stringify(self))) takeOver(path, self, nowMs);
  return () => rmSync(path, { force: true });
}

function takeOver(path: string, self: Holder, nowMs: number): void {
  refuseLiving(path);
  // Two simultaneous starts must not both take over: the second could remove the first one's new lock.
  const guard = `${path}.takeover`;
  if (!createExclusive(guard, JSON.stringify(self))) {
    if (isHeld(guard, nowMs)) throw inUse(path, undefined);
    rmSync(guard, { force: true });
    if (!createExclusive(guard, JSON.stringify(self))) throw inUse(path, undefined);
  }
  try {
    refuseLiving(path);
    rmSync(path, { force: true });
    if (!createExclusive(path, JSON.stringify(self))) throw inUse(path, undefined);
  } finally {
    rmSync(guard, { force: true });
  }
}

/**
 * True if the guard is held. An unreadable guard is either being written or was left by a crash; its age decides. After
 * a power cut the clock may be earlier than the time of the file, so the age is an absolute difference.
 */
function isHeld(guard: string, nowMs: number): boolean {
  const holder = readHolder(guard);
  return holder === undefined ? Math.abs(nowMs - statSync(guard).mtimeMs) < TAKEOVER_STALE_MS : lives(holder);
}

function refuseLiving(path: string): void {
  const holder = readHolder(path);
  if (holder !== undefined && lives(holder)) throw inUse(path, holder.pid);
}

function inUse(path: string, pid: number | undefined): AppError {
  const who = pid === undefined ? "another controller that is starting" : `process ${pid}`;
  return new AppError("conflict", `The data folder is in use by ${who} (lock file ${path}).`);
}

function createExclusive(path: string, text: string): boolean {
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
  try {
    writeSync(file, text);
    fsyncSync(file);
  } catch (error) {
    // A lock without a holder would keep others out for a while.
    rmSync(path, { force: true });
    throw isFull(error) ? diskFull(error) : error;
  } finally {
    closeSync(file);
  }
  return true;
}

/** The holder of the lock; `undefined` for an unreadable lock, which a crash tore while it was written. */
function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Holder;
  } catch {
    return undefined;
  }
}

function lives(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM: the process lives, but belongs to another user.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  const now = describe(holder.pid);
  return now.started === holder.started && now.boot === holder.boot;
}

function describe(pid: number): Holder {
  return {
    pid,
    started: readProc(`/proc/${pid}/stat`, startTime),
    boot: readProc("/proc/sys/kernel/random/boot_id", (text) => text.trim()),
  };
}

/** Field 22. The name in field 2 may contain blanks and brackets, so count from the last bracket. */
function startTime(stat: string): string {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Empty on systems without /proc, where only the pid identifies a process. */
function readProc(path: string, pick: (text: string) => string): string {
  try {
    return pick(readFileSync(path, "utf8"));
  } catch {
    return "";
  }
}
