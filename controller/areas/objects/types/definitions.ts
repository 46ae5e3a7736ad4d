import type { Row, Value } from "../../../../common/value.ts";
import type { ClassReading, Permission, Principal, RowLimit } from "../../permissions/index.ts";

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
  /** Revision of the class's own definition, without what it inherits. Absent: the class has no stored definition. */
  readonly revision?: string;
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
 * `add` and `take` are for sets and lists (elements) and maps (entries; `take` by key, or by the keys of an object).
 */
export interface Edit {
  readonly column: string;
  readonly operation: "set" | "add" | "take";
  readonly value: Value | undefined;
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

export type ClassChange =
  | { readonly kind: "add column"; readonly column: ColumnSpec }
  | { readonly kind: "drop column"; readonly name: string }
  | { readonly kind: "add index" | "drop index" | "add key" | "drop key"; readonly name: string }
  | { readonly kind: "set options"; readonly options: Partial<ClassOptions> };
