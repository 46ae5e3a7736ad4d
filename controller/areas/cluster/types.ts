import type { DamagedRow } from "../../store/scrub.ts";

/** A controller that is there, as it lies under `controllers/<id>`. */
export interface Member {
  /** The id of this run of the controller, new with every start. */
  readonly id: string;
  /** `host:port` of its agent port, as agents and other controllers reach it; empty before it is open. */
  readonly addresses: readonly string[];
  /** Base of its HTTP interface. */
  readonly url: string;
  readonly version: string;
  readonly sinceMs: number;
  /** The keys it opens secrets with, and the one it seals with. Absent of earlier versions. */
  readonly keys?: MemberKeys;
}

/** By their ids. */
export interface MemberKeys {
  readonly opening: readonly string[];
  readonly sealing: string;
}

/** A round of the row check: what it has read so far, or in all. */
export interface RowCheckReport {
  readonly startedMs: number;
  readonly endedMs?: number;
  readonly looked: number;
  readonly damaged: number;
  /** Damaged rows by table. */
  readonly tables: Readonly<Record<string, number>>;
  /** The first of them. */
  readonly examples: readonly DamagedRow[];
}

export interface RowCheckStatus {
  readonly running?: RowCheckReport;
  /** The last round that came to its end. */
  readonly last?: RowCheckReport;
  /** No round came to its end for `ROW_CHECK_LATE_MS`. */
  readonly isLate: boolean;
}

/** KvStore: `rows/check`, in each tenant and in the installation's store. */
export interface RowCheckState extends RowCheckReport {
  /** The controller that carries the round out; absent of one that was laid down in order. */
  readonly owner?: string | undefined;
  /** How often a controller ended since the place was noted. */
  readonly crashes: number;
  /** Absent at the beginning, and at the end. */
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
