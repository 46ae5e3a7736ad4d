import type { Stamped } from "../../../../common/revisions.ts";
import type { Value } from "../../../../common/value.ts";
import { FIELDS_OF_ALL, MARKS_FIELD, RAW_BYTES_FIELD } from "../../permissions/index.ts";
import type { ClassKind, ColumnSpec, ColumnType, EdgeType, KeyMode, TriggerDefinition } from "../types.ts";

/** A class as stored in the key-value store, without inherited parts. */
export interface ClassDefinition extends Stamped {
  readonly cid: number;
  readonly path: string;
  readonly kind: ClassKind;
  readonly columns: readonly ColumnDefinition[];
  readonly keys: readonly string[];
  readonly indexes: readonly IndexDefinition[];
  /** Slots of indexes that were dropped. */
  readonly retiredSlots?: readonly RetiredSlot[];
  readonly options: OptionsDefinition;
  readonly modifiedAtMs: number;
  readonly system: boolean;
}

export interface ColumnDefinition extends ColumnSpec {
  readonly number: number;
}

/**
 * `write-only`: writers fill it, but older objects are missing. `ready`: queries use it. `retiring`: it is about to be
 * dropped; writers still fill it, because queries of another controller may use it.
 */
export type IndexState = "write-only" | "ready" | "retiring";

/** `number` is unique for each index. An index that is dropped and made again gets a new one. Absent: 0. */
export interface NumberedIndex {
  readonly state: IndexState;
  readonly number?: number;
}

/** Over an own or an inherited column. */
export interface IndexDefinition extends NumberedIndex {
  readonly column: string;
  /** Numeric slot of the object store, for columns of numbers and times while slots last. */
  readonly slot?: number;
}

/**
 * A slot that has numbers of a column which is not indexed any more. These may have later times than the numbers of
 * another column, which would lose. So only the same column gets the slot again.
 */
export interface RetiredSlot {
  readonly slot: number;
  /** Number of the column. */
  readonly column: number;
}

export interface OptionsDefinition {
  /** Absent: the keys decide. */
  readonly keyMode?: KeyMode;
  /** `FOR_EVER` overrides the ttl of the class above. Absent: that of the class above. */
  readonly ttlSeconds?: number;
  /** Absent: as in the class above. */
  readonly version?: boolean;
  /** Like `ttlSeconds`, for superseded versions. */
  readonly versionTtlSeconds?: number;
  /** Absent: no version ended earlier than the option now says. */
  readonly versionTtlFormer?: FormerVersionTtl;
  /** Absent: that of the class above. */
  readonly timeZone?: string;
  /** Like `version`. */
  readonly autosearch?: boolean;
  /**
   * The index of words, if the class sets `autosearch` itself. For an inherited index: present and `retiring` while
   * queries stop using it for this class.
   */
  readonly words?: NumberedIndex;
  readonly alias?: string;
  readonly nickname?: string;
  readonly remedy?: string;
  readonly hints: Readonly<Record<string, Value>>;
}

/** A former ttl: versions that were superseded until `untilMs` may have expired after `seconds`. */
export interface FormerVersionTtl {
  readonly seconds: number;
  readonly untilMs: number;
}

/**
 * Counter for numbers. Every change of a definition also writes it, which puts all changes of a tenant in one order.
 */
export interface Counter {
  readonly nextCid: number;
  readonly nextColumn: number;
  /** Name of the change that wrote it. By the name, the author recognises its change after an unknown outcome. */
  readonly change: string;
}

/** All definitions of a tenant at one moment. */
export interface Definitions {
  readonly counter: Counter | undefined;
  /** 0 while there is none. */
  readonly counterRevision: number;
  readonly classes: ReadonlyMap<string, ClassDefinition>;
  readonly edgeTypes: ReadonlyMap<string, EdgeType>;
  /** Classes that are about to be dropped, by path. */
  readonly dropping: ReadonlyMap<string, DroppingMark>;
  /** By name. */
  readonly subscriptions: ReadonlyMap<string, SubscriptionDefinition>;
  /** By `triggerName`. */
  readonly triggers: ReadonlyMap<string, TriggerDefinition>;
}

/** A durable subscription to changes of objects. */
export interface SubscriptionDefinition {
  readonly name: string;
  /** Class paths. A path with a slash at its end means the class and all classes below it. */
  readonly classes: readonly string[];
  /** True if its events contain the whole object, and its state before. */
  readonly whole?: boolean;
}

export interface DroppingMark {
  readonly revision: number;
  /** Lease of the controller that made the mark; `undefined`: none. */
  readonly lease: string | undefined;
}

/** A ttl that never ends, in definitions. */
export const FOR_EVER = -1;
export const ROOT_CID = 1;
export const TAGS_COLUMN = "tags";
/** Numbers below belong to the platform's own columns. */
export const FIRST_COLUMN_NUMBER = 16;

/** The column every class inherits from the root of its tenant. */
export const TAGS: ColumnDefinition = {
  name: TAGS_COLUMN,
  type: "set",
  elements: ["varchar"],
  title: "Tags",
  number: 1,
};

/**
 * Columns of every class of records that has no column of that name itself. Only records that were cut or malformed have
 * values of them.
 */
export const RECORD_COLUMNS: readonly ColumnDefinition[] = [
  { name: MARKS_FIELD, type: "set", elements: ["varchar"], title: "Marks: cut, malformed", number: 2 },
  { name: RAW_BYTES_FIELD, type: "blob", title: "Raw bytes of a malformed record", number: 3 },
];

/**
 * Number of the index of tags at the root since it has branches (`branchTerms`). An index without a number is older,
 * and objects lack its branches.
 */
export const TAGS_INDEX_NUMBER = 1;

/** Columns that the platform keeps, and does not store as columns. Values that are written to them are ignored. */
export const PSEUDO_COLUMNS = FIELDS_OF_ALL;

const SLOT_TYPES: ReadonlySet<ColumnType> = new Set([
  "int",
  "bigint",
  "smallint",
  "long",
  "varint",
  "float",
  "double",
  "timestamp",
]);
const UNINDEXED_TYPES: ReadonlySet<ColumnType> = new Set(["blob", "bucket", "bitlog"]);
const TEXT_TYPES: ReadonlySet<ColumnType> = new Set(["varchar", "text"]);

export function takesSlot(type: ColumnType): boolean {
  return SLOT_TYPES.has(type);
}

export function canBeIndexed(type: ColumnType): boolean {
  return !UNINDEXED_TYPES.has(type);
}

export function hasWords(type: ColumnType): boolean {
  return TEXT_TYPES.has(type);
}

/**
 * True if words of objects of the class are searched. `lineage` is the class and those above it, the class first. The
 * platform's own classes inherit nothing.
 */
export function hasAutosearch(lineage: readonly ClassDefinition[]): boolean {
  for (const { options, system } of lineage)
    if (options.autosearch !== undefined || system) return options.autosearch ?? false;
  return false;
}

/** The path one step up; `undefined` for a path of one component. */
export function parentPath(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  return slash <= 0 ? undefined : path.slice(0, slash);
}

export function lastComponent(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function isBelow(path: string, root: string): boolean {
  return root === "/" || path.startsWith(`${root}/`);
}
