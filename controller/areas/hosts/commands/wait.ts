import { EMPTY_COMMAND } from "../../../../common/agent/empty-command.ts";
import { withinTime } from "../../../../common/concurrency.ts";
import { errorText } from "../../../../common/errors.ts";
import { COMMAND_LAST_LOOK_MS, COMMAND_READ_AGAIN_MS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { wait } from "../../../../common/time.ts";
import type { CommandOutput, CommandResult, CommandState } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { CommandOutcome, CommandListener, DispatchOptions, FinalState, Target } from "../types.ts";
import type { CommandRecords } from "./records.ts";

const MESSAGE_MAX_CHARACTERS = 8_000;

export interface CommandWaitOptions {
  readonly target: Target;
  readonly options: DispatchOptions;
  readonly runtime: Runtime;
  readonly records: CommandRecords;
  /** Called once, when the wait ends. */
  readonly over: () => void;
}

interface Ending {
  readonly state: FinalState;
  readonly message: string;
  readonly code?: number;
  readonly startedMs?: number;
  readonly endedMs?: number;
}

/**
 * Waits for one command. Reports may come twice, in overlapping pieces, or not at all. Missing pieces are read from the
 * store, so every byte is passed on once and in order, and the end comes after the last byte.
 */
export class CommandWait implements CommandListener {
  readonly startedMs: number;
  readonly outcome: Promise<CommandOutcome>;
  readonly #with: CommandWaitOptions;
  readonly #ending = new AbortController();
  #resolve: (outcome: CommandOutcome) => void = () => undefined;
  #offset = 0;
  #result: CommandResult | undefined;
  /** Outcome for a command that ran past its deadline. */
  #late: Ending | undefined;
  #readAgain = false;
  #reading: Promise<void> | undefined;

  constructor(options: CommandWaitOptions) {
    this.#with = options;
    this.startedMs = options.runtime.clock.nowMs();
    this.outcome = new Promise((resolve) => (this.#resolve = resolve));
  }

  get over(): boolean {
    return this.#ending.signal.aborted;
  }

  output(output: CommandOutput): void {
    if (this.over) return;
    // Pieces are stored before they are reported.
    if (output.offset > this.#offset) return this.catchUp();
    this.#pass(output);
  }

  /**
   * Passes on a piece that is being stored, unless an earlier one is missing. It is reported again once it is stored.
   */
  coming(output: CommandOutput): void {
    if (!this.over && output.offset <= this.#offset) this.#pass(output);
  }

  result(result: CommandResult): void {
    this.#result ??= result;
    this.#conclude();
  }

  state({ state, message }: CommandState): void {
    // A command sent under an expired epoch is sent again under the current one.
    if (state !== "refused" || message.startsWith("conflict:")) return;
    const isTooOld = message === `invalid: ${EMPTY_COMMAND}`;
    this.finish({
      state: "failed",
      message: isTooOld
        ? "The agent is older than commands of this kind, and ran nothing. Update it."
        : beginningOf(message, MESSAGE_MAX_CHARACTERS) || "The agent refused the command.",
    });
  }

  lost(): void {
    this.catchUp();
  }

  /** Reads the stored output and result. Call it whenever something may have been stored without a report. */
  catchUp(): void {
    this.#readAgain = true;
    this.#reading ??= this.#read();
  }

  /** Call at the deadline. `end` is the outcome unless the agent reports another. */
  ranOut(end: Ending): void {
    this.#late = end;
    this.catchUp();
  }

  /** Call after `ranOut` and the agent's grace period: ends the wait, unless a result is in the store. */
  async finishUnlessStored(): Promise<void> {
    if (!this.#late) return;
    this.catchUp();
    await withinTime(this.#with.runtime.clock, this.#reading ?? Promise.resolve(), COMMAND_LAST_LOOK_MS);
    if (!this.#result) return this.finish(this.#late);
    const known = this.#ended(this.#result);
    this.finish({ ...known, message: `${known.message} (its output could not be read whole)`.trim() });
  }

  finish(end: Ending): void {
    if (this.over) return;
    this.#ending.abort();
    this.#with.over();
    const { target, runtime } = this.#with;
    this.#resolve({ host: target.host, startedMs: this.startedMs, endedMs: runtime.clock.nowMs(), ...end });
  }

  async #read(): Promise<void> {
    const { target, options, records, runtime } = this.#with;
    while (this.#readAgain && !this.over) {
      this.#readAgain = false;
      try {
        const result = await records.result(target, options.commandId);
        for await (const piece of records.output(target, options.commandId, this.#offset)) {
          if (this.over) return;
          // Without a result, missing bytes may be in the process of being stored: they will be reported.
          if (piece.offset > this.#offset && !result) break;
          this.#pass(piece);
        }
        this.#result ??= result;
      } catch (error) {
        runtime.log.warn(
          { tenant: target.tenant, host: target.host, command: options.commandId, reason: errorText(error) },
          "what is stored of a command could not be read; trying again",
        );
        this.#readAgain = true;
        await wait(runtime.clock, COMMAND_READ_AGAIN_MS, this.#ending.signal);
      }
    }
    // Done in the same turn as the last check of `readAgain`, so a later request starts a new read.
    this.#reading = undefined;
    this.#conclude();
  }

  /** Passes on the part of a piece that was not passed on before. */
  #pass(output: CommandOutput): void {
    const fresh = output.data.subarray(Math.max(0, this.#offset - output.offset));
    if (fresh.length === 0) return;
    this.#offset = output.offset + output.data.length;
    this.#with.options.onOutput?.({ stderr: output.stderr, data: fresh });
  }

  #conclude(): void {
    if (!this.#result || this.#reading || this.over) return;
    this.finish(this.#ended(this.#result));
  }

  /**
   * Outcome for the agent's result. If the deadline passes here first, this controller tells the agent to cancel, and
   * the agent reports `cancelled`. Then the outcome is the one for the deadline.
   */
  #ended(result: CommandResult): Ending {
    const known = endingOf(result);
    const isCancelled = this.#with.options.signal?.aborted === true;
    // The command arrived with no time left, so it never began.
    if (isCancelled && known.state === "expired")
      return { ...known, state: "cancelled", message: "It was cancelled before it began." };
    const ranOut = this.#late !== undefined && known.state === "cancelled" && !isCancelled;
    return ranOut ? { ...known, ...this.#late } : known;
  }
}

/** Outcome of a command as its agent reported it. */
export function endingOf(result: CommandResult): Ending {
  const state = finalState(result.state);
  const exited = state === "ok" || state === "failed";
  return {
    state,
    message: result.message || (state === "ok" ? "" : messageFor(result)),
    startedMs: result.startedMs,
    endedMs: result.endedMs,
    ...(exited && result.state !== "interrupted" ? { code: result.code } : {}),
    ...(isSignal(result.signal) && { signal: result.signal }),
    ...(isPositive(result.pid) && { pid: result.pid }),
    ...(isPositive(result.outDropped) && { outDropped: result.outDropped }),
    ...(isPositive(result.errDropped) && { errDropped: result.errDropped }),
  };
}

/** An agent may send any text. */
function isSignal(name: string | undefined): name is string {
  return name !== undefined && /^SIG[A-Z0-9]{1,10}$/.test(name);
}

function isPositive(number: number | undefined): number is number {
  return number !== undefined && number > 0;
}

function finalState(state: string): FinalState {
  return state === "ok" || state === "timeout" || state === "cancelled" || state === "expired" ? state : "failed";
}

function messageFor(result: CommandResult): string {
  if (result.state === "interrupted") return "The agent was interrupted while the command ran.";
  return result.state === "failed"
    ? `The command ended with code ${result.code}.`
    : `The command ended as ${finalState(result.state)}.`;
}
