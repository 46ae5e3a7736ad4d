import { AppError } from "../../../../common/errors.ts";
import { revisionOf } from "../../../../common/revisions.ts";
import type { SystemClass } from "./system-class.ts";
import type { ClassGuard, ClassKind, ClassOptions, ClassView, Column, KeyMode } from "../types.ts";
import {
  FOR_EVER,
  hasWords,
  lastComponent,
  parentPath,
  RECORD_COLUMNS,
  type ClassDefinition,
  type FormerVersionTtl,
  type IndexDefinition,
} from "./definition.ts";
import { pendingIndexes, type NamedIndex } from "./indexstates.ts";

/** A column and its place in the store. */
export interface LoadedColumn extends Column {
  /** Key of its cell; elements of sets and maps have `<cellKey>/<element>`. */
  readonly cellKey: string;
  /** Its place among the columns of the class. */
  readonly ordinal: number;
  /** Numeric slots of the column's indexes in this class and in those above. Writers fill all of them. */
  readonly slots: readonly number[];
  /** The slot that queries may use; absent: none. */
  readonly slot: number | undefined;
  /** True if queries may use the index of the column. */
  readonly indexReady: boolean;
}

/** The view of a class with the members that this area needs. */
export class LoadedClass implements ClassView {
  readonly cid: number;
  readonly path: string;
  readonly label: string;
  readonly parent: string | undefined;
  readonly kind: ClassKind;
  readonly columns: readonly LoadedColumn[];
  readonly recordColumns: readonly LoadedColumn[];
  readonly keys: readonly string[];
  readonly options: ClassOptions;
  readonly modifiedAtMs: number;
  readonly revision: string;
  readonly system: boolean;
  readonly guard: ClassGuard | undefined;
  readonly provide: SystemClass["provide"];
  readonly definition: ClassDefinition;
  readonly above: LoadedClass | undefined;
  /** Terms that every object of the class has. */
  readonly terms: readonly string[];
  readonly wordsReady: boolean;
  /** Former ttls of versions, of this class and of those above, because the class may have inherited the option. */
  readonly formerVersionTtls: readonly FormerVersionTtl[];
  /** Own indexes that lack older objects. */
  readonly pendingIndexes: readonly NamedIndex[];
  readonly wordColumns: readonly LoadedColumn[];
  readonly #byName: ReadonlyMap<string, LoadedColumn>;
  readonly #byNumber: ReadonlyMap<number, LoadedColumn>;
  readonly #byCellKey: ReadonlyMap<string, LoadedColumn>;

  constructor(definition: ClassDefinition, above: LoadedClass | undefined, owner: SystemClass | undefined) {
    this.cid = definition.cid;
    this.path = definition.path;
    this.label = lastComponent(definition.path);
    this.parent = above === undefined ? undefined : parentPath(definition.path);
    this.kind = definition.kind;
    this.keys = [...new Set([...(above?.keys ?? []), ...definition.keys])];
    this.columns = loadColumns(definition, above, new Set(this.keys));
    this.recordColumns = this.kind === "record" ? loadRecordColumns(this.columns) : NO_COLUMNS;
    const from = definition.system ? undefined : above;
    this.options = optionsOf(definition, above, this.keys);
    const { versionTtlFormer } = definition.options;
    this.formerVersionTtls = [...(versionTtlFormer ? [versionTtlFormer] : []), ...(from?.formerVersionTtls ?? [])];
    this.modifiedAtMs = definition.modifiedAtMs;
    this.revision = revisionOf(definition);
    this.system = definition.system;
    this.guard = owner?.guard;
    this.provide = owner?.provide;
    this.definition = definition;
    this.above = above;
    this.terms = [ownTerm(this.cid), ...lineage(above).map((ancestor) => belowTerm(ancestor.cid))];
    this.wordsReady = this.options.autosearch && hasReadyWords(definition, from);
    this.pendingIndexes = pendingIndexes(definition);
    this.wordColumns = this.options.autosearch
      ? this.columns.filter((column) => hasWords(column.type) && !column.sealed)
      : [];
    this.#byName = new Map(this.columns.map((column) => [column.name, column]));
    this.#byNumber = new Map(this.columns.map((column) => [column.number, column]));
    this.#byCellKey = new Map(this.columns.map((column) => [column.cellKey, column]));
  }

  column(name: string): LoadedColumn | undefined {
    return this.#byName.get(name);
  }

  /** The column of `recordColumns` with that name. */
  recordColumn(name: string): LoadedColumn | undefined {
    return this.recordColumns.find((column) => column.name === name);
  }

  /**
   * Time in ms from which on all versions of its objects are kept. Versions that were superseded earlier may have
   * expired.
   */
  versionsSinceMs(nowMs: number): number {
    const { versionTtlSeconds = Infinity } = this.options;
    return this.formerVersionTtls.reduce(
      (sinceMs, { seconds, untilMs }) => Math.max(sinceMs, Math.min(untilMs, nowMs - seconds * 1_000)),
      nowMs - versionTtlSeconds * 1_000,
    );
  }

  columnByNumber(number: number): LoadedColumn | undefined {
    return this.#byNumber.get(number);
  }

  columnByCellKey(key: string): LoadedColumn | undefined {
    return this.#byCellKey.get(key);
  }
}

/** Term of the objects of just this class. */
export function ownTerm(cid: number): string {
  return `c${cid}`;
}

/** Term of the objects of all classes below this one. */
export function belowTerm(cid: number): string {
  return `s${cid}`;
}

function lineage(from: LoadedClass | undefined): LoadedClass[] {
  const classes: LoadedClass[] = [];
  for (let at = from; at !== undefined; at = at.above) classes.push(at);
  return classes;
}

function loadColumns(
  definition: ClassDefinition,
  above: LoadedClass | undefined,
  keys: ReadonlySet<string>,
): LoadedColumn[] {
  const own = new Map(definition.indexes.map((index) => [index.column, index]));
  const inherited = above?.columns ?? [];
  const fresh = definition.columns.map((column) => ({
    ...column,
    definedBy: definition.path,
    cellKey: String(column.number),
    ...UNINDEXED,
  }));
  return [...inherited, ...fresh].map((column, ordinal) => ({
    ...withIndex(column, own.get(column.name)),
    ordinal,
    key: keys.has(column.name),
  }));
}

const NO_COLUMNS: readonly LoadedColumn[] = [];

/** The record columns whose names no column of the class has, in any case. */
function loadRecordColumns(columns: readonly LoadedColumn[]): readonly LoadedColumn[] {
  const taken = LOADED_RECORD_COLUMNS.filter(({ name }) => columns.some((own) => own.name.toLowerCase() === name));
  return taken.length === 0 ? LOADED_RECORD_COLUMNS : LOADED_RECORD_COLUMNS.filter((column) => !taken.includes(column));
}

const UNINDEXED = { indexed: false, indexReady: false, slots: [], slot: undefined };

/** Record columns have no ordinal, because they are not columns of the class. */
const LOADED_RECORD_COLUMNS: readonly LoadedColumn[] = RECORD_COLUMNS.map((column) => ({
  ...column,
  definedBy: "/",
  cellKey: String(column.number),
  ordinal: -1,
  key: false,
  ...UNINDEXED,
}));

type Unplaced = Omit<LoadedColumn, "ordinal" | "key">;

/**
 * Adds the index that the class itself has on the column. Queries may use any ready index of the class or of a class
 * above.
 */
function withIndex(column: Unplaced, index: IndexDefinition | undefined): Unplaced {
  if (index === undefined) return column;
  const ready = index.state === "ready";
  const slots = index.slot === undefined ? column.slots : [...column.slots, index.slot];
  return {
    ...column,
    indexed: true,
    indexReady: column.indexReady || ready,
    slots,
    slot: column.slot ?? (ready ? index.slot : undefined),
  };
}

function optionsOf(definition: ClassDefinition, above: LoadedClass | undefined, keys: readonly string[]): ClassOptions {
  const { options } = definition;
  // Options that a user sets on a class above must not apply to the platform's own classes.
  const inherited = definition.system ? undefined : above?.options;
  const ttlSeconds = options.ttlSeconds ?? inherited?.ttlSeconds;
  const versionTtlSeconds = options.versionTtlSeconds ?? inherited?.versionTtlSeconds;
  return {
    keyMode: options.keyMode ?? defaultKeyMode(definition, above, keys),
    ttlSeconds: ttlSeconds === FOR_EVER ? undefined : ttlSeconds,
    version: options.version ?? inherited?.version ?? false,
    versionTtlSeconds: versionTtlSeconds === FOR_EVER ? undefined : versionTtlSeconds,
    timeZone: options.timeZone ?? inherited?.timeZone,
    autosearch: options.autosearch ?? inherited?.autosearch ?? false,
    alias: options.alias,
    nickname: options.nickname,
    remedy: options.remedy,
    hints: options.hints,
  };
}

/**
 * True if queries may use the index of words, because it has all objects of the class. An inherited index has them,
 * too: it is filled for all classes below the class that defines it.
 */
function hasReadyWords({ options }: ClassDefinition, above: LoadedClass | undefined): boolean {
  if (options.autosearch !== undefined) return options.words?.state === "ready";
  return above !== undefined && above.wordsReady && options.words?.state !== "retiring";
}

/** Inherited keys have the key mode of the class above. */
function defaultKeyMode(definition: ClassDefinition, above: LoadedClass | undefined, keys: readonly string[]): KeyMode {
  if (keys.length === 0) return "uuid";
  if (definition.keys.length === 0 && above !== undefined) return above.options.keyMode;
  return "manu";
}

export function classNotFound(path: string): AppError {
  return new AppError("not_found", `[NotExist] class : ${path} not find !`, { details: { unknown: path } });
}
