import type { ClassKind, ColumnSpec, ColumnType, EdgeType, KeyMode } from "./types.ts";
import type { Value } from "../../../common/value.ts";

/** A class as it lies in the key-value store, without what it inherits. */
export interface ClassDefinition {
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
 * `write-only`: kept by writers, but older objects are not in it yet. `ready`: queries use it. `retiring`: kept by writers, as queries of another
 * controller may still use it; about to be dropped.
 */
export type IndexState = "write-only" | "ready" | "retiring";

/** Given to each index once: one that is dropped and made again is another one. 0 where it is absent. */
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
 * A slot with numbers of a column that is not indexed any more. They have times of their own, which a number of another column would lose to,
 * so only the same column can have the slot again.
 */
export interface RetiredSlot {
  readonly slot: number;
  /** Number of the column. */
  readonly column: number;
}

export interface OptionsDefinition {
  /** Absent: by the keys. */
  readonly keyMode?: KeyMode;
  readonly ttlSeconds?: number;
  /** The longest ttl the class ever had; absent when it was ever without one. Nothing in it lives longer after its write. */
  readonly ttlLongestSeconds?: number;
  readonly version: boolean;
  readonly autosearch: boolean;
  /** The index of words that comes with `autosearch`. */
  readonly words?: NumberedIndex;
  readonly alias?: string;
  readonly nickname?: string;
  readonly remedy?: string;
  readonly hints: Readonly<Record<string, Value>>;
}

/** Gives numbers once. Every change of a definition writes it, which puts all changes of a tenant in one order. */
export interface Counter {
  readonly nextCid: number;
  readonly nextColumn: number;
  /** Names the change that wrote it, so that its author can tell after an unknown outcome. */
  readonly change: string;
}

/** All definitions of a tenant at one moment. */
export interface Definitions {
  readonly counter: Counter | undefined;
  /** 0 while there is none. */
  readonly counterRevision: number;
  readonly classes: ReadonlyMap<string, ClassDefinition>;
  readonly edgeTypes: ReadonlyMap<string, EdgeType>;
  /** By path: classes that somebody is about to drop. */
  readonly dropping: ReadonlyMap<string, DroppingMark>;
  /** By name. */
  readonly subscriptions: ReadonlyMap<string, SubscriptionDefinition>;
}

/** Who is to be told of changes of objects. */
export interface SubscriptionDefinition {
  readonly name: string;
  /** Paths; one with a slash at its end stands for the class and all below it. */
  readonly classes: readonly string[];
}

export interface DroppingMark {
  readonly revision: number;
  /** Of whoever made it. */
  readonly lease: string | undefined;
}

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

/** Kept by the platform, not stored as columns; ignored when written. */
export const PSEUDO_COLUMNS: ReadonlySet<string> = new Set(["id", "class", "day", "vtime", "ctime", "mtime"]);

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
