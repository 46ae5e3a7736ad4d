import type { FinalState, OutputPiece } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";

export interface ExecutionRequest {
  /** JSON text of an object. */
  readonly param?: string;
  readonly timeoutSeconds?: number;
  /** The run whose failed hosts are tried again. */
  readonly origin?: string;
  /** Maximum time of the execution; no other setting allows more. */
  readonly mostSeconds?: number;
  /** Called with output of commands as it arrives. */
  readonly onOutput?: (host: string, piece: OutputPiece) => void;
  /** Cancels the commands on their hosts; the runs end as `cancelled`. */
  readonly signal?: AbortSignal;
}

/** An execution that has begun: its rows can be queried. */
export interface Execution {
  readonly runId: string;
  /** Rejects only if the stores fail: a host's failure is in its state. Need not be awaited. */
  readonly finished: Promise<readonly HostRun[]>;
}

/** An execution of the job `<name>@<dir>`. */
export interface NamedRequest extends ExecutionRequest {
  readonly name: string;
}

/** One of several executions, or the error that prevented its start. */
export type Begun = { readonly execution: Execution } | { readonly error: unknown };

/** The end of an execution on one host. */
export interface HostRun {
  readonly host: string;
  readonly state: FinalState;
  readonly code?: number;
  /** Name of the signal that ended the command; absent: none did, or its host does not report it. */
  readonly signal?: string;
  readonly message: string;
  /** Number of tries; absent: one or none. */
  readonly tries?: number;
  /** Standard output and error in order of arrival, cut after `JOB_ANSWER_MAX_BYTES`. */
  readonly output: string;
}

/** Looks up users with their current rights. */
export interface Authors {
  /** `undefined`: there is no such user any more, or not an active one. */
  present(tenant: string, username: string): Promise<Principal | undefined>;
}
