import type { Row } from "../../../../common/value.ts";
import type { AlsoInCommit } from "../../../store/also-in-commit.ts";
import type { StoredRecord } from "../../../store/objects.ts";
import type { WriteBasis, Edit } from "./definitions.ts";
import type { ObjectRow } from "./reading.ts";

/** Difference of a record from its source. `cut`: the end is missing; `malformed`: some bytes are not text. */
export type RecordMark = "cut" | "malformed";

export interface RecordMarks {
  /** At least one, in the order of their names. */
  readonly marks: readonly RecordMark[];
  /** The original bytes of a malformed record, base64. Absent: they are unknown, or the record is not malformed. */
  readonly rawBytes?: string | undefined;
}

export interface NewRecord {
  readonly values: Row;
  /** Only for records. Absent: the record equals its source. */
  readonly marked?: RecordMarks | undefined;
  /** The record's own time. The id is made of this time and `identity`, so a replay writes the same row. */
  readonly timeMs: number;
  /** Unique text of the source, such as `<stream>/<sequence>`. */
  readonly identity: string;
  /** Index of this record among those of its identity, below `ULID_ORDINALS_MAX`. Their ids keep this order. */
  readonly ordinal?: number;
  /** With this, ordinals have no bound, and ids of objects that are made of a time keep their order, too. */
  readonly isOrdered?: true | undefined;
  /**
   * For an upsert: time of its write in microseconds, chosen by the source. A repetition with it changes nothing, and
   * loses to every later write. Absent: the write gets a time above all that were read, so a repetition wins.
   */
  readonly writeUs?: number;
  /** True for the first attempt: no object has an id that is made of this identity. */
  readonly isNew?: boolean;
  /** For an upsert: time of the first insert. Absent: the stored time; for a new object the time of the write. */
  readonly createdMs?: number;
  /**
   * For an upsert with `writeUs` of an object whose time is earlier: values and relations that the row does not name are
   * removed, except those of these columns and relation types. Absent: nothing is removed.
   */
  readonly wholeBut?: ReadonlySet<string> | undefined;
}

/** A row whose object does not exist after its write. */
export interface Unstored {
  /** With the label of the class, as in `host:web-1`. */
  readonly id: string;
  /**
   * `removed`: the object was removed at the time of the write or later. `history`: the same in a class with versions;
   * the row is stored as a version. `ended`: the ttl of the class was over before the write.
   */
  readonly reason: "removed" | "history" | "ended";
}

export interface RowOptions {
  /**
   * Records with given ids are new writes: they come back if they were removed, and replace a record with other values.
   * Absent: they are repetitions, which change nothing.
   */
  readonly rewrites?: boolean;
  /** Receives the rows whose objects do not exist after the write. */
  readonly unstored?: (rows: readonly Unstored[]) => void;
}

export interface InsertOptions extends RowOptions {
  /** Time of the writes. A list has one time for each row, for a class of entities. */
  readonly atMs?: number | readonly number[];
  /** Ignored if the rows take several commits. */
  readonly inCommit?: InCommit | undefined;
}

/**
 * Records of a class of the platform that are stored in the commit of another write: see `RecordsInCommit` of the
 * store. They need no right of the principal.
 */
export interface InCommit {
  /** Path of their class. */
  readonly class: string;
  /**
   * Called inside the commit, once at most for each attempt of the write; must not throw. `encode` throws for rows that
   * the class does not take.
   */
  records(encode: (rows: readonly NewRecord[]) => readonly StoredRecord[]): readonly StoredRecord[];
  /** Called after each attempt that failed, also if it did not call `records`. */
  failed(): void;
  /** Called when the write has ended. After it, `records` returns none: a late commit may still call it. */
  ended(error?: unknown): void;
}

/** For one row of entities, on a store with `spansSeams`. */
export interface OneCommit {
  /** Ignored if the row takes several commits. */
  readonly inCommit?: InCommit | undefined;
  /** Writes of the other seams in the commit of the row. `AppError("conflict")` if one of its conditions does not hold. */
  readonly also?: AlsoInCommit | undefined;
}

export interface IngestOptions extends RowOptions, OneCommit {
  /** Rows are made by this basis, not by the current class. Values of removed columns are left out. */
  readonly basis?: WriteBasis | undefined;
  /**
   * For the first attempt. Rows whose objects were written at their `writeUs` or later get a later time. Before they
   * are written, this function receives their places among the records and that time. Absent: such rows lose to the
   * later write, because an earlier attempt may have made it.
   */
  readonly retimed?: (rows: readonly number[], writeUs: number) => Promise<void>;
  /**
   * An object that is further ahead of the clock than `WRITE_AHEAD_MAX_MS` gets a time above its own. Otherwise a
   * `writeUs` of now would be lost silently until that time has come. A repetition then wins over later writes.
   */
  readonly aboveAhead?: true;
  /**
   * The rows are restored with their former times (`writeUs`). Objects that were written or removed later are not
   * changed; this function receives their whole ids. If the object has a version of that time, the version is kept.
   */
  readonly restored?: (later: readonly string[]) => void;
}

/** A write whose time is chosen before it is made. */
export interface PresetTime {
  /** A time of `writeTimes`. A repetition with it changes nothing and loses to every later write. */
  readonly writeUs?: number;
}

export interface PresetUpdate extends PresetTime {
  /**
   * For the first attempt of a write. If the update adds to or takes from a list that was written after `writeUs`, it
   * gets a later time, and passes it here before the write. Absent: such a list stays as it is, because an earlier
   * attempt may have changed it.
   */
  readonly retimed?: (writeUs: number) => Promise<void>;
}

export interface UpdateOptions extends PresetUpdate {
  /**
   * Makes further edits from the object as it is read right before the write. Updates with `compute` take turns at an
   * object, on all controllers, so none of them writes it between this read and the write. `undefined`: the object is
   * not changed. May be called more than once. The update throws the errors of this function.
   */
  readonly compute?: (object: ObjectRow) => readonly Edit[] | undefined;
  /** True for a part of work that must finish: no quota refuses it. An update with `writeUs` is treated the same. */
  readonly admitted?: true;
  readonly inCommit?: InCommit | undefined;
}

export interface RemoveOptions extends PresetTime {
  /** The versions are removed, too, also those of objects that were removed before. These objects are counted. */
  readonly withVersions?: boolean;
  /** Ignored for records, with `withVersions`, and if the removal takes several commits or removes no object. */
  readonly inCommit?: InCommit | undefined;
}
