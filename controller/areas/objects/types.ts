import type { Row, Value } from "../../../common/value.ts";
import type { ClassReading, Permission, Principal, RowLimit } from "../permissions/index.ts";

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

/** A column of `CREATE CLASS`. */
export interface ColumnSpec {
  readonly name: string;
  readonly type: ColumnType;
  /** Types of the elements: one for `list<…>` and `set<…>`, two for `map<…,…>`. */
  readonly elements?: readonly ColumnType[];
  readonly title?: string;
  /** For `enum`: stored value to label and description. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** For `bucket`: its JSON options as given. */
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
/** Source of the part after the colon of an id: given by the client, generated, or the MD5 of the key columns. */
export type KeyMode = "manu" | "uuid" | "md5";

export interface ClassOptions {
  readonly keyMode: KeyMode;
  /** In seconds; absent: for ever. */
  readonly ttlSeconds: number | undefined;
  /** Keeps every version of an object. */
  readonly version: boolean;
  /** How long a version is kept after a later one superseded it, in seconds; absent: for ever. */
  readonly versionTtlSeconds: number | undefined;
  /** Time zone for functions of the calendar in statements about the class; absent: UTC. */
  readonly timeZone: string | undefined;
  /** A search without a class includes this one. */
  readonly autosearch: boolean;
  readonly alias: string | undefined;
  readonly nickname: string | undefined;
  readonly remedy: string | undefined;
  /** Store hints of other systems (`partition`, `largepartition`, …): kept, shown, without effect. */
  readonly hints: Readonly<Record<string, Value>>;
}

/** A column of a class, own or inherited. */
export interface Column extends ColumnSpec {
  /** Unique in the tenant, and never reused. */
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
  /**
   * Columns that the platform keeps for records. They are neither in `columns` nor in `SELECT *`. A column of the class
   * with the same name, in any case, replaces such a column. Absent: there are none.
   */
  readonly recordColumns?: readonly Column[];
  readonly keys: readonly string[];
  readonly options: ClassOptions;
  readonly modifiedAtMs: number;
  /** Made and owned by an area. */
  readonly system: boolean;
  readonly guard: ClassGuard | undefined;
  column(name: string): Column | undefined;
}

/**
 * State of a class at one moment: everything that determines how a row is stored, except its values. It is plain data,
 * and is stored with rows that must be written the same way again.
 */
export interface WriteBasis {
  readonly cid: number;
  readonly keys: readonly string[];
  readonly keyMode: KeyMode;
  /** Columns in their order, each with its number. */
  readonly columns: readonly (readonly [name: string, number: number])[];
  /** Triggers that run before a write, in their order. */
  readonly triggers: readonly TriggerDefinition[];
}

/** All classes of one tenant as this controller knows them, in memory. */
export interface ClassCatalog {
  readonly revision: number;
  get(path: string): ClassView | undefined;
  /** Basis of the class as it is now; `undefined` if there is no such class. */
  basis(path: string): WriteBasis | undefined;
  byCid(cid: number): ClassView | undefined;
  byLabel(label: string): readonly ClassView[];
  /** The class and all its subclasses; empty when there is no class at `path`. `/` means all classes. */
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
 * Rules of MQL for objects of a system class. The functions call the service of the owner, and refuse what it would
 * refuse. A change without a function is refused.
 */
export interface ClassGuard {
  /** Right to read the objects. */
  readonly reading: ClassReading;
  /**
   * Hides objects from some principals, as the owner's service does. No read for such a principal shows them. Absent:
   * rules alone decide.
   */
  readonly limit?: RowLimit;
  /** Permission that the owner's service requires, checked before each function. Required if there is a function. */
  readonly permission?: Permission;
  insert?(principal: Principal, rows: readonly Row[]): Promise<readonly string[]>;
  update?(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean>;
  remove?(principal: Principal, ids: readonly string[]): Promise<number>;
}

/**
 * One object as read. `values` has every set column, also those of `recordColumns`, but no pseudo columns. It also has
 * sealed columns, because owners need them; MQL never sees them.
 */
export interface ObjectRow {
  /** Whole, as in `linux:h1`. */
  readonly id: string;
  readonly class: ClassView;
  readonly values: Row;
  /** Time of the latest write; of a record its own time. */
  readonly vtimeMs: number;
  /** Time of the first insert. */
  readonly ctimeMs: number;
}

/**
 * `add` and `take` are for sets and lists (elements) and maps (entries; `take` by key, or by the keys of an object).
 */
export interface Edit {
  readonly column: string;
  readonly operation: "set" | "add" | "take";
  readonly value: Value | undefined;
}

/** Names one object. `class` selects one of several classes with the same label. */
export interface ObjectRef {
  readonly id: string;
  readonly class?: string;
}

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
   * For an upsert with `writeUs`: an object with an earlier time becomes what the row says. Values and relations that
   * the row does not name are removed, except those of these columns and relation types. Absent: none are.
   */
  readonly wholeBut?: ReadonlySet<string> | undefined;
}

/** A row whose object does not exist after its write. */
export interface Unstored {
  /** Whole. */
  readonly id: string;
  /**
   * `removed`: the object was removed at the time of the write or later. `history`: the same in a class with versions;
   * the row is stored as a version. `ended`: the ttl of the class was over before the write.
   */
  readonly reason: "removed" | "history" | "ended";
}

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
}

/**
 * A read. All conditions of `where` must hold. Indexes narrow the read where possible, so it may return more than
 * asked; the caller checks again.
 */
export interface ReadRequest {
  readonly class: string;
  readonly subtree: boolean;
  readonly ids?: readonly string[];
  readonly where?: readonly Pushdown[];
  /** Names of the columns that the caller uses; rows may lack the values of other columns. Absent: all columns. */
  readonly columns?: readonly string[];
  /** Records newest first over all classes of the tree. Entities: no promise of order. */
  readonly newestFirst?: boolean;
  /** Maximum number of rows that the caller will take; only a hint for page sizes. */
  readonly expected?: number;
  /**
   * Reads the state of the objects at that time. Only for classes with `options.version`, from the time when they got
   * it. Otherwise `AppError("invalid")` that names the class.
   */
  readonly asOfMs?: number;
  /** Only `inOrder` and `explain` use it. */
  readonly order?: ReadOrder;
  readonly signal?: AbortSignal;
}

/** Order by the index of a column, or of `vtime` or `mtime`. */
export interface ReadOrder {
  readonly column: string;
  readonly descending: boolean;
  /** First value, included; absent: the first of all. */
  readonly from?: number;
  /** Id of an object whose value is `from`. Objects up to it in the order may be left out. */
  readonly behind?: string;
}

export interface OrderedRequest extends ReadRequest {
  readonly order: ReadOrder;
  /** Number of rows that the caller takes if every row passes. */
  readonly expected: number;
}

export interface OrderedRead {
  /** The objects with a value in the column, in its order. Integers beyond 2^53 have no order among themselves. */
  readonly pages: AsyncIterable<readonly ObjectRow[]>;
  /** True if all pages had objects with equal values by id, in the same direction. See `NumberOrder`. */
  isById(): boolean;
  /** Call after the last page: true if all objects were read and the read was not given up. */
  isWhole(): boolean;
}

/** Objects of a class or tree, to be counted. */
export interface CountRequest extends Pick<ReadRequest, "class" | "subtree" | "where" | "signal"> {
  /** Counts for each value of this column; absent: all together. */
  readonly by?: string;
}

/** A part of a count. One value may have several parts. */
export interface Tally {
  /** The value that is counted. Absent for objects without a value, and if the count is not by value. */
  readonly value?: Value;
  readonly count: number;
}

export interface EdgeRequest {
  /** `out`: edges from the named objects; `in`: edges to them. */
  readonly direction: "out" | "in";
  /** All types when absent. */
  readonly type?: string;
  /**
   * Reads the edges at that time, by the rules of `ReadRequest.asOfMs`. Leaves out edges from or to objects of classes
   * without versions.
   */
  readonly asOfMs?: number;
  readonly signal?: AbortSignal;
}

export interface ObjectEdge {
  readonly type: string;
  /** Whole ids. */
  readonly source: string;
  readonly target: string;
  /** Class paths. They are needed because objects of several classes can have the same id. */
  readonly sourceClass: string;
  readonly targetClass: string;
  /** Time of the write that last made the edge. */
  readonly timeMs: number;
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

export type Pushdown =
  /** The value equals one of `values`. A set, list or map contains one of them as element or key. */
  | { readonly kind: "equals"; readonly column: string; readonly values: readonly Value[] }
  /** Numbers or times in a range that includes both ends; an absent end is open. `vtime`, `ctime` count as columns. */
  | { readonly kind: "range"; readonly column: string; readonly from?: number; readonly to?: number }
  /** Every word occurs in the full text of the object; a word that ends in `*` is a prefix. */
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** A word of the full text matches `pattern`, such as `web*` or `*uie*`. */
  | WordPattern;

export interface WordPattern {
  readonly kind: "pattern";
  /** The pattern in the normal form of words; `*` stands for any text. */
  readonly pattern: string;
  /** All matching words of the index. Absent: they are unknown or too many. Callers do not set it. */
  readonly words?: readonly string[];
}

/** The explanation of a read, for `EXPLAIN`: one line per step, such as `index host = web-1`, `scan of class /x`. */
export interface ReadExplanation {
  readonly steps: readonly string[];
  /** The pushdowns that narrow the read. */
  readonly used: readonly Pushdown[];
}

/**
 * State of an index. `write-only`: not every controller fills it yet. `backfill`: older objects are being added.
 * `ready`: queries use it. `retiring`: it is about to be dropped.
 */
export interface IndexStatus {
  /** The class that defined the index, or one of its subclasses. */
  readonly class: string;
  /** Absent for the words that come with `autosearch`. */
  readonly column?: string;
  readonly state: "write-only" | "backfill" | "ready" | "retiring";
  /** During `backfill`: number of objects added so far. */
  readonly done?: number;
  /** During `backfill`: number of objects to add; absent until they are counted. */
  readonly total?: number;
  /** Reason why the index will not become ready. */
  readonly problem?: string;
}

/** A change of an object. Delivered at least once; (id, timeMs) is its identity. */
export interface ObjectChangeEvent {
  readonly tenant: string;
  readonly class: string;
  readonly id: string;
  readonly timeMs: number;
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly fields: Row;
  readonly traceparent: string;
  /** Number of triggers whose writes led to this change, one after the other; absent: none. */
  readonly steps?: number;
  /** Versions of the triggers that run after the change, in order. Absent: none, or stored before this member. */
  readonly triggers?: readonly TriggerVersion[];
  /** Only for subscriptions to whole objects. Absent if it was too large to be stored with the event. */
  readonly whole?: WholeChange;
}

/** An object around a change, without sealed columns. */
export interface WholeChange {
  /** After the write, or before the removal. */
  readonly object: Pick<ObjectRow, "values" | "vtimeMs" | "ctimeMs">;
  /** Columns that an update wrote, with their values before it; `null` if not set. Absent for other changes. */
  readonly before?: Pick<ObjectRow, "values" | "vtimeMs">;
  /** Members of `fields` that are edge types with ids of targets. */
  readonly relations: readonly string[];
}

/** A change for listeners in this process. */
export interface ObjectChange extends Omit<ObjectChangeEvent, "whole">, WholeChange {
  /** True if a trigger that ran before the write asked to announce it. */
  readonly announced?: boolean;
}

/** A text that runs before or after each write of an object of a class and of its subclasses. */
export interface TriggerDefinition {
  /** Class path. */
  readonly class: string;
  readonly name: string;
  readonly text: string;
  readonly language: "lua" | "javascript";
  /** True: runs before the write and may change or refuse it. False: runs after it. */
  readonly before: boolean;
  /** Triggers run from the lowest level to the highest. */
  readonly level: number;
  readonly disabled: boolean;
  /** The trigger runs with the current rights of this user. */
  readonly author: string;
  /** Unique among the versions of a trigger. */
  readonly modifiedAtMs: number;
  /** `modifiedAtMs` of the first version. Absent in triggers that were stored before this member existed. */
  readonly sinceMs?: number;
}

/** One version of a trigger. */
export interface TriggerVersion extends Pick<TriggerDefinition, "class" | "name"> {
  /** `modifiedAtMs` of the version. */
  readonly atMs: number;
}

/** A write as triggers see it before it is made, without sealed columns. */
export interface TriggeredWrite {
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly class: string;
  /** Whole. */
  readonly id: string;
  /** The object as it would be written, with the relations that the write names. For a removal, the object as it is. */
  readonly object: Row;
  /** Absent for a new one. */
  readonly old: Row | undefined;
}

export interface TriggerOutcome {
  /** The object as it is to be written. */
  readonly object: Row;
  /** True if the change is to be announced. */
  readonly announced: boolean;
}

/** Runs the triggers of classes; given at the assembly. */
export interface ObjectTriggers {
  /**
   * Runs the triggers in their order, each on the result of the one before. `AppError("invalid")` refuses the write.
   * The principal's `chain` includes this step. Other writes of the object wait until it ends.
   */
  before(principal: Principal, triggers: readonly TriggerDefinition[], write: TriggeredWrite): Promise<TriggerOutcome>;
  /**
   * Takes changes of one tenant, like `ChangeSubscription.deliver`. `triggersOf` returns the triggers that run after a
   * change, in their order.
   */
  after(
    events: readonly ObjectChangeEvent[],
    triggersOf: (event: ObjectChangeEvent) => Promise<readonly TriggerDefinition[]>,
  ): Promise<void>;
}

/** A subscription to every change of the objects of some classes, even if the controller that made it fails. */
export interface ChangeSubscription {
  /** Letters, digits, `.`, `_`, `-`. Controllers that subscribe by the same name share the work. */
  readonly name: string;
  /** Class paths. A path with a slash at its end stands for the class and all classes below it. */
  readonly classes: readonly string[];
  /**
   * Called at least once for each write that was answered; (id, timeMs) identifies repetitions. The events of one
   * controller come in the order of its writes while it lives. The call is repeated if it rejects or does not resolve
   * within `CHANGE_DELIVERY_DEADLINE_MS`. After a crash it may receive a write that was never answered. That write may
   * not even have been made, if a later write of the same object was.
   */
  readonly deliver: (events: readonly ObjectChangeEvent[]) => Promise<void>;
  /** Maximum number of events in one call. Those of one write stay together. Default: `CHANGE_DELIVERY_EVENTS`. */
  readonly eventsAtOnce?: number;
}

export type ClassChange =
  | { readonly kind: "add column"; readonly column: ColumnSpec }
  | { readonly kind: "drop column"; readonly name: string }
  | { readonly kind: "add index" | "drop index" | "add key" | "drop key"; readonly name: string }
  | { readonly kind: "set options"; readonly options: Partial<ClassOptions> };
