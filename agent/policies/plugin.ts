import type { Command, Policy } from "../../proto/gen/agent/v1/agent.ts";
import type { Host } from "./host.ts";

/** A policy with what has been prepared for it. */
export interface PolicyWork {
  readonly policy: Policy;
  /** `policy.spec`, parsed; the plugin checks what it uses. */
  readonly spec: unknown;
  /** Its own folder, with `<name>.conf` when it has one. */
  readonly folder: string;
  /** The depot's folder when the policy needs one. */
  readonly depotFolder: string | undefined;
}

/** One kind of policy. It makes a `Runner` for each policy of that kind; the runner works until it is stopped. */
export interface PolicyPlugin {
  readonly kind: string;
  /** Checks the policy; no I/O, so a throw means a bad policy, never a bad day. */
  create(work: PolicyWork, host: Host): Runner;
  /** Ends what a policy that is no longer wanted has left open; its marks are taken away afterwards. */
  forget?(policy: string, host: Host): Promise<void>;
}

export interface Runner {
  /** Until the signal fires. A throw is logged and tried again later by the host. */
  run(signal: AbortSignal): Promise<void>;
  /** The reason why it runs but cannot work; it goes on by itself when the cause is mended. */
  readonly problem?: string | undefined;
}

export interface Outcome {
  readonly state: "ok" | "failed" | "timeout" | "cancelled" | "interrupted";
  readonly code: number;
  /** The name of the signal that ended the process; absent: none did. */
  readonly signal?: string;
  /** Process id; absent: none was started. */
  readonly pid?: number;
  /** Bytes of its output and error output that are not sent. */
  readonly outDropped?: number;
  readonly errDropped?: number;
  readonly message: string;
  /** Entries that go into the same write as the result. */
  readonly last?: readonly Parameters<Host["emit"]>[0][number][];
}

export interface CommandTask {
  readonly command: Command;
  /** Time until the deadline, by this host's clock. */
  readonly remainingMs: number;
  /** Fires when the command is cancelled or the agent stops. */
  readonly signal: AbortSignal;
}

/** Carries out commands of one kind; the host has journalled them before, and writes their result after. */
export interface CommandPlugin {
  readonly kind: NonNullable<Command["body"]>["$case"];
  run(task: CommandTask, host: Host): Promise<Outcome>;
}
