import type { FinalState, OutputPiece } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";

export interface ExecutionRequest {
  /** JSON text of an object. */
  readonly param?: string;
  readonly timeoutSeconds?: number;
  /** Id of the run whose failed hosts this execution tries again. */
  readonly origin?: string;
  /** Maximum time of the execution in seconds; other settings cannot exceed it. */
  readonly mostSeconds?: number;
  /** Called with output of commands as it arrives. */
  readonly onOutput?: (host: string, piece: OutputPiece) => void;
  /** Aborting it cancels the commands on their hosts; the run ends as `cancelled`. */
  readonly signal?: AbortSignal;
}

/** An execution that has begun. Its rows can be queried. */
export interface Execution {
  readonly runId: string;
  /**
   * Resolves when all hosts have ended. Rejects only if this controller stops, another one took over, or stores fail: a
   * failure of a host is in its state. Need not be awaited.
   */
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
  /** Name of the signal that ended the command; absent: there was none, or the host does not report it. */
  readonly signal?: string;
  readonly message: string;
  /** Number of tries; absent: at most one. */
  readonly tries?: number;
  /** Standard output and error in order of arrival, cut after `JOB_ANSWER_MAX_BYTES`. */
  readonly output: string;
}

/** Looks up users with their current rights. */
export interface Authors {
  /** `undefined`: the user does not exist or is inactive. */
  present(tenant: string, username: string): Promise<Principal | undefined>;
}
