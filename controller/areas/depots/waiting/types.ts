import type { DeploymentOutcome } from "../types.ts";

/** State of a host of a waiting deployment. All but `waiting` and `running` are final. */
export type WaitingState = "waiting" | "running" | "ok" | "failed" | "expired" | "cancelled";

export interface WaitingDepot {
  readonly depot: string;
  readonly version: string;
}

/** A deployment that waits for its hosts. KvStore: `deploywaits/deployment/<deployment>`. */
export interface WaitingDeployment {
  readonly deployment: string;
  readonly tenant: string;
  readonly ospace: string;
  readonly traceparent: string;
  /** The user who asked for it. It acts with the rights that this user has then. */
  readonly user: string;
  readonly action: "deploy" | "undeploy";
  readonly depots: readonly WaitingDepot[];
  readonly command?: string;
  readonly remotepath?: string;
  readonly force?: boolean;
  /** Time for one attempt on a host. */
  readonly timeoutSeconds?: number;
  /** Number of its hosts. */
  readonly hosts: number;
  readonly createdMs: number;
  /** No host is begun after this time. */
  readonly untilMs: number;
  /** User who cancelled it. Absent: it is not cancelled. */
  readonly cancelledBy?: string;
}

/** One host of it. KvStore: `deploywaits/host/<deployment>/<host>`. */
export interface WaitingHost {
  readonly deployment: string;
  readonly tenant: string;
  readonly host: string;
  /** Ordinal of its first target within the deployment. */
  readonly ordinal: number;
  /** One per depot; the same in every attempt, so that no command runs twice. */
  readonly commandIds: readonly string[];
  readonly state: WaitingState;
  /** Number of the latest attempt; 0: there was none. */
  readonly round: number;
  /** Final outcomes of the first depots. The host is waited for until there is one per depot. */
  readonly outcomes: readonly DeploymentOutcome[];
  /** Time since which it has this state. */
  readonly sinceMs: number;
}
