import type { BlobInfo } from "./blobs.ts";
import type { Entity, EntityChange, EntityKey, Page, PageRequest } from "./objects.ts";

/**
 * The seam for scrubbing. It reads and repairs data that is derived from entities and edges, and checks contents by
 * their digests. All methods are idempotent and safe while others write. Derived data may have superfluous rows for a
 * while. A row is missing only after a loss of data or because of a defect.
 */
export interface ScrubStore {
  /** Index rows by which entities are found by terms, each at least once, in a stable order. */
  postings(page: PageRequest): Promise<Page<Posting>>;
  /**
   * For each entity, in the given order: the terms that it has, but by which it is not found. An engine may also report
   * a missing number, as `number <slot>`.
   */
  missing(entities: readonly TermsOf[]): Promise<readonly (readonly string[])[]>;
  /**
   * Adds these terms and numbers to the indexes of living entities, even if they were removed before. Only for changes
   * that write nothing else.
   */
  add(changes: readonly EntityChange[]): Promise<void>;
  /**
   * Removes these rows, unless they were written after the time in the given row. Only for rows that are older than
   * `SCRUB_AGE_MIN_MS` and belong to entities that are not alive or do not have the term. A change with any
   * time can add such a row again.
   */
  remove(postings: readonly Posting[]): Promise<void>;
  /**
   * Compares a page of edges with the data at their other end. `source` reads the sources and adds missing rows at the
   * targets. `target` reads the targets and removes rows that no source has. Rows younger than `beforeUs` are left
   * unchanged.
   */
  edges(from: "source" | "target", page: PageRequest & { readonly beforeUs: number }): Promise<EdgeCheck>;
  /**
   * Entities that ended by `endsAtMs` before `beforeMs` and are not cleared up, each at least once. This includes
   * entities of which only a late write is left (`birthUs` is 0). To clear one up, write a death at its end, or at its
   * `lastUs` if that is later. An engine that clears up by itself returns none.
   */
  ended(page: PageRequest & { readonly beforeMs: number }): Promise<Page<Entity>>;
  /**
   * Living entities that have parts with `expiresAtMs`, but no `endsAtMs`, each at least once. Each comes with the
   * expiry that its last change gave to the parts it wrote.
   */
  endingInParts(page: PageRequest): Promise<Page<EndingInParts>>;
  /** All contents, each at least once, in a stable order. Contents of a running sweep or upload may be missing. */
  contents(page: PageRequest): Promise<Page<BlobInfo>>;
  /**
   * Reads a content to its end. Calls and awaits `paced` with the size of each part; errors of `paced` are passed on.
   */
  verify(digest: string, paced: (bytes: number) => Promise<void>): Promise<ContentState>;
  /**
   * Reads the next rows of the store, table by table, and returns the damaged ones: rows that cannot be read, have a
   * wrong checksum, or are missing although another row names them. Damage is no error; errors mean that the store is
   * unavailable. Rows that an earlier version wrote without a checksum get one. `isPassing` skips the rest of the
   * cursor's table and reports it as damaged. Set it if reading at the cursor has ended the controller repeatedly.
   */
  rows(page: { readonly cursor?: string; readonly isPassing?: boolean }): Promise<RowsRead>;
  /**
   * For each table that is replicated on several nodes: the time since which all of its copies have been equal. Empty
   * if no table is. `AppError("unavailable")` if it is unknown at the moment.
   */
  repairs(): Promise<readonly TableRepair[]>;
}

export interface RowsRead {
  /** Number of rows read. */
  readonly looked: number;
  readonly damaged: readonly DamagedRow[];
  /** Absent after the last row of the last table. */
  readonly cursor?: string;
}

/** The reason reported for a skipped table. */
export const ENDED_CONTROLLERS = "the controller ended again and again as it read on from here; the rest was passed by";

export interface DamagedRow {
  readonly table: string;
  /** The row's key in a form that people can look up. */
  readonly key: string;
  readonly reason: string;
}

export interface EndingInParts {
  readonly entity: Entity;
  /** `Infinity`: those parts do not end. */
  readonly endsAtMs: number;
}

export interface TableRepair {
  readonly table: string;
  /**
   * Start of the oldest of the repairs that together cover the table. Absent if a part of it was not repaired, as far
   * as is known.
   */
  readonly repairedMs?: number;
  /** True if readers check each row against the data it refers to. Then only missing rows do harm. */
  readonly isDerived: boolean;
}

/** `gone`: it was removed in the meantime, or is not complete yet. */
export type ContentState = "sound" | "damaged" | "gone";

export interface TermsOf {
  readonly entity: Entity;
  readonly terms: readonly string[];
}

export interface Posting {
  readonly term: string;
  readonly key: EntityKey;
  readonly timeUs: number;
}

export interface EdgeCheck {
  readonly looked: number;
  /** Number of edges that were added at their targets. */
  readonly missing: number;
  /** Number of removed edge rows: their source does not have them, or has ended. */
  readonly superfluous: number;
  /** Messages about some of the faults. */
  readonly examples: readonly string[];
  readonly cursor?: string;
}
