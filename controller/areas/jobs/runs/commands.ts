import { withinTime } from "../../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { DISPATCH_GRACE_MS, JOB_HOST_RETURN_MS, JOB_HOST_RETURN_PAUSE_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type {
  CommandOutcome,
  DispatchOptions,
  FinalState,
  Hosts,
  OutputPiece,
  StoredCommands,
} from "../../hosts/index.ts";
import { encodedLine, OutputText } from "../output/encoding.ts";
import type { OpenRun } from "./open-runs.ts";
import type { RunOutput } from "../output/output.ts";
import { type CommandGifts, openedGifts } from "../definitions/parameters.ts";
import type { RunName } from "../output/outputs.ts";
import type { Run } from "./plan.ts";
import type { ProxiedHosts } from "../groups/proxied.ts";
import type { RunAccess } from "../rights/run-access.ts";
import { triesOf } from "./retries.ts";

export interface CommandDependencies {
  readonly runtime: Runtime;
  readonly hosts: Pick<Hosts, "dispatch">;
  /** Reaches hosts of groups of type `proxy`; absent: these hosts cannot be reached. */
  readonly proxied?: ProxiedHosts;
  readonly stored: Pick<StoredCommands, "outcome">;
  readonly secrets: Pick<SecretBox, "open">;
  /** Gives commands access to the context of their run; absent: they have none. */
  readonly access?: Pick<RunAccess, "environmentOf">;
}

/** Thrown if this controller stops while a run is unfinished. Another controller continues the run. */
export class ReleasedError extends AppError {
  constructor(runId: string) {
    super(
      "deadline",
      `The job run ${runId} goes on and its end will be on record, but the controller that was asked is shutting down.`,
    );
  }
}

/** Thrown when another controller has taken over an execution. */
export class LeaseLostError extends AppError {
  constructor(runId: string) {
    super("deadline", `The job run ${runId} goes on at another controller.`);
  }
}

/** The command lines of a run on one host. They may be sent again with the same ids; a host runs each id once. */
export class RunCommands {
  readonly #with: CommandDependencies;
  readonly #stopping: AbortSignal;
  /**
   * Functions that end the wait for a command when this controller stops. A signal would be slow: it compares each new
   * listener with all others.
   */
  readonly #waiting = new Set<() => void>();

  constructor(dependencies: CommandDependencies, stopping: AbortSignal) {
    this.#with = dependencies;
    this.#stopping = stopping;
    stopping.addEventListener("abort", () => this.#waiting.forEach((letGo) => letGo()), { once: true });
  }

  /**
   * Runs the commands in order, up to the first that fails. Answers the last outcome. `ReleasedError` if this
   * controller stops.
   */
  async run(run: Run, open: OpenRun, output: RunOutput): Promise<CommandOutcome> {
    let last: CommandOutcome | undefined;
    const { encoding = "utf-8", commands } = run.order;
    const { take, rest, complaint } = this.#taking(run, open.host, output);
    for (const [index, text] of commands.entries()) {
      const line = encodedLine(text, encoding);
      const sent = { commandId: commandIdOf(open, index), isTakenOver: open.attempt > 0 };
      const command = { host: open.host, group: open.group, line, take, ...sent };
      last = await this.#reach(run, open, () => this.#dispatch(run, command));
      output.ended(last);
      if (last.state !== "ok") break;
    }
    rest();
    if (last === undefined) throw new AppError("internal", "A job without commands was started.");
    return complaining(last, complaint());
  }

  /**
   * The outcome that the agent reported and the store contains. Sends no commands. `undefined` if there is none for the
   * last command that could have run.
   */
  async stored(open: OpenRun, output: RunOutput): Promise<CommandOutcome | undefined> {
    const { principal, encoding } = open.order;
    const { tenant, traceparent } = principal;
    const text = encoding === undefined ? undefined : new OutputText(encoding);
    let last: CommandOutcome | undefined;
    for (const [index] of open.order.commands.entries()) {
      const of = { tenant, host: open.host, traceparent };
      last = await this.#with.stored.outcome(of, commandIdOf(open, index), (piece) =>
        output.take(text?.take(piece) ?? piece),
      );
      if (last) output.ended(last);
      if (last?.state !== "ok") break;
    }
    for (const piece of text?.rest() ?? []) output.take(piece);
    return last && complaining(last, text?.complaint);
  }

  /** Handlers of a host's output: they decode it, store it and pass it to the caller. Call `rest` at the end. */
  #taking(run: Run, host: string, output: RunOutput): Taking {
    const { encoding } = run.order;
    const text = encoding === undefined ? undefined : new OutputText(encoding);
    const keep = (piece: OutputPiece): void => {
      if (this.#stopping.aborted) return;
      output.take(piece);
      run.watcher?.onOutput?.(host, piece);
    };
    return {
      take: (piece) => keep(text?.take(piece) ?? piece),
      rest: () => text?.rest().forEach(keep),
      complaint: () => text?.complaint,
    };
  }

  /**
   * Sends a command. If the run was taken over and the host is unreachable, repeats this for up to
   * `JOB_HOST_RETURN_MS`, or if the run was cancelled until its deadline. The agents of a stopped controller need this
   * time to connect to another one.
   */
  async #reach(run: Run, open: OpenRun, dispatch: () => Promise<CommandOutcome>): Promise<CommandOutcome> {
    const { clock } = this.#with.runtime;
    const returnMs = Math.min(run.deadlineMonotonicMs, clock.monotonicMs() + JOB_HOST_RETURN_MS);
    for (;;) {
      const outcome = await dispatch();
      if (outcome.state !== "unreachable" || open.attempt === 0) return outcome;
      // The host may still be running the command. When it is connected again, it gets the cancel.
      const isCancelled = run.watcher?.signal?.aborted === true;
      const given: CommandOutcome = isCancelled
        ? { ...outcome, state: "cancelled", message: `${outcome.message} ${NOT_BACK}` }
        : outcome;
      const lastMs = isCancelled ? run.deadlineMonotonicMs : returnMs;
      if (clock.monotonicMs() + JOB_HOST_RETURN_PAUSE_MS >= lastMs) return given;
      await wait(clock, JOB_HOST_RETURN_PAUSE_MS, this.#stopping);
      if (this.#stopping.aborted) throw new ReleasedError(run.id);
      // The pause may end late. After the deadline the state would be `timeout`, which hides that the host is away.
      if (clock.monotonicMs() >= run.deadlineMonotonicMs) return given;
    }
  }

  async #dispatch(run: Run, sent: Command): Promise<CommandOutcome> {
    const { host, take, commandId, isTakenOver } = sent;
    const { clock, log } = this.#with.runtime;
    const startedMs = clock.nowMs();
    const ended = (state: FinalState, message: string): CommandOutcome => ({
      host,
      state,
      message,
      startedMs,
      endedMs: clock.nowMs(),
    });
    const timeoutMs = run.deadlineMonotonicMs - clock.monotonicMs();
    if (timeoutMs <= 0) return ended("timeout", "Its turn did not come before the deadline.");
    const options = {
      ...(run.watcher?.signal && { signal: run.watcher.signal }),
      timeoutMs,
      commandId,
      onOutput: take,
      ...(isTakenOver && { mayRun: true as const }),
    };
    try {
      const work = this.#untilStopping(run.id, () => this.#send(run, sent, options));
      const outcome = await withinTime(clock, work, timeoutMs + DISPATCH_GRACE_MS);
      return outcome ?? ended("timeout", "The host did not answer in time.");
    } catch (error) {
      if (error instanceof ReleasedError) throw error;
      if (isAppError(error, "not_found")) return ended("unreachable", `There is no host ${host}.`);
      log.warn({ err: error, host, commandId }, "a job could not be sent");
      return ended("failed", errorText(error));
    }
  }

  /** Sends to the host directly, or through the group of type `proxy` that says how to reach it. */
  #send(run: Run, { host, group, line }: Command, options: DispatchOptions): Promise<CommandOutcome> {
    const { hosts, proxied } = this.#with;
    const { principal, hostUser: user } = run.order;
    const command = { kind: "exec", line, ...this.#gifts(run, host), ...(user !== undefined && { user }) } as const;
    return group !== undefined && proxied
      ? proxied.dispatch(principal, { group, host }, { command, options })
      : hosts.dispatch(principal, host, command, options);
  }

  #gifts({ id: runId, order }: Run, host: string): CommandGifts {
    const { secrets, access } = this.#with;
    const { principal, sealed, sid } = order;
    const { tenant, ospace, user } = principal;
    const { environment, ...gifts } = openedGifts(secrets, { tenant, runId }, sealed);
    const ofAccess = access?.environmentOf({ runId, host, tenant, ospace, user, sid });
    return { ...gifts, environment: { ...environment, ...ofAccess } };
  }

  /**
   * Waits for the work, or throws `ReleasedError` if this controller stops. Does not cancel the work: the command
   * continues on its host, and the next controller finds it there.
   */
  async #untilStopping<T>(runId: string, begin: () => Promise<T>): Promise<T> {
    if (this.#stopping.aborted) throw new ReleasedError(runId);
    let letGo = (): void => {};
    const stopping = new Promise<never>((_, reject) => {
      letGo = () => reject(new ReleasedError(runId));
      this.#waiting.add(letGo);
    });
    try {
      return await Promise.race([begin(), stopping]);
    } finally {
      this.#waiting.delete(letGo);
    }
  }
}

interface Taking {
  readonly take: (piece: OutputPiece) => void;
  readonly rest: () => void;
  /** At the end: a message about output that was not valid in its encoding; undefined if all was valid. */
  readonly complaint: () => string | undefined;
}

/** The outcome, with a message about its output appended. */
function complaining(outcome: CommandOutcome, complaint = ""): CommandOutcome {
  return complaint === "" ? outcome : { ...outcome, message: [outcome.message, complaint].filter(Boolean).join(" ") };
}

interface Command {
  readonly host: string;
  /** Group of type `proxy` through which the host is reached. */
  readonly group: string | undefined;
  readonly line: string;
  readonly take: (piece: OutputPiece) => void;
  readonly commandId: string;
  /** True if an earlier controller may have sent the command already. */
  readonly isTakenOver: boolean;
}

const NOT_BACK = "It was to be cancelled, and its host did not come back before the deadline.";

/**
 * Id of a command. It is the same on every controller and different for each try, so a host recognises a command it
 * already ran.
 */
function commandIdOf(open: OpenRun, index: number): string {
  const made = triesOf(open);
  return `job/${open.runId}/${open.host}/${index}${made === 0 ? "" : `.${made}`}`;
}

/** The run and host in a command's id; `undefined` for an id that does not come from a run. */
export function runOf(commandId: string): RunName | undefined {
  const [, runId = "", host = ""] = /^job\/([^/]+)\/(.+)\/\d+(?:\.\d+)?$/.exec(commandId) ?? [];
  return host === "" ? undefined : { runId, host };
}
