import type { Row, Value } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";

export type ColumnType =
  | "varchar"
  | "text"
  | "int"
  | "bigint"
  | "smallint"
  | "long"
  | "varint"
  | "float"
  | "double"
  | "boolean"
  | "timestamp"
  | "date"
  | "blob"
  | "uuid"
  | "inet"
  | "list"
  | "map"
  | "set"
  | "enum"
  | "bucket"
  | "bitlog";

/** A column as someone asks for it in `CREATE CLASS`. */
export interface ColumnSpec {
  readonly name: string;
  readonly type: ColumnType;
  /** Element types of `list<…>`, `set<…>` (one), `map<…,…>` (two). */
  readonly elements?: readonly ColumnType[];
  readonly title?: string;
  /** Of `enum`: stored value to label and description. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Of `bucket`: its JSON options as given. */
  readonly options?: Readonly<Record<string, Value>>;
  /** Never shown: not in MQL, search, export, history, triggers. Only for system classes. */
  readonly sealed?: boolean;
}

export interface ClassSpec {
  readonly path: string;
  readonly columns: readonly ColumnSpec[];
  readonly keys?: readonly string[];
  readonly indexes?: readonly string[];
  /** Fixed at creation; `entity` when absent. */
  readonly kind?: ClassKind;
  readonly options?: Partial<ClassOptions>;
}

export type ClassKind = "entity" | "record";
/** How an object gets the part of its id after the colon: given by the client, made up, MD5 of its keys. */
export type KeyMode = "manu" | "uuid" | "md5";

export interface ClassOptions {
  readonly keyMode: KeyMode;
  /** Seconds; absent: for ever. */
  readonly ttlSeconds: number | undefined;
  /** Keeps every version of an object. */
  readonly version: boolean;
  /** A search without a class visits this one. */
  readonly autosearch: boolean;
  readonly alias: string | undefined;
  readonly nickname: string | undefined;
  readonly remedy: string | undefined;
  /** Store hints of other systems (`partition`, `largepartition`, …): kept, shown, without effect. */
  readonly hints: Readonly<Record<string, Value>>;
}

/** A column as it is, own or inherited. */
export interface Column extends ColumnSpec {
  /** Given once in the tenant, never reused. */
  readonly number: number;
  /** The class that defined it. */
  readonly definedBy: string;
  readonly indexed: boolean;
  readonly key: boolean;
}

/** A class with everything it inherits. Immutable; a change of definition makes new views. */
export interface ClassView {
  readonly cid: number;
  readonly path: string;
  /** Last component of the path; an object id is `<label>:<key>`. */
  readonly label: string;
  readonly parent: string | undefined;
  readonly kind: ClassKind;
  /** In the order of definition, inherited ones first, without the pseudo columns. */
  readonly columns: readonly Column[];
  readonly keys: readonly string[];
  readonly options: ClassOptions;
  readonly modifiedAtMs: number;
  /** Made and owned by an area. */
  readonly system: boolean;
  readonly guard: ClassGuard | undefined;
  column(name: string): Column | undefined;
}

/** All classes of one tenant as this controller knows them, in memory. */
export interface ClassCatalog {
  readonly revision: number;
  get(path: string): ClassView | undefined;
  byCid(cid: number): ClassView | undefined;
  byLabel(label: string): readonly ClassView[];
  /** The class and all its subclasses; empty when there is none at `path`. `/` is all. */
  tree(path: string): readonly ClassView[];
  /** Direct subclasses. */
  children(path: string): readonly ClassView[];
  edgeTypes(): readonly EdgeType[];
}

export interface EdgeType {
  readonly name: string;
  readonly remedy: string;
}

/**
 * What MQL may do to objects of a system class; the owner calls its own service and refuses what it would not do.
 * An absent function refuses.
 */
export interface ClassGuard {
  insert?(principal: Principal, rows: readonly Row[]): Promise<readonly string[]>;
  update?(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean>;
  remove?(principal: Principal, ids: readonly string[]): Promise<number>;
}

/** A system class that its owner wants in every tenant. `path` is relative to the ospace, as in `/system/hostinfo`. */
export interface SystemClass extends ClassSpec {
  readonly guard: ClassGuard;
  /** Not stored: the owner answers its rows, each with `id` and `class`. Row and field permissions are applied by the query area. */
  readonly provide?: (principal: Principal) => AsyncIterable<readonly Row[]>;
}

/** One object as read. `values` has every set column, sealed ones too (owners need them; MQL never sees them), no pseudo columns. */
export interface ObjectRow {
  /** Whole, as in `linux:h1`. */
  readonly id: string;
  readonly class: ClassView;
  readonly values: Row;
  /** Time of the latest write; of a record its own time. */
  readonly vtimeMs: number;
  /** Time of the insert. */
  readonly ctimeMs: number;
}

/** `add` and `take` are for sets and lists (elements) and maps (entries; `take` by key, or by the keys of an object). */
export interface Edit {
  readonly column: string;
  readonly operation: "set" | "add" | "take";
  readonly value: Value | undefined;
}

/** Names one object. `class` narrows when several classes share the label. */
export interface ObjectRef {
  readonly id: string;
  readonly class?: string;
}

export interface NewRecord {
  readonly values: Row;
  /** The record's own time. Its id is made of it and of `identity`, so that a replay writes the same row. */
  readonly timeMs: number;
  /** Unique text of the source, such as `<stream>/<sequence>`. */
  readonly identity: string;
  /** Where one identity has many records: which of them this is, below `ULID_ORDINALS_MAX`. They are kept in this order. */
  readonly ordinal?: number;
  /**
   * Of an upsert: the time of its write in microseconds, settled by the source once and for all. A repetition with it changes nothing, and
   * loses to whatever was written with a later time. Absent: a time above all that was read, so that a repetition wins.
   */
  readonly writeUs?: number;
  /** Nobody has tried it yet, so there is no object of an id made of the identity. */
  readonly isNew?: boolean;
}

/** Of a write whose time was settled before it is made. */
export interface SettledTime {
  /** Of `writeTimes`: made again with it the write changes nothing, and loses to whatever was written with a later one. */
  readonly writeUs?: number;
}

export interface SettledUpdate extends SettledTime {
  /**
   * For a write that nobody has tried yet. A list that it adds to or takes from may have been written since its time was settled; then it gets
   * a later time, told here before it is made. Absent: such a list stays as it is, as it may have been written with what was to be added.
   */
  readonly retimed?: (writeUs: number) => Promise<void>;
}

/**
 * What to read. `where` narrows by indexes where it can and may return more than asked: the caller rechecks.
 * All conditions of `where` hold together.
 */
export interface ReadRequest {
  readonly class: string;
  readonly subtree: boolean;
  readonly ids?: readonly string[];
  readonly where?: readonly Pushdown[];
  /** Records newest first over all classes of the tree. Entities: no promise of order. */
  readonly newestFirst?: boolean;
  /** How many rows the caller will take at most; only a hint for page sizes. */
  readonly expected?: number;
  /**
   * The objects as they were at that time; only of classes with `options.version`, which know nothing from before they got it. Otherwise
   * `AppError("invalid")` that names the class.
   */
  readonly asOfMs?: number;
  readonly signal?: AbortSignal;
}

export interface EdgeRequest {
  /** `out`: from the objects that are named; `in`: to them. */
  readonly direction: "out" | "in";
  /** All types when absent. */
  readonly type?: string;
  /** The edges there were at that time, by the rules of `ReadRequest.asOfMs`; none from or to objects of classes that keep no versions. */
  readonly asOfMs?: number;
  readonly signal?: AbortSignal;
}

export interface ObjectEdge {
  readonly type: string;
  /** Whole ids. */
  readonly source: string;
  readonly target: string;
  /** Paths: an id alone can be that of objects of several classes. */
  readonly sourceClass: string;
  readonly targetClass: string;
  /** Of the write that made it last. */
  readonly timeMs: number;
}

/** An object as one write left it. */
export interface ObjectVersion {
  /** Whole. */
  readonly id: string;
  readonly class: ClassView;
  readonly vtimeMs: number;
  /** Time of the insert. */
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

export type Pushdown =
  /** Equals one of `values`; for sets, lists and maps: contains one of them as element or key. */
  | { readonly kind: "equals"; readonly column: string; readonly values: readonly Value[] }
  /** Numbers and times, both ends included, an absent end open. `vtime` and `ctime` count as columns. */
  | { readonly kind: "range"; readonly column: string; readonly from?: number; readonly to?: number }
  /** Every word occurs in the full text of the object; a word that ends in `*` is a prefix. */
  | { readonly kind: "words"; readonly words: readonly string[] };

/** How a read is going to be done, for `EXPLAIN`: one line per step, such as `index host = web-1`, `scan of class /x`. */
export interface ReadPlan {
  readonly steps: readonly string[];
  /** The pushdowns that really narrow the read. */
  readonly used: readonly Pushdown[];
}

/**
 * Of an index in the background: `write-only` until every controller keeps it, then `backfill` until the objects that are older than it are in it,
 * then `ready`: only then queries use it. `retiring`: about to be dropped.
 */
export interface IndexStatus {
  /** The class that defined it; it is one of its subclasses, too. */
  readonly class: string;
  /** Absent for the words that come with `autosearch`. */
  readonly column?: string;
  readonly state: "write-only" | "backfill" | "ready" | "retiring";
  /** Of `backfill`: how many objects were brought in. */
  readonly done?: number;
  /** Of `backfill`: of how many; absent until they are counted. */
  readonly total?: number;
  /** Why it will not become ready. */
  readonly problem?: string;
}

/** Something happened to an object. Delivered at least once; (id, timeMs) is its identity. */
export interface ObjectChangeEvent {
  readonly tenant: string;
  readonly class: string;
  readonly id: string;
  readonly timeMs: number;
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly fields: Row;
  readonly traceparent: string;
}

/** Who is to be told of every change of the objects of some classes, whatever becomes of the controller that made it. */
export interface ChangeSubscription {
  /** Letters, digits, `.`, `_`, `-`. On all controllers the same: they share the work. */
  readonly name: string;
  /** Paths; one with a slash at its end stands for the class and all below it. */
  readonly classes: readonly string[];
  /**
   * Told at least once of each write that was answered; (id, timeMs) tells repetitions. In the order of the writes of one controller as long as
   * that lives. When it rejects, or does not resolve within `CHANGE_DELIVERY_DEADLINE_MS`, it is told again. After a crash a write that nobody
   * was answered may be told, also when only a later one of the same object was made.
   */
  readonly deliver: (events: readonly ObjectChangeEvent[]) => Promise<void>;
}

/** Durable subscriptions of changes. Rights: the permission `objects:write`. */
export interface ObjectChanges {
  /**
   * Durable: every controller stores what it is about to change of these classes before it does, from when this resolves. Each controller that
   * subscribes by the name tells what it changed, and what was left by controllers that are gone. `AppError("unavailable")` when not all
   * controllers said in time that they know, and for writes while more than `CHANGE_EVENTS_WAITING_MAX` events are not taken.
   */
  subscribe(principal: Principal, subscription: ChangeSubscription): Promise<void>;
  /** Ends it for all controllers; what was not told yet is dropped. A controller that subscribed calls it before it subscribes by that name again. */
  unsubscribe(principal: Principal, name: string): Promise<void>;
}

/**
 * The object database. Rights: reading needs `classAccess(...).readable`, changing `writable`, definitions the permission
 * `objects:write`; row conditions and hidden columns are the query area's work. Bad values are `AppError("invalid")` that names the
 * column; an unknown class or column `AppError("not_found")`.
 */
export interface Objects {
  /** Current for this controller; every change made through it is in there when its call resolves. */
  catalog(principal: Principal): Promise<ClassCatalog>;
  createClass(principal: Principal, spec: ClassSpec, options?: { readonly ifNotExists?: boolean }): Promise<ClassView>;
  alterClass(principal: Principal, path: string, change: ClassChange): Promise<ClassView>;
  /** `AppError("conflict")` while objects, versions or subclasses exist. */
  dropClass(principal: Principal, path: string, options?: { readonly ifExists?: boolean }): Promise<void>;
  createEdgeType(principal: Principal, type: EdgeType, options?: { readonly ifNotExists?: boolean }): Promise<void>;
  dropEdgeType(principal: Principal, name: string, options?: { readonly ifExists?: boolean }): Promise<void>;
  /** To be called before any tenant is opened; the class is made in every tenant when it opens. */
  registerSystemClass(definition: SystemClass): void;

  /** Whole ids in the order of `rows`. An id that exists gets a new version; columns not named stay as they were. */
  insert(
    principal: Principal,
    path: string,
    rows: readonly Row[],
    options?: { readonly atMs?: number },
  ): Promise<readonly string[]>;
  /** Records of a source that may replay: the same identity and time give the same row again. Also entities with keys (upserts). */
  ingest(principal: Principal, path: string, records: readonly NewRecord[]): Promise<readonly string[]>;
  /** False when there is no such object. */
  update(principal: Principal, ref: ObjectRef, edits: readonly Edit[], options?: SettledUpdate): Promise<boolean>;
  /** Writes what the indexes have of these objects once more, and nothing else. How many there were. */
  refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number>;
  /** How far every index is, of classes that may be read. */
  indexStates(principal: Principal): Promise<readonly IndexStatus[]>;
  /** How many there were. */
  remove(
    principal: Principal,
    refs: readonly ObjectRef[],
    options?: SettledTime & { readonly withVersions?: boolean },
  ): Promise<number>;
  /**
   * Times in microseconds for writes that are made later and perhaps more than once, in the order of `refs` (`undefined`: an id not made up yet).
   * Above all that is known of these objects, and above every time this controller gave before; the same for all objects that allow it.
   */
  writeTimes(principal: Principal, refs: readonly (ObjectRef | undefined)[]): Promise<readonly number[]>;

  get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]>;
  read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]>;
  plan(principal: Principal, request: ReadRequest): Promise<ReadPlan>;

  /**
   * Edges from or to objects, each once, in no order. Left out are those of which an end does not exist (any more), or is of a class that may not
   * be read. Where several classes share the label of a reference, those of each are answered.
   */
  edges(principal: Principal, refs: readonly ObjectRef[], request: EdgeRequest): AsyncIterable<readonly ObjectEdge[]>;
  /** Versions of an object, newest first; of each class that a reference may mean. `AppError("invalid")` when none of them keeps versions. */
  history(principal: Principal, ref: ObjectRef, range?: HistoryRange): AsyncIterable<readonly ObjectVersion[]>;
  /**
   * Objects of just this class that were removed, at `fromMs` or later, still have versions and are not there again. `AppError("invalid")` when the
   * class keeps no versions.
   */
  removed(
    principal: Principal,
    path: string,
    range?: Pick<HistoryRange, "fromMs" | "signal">,
  ): AsyncIterable<readonly ObjectRef[]>;

  /**
   * Told after each write of this controller. The answer ends it. A listener must not throw and must not wait. Nothing is made ready for
   * a listener that does not want what happens in a tenant when a write begins.
   */
  onChange(listener: (events: readonly ObjectChangeEvent[]) => void, wants?: (tenant: string) => boolean): () => void;
}

/**
 * Definitions and rows tried by the definitions of now without writing anything, so that a script is checked as a whole before its first write.
 * What is wrong is thrown as the real call would throw it. Rights on classes are the caller's to check.
 */
export interface Rehearsal {
  /** With everything that was tried so far. */
  readonly catalog: ClassCatalog;
  createClass(spec: ClassSpec, options?: { readonly ifNotExists?: boolean }): void;
  alterClass(path: string, change: ClassChange): void;
  createEdgeType(type: EdgeType, options?: { readonly ifNotExists?: boolean }): void;
  /**
   * Names, values, key and sizes; that a class has the id of each edge's target, not that there is such an object. Answers the whole id that the row
   * would have, `undefined` when it would be made up.
   */
  checkRow(path: string, row: Row): string | undefined;
  /** Names and values; that a class has the id of each edge's target. */
  checkEdits(path: string, edits: readonly Edit[]): void;
}

export interface Rehearsals {
  rehearse(principal: Principal): Promise<Rehearsal>;
}

export type ClassChange =
  | { readonly kind: "add column"; readonly column: ColumnSpec }
  | { readonly kind: "drop column"; readonly name: string }
  | { readonly kind: "add index" | "drop index" | "add key" | "drop key"; readonly name: string }
  | { readonly kind: "set options"; readonly options: Partial<ClassOptions> };
