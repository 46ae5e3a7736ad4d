import type { Cancel, Command, CommandState } from "../../proto/gen/agent/v1/agent.ts";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import { COMMANDS_RUNNING_MAX } from "../../common/limits.ts";
import type { Host } from "../policies/host.ts";
import type { Journal } from "./journal.ts";
import type { CommandPlugin, Outcome } from "../policies/plugin.ts";

export interface CommandsOptions {
  readonly host: Host;
  readonly journal: Journal;
  readonly plugins: readonly CommandPlugin[];
  /** Says that a command was taken, or why not; may be lost with the connection. */
  readonly tell: (state: CommandState) => void;
}

interface Running {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  cancelled: boolean;
}

/** Takes commands: each at most once, journalled before its start, with exactly one result. */
export class Commands {
  readonly #options: CommandsOptions;
  readonly #running = new Map<string, Running>();
  #stopping = false;

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  /** Resolves when it is journalled and begun, or refused. */
  async take(command: Command): Promise<void> {
    try {
      await this.#take(command);
      this.#options.tell({ commandId: command.id, state: "accepted", message: "" });
    } catch (error) {
      if (!isAppError(error)) throw error;
      this.#options.tell({ commandId: command.id, state: "refused", message: `${error.code}: ${error.message}` });
    }
  }

  /** A command that has ended, or was never here, stays as it is. */
  async cancel({ commandId, epoch }: Cancel): Promise<void> {
    const { journal, host } = this.#options;
    try {
      await journal.obey(epoch);
    } catch (error) {
      host.log("warn", "cancel refused", { command: commandId, error: errorText(error) });
      return;
    }
    const running = this.#running.get(commandId);
    if (!running) return;
    running.cancelled = true;
    running.abort.abort();
  }

  /** Ends what runs; resolves when every result is in the outbox. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const { abort } of this.#running.values()) abort.abort();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  async #take(command: Command): Promise<void> {
    const { journal, plugins } = this.#options;
    await journal.obey(command.epoch);
    const starting = journal.starting(command.id);
    if (starting) return void (await starting);
    if (journal.has(command.id)) return;
    if (this.#stopping) throw new AppError("unavailable", "The agent is ending.");
    if (command.id === "" || !command.body) throw new AppError("invalid", "The command has no id or nothing to do.");
    const kind = command.body.$case;
    const plugin = plugins.find((candidate) => candidate.kind === kind);
    if (!plugin) throw new AppError("unsupported", `This agent knows no command of the kind ${kind}.`);
    if (this.#running.size >= COMMANDS_RUNNING_MAX)
      throw new AppError("limited", `${COMMANDS_RUNNING_MAX} commands run already.`);
    // Both times are the controller's, so its clock may differ from ours.
    const remainingMs = command.deadlineMs - command.sentMs;
    // While the epoch was written down a newer session may have begun; from here on nothing comes between.
    journal.check(command.epoch);
    await journal.start(command.id, remainingMs, command.traceparent);
    if (remainingMs <= 0) {
      await journal.finish({
        commandId: command.id,
        state: "expired",
        code: -1,
        message: "Its deadline had passed when it came.",
      });
      return;
    }
    this.#begin(command, plugin, remainingMs);
  }

  #begin(command: Command, plugin: CommandPlugin, remainingMs: number): void {
    const abort = new AbortController();
    const done = Promise.resolve().then(() => this.#run(command, plugin, remainingMs));
    this.#running.set(command.id, { abort, done, cancelled: false });
  }

  async #run(command: Command, plugin: CommandPlugin, remainingMs: number): Promise<void> {
    const { host, journal } = this.#options;
    const running = this.#running.get(command.id);
    if (!running) return;
    try {
      const outcome = await runPlugin(plugin, { command, remainingMs, signal: running.abort.signal }, host);
      const { last, ...judged } = this.#judge(outcome, running);
      await journal.finish({ commandId: command.id, ...judged }, last);
    } catch (error) {
      // The outbox took nothing: the next start finds the command open and says `interrupted`.
      host.log("error", "result not written", { command: command.id, error: errorText(error) });
    } finally {
      this.#running.delete(command.id);
    }
  }

  /** A command that was told to end did so because of a cancel or because the agent ends. */
  #judge(outcome: Outcome, running: Running): Outcome {
    if (outcome.state !== "cancelled" || running.cancelled) return outcome;
    return { ...outcome, state: "interrupted", message: "The agent ended while the command ran." };
  }
}

async function runPlugin(
  plugin: CommandPlugin,
  task: Parameters<CommandPlugin["run"]>[0],
  host: Host,
): Promise<Outcome> {
  try {
    return await plugin.run(task, host);
  } catch (error) {
    if (task.signal.aborted) return { state: "cancelled", code: -1, message: "cancelled" };
    return { state: "failed", code: -1, message: errorText(error) };
  }
}
