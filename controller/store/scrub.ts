import type { BlobInfo } from "./blobs.ts";
import type { Entity, EntityChange, EntityKey, Page, PageRequest } from "./objects.ts";

/**
 * The seam for scrubbing: what is derived from entities and edges, as it lies, and contents by their digests. Everything
 * here is safe while others write, and idempotent. What a store derives may say too much for a while and never too
 * little; only a loss of data or a defect makes it say too little.
 */
export interface ScrubStore {
  /** Rows by which entities are found by terms, each at least once, in an order that stays. */
  postings(page: PageRequest): Promise<Page<Posting>>;
  /** For each entity in their order: those of the terms under which it is not found. */
  missing(entities: readonly TermsOf[]): Promise<readonly (readonly string[])[]>;
  /**
   * Living entities are found by these terms and numbers from then on, whatever was removed of them before. Only for
   * changes that write nothing else.
   */
  add(changes: readonly EntityChange[]): Promise<void>;
  /**
   * Takes away these rows, and none that was written after the time it bears. Only for rows that are older than
   * `SCRUB_AGE_MIN_MS` and of entities that do not live or do not bear the term. A change that adds one again adds it,
   * whatever its time.
   */
  remove(postings: readonly Posting[]): Promise<void>;
  /**
   * Compares a page of edges with what lies at their other end: `source` looks from the sources and adds what is missing
   * at targets, `target` looks from the targets and removes what no source has. What is younger than `beforeUs` is left.
   */
  edges(from: "source" | "target", page: PageRequest & { readonly beforeUs: number }): Promise<EdgeCheck>;
  /**
   * Entities that ended by `endsAtMs` before `beforeMs` and are not cleared up, each at least once, also where nothing but a
   * late write is left of one (`birthUs` is 0): a death at their end or, where that is later, at their `lastUs` does that. An
   * engine that clears up by itself answers none.
   */
  ended(page: PageRequest & { readonly beforeMs: number }): Promise<Page<Entity>>;
  /**
   * Living entities with parts that end by their `expiresAtMs` and without an end of the whole, each at least once. With
   * each the end that its last change gave what it wrote.
   */
  endingInParts(page: PageRequest): Promise<Page<EndingInParts>>;
  /** All contents, each at least once, in an order that stays; those of a sweep or an upload under way perhaps not. */
  contents(page: PageRequest): Promise<Page<BlobInfo>>;
  /** Reads a content to its end. `paced` is called with each part's bytes and waited for; what it throws goes on. */
  verify(digest: string, paced: (bytes: number) => Promise<void>): Promise<ContentState>;
  /**
   * Reads the next of all rows there are, table after table, and says which of them are damaged: they cannot be read, their
   * checksum is wrong, or another row says that they are there and they are not. Damage is no error: errors say that the
   * store is away. Gives rows of an earlier version their checksum. `isPassing`: reading at
   * the cursor's place ended the controller again and again; what is left of its table is told as damaged and passed by.
   */
  rows(page: { readonly cursor?: string; readonly isPassing?: boolean }): Promise<RowsRead>;
  /**
   * Of each table that lies on several nodes, since when all of its copies have been alike; empty where nothing does.
   * `AppError("unavailable")` where that cannot be told now.
   */
  repairs(): Promise<readonly TableRepair[]>;
}

export interface RowsRead {
  /** How many rows were read. */
  readonly looked: number;
  readonly damaged: readonly DamagedRow[];
  /** Absent after the last row of the last table. */
  readonly cursor?: string;
}

/** Why a table is passed by. */
export const ENDED_CONTROLLERS = "the controller ended again and again as it read on from here; the rest was passed by";

export interface DamagedRow {
  readonly table: string;
  /** Its key, as people can find it. */
  readonly key: string;
  readonly reason: string;
}

export interface EndingInParts {
  readonly entity: Entity;
  /** `Infinity`: that does not end. */
  readonly endsAtMs: number;
}

export interface TableRepair {
  readonly table: string;
  /** When the oldest of the repairs began that cover all of it; absent where some of it was not repaired as far as is known. */
  readonly repairedMs?: number;
  /** Whether readers check each row where it points to, so that it is the rows that are missing which matter. */
  readonly isDerived: boolean;
}

/** `gone`: it was removed meanwhile, or is not wholly there yet. */
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
  /** Edges that were added at their targets. */
  readonly missing: number;
  /** Rows of edges that were removed: their source does not have them, or has ended. */
  readonly superfluous: number;
  /** Some of what was wrong, for people. */
  readonly examples: readonly string[];
  readonly cursor?: string;
}
