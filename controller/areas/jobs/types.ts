import type { FinalState, OutputPiece } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";

export interface ExecutionRequest {
  /** JSON text of an object. */
  readonly param?: string;
  readonly timeoutSeconds?: number;
  /** The run whose failed hosts are tried again. */
  readonly origin?: string;
  /** The execution takes no longer, whatever says how long it may. */
  readonly mostSeconds?: number;
  /** Told of what commands write, as it comes. */
  readonly onOutput?: (host: string, piece: OutputPiece) => void;
  /** Ends the commands on their hosts; the runs are `cancelled`. */
  readonly signal?: AbortSignal;
}

/** One execution, begun: its rows can be queried. */
export interface Execution {
  readonly runId: string;
  /** A host's failure is its state: this fails only when the stores fail. Need not be waited for. */
  readonly finished: Promise<readonly HostRun[]>;
}

/** An execution of the job `<name>@<dir>`. */
export interface NamedRequest extends ExecutionRequest {
  readonly name: string;
}

/** Of several executions one, or why it could not be begun. */
export type Begun = { readonly execution: Execution } | { readonly error: unknown };

/** How an execution ended on one host. */
export interface HostRun {
  readonly host: string;
  readonly state: FinalState;
  readonly code?: number;
  /** The name of the signal that ended the command; absent: none did, or its host does not tell. */
  readonly signal?: string;
  readonly message: string;
  /** Absent: one, or none. */
  readonly tries?: number;
  /** Standard output and error as they came, cut after `JOB_ANSWER_MAX_BYTES`. */
  readonly output: string;
}

/** Users with the rights they have now. */
export interface Authors {
  /** `undefined`: there is no such user any more, or not an active one. */
  present(tenant: string, username: string): Promise<Principal | undefined>;
}
