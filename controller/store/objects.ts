import type { AlsoInCommit } from "./also-in-commit.ts";

/**
 * The seam for bulk data: objects of classes. It knows no schema. The area `objects` converts an object and its class
 * into cells, terms and numbers, and back.
 *
 * There are two kinds of class. An *entity* has many writers: it is a set of cells, each with its own last write. A
 * *record* has one producer, is written as a whole under an id that contains its time, and expires.
 *
 * Write times are microseconds since 1970 (exact in a double). A time is the identity of a write: repeating a change
 * with the same time changes nothing, so after `unavailable` or `unknown_outcome` a caller simply repeats it. Of two
 * writes to one cell the later time wins, in any order of arrival. At equal times the greater bytes win, and a removal
 * wins over a value.
 *
 * Rules for readers:
 * - The end is an absent cursor. Any page, also the first, may be empty and have a successor.
 * - `find`, and `timeline` with terms, may return more than asked, because terms over `TERM_MAX_BYTES` are cut. They
 *   never return less. So every condition must be rechecked.
 * - `find` promises no order except the requested one.
 * - Calls end by `STORE_CALL_DEADLINE_MS` with `unavailable`; writes may also end with `unknown_outcome`.
 */
export interface ObjectStore {
  /** True if a commit of the engine spans its three seams: then `change` takes `RecordsInCommit.also`. */
  readonly spansSeams?: boolean;

  /**
   * Applies changes, at most `CHANGE_BATCH_MAX`. When the promise resolves, each of them is durable. They are not
   * atomic together: after an error any of them may have happened.
   *
   * One change is atomic: its cells and numbers, its version and its added edges appear together. After
   * `unknown_outcome`, or if its controller is killed, a change may stay half done until it is repeated. There are two
   * such states:
   * - The change is not visible, but its version and added edges appear with the next change of a later time.
   * - The change is visible, and edges that it drops are still visible, too.
   *
   * `inCommit`: see `RecordsInCommit`.
   */
  change(changes: readonly EntityChange[], inCommit?: RecordsInCommit): Promise<void>;

  /**
   * Entities in the order of `keys`; `undefined` for an entity that does not exist (never born, dead, or expired).
   * `cells` selects the needed cells; absent: all.
   */
  get(keys: readonly EntityKey[], cells?: CellChoice): Promise<readonly (Entity | undefined)[]>;

  /**
   * Like `get`, with the remembered data of entities that do not exist. The caller needs it to write the next entity of
   * that name with a later time.
   */
  trace(keys: readonly EntityKey[]): Promise<readonly EntityTrace[]>;

  /**
   * Living entities that have every term and are in every range. The request needs a term, a range or an order;
   * otherwise `AppError("invalid")`.
   */
  find(request: FindRequest, page: PageRequest): Promise<FoundPage>;

  /** The indexes that `find` would use, and their estimated sizes. No entity is read. */
  estimate(request: FindRequest): Promise<FindEstimate>;

  /**
   * Number of living entities that have a term which names a class, returned in parts; the sum of the parts is exact.
   * The cursor comes from an earlier part of the same term.
   */
  countClass(term: string, cursor?: string): Promise<ClassCount>;

  /**
   * The distinct terms with that beginning. Terms that are no longer used may be included, and a term may come twice.
   * No used term is missing. `undefined` if the engine does not list terms with that beginning, or if the tenant has no
   * list.
   */
  terms(request: TermsRequest, page: PageRequest): Promise<Page<string> | undefined>;

  /** Every living entity of the store once, in a stable order: for backfill, export, scrubbing. */
  scan(page: PageRequest): Promise<Page<Entity>>;

  /** Versions kept with changes, newest first. They stay after the entity's death unless `forgetHistory` was set. */
  history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>>;

  /**
   * Edges from (`out`) or to (`in`) an entity, each once. An edge that is set again between two pages may come again.
   * The removal of the source removes its edges.
   */
  edges(key: EntityKey, direction: "out" | "in", page: PageRequest & { readonly type?: string }): Promise<Page<Edge>>;

  /**
   * Writes records, at most `CHANGE_BATCH_MAX`; durable when it resolves. A removed id stays removed, except for
   * records with `rewrittenUs`: see `removeRecords`. Of several rows of one id, the one with the latest rewrite is
   * valid.
   *
   * Same id and same bytes: the same row. It has all terms of all appends, and the latest of their ends (no end is the
   * latest), so a repetition with older definitions removes nothing. A term may expire at the latest end of the appends
   * that named it.
   *
   * Same id and other bytes: every reader sees the same one of the rows, with its own end and at least its own terms. A
   * rule of the engine chooses it by the bytes; the order and number of the appends do not matter. If both rows expire,
   * the rule of the cluster does not decide for one in `RECORD_RANKS` pairs of bytes. After the end of the valid row,
   * the result depends on the engine.
   *
   * `inCommit`: see `RecordsInCommit`. With it, `records` may be empty.
   */
  append(records: readonly StoredRecord[], inCommit?: RecordsInCommit): Promise<void>;

  /** Records of one class with `fromMs <= time < toMs`, newest first; at equal times the greater id first. */
  timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>>;

  /**
   * Number of records that `timeline` has without terms, returned in parts; the sum of the parts is exact. The cursor
   * comes from an earlier part of the same span.
   */
  countRecords(span: RecordSpan, cursor?: string): Promise<ClassCount>;

  getRecords(keys: readonly EntityKey[]): Promise<readonly (StoredRecord | undefined)[]>;
  /**
   * Removes records for good: a producer that repeats itself does not bring them back. For `OBJECT_TOMBSTONE_KEEP_MS`,
   * appending under these ids resolves and writes nothing, even if there was no such record at the removal. Afterwards
   * the result depends on the engine. Rows that were rewritten later than the removal's `rewrittenUs` are not removed,
   * and can be written.
   */
  removeRecords(records: readonly RemovedRecord[]): Promise<void>;
}

/**
 * Records that are made inside the commit of a write. An engine whose commits have several rows makes and stores them
 * there, after the write: the write and these records are durable together, or neither is. An engine without such
 * commits never makes them; the caller then stores them by a second write.
 */
export interface RecordsInCommit {
  /**
   * Makes the records: once at most for each attempt of the write, and not if the write is refused or takes several
   * commits. It is synchronous, and must neither throw nor return an invalid record. Calls of one turn of the event loop
   * belong to one commit. An attempt that ended with `unknown_outcome` may run later, and asks for records then.
   */
  records(): readonly StoredRecord[];
  /** Called after an attempt that failed: whether its records are durable is unknown. The next one makes them anew. */
  failed(): void;
  /** Only for `change` of an engine with `spansSeams`, with at most `CHANGE_SLICE_MAX` changes. */
  readonly also?: AlsoInCommit | undefined;
}

export interface EntityKey {
  readonly cid: number;
  /** The part of an object id after its first colon: any text of at most `OBJECT_ID_MAX_BYTES`. */
  readonly id: string;
}

/**
 * One write of one entity. Cell keys are short texts: `17` for attribute 17, `17/red` for its element or map entry
 * `red`. Each element of a set or map has its own cell, so that two writers who add different elements both succeed.
 */
export interface EntityChange {
  readonly key: EntityKey;
  readonly timeUs: number;
  /** Writes the birth mark. Without a birth mark the entity is absent, so a late update never revives a dead entity. */
  readonly birth?: true;
  /** Removes the birth mark, cells, terms, numbers and outgoing edges with times up to `timeUs`. Versions stay. */
  readonly death?: true;
  /** Removes the kept versions, too; only together with `death`. */
  readonly forgetHistory?: true;
  /** Cells to write; `undefined` removes a cell. */
  readonly cells?: ReadonlyMap<string, Uint8Array | undefined>;
  readonly addTerms?: readonly string[];
  readonly dropTerms?: readonly string[];
  /** Value by slot number (0 to `NUMBER_SLOTS` - 1); `undefined` clears the slot. */
  readonly numbers?: ReadonlyMap<number, number | undefined>;
  readonly addEdges?: readonly EdgeEnd[];
  readonly dropEdges?: readonly EdgeEnd[];
  /** A version to keep at `timeUs`; opaque to the store. */
  readonly version?: Uint8Array;
  /** Only with `version`: its expiry, unless `endVersionsAtMs` of a later change is earlier. Absent: `expiresAtMs`. */
  readonly versionExpiresAtMs?: number;
  /** Only with `version`: `endVersionsAtMs` of later changes does not apply to it. */
  readonly versionStays?: true;
  /**
   * New expiry for versions of earlier times that would last longer: among the `VERSIONS_ENDED_MAX` newest, those
   * without `versionStays`. It is set after the change; if that is interrupted, the next change sets it.
   */
  readonly endVersionsAtMs?: number;
  /** Expiry of everything that this change writes. If a birth mark expires, the whole entity is absent. */
  readonly expiresAtMs?: number;
  /**
   * The time at which the whole entity ends, at once for every reader: its cells, terms, numbers and outgoing edges
   * from all changes. Versions stay. The latest change that names an end decides; at equal times the later end.
   * `Infinity`: the entity does not end. A change with a later time and another end may arrive after the end. Then the
   * old data may be visible again until the engine has removed it.
   */
  readonly endsAtMs?: number;
}

export interface Entity {
  readonly key: EntityKey;
  readonly birthUs: number;
  /**
   * The latest time of the birth mark and of all cells and numbers, including removed ones that are still known. The
   * next write must have a later time.
   */
  readonly lastUs: number;
  /**
   * Everything up to this time was removed before the entity was born again. Edges to it up to this time do not belong
   * to it. 0 if no removal is remembered; removals are remembered for `OBJECT_TOMBSTONE_KEEP_MS`.
   */
  readonly diedUs: number;
  /** Absent if no change named an end, or if none is known. `Infinity` if the last change removed the end. */
  readonly endsAtMs?: number | undefined;
  readonly cells: Cells;
  readonly numbers: readonly (number | undefined)[];
}

/**
 * The cells of an entity, read in place: no object and no copy is made per cell. A cell is addressed by the index of
 * its key.
 */
export interface Cells {
  /**
   * Each key once, in no order. Entities with the same cell keys often share this list, which never changes, so results
   * derived from it can be cached.
   */
  readonly keys: readonly string[];
  /** The buffer with the value between `start(place)` and `end(place)`. Do not write to it; it does not change. */
  bytes(place: number): Buffer;
  start(place: number): number;
  end(place: number): number;
  timeUs(place: number): number;
  /** One cell by its key. */
  get(key: string): StoredCell | undefined;
}

export interface EntityTrace {
  readonly entity: Entity | undefined;
  /**
   * The latest known time of a write or a removal (removals are known for `OBJECT_TOMBSTONE_KEEP_MS`); 0 if there is
   * none.
   */
  readonly lastUs: number;
  /** Cells of a removed entity with times after its removal. They would belong to the next entity of that name. */
  readonly leftover: Cells;
  /**
   * An entity that has ended by `endsAtMs` and is not cleared up yet. It would belong to the next entity of that name.
   * To prevent that, write a death at `lastUs` first.
   */
  readonly ended?: Entity;
  /**
   * End in microseconds of an entity that ended by `endsAtMs` and is gone, if it is remembered. Edges to it up to this
   * time do not belong to the next entity of that name.
   */
  readonly endedUs?: number;
}

export interface StoredCell {
  readonly value: Uint8Array;
  readonly timeUs: number;
}

export interface EdgeEnd {
  readonly type: string;
  readonly to: EntityKey;
  readonly value?: Uint8Array;
}

export interface Edge extends EdgeEnd {
  readonly from: EntityKey;
  readonly timeUs: number;
}

export interface EntityVersion {
  readonly timeUs: number;
  readonly value: Uint8Array;
}

export interface StoredRecord {
  readonly cid: number;
  /** A ULID (26 Crockford characters, upper case). Its first ten characters are the record's time. */
  readonly id: string;
  readonly value: Uint8Array;
  readonly terms: readonly string[];
  readonly expiresAtMs?: number;
  /**
   * Time in microseconds at which the row was rewritten; later than the millisecond in the id. The row wins over all
   * rows of its id without a rewrite, or with an earlier one. Only a removal with this `rewrittenUs` or a later one
   * removes it.
   */
  readonly rewrittenUs?: number;
}

/** `rewrittenUs` is the value that `getRecords` returned. */
export type RemovedRecord = EntityKey & Pick<StoredRecord, "rewrittenUs">;

export interface FindRequest {
  readonly terms: readonly string[];
  readonly ranges?: readonly NumberRange[];
  /** Absent: any order. */
  readonly order?: NumberOrder;
  /** Needed cells of the found entities; absent: all. */
  readonly cells?: CellChoice;
}

export interface FoundPage extends Page<Entity> {
  /** All entities of this page have the same number. They come in no order, because too many entities have it. */
  readonly isMixed?: true;
}

export interface TermsRequest {
  /** At least one character. */
  readonly beginning: string;
  /** Terms of the records of this class. Absent: terms of all entities. */
  readonly cid?: number;
}

export interface FindEstimate {
  /** Rarest first; each term once, in its indexed form (`indexedTerms`). */
  readonly terms: readonly TermEstimate[];
  /**
   * If `find` reads a range: the approximate number of entities in it, or more. Absent: it reads terms, or the number
   * is unknown.
   */
  readonly range?: number;
}

export interface ClassCount {
  readonly count: number;
  /** Absent in the last part. */
  readonly cursor?: string;
}

export interface TermEstimate {
  readonly term: string;
  /** Approximate number of entities with the term; absent if unknown. */
  readonly count?: number;
  /** True if `find` uses the term's index; otherwise it checks each entity. */
  readonly isRead: boolean;
}

/** A choice of cells of each entity. A store may return more cells. Other members of the entity do not depend on it. */
export interface CellChoice {
  readonly keys: readonly string[];
  /** Includes the cells whose keys begin with one of these prefixes; each prefix ends in a slash. */
  readonly prefixes: readonly string[];
}

/**
 * Order by the number in a slot. Entities without a number in that slot are not found. Entities with equal numbers are
 * ordered by class number and id, in the same direction, except on pages with `FoundPage.isMixed`. The place of ids
 * with characters from U+D800 on is not defined. Entities that are written during the paging may be missing, come twice
 * or in the wrong place. An engine may ignore terms, so the caller must check them. A page costs about as much as one
 * without order; the number of objects outside of the page does not matter.
 */
export interface NumberOrder {
  readonly slot: number;
  readonly descending: boolean;
  /**
   * Applies to entities whose number is exactly the bound of the range at which the order begins: only those after this
   * key in the order are returned. Without such a bound it has no effect.
   */
  readonly behind?: EntityKey;
}

/** Both ends are inclusive; an absent end is open. */
export interface NumberRange {
  readonly slot: number;
  readonly from?: number;
  readonly to?: number;
}

/** Records of one class with `fromMs <= time < toMs`. */
export interface RecordSpan {
  readonly cid: number;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface TimelineRequest extends RecordSpan {
  readonly terms?: readonly string[];
  /** True if the caller needs only ids and values: the records may lack their terms and their end. */
  readonly valuesOnly?: boolean;
}

/** Both ends are inclusive; an absent end is open. */
export interface TimeRangeUs {
  readonly fromUs?: number;
  readonly toUs?: number;
}

export interface PageRequest {
  /** Cursor of an earlier page of the same request; anything else is `AppError("invalid")`. */
  readonly cursor?: string;
  /** 1 to `OBJECT_PAGE_MAX`. */
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly cursor?: string;
}
