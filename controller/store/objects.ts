/**
 * The seam for what is plentiful: objects of classes. It knows no schema. The area `objects` turns an object and its
 * class into cells, terms and numbers, and back.
 *
 * Two kinds of class. An *entity* has many writers: a set of cells, each with its own last write. A *record* has one
 * producer, is written whole under an id that carries its time, and expires.
 *
 * Times of writes are microseconds since 1970 (exact in a double). A time is the identity of a write: repeating a
 * change with the same time changes nothing, so after `unavailable` or `unknown_outcome` a caller simply repeats it. Of
 * two writes to one cell the later time wins, whatever the order of arrival; at equal times the greater bytes, and
 * removal over a value.
 *
 * Rules for readers: the end is an absent cursor; any page, also the first, may be empty and have a successor; `find`
 * and `timeline` with terms may return more than asked (terms over `TERM_MAX_BYTES` are cut), never less, so every
 * condition is rechecked; `find` promises no order but the one asked for. Calls end by `STORE_CALL_DEADLINE_MS` with
 * `unavailable`, or with `unknown_outcome` where something was to be written.
 */
export interface ObjectStore {
  /**
   * Applies changes, at most `CHANGE_BATCH_MAX`. Each is durable on its own when the promise resolves; together they
   * are not: after an error any of them may have happened.
   *
   * A change is made at once: with its cells and numbers, the version and the edges that it adds are there, and none of
   * them before. One that ends as `unknown_outcome`, or whose controller is killed, may stay half way until it is
   * repeated. Either nothing of it is there, but its version and the edges it adds will be as soon as a change of a
   * later time is made; or it is there with edges that it drops.
   */
  change(changes: readonly EntityChange[]): Promise<void>;

  /**
   * In the order of `keys`; `undefined` for an entity that does not exist (never born, dead, or expired). `cells`: those
   * that are needed; absent: all.
   */
  get(keys: readonly EntityKey[], cells?: CellChoice): Promise<readonly (Entity | undefined)[]>;

  /**
   * The same with what is known of entities that do not exist, so that the next one of that name can be written above
   * it.
   */
  trace(keys: readonly EntityKey[]): Promise<readonly EntityTrace[]>;

  /** Living entities that bear every term and lie in every range. At least one term or range. */
  find(request: FindRequest, page: PageRequest): Promise<FoundPage>;

  /** What `find` would go by: an estimate, as nothing is read of the entities. */
  estimate(request: FindRequest): Promise<FindEstimate>;

  /**
   * How many living entities bear a term that names a class, told in parts: their sum is exact. The cursor is one that
   * an earlier part of the same term gave.
   */
  countClass(term: string, cursor?: string): Promise<ClassCount>;

  /**
   * The different terms with that beginning. There may be some among them that nothing bears any more, or that come
   * again, and none is missing. `undefined` where the engine lists no terms of that beginning, or the tenant has no list.
   */
  terms(request: TermsRequest, page: PageRequest): Promise<Page<string> | undefined>;

  /** Every living entity of the store once, in an order that stays: for backfill, export, scrubbing. */
  scan(page: PageRequest): Promise<Page<Entity>>;

  /** Versions kept with changes, newest first. They outlive the entity's death unless `forgetHistory` was set. */
  history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>>;

  /**
   * Edges from (`out`) or to (`in`) an entity, each once; one that is set again between two pages may come again. The
   * removal of the source removes its edges.
   */
  edges(key: EntityKey, direction: "out" | "in", page: PageRequest & { readonly type?: string }): Promise<Page<Edge>>;

  /**
   * Writes records, at most `CHANGE_BATCH_MAX`; durable when it resolves. An id that was removed stays removed, but for
   * records that are `rewrittenUs`: see `removeRecords`. Of one id the row that was rewritten last stands.
   *
   * Same id and bytes: the same row, borne by all terms it was ever given, until the latest end it was given (none being
   * the latest), so a repetition by older definitions takes nothing away; a term that was given with an earlier end alone
   * may go with that. Same id and other bytes: one of them stands
   * with its own end and at least its own terms, for every reader. Which one follows from the bytes, by a rule of the
   * engine, and not from the order or number of the appends; of two that both expire the cluster leaves it open for one
   * pair of bytes in `RECORD_RANKS`. After the end of the row that stood it is left to the engine.
   */
  append(records: readonly StoredRecord[]): Promise<void>;

  /** Records of one class with `fromMs <= time < toMs`, newest first (at equal times: greater id first). */
  timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>>;

  /**
   * How many records `timeline` has without terms, told in parts: their sum is exact. The cursor is one that an earlier
   * part of the same span gave.
   */
  countRecords(span: RecordSpan, cursor?: string): Promise<ClassCount>;

  getRecords(keys: readonly EntityKey[]): Promise<readonly (StoredRecord | undefined)[]>;
  /**
   * For good: a producer that repeats itself does not bring back what was removed. For `OBJECT_TOMBSTONE_KEEP_MS`
   * appending under these ids resolves and writes nothing, whether there was such a record at the removal or not;
   * afterwards that is left to the engine. Rows that were rewritten later than the removal names are not removed, and
   * are written.
   */
  removeRecords(records: readonly RemovedRecord[]): Promise<void>;
}

export interface EntityKey {
  readonly cid: number;
  /** The part after the first colon of an object id, any text of at most `OBJECT_ID_MAX_BYTES`. */
  readonly id: string;
}

/**
 * One write of one entity. Cell keys are short texts: `17` for attribute 17, `17/red` for element or map entry `red` of
 * it. Sets and maps are so many cells, so that two writers adding different elements both succeed.
 */
export interface EntityChange {
  readonly key: EntityKey;
  readonly timeUs: number;
  /** Writes the birth mark. Without one on record the entity is absent, so a late update never revives a corpse. */
  readonly birth?: true;
  /** Covers the birth mark, cells, terms, numbers and outgoing edges of times up to `timeUs`. Versions stay. */
  readonly death?: true;
  /** Drops the kept versions too; only together with `death`. */
  readonly forgetHistory?: true;
  /** Cells to write; `undefined` removes one. */
  readonly cells?: ReadonlyMap<string, Uint8Array | undefined>;
  readonly addTerms?: readonly string[];
  readonly dropTerms?: readonly string[];
  /** Slot number (0 up to `NUMBER_SLOTS` - 1) to value; `undefined` clears it. */
  readonly numbers?: ReadonlyMap<number, number | undefined>;
  readonly addEdges?: readonly EdgeEnd[];
  readonly dropEdges?: readonly EdgeEnd[];
  /** A version to keep at `timeUs`, opaque here. */
  readonly version?: Uint8Array;
  /** With `version`: when it vanishes, if not before by `endVersionsAtMs` of a later change. Absent: `expiresAtMs`. */
  readonly versionExpiresAtMs?: number;
  /** With `version`: no later change ends it. */
  readonly versionStays?: true;
  /**
   * Versions of earlier times that would last longer vanish then, of the `VERSIONS_ENDED_MAX` newest those that do not
   * stay. Done after the change: where that is interrupted, the next one does it.
   */
  readonly endVersionsAtMs?: number;
  /** When what this change writes is to vanish. A birth mark that vanished takes the entity along. */
  readonly expiresAtMs?: number;
  /**
   * When the entity ends as a whole, for every reader at once: cells, terms, numbers and outgoing edges, whoever wrote
   * them. Versions stay. The latest change that names an end decides, at equal times the later end; `Infinity`: it does
   * not end. A change of a later time that arrives behind the end, and names another one, may bring back what was there
   * until the engine has cleared up.
   */
  readonly endsAtMs?: number;
}

export interface Entity {
  readonly key: EntityKey;
  readonly birthUs: number;
  /**
   * The greatest time of the birth mark, of all cells and numbers, removed ones included where still known: write above
   * it.
   */
  readonly lastUs: number;
  /**
   * Everything of times up to this one was removed before it was born again: edges to it of these times are not its own.
   * 0 when no removal is remembered, which is for `OBJECT_TOMBSTONE_KEEP_MS`.
   */
  readonly diedUs: number;
  /** Absent where no change named an end, or as far as is known; `Infinity` where the last one took it away. */
  readonly endsAtMs?: number | undefined;
  readonly cells: Cells;
  readonly numbers: readonly (number | undefined)[];
}

/**
 * The cells of an entity, left where they lie: looking at them makes no object and no copy for each. A cell is read by
 * its index among the keys.
 */
export interface Cells {
  /**
   * Each once, in no order. Entities whose cells have the same keys often share the list, which never changes: what is
   * made of one can be kept for the next.
   */
  readonly keys: readonly string[];
  /**
   * The value is what lies there from `start(place)` up to `end(place)`. It is not to be written to, and stays as it
   * is.
   */
  bytes(place: number): Buffer;
  start(place: number): number;
  end(place: number): number;
  timeUs(place: number): number;
  /** One cell by itself. */
  get(key: string): StoredCell | undefined;
}

export interface EntityTrace {
  readonly entity: Entity | undefined;
  /**
   * The greatest time of a write or a removal that is still known (removals for `OBJECT_TOMBSTONE_KEEP_MS`); 0 when
   * there is none.
   */
  readonly lastUs: number;
  /** Cells of a removed entity with times above its removal. They would be part of the next entity of that name. */
  readonly leftover: Cells;
  /**
   * What has ended by `endsAtMs` and is not cleared up yet. It would be part of the next entity of that name: a death at
   * `lastUs` comes before that.
   */
  readonly ended?: Entity;
  /**
   * When what is there no more ended by `endsAtMs`, in microseconds, as far as that is remembered: edges to it up to then
   * are not those of the next entity of that name.
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
  /** A ULID (26 Crockford characters, upper case); its first ten characters are the record's time. */
  readonly id: string;
  readonly value: Uint8Array;
  readonly terms: readonly string[];
  readonly expiresAtMs?: number;
  /**
   * Microseconds, later than the millisecond in the id: the row was written anew at that time. It stands above all rows
   * of its id that were not, or were earlier, and above removals that do not name this time or a later one.
   */
  readonly rewrittenUs?: number;
}

/** `rewrittenUs` as `getRecords` tells it. */
export type RemovedRecord = EntityKey & Pick<StoredRecord, "rewrittenUs">;

export interface FindRequest {
  readonly terms: readonly string[];
  readonly ranges?: readonly NumberRange[];
  /** Absent: in any order. */
  readonly order?: NumberOrder;
  /** Those that are needed of what is found; absent: all. */
  readonly cells?: CellChoice;
}

export interface FoundPage extends Page<Entity> {
  /** Entities with one number came in any order from here on, as they are too many to sort. */
  readonly isMixed?: true;
}

export interface TermsRequest {
  /** At least one character. */
  readonly beginning: string;
  /** Terms of the records of this class; absent: of all entities. */
  readonly cid?: number;
}

export interface FindEstimate {
  /** The rarest first; each once, as it is indexed. */
  readonly terms: readonly TermEstimate[];
  /** `find` walks along a range in which about so many entities lie, if not more; absent: along terms, or not known. */
  readonly range?: number;
}

export interface ClassCount {
  readonly count: number;
  /** Absent with the last part. */
  readonly cursor?: string;
}

export interface TermEstimate {
  readonly term: string;
  /** About so many entities bear it; absent where that is not known. */
  readonly count?: number;
  /** `find` goes by its index; otherwise each entity is asked. */
  readonly isRead: boolean;
}

/** Some cells of each entity. A store may hand out more; what is told of the whole entity stays what it is. */
export interface CellChoice {
  readonly keys: readonly string[];
  /** The cells whose keys begin with one of these; each ends in a slash. */
  readonly prefixes: readonly string[];
}

/**
 * By the number in a slot: those without one are not found. Equal ones come by class number and id, in the same
 * direction, but for `FoundPage.isMixed`; ids with characters from U+D800 on have no promised place among them. What is
 * written meanwhile may be missing, come twice or out of place. An engine may leave terms to the caller. A page costs
 * about as much as one in no order, whatever lies outside of it.
 */
export interface NumberOrder {
  readonly slot: number;
  readonly descending: boolean;
  /** Where the range begins: of the entities with that number only those behind this one in the order. */
  readonly behind?: EntityKey;
}

/** Both ends belong to the range; an absent end is open. */
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
  /** The caller looks at ids and values alone: the records may lack their terms and their end. */
  readonly valuesOnly?: boolean;
}

/** Both ends belong to the range; an absent end is open. */
export interface TimeRangeUs {
  readonly fromUs?: number;
  readonly toUs?: number;
}

export interface PageRequest {
  /** As an earlier page of the same request gave it; anything else is `AppError("invalid")`. */
  readonly cursor?: string;
  /** 1 up to `OBJECT_PAGE_MAX`. */
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly cursor?: string;
}
