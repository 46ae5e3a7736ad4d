import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { isatty } from "node:tty";
import { closeInherited } from "../../common/descriptors.ts";
import { errorText } from "../../common/errors.ts";
import { SPAWNER_KILL_GRACE_MS } from "../../common/limits.ts";
import { outliveOutput } from "../../common/outputs.ts";
import { killProcess } from "./kill.ts";
import type { Order, ProcessSpec, Report } from "./types.ts";

interface Running {
  readonly child: ChildProcess;
  readonly isGroup: boolean;
  /** Call them when the controller has taken the last piece of that pipe. */
  readonly taken: { stdout: () => void; stderr: () => void };
}

/**
 * The spawner's side: starts processes for the controller, and reports their output and end. When the controller closes
 * the channel or ends, the spawner ends the processes that still run, and then itself. Signals do not end it: a
 * terminal or a service manager sends them to all processes at once, and the controller needs the spawner for an
 * orderly stop.
 */
export function serveSpawner(): void {
  closeInherited({ closeSync, readdirSync, readFileSync });
  const running = new Map<number, Running>();
  outliveOutput(process, { isatty, closeSync, openSync });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined);
  process.on("message", (order: Order) => obey(order, running));
  process.on("disconnect", () => endAll(running));
}

function obey(order: Order, running: Map<number, Running>): void {
  if (order.kind === "start") return start(order.id, order.spec, running);
  const found = running.get(order.id);
  if (found === undefined) return;
  if (order.kind === "taken") found.taken[order.pipe]();
  else kill(found, order.signal);
}

function start(id: number, spec: ProcessSpec, running: Map<number, Running>): void {
  let child: ChildProcess;
  try {
    child = spawned(spec);
  } catch (error) {
    return report({ kind: "failed", id, message: errorText(error) });
  }
  const one: Running = { child, isGroup: spec.isGroup, taken: { stdout: nothing, stderr: nothing } };
  running.set(id, one);
  child.once("spawn", () => report({ kind: "started", id, pid: child.pid ?? 0 }));
  child.once("error", (error) => {
    // If the process runs, `exit` reports its end.
    if (child.pid !== undefined) return;
    running.delete(id);
    report({ kind: "failed", id, message: errorText(error) });
  });
  child.once("exit", (code, signal) => report({ kind: "ended", id, end: { code, signal } }));
  const closed = new Promise((resolve) => child.once("close", resolve));
  // Node closes a pipe before its last piece is taken.
  void Promise.all([pass(one, id, "stdout"), pass(one, id, "stderr"), closed]).then(() => {
    if (running.delete(id)) report({ kind: "closed", id });
  });
}

/** Does not use `data` events, because Node resumes paused pipes by itself when a process has exited. */
async function pass(one: Running, id: number, pipe: "stdout" | "stderr"): Promise<void> {
  try {
    for await (const bytes of one.child[pipe] ?? []) {
      report({ kind: "output", id, pipe, bytes: bytes as Buffer });
      await new Promise<void>((resolve) => (one.taken[pipe] = resolve));
    }
  } catch {
    // The pipe was destroyed, because the controller is gone.
  }
}

function nothing(): void {}

function spawned({ file, args, env, cwd, user, stderr, isGroup }: ProcessSpec): ChildProcess {
  return spawn(file, args, {
    env,
    stdio: ["ignore", "pipe", stderr === "inherited" ? "inherit" : "pipe"],
    detached: isGroup,
    ...(cwd !== undefined && { cwd }),
    ...(user && { uid: user.uid, gid: user.gid }),
  });
}

/** Errors are ignored: if the controller is gone, `disconnect` reports it. */
function report(message: Report): void {
  if (process.connected) process.send?.(message, () => undefined);
}

function endAll(running: ReadonlyMap<number, Running>): void {
  const all = [...running.values()];
  for (const one of all) {
    kill(one, "SIGTERM");
    // Output that the controller did not take no longer has a reader.
    one.child.stdout?.destroy();
    one.child.stderr?.destroy();
  }
  const last = setTimeout(() => all.forEach((one) => kill(one, "SIGKILL")), SPAWNER_KILL_GRACE_MS);
  // Without the channel, running children keep this process alive, but other members of their groups do not. For groups
  // the timer keeps it alive until the SIGKILL.
  if (!all.some(({ isGroup }) => isGroup)) last.unref();
}

/** A group still gets signals after its leader has ended, because other members may still run. */
function kill({ child, isGroup }: Running, signal: NodeJS.Signals): void {
  const hasEnded = child.exitCode !== null || child.signalCode !== null;
  if (child.pid !== undefined && (isGroup || !hasEnded)) killProcess(child.pid, signal, isGroup);
}
