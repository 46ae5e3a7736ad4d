import type { CommandOutput, Exec } from "../../../proto/gen/agent/v1/agent.ts";
import { AppError } from "../../../common/errors.ts";
import { COMMAND_OUTPUT_ENTRY_BYTES, COMMAND_OUTPUT_KEPT_BYTES, JOB_OUTPUT_MAX_BYTES } from "../../../common/limits.ts";
import { maskedOutputOf } from "../../../common/masking.ts";
import type { ExecOptions, ExecResult } from "../../commands/exec.ts";
import { closedTo } from "../../commands/host-user.ts";
import type { Host } from "../../policies/host.ts";
import type { CommandPlugin, CommandTask, Outcome } from "../../policies/plugin.ts";

/** Run one line of a job in the host's shell, as the user of the agent or as another one. */
export const jobRunners: readonly CommandPlugin[] = (["exec", "execAs"] as const).map((kind) => ({ kind, run }));

async function run(task: CommandTask, host: Host): Promise<Outcome> {
  const { exec, user } = execOf(task);
  const place = await placeOf(exec, user, { task, host });
  const deadline = deadlineOf(task, host);
  const output = new Output(
    task,
    host,
    exec.streamOutput ? AbortSignal.any([task.signal, deadline.signal]) : undefined,
  );
  const masked = maskedOutputOf(exec.environment);
  const result = await host.exec({
    line: exec.line,
    ...place,
    env: exec.environment,
    stdin: exec.stdin.length > 0 ? exec.stdin : undefined,
    timeoutMs: task.remainingMs,
    signal: task.signal,
    onOutput: (data, stderr) => output.take(masked ? Buffer.from(masked.take(data, stderr)) : data, stderr),
  });
  if (masked) for (const stderr of [false, true]) await output.take(Buffer.from(masked.rest(stderr)), stderr);
  deadline.cancel();
  return { ...outcomeOf(result, output), last: output.kept };
}

function execOf({ command: { body } }: CommandTask): { readonly exec: Exec; readonly user?: string } {
  if (body?.$case === "exec") return { exec: body.value };
  if (body?.$case === "execAs" && body.value.exec) return { exec: body.value.exec, user: body.value.user };
  throw new AppError("invalid", "This is no command line.");
}

/** The folder of the depot. Without a depot it is that of the agent, or the home of another user. */
async function placeOf(
  { depot }: Exec,
  name: string | undefined,
  { task, host }: { readonly task: CommandTask; readonly host: Host },
): Promise<Pick<ExecOptions, "cwd" | "user">> {
  const folder = depot === "" ? undefined : folderOf(depot, host);
  const user = name === undefined ? undefined : await host.users.find(name, task.signal);
  if (!user) return { cwd: folder };
  const readable = await host.users.readable(user, [folder ?? user.home], task.signal);
  if (folder !== undefined && !readable.has(folder)) throw closedTo(user, folder);
  return { cwd: folder ?? (readable.has(user.home) ? user.home : "/"), user };
}

function folderOf(depot: string, host: Host): string {
  const folder = host.depots.folder(depot);
  if (folder === undefined) throw new AppError("not_found", `The depot ${depot} is not on this host.`);
  return folder;
}

/**
 * Aborts at the deadline of the command. From then on, streamed output is dropped and counted; it does not wait for
 * room in the outbox.
 */
function deadlineOf(task: CommandTask, host: Host): { signal: AbortSignal; cancel: () => void } {
  const abort = new AbortController();
  return { signal: abort.signal, cancel: host.clock.after(task.remainingMs, () => abort.abort()) };
}

function outcomeOf(
  { ended, code, signal, pid, message }: ExecResult,
  { outDropped, errDropped }: Pick<Output, "outDropped" | "errDropped">,
): Outcome {
  const dropped = outDropped + errDropped;
  const note =
    dropped > 0 ? `${message}${message === "" ? "" : "; "}${dropped} bytes of output were not kept` : message;
  const exit = {
    code,
    ...(signal !== undefined && { signal }),
    ...(pid !== undefined && { pid }),
    ...(outDropped > 0 && { outDropped }),
    ...(errDropped > 0 && { errDropped }),
  };
  if (ended === "timeout") return { ...exit, state: "timeout", message: `${note}: ended at its deadline` };
  if (ended === "cancelled") return { ...exit, state: "cancelled", message: note };
  return { ...exit, state: ended === "exit" && code === 0 ? "ok" : "failed", message: note };
}

/**
 * The output of a command. If it is streamed, it is written into the outbox at once. Otherwise it is kept, and sent
 * with the result.
 */
class Output {
  readonly kept: { body: { $case: "output"; value: CommandOutput } }[] = [];
  outDropped = 0;
  errDropped = 0;
  readonly #task: CommandTask;
  readonly #host: Host;
  readonly #stream: AbortSignal | undefined;
  #offset = 0;

  constructor(task: CommandTask, host: Host, stream: AbortSignal | undefined) {
    this.#task = task;
    this.#host = host;
    this.#stream = stream;
  }

  async take(data: Buffer, stderr: boolean): Promise<void> {
    const limit = this.#stream ? JOB_OUTPUT_MAX_BYTES : COMMAND_OUTPUT_KEPT_BYTES;
    const room = Math.max(0, limit - this.#offset);
    this.#drop(Math.max(0, data.length - room), stderr);
    for (let at = 0; at < Math.min(room, data.length); at += COMMAND_OUTPUT_ENTRY_BYTES) {
      await this.#piece(data.subarray(at, Math.min(at + COMMAND_OUTPUT_ENTRY_BYTES, room)), stderr);
    }
  }

  async #piece(data: Buffer, stderr: boolean): Promise<void> {
    const value = { commandId: this.#task.command.id, stderr, offset: this.#offset, data };
    this.#offset += data.length;
    const emission = { body: { $case: "output" as const, value }, traceparent: this.#task.command.traceparent };
    if (!this.#stream) this.kept.push(emission);
    else if (this.#stream.aborted) this.#drop(data.length, stderr);
    else await this.#send(emission, this.#stream);
  }

  async #send(emission: (typeof this.kept)[number], signal: AbortSignal): Promise<void> {
    try {
      await this.#host.emit([emission], { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
      const { data, stderr } = emission.body.value;
      this.#drop(data.length, stderr);
    }
  }

  #drop(bytes: number, stderr: boolean): void {
    if (stderr) this.errDropped += bytes;
    else this.outDropped += bytes;
  }
}
