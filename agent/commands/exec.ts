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
import { programOf, type Program, type ProgramOptions } from "./program.ts";

export interface ExecOptions extends ProgramOptions {
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: Uint8Array | undefined;
  /** Time after which the process and everything it started are ended. Absent: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Ends the process and everything it started. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the process id of the shell, which leads the process group. */
  readonly onStart?: (pid: number) => void;
  /** Called with one piece of output at a time. Nothing more is read from that pipe until it resolves. */
  readonly onOutput?: (data: Buffer, stderr: boolean) => void | Promise<void>;
}

export interface ExecResult {
  readonly ended: "exit" | "timeout" | "cancelled" | "unstarted";
  /** Exit code. After a signal, 128 + its number; 127 if the process could not be started. */
  readonly code: number;
  /** Name of the signal that ended the process, such as `SIGKILL`; absent when none did. */
  readonly signal?: string;
  /** Process id of the shell, which leads the process group; absent when none was started. */
  readonly pid?: number;
  readonly message: string;
}

export type Exec = (options: ExecOptions) => Promise<ExecResult>;

const SIGNAL_BASE = 128;
const isWindows = process.platform === "win32";
const UNSUPPORTED: ExecResult = {
  ended: "unstarted",
  code: 127,
  message: "cannot be started: users and limits of commands are not supported on Windows",
};

export interface ExecWorld {
  readonly clock: Clock;
  /**
   * Folder with a file for each running process group. After a crash, the next start of the agent ends those that are
   * left.
   */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Creates the function that starts processes, the only one in the agent. It runs a line in the shell of the host, in a
 * process group of its own.
 */
export function createExec(world: ExecWorld): Exec {
  mkdirSync(world.folder, { recursive: true, mode: 0o700 });
  let count = 0;
  return async (options) => {
    if (options.signal?.aborted)
      return { ended: "cancelled", code: SIGNAL_BASE + 15, message: "cancelled before it began" };
    if (isWindows && (options.user || options.limits)) return UNSUPPORTED;
    const marker = `${process.pid}-${Math.round(world.clock.nowMs())}-${++count}`;
    const child = start(options, world, marker);
    const failed = await spawned(child);
    if (failed !== undefined) return { ended: "unstarted", code: 127, message: failed };
    if (child.pid !== undefined) options.onStart?.(child.pid);
    const note = noteRunning(world.folder, child.pid, marker);
    try {
      return await watch(child, { ...options, marker }, world.clock);
    } finally {
      if (note) rmSync(note, { force: true });
    }
  };
}

function start(options: ExecOptions, world: ExecWorld, marker: string): ChildProcess {
  const { file, args, ids, environment } = isWindows ? windowsProgram(options.line) : programOf(options);
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...world.environment, ...environment, ...options.env, [COMMAND_VARIABLE]: marker },
    stdio: [options.stdin ? "pipe" : "ignore", "pipe", "pipe"],
    detached: !isWindows,
    windowsHide: true,
    ...ids,
  });
  // A process may end without reading its input; this is no error.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(options.stdin);
  return child;
}

function windowsProgram(line: string): Program {
  return { file: "cmd.exe", args: ["/d", "/s", "/c", line], environment: {} };
}

function spawned(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(undefined));
    child.once("error", (error) => resolve(`cannot be started: ${errorText(error)}`));
  });
}

interface Watched extends ExecOptions {
  /** Value of `COMMAND_VARIABLE` for the process and everything it starts. */
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
  // After a timeout or a cancellation, everything that the process started is ended too.
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
 * Passes output to `onOutput`, one piece at a time. After `onOutput` has failed, the rest is read and dropped, so that
 * the process does not block. The promise rejects with the failure when the pipe closes.
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
 * Closes the pipe of a process that has ended, after `EXEC_PIPE_GRACE_MS` of silence and when all its output is
 * handled. Otherwise a process that it left in the background could delay the result without end.
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
    // The process group has ended already.
  }
}

function noteRunning(folder: string, pid: number | undefined, marker: string): string | undefined {
  const birth = pid === undefined ? undefined : birthOf(pid);
  if (birth === undefined) return undefined;
  const path = join(folder, String(pid));
  // No sync is needed: a power cut also ends the process.
  writeFileSync(path, `${birth}\n${marker}`);
  return path;
}

/** Ends the process groups that a killed agent left behind. Answers their number. */
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
