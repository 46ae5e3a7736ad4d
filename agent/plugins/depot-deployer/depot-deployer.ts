import type { Depot, UndeployDepot } from "../../../proto/gen/agent/v1/agent.ts";
import { NOT_DEPLOYED } from "../../../common/agent/deployments.ts";
import { AppError } from "../../../common/errors.ts";
import { EXEC_ERROR_TAIL_BYTES } from "../../../common/limits.ts";
import { maskedOutputOf } from "../../../common/masking.ts";
import type { Host } from "../../policies/host.ts";
import type { CommandPlugin, CommandTask, Outcome } from "../../policies/plugin.ts";
import type { DepotFolders, Placed } from "./folders.ts";

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
    const placed = await folders.place(depot, within.signal);
    const run = { line: depot.command, cwd: placed.folder, environment: depot.environment };
    const outcome = depot.command === "" ? DONE : await runLine(run, { task, host });
    if (outcome.state === "ok") await keepOrRevert(placed);
    else await placed.revert();
    return outcome;
  } catch (error) {
    if (within.late()) return { state: "timeout", code: -1, message: "The depot was not in place by the deadline." };
    throw error;
  } finally {
    within.end();
  }
}

/** If files of the former version cannot be removed, that version is restored and the deployment fails. */
async function keepOrRevert(placed: Placed): Promise<void> {
  try {
    await placed.keep();
  } catch (error) {
    await placed.revert();
    throw error;
  }
}

async function undeploy(folders: DepotFolders, task: CommandTask, host: Host): Promise<Outcome> {
  const { name, version, command, remotePath } = undeployOf(task);
  const folder = folders.folder(name, remotePath);
  const isThere = folders.has(name, { version, remotePath });
  if (folder === undefined || !isThere) return { ...DONE, message: NOT_DEPLOYED };
  const run = { line: command, cwd: folder, environment: {} };
  const outcome = command === "" ? DONE : await runLine(run, { task, host });
  if (outcome.state !== "ok") return outcome;
  await folders.remove(name, { version, remotePath });
  return outcome;
}

const DONE: Outcome = { state: "ok", code: 0, message: "" };

interface DepotCommand {
  readonly line: string;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
}

async function runLine(
  { line, cwd, environment }: DepotCommand,
  { task, host }: { task: CommandTask; host: Host },
): Promise<Outcome> {
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
    timeoutMs: task.remainingMs,
    signal: task.signal,
    onOutput: (data, stderr) => keep(masked?.take(data, stderr) ?? data),
  });
  if (masked) for (const stderr of [false, true]) keep(masked.rest(stderr));
  const text = [message, tail.toString().trim()].filter(Boolean).join(": ");
  if (ended === "timeout" || ended === "cancelled") return { state: ended, code, message: text };
  return { state: ended === "exit" && code === 0 ? "ok" : "failed", code, message: text };
}

function limited(task: CommandTask, host: Host) {
  const abort = new AbortController();
  let late = false;
  const cancel = host.clock.after(task.remainingMs, () => {
    late = true;
    abort.abort();
  });
  return { signal: AbortSignal.any([task.signal, abort.signal]), late: () => late, end: cancel };
}

function depotOf({ command }: CommandTask): Depot {
  if (command.body?.$case !== "deploy") throw new AppError("invalid", "This is no deployment.");
  return command.body.value;
}

function undeployOf({ command }: CommandTask): UndeployDepot {
  if (command.body?.$case !== "undeploy") throw new AppError("invalid", "This is no removal of a depot.");
  return command.body.value;
}
