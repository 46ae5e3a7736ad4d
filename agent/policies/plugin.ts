import type { Command, Policy } from "../../proto/gen/agent/v1/agent.ts";
import type { Host } from "./host.ts";

/** A policy and everything that was prepared for it. */
export interface PolicyWork {
  readonly policy: Policy;
  /** `policy.spec`, parsed from JSON. The plugin checks the parts that it uses. */
  readonly spec: unknown;
  /** The policy's own folder. */
  readonly folder: string;
  /** Path of `<name>.conf` in that folder. Undefined when the policy has no conf on this host. */
  readonly confPath: string | undefined;
  /** The depot's folder when the policy needs one. */
  readonly depotFolder: string | undefined;
}

/** One kind of policy. It makes a `Runner` for each policy of that kind; the runner works until it is stopped. */
export interface PolicyPlugin {
  readonly kind: string;
  /** Checks the policy and makes its runner. It does no I/O, so an error always means an invalid policy. */
  create(work: PolicyWork, host: Host): Runner;
  /**
   * Ends what a removed policy has left open, such as an interrupted run. The marks of the policy are removed
   * afterwards.
   */
  forget?(policy: string, host: Host): Promise<void>;
}

export interface Runner {
  /**
   * Works until the signal fires. If it throws, the supervisor logs the error and runs the policy again after a pause.
   */
  run(signal: AbortSignal): Promise<void>;
  /**
   * The reason why the runner cannot work although it runs; undefined when it can. It continues by itself when the
   * cause is gone.
   */
  readonly problem?: string | undefined;
  /** Leader of the process group of a daemon. Absent for other policies, and while the daemon does not run. */
  readonly pid?: number | undefined;
}

export interface Outcome {
  readonly state: "ok" | "failed" | "timeout" | "cancelled" | "interrupted";
  readonly code: number;
  /** Name of the signal that ended the process; absent when none did. */
  readonly signal?: string;
  /** Process id; absent when no process was started. */
  readonly pid?: number;
  /** Bytes of the standard output (`outDropped`) and of the error output (`errDropped`) that are not sent. */
  readonly outDropped?: number;
  readonly errDropped?: number;
  readonly message: string;
  /** Entries that go into the same write as the result. */
  readonly last?: readonly Parameters<Host["emit"]>[0][number][];
}

export interface CommandTask {
  readonly command: Command;
  /**
   * Time from the start of the command to its deadline. It is the difference of two times of the controller, so the
   * clock of this host may differ.
   */
  readonly remainingMs: number;
  /** Fires when the command is cancelled or the agent stops. */
  readonly signal: AbortSignal;
}

/**
 * Runs commands of one kind. `Commands` stores each command in the journal before the call, and its result after it.
 */
export interface CommandPlugin {
  readonly kind: NonNullable<Command["body"]>["$case"];
  run(task: CommandTask, host: Host): Promise<Outcome>;
}
