import type { Cancel, Command, CommandState } from "../../proto/gen/agent/v1/agent.ts";
import { EMPTY_COMMAND } from "../../common/agent/empty-command.ts";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import { COMMANDS_RUNNING_MAX } from "../../common/limits.ts";
import type { Host } from "../policies/host.ts";
import type { Journal } from "./journal.ts";
import type { CommandPlugin, Outcome } from "../policies/plugin.ts";

export interface CommandsOptions {
  readonly host: Host;
  readonly journal: Journal;
  readonly plugins: readonly CommandPlugin[];
  /** Reports that a command was accepted, or why it was refused. The report may be lost with the connection. */
  readonly tell: (state: CommandState) => void;
}

interface Running {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  cancelled: boolean;
}

/**
 * Runs commands. An accepted command is stored in the journal before its start, is run at most once, and gets exactly
 * one result.
 */
export class Commands {
  readonly #options: CommandsOptions;
  readonly #running = new Map<string, Running>();
  #stopping = false;

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  /**
   * Starts a command. Resolves when it is in the journal and has begun, or is refused. A command that is in the journal
   * already is accepted again, but not run again. A command after its deadline is not run; its result is `expired`.
   */
  async take(command: Command): Promise<void> {
    try {
      await this.#take(command);
      this.#options.tell({ commandId: command.id, state: "accepted", message: "" });
    } catch (error) {
      if (!isAppError(error)) throw error;
      this.#options.tell({ commandId: command.id, state: "refused", message: `${error.code}: ${error.message}` });
    }
  }

  /**
   * Cancels a running command. Nothing happens if the command is not running here. A cancel with an old epoch is only
   * logged.
   */
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

  /** Ends the running commands. Resolves when every result is in the outbox. */
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
    if (command.id === "" || !command.body) throw new AppError("invalid", EMPTY_COMMAND);
    const kind = command.body.$case;
    const plugin = plugins.find((candidate) => candidate.kind === kind);
    if (!plugin) throw new AppError("unsupported", `This agent knows no command of the kind ${kind}.`);
    if (this.#running.size >= COMMANDS_RUNNING_MAX)
      throw new AppError("limited", `${COMMANDS_RUNNING_MAX} commands run already.`);
    // Both times are from the controller, so its clock may differ from that of this host.
    const remainingMs = command.deadlineMs - command.sentMs;
    // A newer session may have begun while the epoch was written. Check again; nothing asynchronous happens between
    // this check and the start.
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
      // The result is not in the outbox. After its next start, the agent finds the command open and gives it the result
      // `interrupted`.
      host.log("error", "result not written", { command: command.id, error: errorText(error) });
    } finally {
      this.#running.delete(command.id);
    }
  }

  /**
   * A command that was aborted was either cancelled, or the agent is stopping. In the second case its state is
   * `interrupted`.
   */
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
