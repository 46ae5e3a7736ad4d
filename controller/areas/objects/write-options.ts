import type { StoredRecord } from "../../store/objects.ts";
import type { NewRecord, Unstored, WriteBasis } from "./types.ts";

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
  /** For an insert of one row. Ignored if the row takes several commits. */
  readonly inCommit?: InCommit | undefined;
}

/**
 * Records of a class of the platform that are stored in the commit of another write: see `RecordsInCommit` of the
 * store. They need no right of the principal.
 */
export interface InCommit {
  /** Path of their class. */
  readonly class: string;
  /** Called inside the commit, once at most; must not throw. `encode` throws for rows that the class does not take. */
  records(encode: (rows: readonly NewRecord[]) => readonly StoredRecord[]): readonly StoredRecord[];
  /**
   * Called when the write has ended, also if `records` was not called. `error`: it failed, or an attempt failed that had
   * called `records`. Only the first call after `records` counts.
   */
  ended(error?: unknown): void;
}

export interface IngestOptions extends RowOptions {
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
