import type { Depot, UndeployDepot } from "../../../proto/gen/agent/v1/agent.ts";
import { NOT_DEPLOYED } from "../../../common/agent/deployments.ts";
import { AppError } from "../../../common/errors.ts";
import { EXEC_ERROR_TAIL_BYTES } from "../../../common/limits.ts";
import { maskedOutputOf } from "../../../common/masking.ts";
import type { Host } from "../../policies/host.ts";
import type { CommandPlugin, CommandTask, Outcome } from "../../policies/plugin.ts";
import type { DepotFolders } from "./folders.ts";

/** Carries out the commands that deploy and remove depots. */
export function createDepotPlugins(folders: DepotFolders): readonly CommandPlugin[] {
  return [
    { kind: "deploy", run: (task, host) => deploy(folders, task, host) },
    { kind: "undeploy", run: (task, host) => undeploy(folders, task, host) },
  ];
}

async function deploy(folders: DepotFolders, task: CommandTask, host: Host): Promise<Outcome> {
  const depot = depotOf(task);
  const within = limited(task, host);
  try {
    return await folders.alone(depot.name, () => place(folders, depot, { task, host, within }), within.signal);
  } catch (error) {
    if (within.late()) return { state: "timeout", code: -1, message: "The depot was not in place by the deadline." };
    throw error;
  } finally {
    within.end();
  }
}

/** Restores the former version if the command fails, or if files of the former version cannot be removed. */
async function place(folders: DepotFolders, depot: Depot, work: Work): Promise<Outcome> {
  work.within.signal.throwIfAborted();
  const placed = await folders.place(depot, work.within.signal);
  try {
    const run = { line: depot.command, cwd: placed.folder, environment: depot.environment };
    const outcome = depot.command === "" ? DONE : await runLine(run, work);
    if (outcome.state === "ok") await placed.keep();
    else await placed.revert();
    return outcome;
  } catch (error) {
    await placed.revert();
    throw error;
  }
}

async function undeploy(folders: DepotFolders, task: CommandTask, host: Host): Promise<Outcome> {
  const depot = undeployOf(task);
  const within = limited(task, host);
  try {
    return await folders.alone(depot.name, () => takeOff(folders, depot, { task, host, within }), within.signal);
  } catch (error) {
    if (within.late()) return { state: "timeout", code: -1, message: "Its turn did not come before the deadline." };
    throw error;
  } finally {
    within.end();
  }
}

async function takeOff(folders: DepotFolders, depot: UndeployDepot, work: Work): Promise<Outcome> {
  work.within.signal.throwIfAborted();
  const { name, version, command, remotePath } = depot;
  const folder = folders.folder(name, remotePath);
  const isThere = folders.has(name, { version, remotePath });
  if (folder === undefined || !isThere) return { ...DONE, message: NOT_DEPLOYED };
  const outcome = command === "" ? DONE : await runLine({ line: command, cwd: folder, environment: {} }, work);
  if (outcome.state === "ok") await folders.remove(name, { version, remotePath });
  return outcome;
}

const DONE: Outcome = { state: "ok", code: 0, message: "" };

interface Work {
  readonly task: CommandTask;
  readonly host: Host;
  readonly within: Limited;
}

interface DepotCommand {
  readonly line: string;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
}

async function runLine({ line, cwd, environment }: DepotCommand, { task, host, within }: Work): Promise<Outcome> {
  let tail: Buffer = Buffer.alloc(0);
  const masked = maskedOutputOf(environment);
  const keep = (data: Uint8Array) => {
    tail = Buffer.concat([tail, data]);
    tail = tail.subarray(Math.max(0, tail.length - EXEC_ERROR_TAIL_BYTES));
  };
  const { ended, code, message } = await host.exec({
    line,
    cwd,
    env: environment,
    timeoutMs: within.remainingMs(),
    signal: task.signal,
    onOutput: (data, stderr) => keep(masked?.take(data, stderr) ?? data),
  });
  if (masked) for (const stderr of [false, true]) keep(masked.rest(stderr));
  const text = [message, tail.toString().trim()].filter(Boolean).join(": ");
  if (ended === "timeout" || ended === "cancelled") return { state: ended, code, message: text };
  return { state: ended === "exit" && code === 0 ? "ok" : "failed", code, message: text };
}

/** The time of a command, which begins when the command comes. Also the wait for its turn counts. */
interface Limited {
  /** Fires at the deadline, and when the command is cancelled. */
  readonly signal: AbortSignal;
  readonly late: () => boolean;
  readonly remainingMs: () => number;
  readonly end: () => void;
}

function limited(task: CommandTask, host: Host): Limited {
  const abort = new AbortController();
  const endsMs = host.clock.monotonicMs() + task.remainingMs;
  let late = false;
  const cancel = host.clock.after(task.remainingMs, () => {
    late = true;
    abort.abort();
  });
  return {
    signal: AbortSignal.any([task.signal, abort.signal]),
    late: () => late,
    remainingMs: () => Math.max(0, endsMs - host.clock.monotonicMs()),
    end: cancel,
  };
}

function depotOf({ command }: CommandTask): Depot {
  if (command.body?.$case !== "deploy") throw new AppError("invalid", "This is no deployment.");
  return command.body.value;
}

function undeployOf({ command }: CommandTask): UndeployDepot {
  if (command.body?.$case !== "undeploy") throw new AppError("invalid", "This is no removal of a depot.");
  return command.body.value;
}
