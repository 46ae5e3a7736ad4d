import type { Row } from "../../../../common/value.ts";
import type { ClassView } from "./definitions.ts";

/** Times of the current state of an object. */
export interface ObjectTimes {
  /** The last write, in microseconds since 1970. */
  readonly writeUs: number;
  /** The first insert, in milliseconds since 1970. */
  readonly createdMs: number;
}

/** A relation of an earlier state, with the whole id of its target. */
export interface PastRelation {
  readonly type: string;
  readonly target: string;
}

/** A relation that the removal of its target removed. */
export interface LostRelation extends PastRelation {
  readonly timeUs: number;
}

/** A version with all its stored data. */
export interface PastState {
  /** Whole. */
  readonly id: string;
  readonly timeUs: number;
  /** Absent: the write removed the object. */
  readonly state?: {
    readonly values: Row;
    /** Time of the first insert. */
    readonly createdMs: number;
    /** Time at which the object expires by the ttl of its class; `undefined`: never. */
    readonly untilMs: number | undefined;
    /** Relations that the write added. `dropped`: those that it removed. */
    readonly added: readonly PastRelation[];
    readonly dropped: readonly PastRelation[];
    /** Relations that the write added and that were removed later, together with their targets. */
    readonly lost: readonly LostRelation[];
  };
}

export interface RestoredState extends PastState {
  /** Start of the next state of the object. Absent: this is its last state. */
  readonly supersededUs?: number | undefined;
}

/**
 * The outcome for one state. `later`: its object was written or removed later. `exists`: the state is a removal or has
 * ended, but the object exists. `other`: the object has another version of that time. `expired`: the `versionttl` of
 * the state is over. `unversioned`: its class keeps no versions. All except `stored` stored nothing.
 */
export type RestoreOutcome = "stored" | "later" | "exists" | "other" | "expired" | "unversioned";

export interface Restored {
  readonly outcome: RestoreOutcome;
  /** Relations that were left out: their type is unknown, or their target is not of exactly one class. */
  readonly relationsLeft: number;
}

/** An object as one write left it. */
export interface ObjectVersion {
  /** Whole. */
  readonly id: string;
  readonly class: ClassView;
  readonly vtimeMs: number;
  /** Time of the first insert. */
  readonly ctimeMs: number;
  /** As in `ObjectRow`; `undefined` when the write removed the object. */
  readonly values: Row | undefined;
}

/** Both ends included. */
export interface HistoryRange {
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly signal?: AbortSignal;
}
