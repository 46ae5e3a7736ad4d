import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { errorText } from "../../common/errors.ts";
import { EXEC_KILL_GRACE_MS, EXEC_PIPE_GRACE_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { COMMAND_VARIABLE, killMarked } from "./descendants.ts";
import { birthOf } from "../disk/lock.ts";

export interface ExecOptions {
  readonly line: string;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: Uint8Array | undefined;
  /** After it everything the process started is ended; none for a process that runs for ever. */
  readonly timeoutMs?: number | undefined;
  /** Ends everything the process started. */
  readonly signal?: AbortSignal | undefined;
  /** Called with one piece at a time; nothing more is read from that pipe until it resolves. */
  readonly onOutput?: (data: Buffer, stderr: boolean) => void | Promise<void>;
}

export interface ExecResult {
  readonly ended: "exit" | "timeout" | "cancelled" | "unstarted";
  /** Exit code; 128 + signal number for a signal, 127 when it could not be started. */
  readonly code: number;
  /** The name of the signal that ended the process, `SIGKILL`; absent: none did. */
  readonly signal?: string;
  /** Process id of the shell, which leads the process group; absent: none was started. */
  readonly pid?: number;
  readonly message: string;
}

export type Exec = (options: ExecOptions) => Promise<ExecResult>;

const SIGNAL_BASE = 128;

export interface ExecWorld {
  readonly clock: Clock;
  /** Notes which process groups run, so that the next start can end what a crash left over. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The only place that starts processes: a line for the host's shell, in a process group of its own. */
export function createExec(world: ExecWorld): Exec {
  mkdirSync(world.folder, { recursive: true, mode: 0o700 });
  let count = 0;
  return async (options) => {
    if (options.signal?.aborted)
      return { ended: "cancelled", code: SIGNAL_BASE + 15, message: "cancelled before it began" };
    const marker = `${process.pid}-${Math.round(world.clock.nowMs())}-${++count}`;
    const child = start(options, world, marker);
    const failed = await spawned(child);
    if (failed !== undefined) return { ended: "unstarted", code: 127, message: failed };
    const note = noteRunning(world.folder, child.pid, marker);
    try {
      return await watch(child, { ...options, marker }, world.clock);
    } finally {
      if (note) rmSync(note, { force: true });
    }
  };
}

function start(options: ExecOptions, world: ExecWorld, marker: string): ChildProcess {
  const windows = process.platform === "win32";
  const [shell, args] = windows ? ["cmd.exe", ["/d", "/s", "/c", options.line]] : ["/bin/sh", ["-c", options.line]];
  const child = spawn(shell, args, {
    cwd: options.cwd,
    env: { ...world.environment, ...options.env, [COMMAND_VARIABLE]: marker },
    stdio: [options.stdin ? "pipe" : "ignore", "pipe", "pipe"],
    detached: !windows,
    windowsHide: true,
  });
  // A process that does not read its input is its own affair.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(options.stdin);
  return child;
}

function spawned(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(undefined));
    child.once("error", (error) => resolve(`cannot be started: ${errorText(error)}`));
  });
}

interface Watched extends ExecOptions {
  /** Known to everything the process starts. */
  readonly marker: string;
}

async function watch(child: ChildProcess, options: Watched, clock: Clock): Promise<ExecResult> {
  let ended: ExecResult["ended"] = "exit";
  const cancels: (() => void)[] = [];
  const end = (reason: "timeout" | "cancelled") => {
    if (ended !== "exit" || child.exitCode !== null) return;
    ended = reason;
    killGroup(child, "SIGTERM");
    cancels.push(clock.after(EXEC_KILL_GRACE_MS, () => killGroup(child, "SIGKILL")));
  };
  const cancel = () => end("cancelled");
  options.signal?.addEventListener("abort", cancel, { once: true });
  if (options.signal?.aborted) cancel();
  if (options.timeoutMs !== undefined) cancels.push(clock.after(options.timeoutMs, () => end("timeout")));
  const exited = new Promise<Exited>((resolve) => {
    child.once("exit", (code, signal) => resolve(outcome(code, signal)));
  });
  const drained = Promise.all([drain(child.stdout, false, options), drain(child.stderr, true, options)]);
  const exit = await exited;
  // Ending a process ends everything it started.
  if (ended !== "exit") {
    killGroup(child, "SIGKILL");
    killMarked(options.marker);
  }
  const pipes = [child.stdout, child.stderr].filter((pipe) => pipe !== null);
  cancels.push(...pipes.map((pipe) => closeWhenSilent(pipe, clock)));
  try {
    await drained;
  } finally {
    for (const stop of cancels) stop();
    options.signal?.removeEventListener("abort", cancel);
  }
  return { ended, ...exit, ...(child.pid !== undefined && { pid: child.pid }) };
}

type Exited = Omit<ExecResult, "ended">;

function outcome(code: number | null, signal: NodeJS.Signals | null): Exited {
  if (code !== null) return { code, message: code === 0 ? "" : `ended with code ${code}` };
  if (signal === null) return { code: SIGNAL_BASE, message: "ended by a signal" };
  return { code: SIGNAL_BASE + constants.signals[signal], signal, message: `ended by ${signal}` };
}

/**
 * Reads piece by piece; a failing reader lets the process write into the void, and the failure comes out at the end.
 */
function drain(pipe: Readable | null, stderr: boolean, options: ExecOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!pipe) return resolve();
    let failure: unknown;
    let failed = false;
    pipe.on("data", (data: Buffer) => {
      if (failed || !options.onOutput) return;
      pipe.pause();
      Promise.resolve()
        .then(() => options.onOutput?.(data, stderr))
        .catch((error: unknown) => {
          failed = true;
          failure = error;
        })
        .finally(() => pipe.resume());
    });
    pipe.once("close", () => (failed ? reject(failure) : resolve()));
    pipe.on("error", () => undefined);
  });
}

/**
 * A process that left something running in the background does not hold up its own result: when the pipe was silent and
 * all that came out of it is taken, it is closed.
 */
function closeWhenSilent(pipe: Readable, clock: Clock): () => void {
  let cancel = () => undefined as void;
  let heard = true;
  const hear = () => (heard = true);
  pipe.on("data", hear);
  const look = () => {
    if (!heard && !pipe.isPaused()) return pipe.destroy();
    heard = false;
    cancel = clock.after(EXEC_PIPE_GRACE_MS, look);
    return undefined;
  };
  cancel = clock.after(EXEC_PIPE_GRACE_MS, look);
  heard = false;
  return () => cancel();
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

function noteRunning(folder: string, pid: number | undefined, marker: string): string | undefined {
  const birth = pid === undefined ? undefined : birthOf(pid);
  if (birth === undefined) return undefined;
  const path = join(folder, String(pid));
  // Not synced: what a power cut forgets here it has ended as well.
  writeFileSync(path, `${birth}\n${marker}`);
  return path;
}

/** Ends process groups that an agent killed in the middle of its work left behind. */
export function endLeftovers(folder: string): number {
  let ended = 0;
  for (const name of foldersNames(folder)) {
    const path = join(folder, name);
    const [birth = "", marker] = readFileSync(path, "utf8").split("\n");
    if (birthOf(Number(name)) === birth) {
      try {
        process.kill(-Number(name), "SIGKILL");
        ended++;
      } catch {
        // The process ended between the look and the signal.
      }
    }
    if (marker) killMarked(marker);
    rmSync(path, { force: true });
  }
  return ended;
}

function foldersNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}
