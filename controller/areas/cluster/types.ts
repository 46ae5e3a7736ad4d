import type { DamagedRow } from "../../store/scrub.ts";

/** A running controller, stored under `controllers/<id>`. */
export interface Member {
  /** Id of this run of the controller; new with every start. */
  readonly id: string;
  /** `host:port` of its agent port for agents and other controllers; empty until the port is open. */
  readonly addresses: readonly string[];
  /** Base URL of its HTTP interface. */
  readonly url: string;
  readonly version: string;
  readonly sinceMs: number;
  /** Keys it can open secrets with, and the key it seals with. Earlier versions do not have it. */
  readonly keys?: MemberKeys;
}

/** Key ids. */
export interface MemberKeys {
  readonly opening: readonly string[];
  readonly sealing: string;
}

/** A round of the row check: its progress, or its result when it has ended. */
export interface RowCheckReport {
  readonly startedMs: number;
  readonly endedMs?: number;
  readonly looked: number;
  readonly damaged: number;
  /** Damaged rows by table. */
  readonly tables: Readonly<Record<string, number>>;
  /** The first damaged rows. */
  readonly examples: readonly DamagedRow[];
}

export interface RowCheckStatus {
  readonly running?: RowCheckReport;
  /** The last complete round. */
  readonly last?: RowCheckReport;
  /** True if no round was completed for `ROW_CHECK_LATE_MS`. */
  readonly isLate: boolean;
}

/** KvStore: `rows/check`, in each tenant and in the installation's store. */
export interface RowCheckState extends RowCheckReport {
  /** The controller that runs the round. Absent if its controller released it in an orderly stop. */
  readonly owner?: string | undefined;
  /** Number of controllers that crashed since the position was recorded. */
  readonly crashes: number;
  /** Absent at the beginning and at the end. */
  readonly cursor?: string | undefined;
  readonly last?: RowCheckReport;
}

/** A store in which rows are damaged. */
export interface DamagedStore {
  /** Absent: the installation's own store. */
  readonly tenant?: string;
  readonly rows: number;
  readonly tables: readonly string[];
}
