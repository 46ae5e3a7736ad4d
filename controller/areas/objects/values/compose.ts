import { VERSION_END_LATE_MS } from "../../../../common/limits.ts";
import type { Row, Value } from "../../../../common/value.ts";
import type { EdgeEnd, Entity, EntityChange } from "../../../store/objects.ts";
import { TAGS } from "../definitions/definition.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import { CREATED_CELL } from "./celllayout.ts";
import { ASSIGNED_CELL, CLEARED_CELL, elementCellKey, encodeCell, isClearedBase } from "./codec.ts";
import { createdMs, elementCells } from "./entity.ts";
import {
  branchTerms,
  checkIndexedValues,
  countIndexedValues,
  mayBeCut,
  sharedTerms,
  slotNumber,
  valueTerms,
  wordTerms,
} from "./terms.ts";
import { canonicalText, isObject } from "./values.ts";
import { encodeVersion } from "./versions.ts";

/** An edit with the canonical form of its value. The value of `take` is a list of elements or keys. */
export interface ColumnEdit {
  readonly column: LoadedColumn;
  readonly operation: "set" | "add" | "take";
  readonly value: Value | undefined;
}

export interface EntityWrite {
  readonly view: LoadedClass;
  /** The part of the id after the colon. */
  readonly key: string;
  readonly timeUs: number;
  readonly edits: readonly ColumnEdit[];
  /** The object before the write; absent for a new one. */
  readonly old: { readonly entity: Entity; readonly row: Row } | undefined;
  /** For a backdated write: the object at `timeUs`, which its version is based on. Absent: `old`. */
  readonly past?: Pick<EntityWrite, "old">;
  readonly birth: boolean;
  /** True if the id was just generated: no other writer has it. */
  readonly fresh: boolean;
  readonly addEdges?: readonly EdgeEnd[];
  readonly dropEdges?: readonly EdgeEnd[];
  /** Time of the first insert. Absent: the time that the object has, or for a new object the time of the write. */
  readonly createdMs?: number | undefined;
  /** True if the object already has a version of that time. That version is kept. */
  readonly hasVersion?: boolean | undefined;
}

export interface ComposedWrite {
  readonly change: EntityChange;
  /** The object after the write, as this controller knows it. */
  readonly row: Row;
  /** Terms of changed columns that other columns of the object may need too. */
  readonly shared: ReadonlySet<string> | undefined;
  /** Drops terms that several columns share and no column needs any more. Absent when there are none. */
  readonly unneeded: EntityChange | undefined;
}

/** Composes the write of one entity. It has only the cells, terms and numbers that the write sets. */
export function compose(write: EntityWrite): ComposedWrite {
  const { view, old, timeUs } = write;
  const parts = partsOf(write);
  parts.finish();
  const change: { -readonly [K in keyof EntityChange]: EntityChange[K] } = {
    key: { cid: view.cid, id: write.key },
    timeUs,
    cells: parts.cells,
    addTerms: [...parts.addTerms],
    numbers: parts.numbers,
  };
  if (write.birth) change.birth = true;
  // A write that is not above the stored times may lose to them, so terms stay: writes.test.ts, "of two writes at one
  // time".
  if (old !== undefined && old.entity.lastUs < timeUs) change.dropTerms = [...parts.dropTerms];
  if (write.addEdges !== undefined) change.addEdges = write.addEdges;
  if (write.dropEdges !== undefined) change.dropEdges = write.dropEdges;
  if (view.options.version) Object.assign(change, versionOf(write, parts.row));
  const endMs = endOf(view, timeUs, old?.entity);
  if (endMs !== undefined) change.endsAtMs = endMs;
  return { change, row: parts.row, shared: parts.shared, unneeded: unneeded(write, parts) };
}

function partsOf(write: EntityWrite): Parts {
  const parts = new Parts(write);
  for (const edit of write.edits) parts.edit(edit);
  return parts;
}

/**
 * A version with changes of edges never expires, because reads of earlier times need every change of an edge. A
 * backdated version never expires either, because it may have been superseded before.
 */
function versionOf(
  write: EntityWrite,
  row: Row,
): Pick<EntityChange, "version" | "versionStays" | "versionExpiresAtMs" | "endVersionsAtMs"> {
  const { view, timeUs, addEdges = [], dropEdges = [] } = write;
  if (write.hasVersion === true) return supersededEnd(view, timeUs);
  const { old } = write.past ?? write;
  const endMs = endsAtMs(view, timeUs);
  const version = encodeVersion(view, {
    row: write.past === undefined ? row : partsOf({ ...write, old }).row,
    ctimeMs: write.createdMs ?? (old && createdMs(old.entity)),
    untilMs: endMs,
    added: addEdges,
    dropped: dropEdges,
  });
  if (write.past !== undefined || addEdges.length > 0 || dropEdges.length > 0)
    return { version, versionStays: true, ...supersededEnd(view, timeUs) };
  const { endVersionsAtMs } = endMs === undefined ? {} : supersededEnd(view, endMs * 1_000);
  return {
    version,
    ...(endVersionsAtMs === undefined ? {} : { versionExpiresAtMs: endVersionsAtMs }),
    ...supersededEnd(view, timeUs),
  };
}

/**
 * Drops terms with the time of the object that was read, not of this write. A concurrent writer that added such a term
 * has a later time and keeps it. If it instead finds this write's time above its own, it adds the term again.
 */
function unneeded({ view, key, old, timeUs }: EntityWrite, parts: Parts): EntityChange | undefined {
  if (old === undefined || parts.dropShared.size === 0 || old.entity.lastUs >= timeUs) return undefined;
  return { key: { cid: view.cid, id: key }, timeUs: old.entity.lastUs, dropTerms: [...parts.dropShared] };
}

/** Expiry in ms of the versions that a write at `timeUs` supersedes; empty: never. */
export function supersededEnd(view: LoadedClass, timeUs: number): Pick<EntityChange, "endVersionsAtMs"> {
  const { versionTtlSeconds } = view.options;
  if (versionTtlSeconds === undefined) return {};
  return { endVersionsAtMs: Math.floor(timeUs / 1_000) + versionTtlSeconds * 1_000 + VERSION_END_LATE_MS };
}

/**
 * Time in ms at which an object or record expires by the ttl of its class if its last write was at `timeUs`;
 * `undefined`: never.
 */
export function endsAtMs({ options: { ttlSeconds } }: LoadedClass, timeUs: number): number | undefined {
  return ttlSeconds === undefined ? undefined : Math.floor(timeUs / 1_000) + Math.ceil(ttlSeconds * 1_000);
}

/**
 * Each write sets the expiry of the whole object. In a class without a ttl, the next write removes an expiry that the
 * object still has.
 */
function endOf(view: LoadedClass, timeUs: number, old: Entity | undefined): number | undefined {
  const atMs = endsAtMs(view, timeUs);
  return atMs === undefined && (old?.endsAtMs ?? Infinity) !== Infinity ? Infinity : atMs;
}

/** Collects the parts of a change from its edits. */
class Parts {
  readonly cells = new Map<string, Uint8Array | undefined>();
  readonly addTerms: Set<string>;
  readonly dropTerms = new Set<string>();
  readonly dropShared = new Set<string>();
  shared: ReadonlySet<string> | undefined;
  readonly numbers: Map<number, number | undefined>;
  readonly row: Row;
  readonly #write: EntityWrite;
  #wordsTouched = false;
  #tagsTouched = false;
  #indexTouched = false;

  constructor(write: EntityWrite) {
    this.#write = write;
    this.row = { ...write.old?.row };
    this.addTerms = new Set(write.birth ? write.view.terms : []);
    this.numbers = new Map([[0, Math.floor(write.timeUs / 1_000)]]);
  }

  edit(edit: ColumnEdit): void {
    const { column } = edit;
    const before = this.row[column.name];
    const after = this.#kept(edit, edited(edit, before));
    if (after === undefined) delete this.row[column.name];
    else this.row[column.name] = after;
    if (column.type === "set" || column.type === "map") this.#collection(edit);
    else if (after !== undefined) this.cells.set(column.cellKey, encodeCell(column.type, after, column.name));
    else if (this.#write.old !== undefined || this.cells.has(column.cellKey)) this.cells.set(column.cellKey, undefined);
    if (column.indexed) this.#index(edit, before, after);
    this.#tagsTouched ||= column.number === TAGS.number;
    this.#wordsTouched ||=
      this.#write.view.wordColumns.length > 0 && (column.type === "varchar" || column.type === "text");
  }

  finish(): void {
    const { view, old, birth } = this.#write;
    if (this.#indexTouched) checkIndexedValues(view, countIndexedValues(view, this.row));
    if (this.#wordsTouched)
      this.#exchangeShared(old === undefined ? [] : wordTerms(view, old.row), wordTerms(view, this.row));
    const before = this.#tagsTouched && old !== undefined ? branchTerms(old.row) : [];
    const after = this.#tagsTouched ? branchTerms(this.row) : [];
    this.#exchangeShared(before, after);
    // Tags without branches share nothing: writes.test.ts, "of many writers on one object".
    if (this.#wordsTouched || before.length > 0 || after.length > 0) this.shared = new Set(sharedTerms(view, this.row));
    const madeMs = this.#write.createdMs ?? (old && createdMs(old.entity));
    if (birth && madeMs !== undefined) this.cells.set(CREATED_CELL, encodeCell("timestamp", madeMs, "ctime"));
  }

  /** A set or map that was never assigned as a whole is unset when its last element is taken. Reads see the same. */
  #kept({ column, operation }: ColumnEdit, after: Value | undefined): Value | undefined {
    if (operation !== "take" || column.type === "list" || after === undefined || elementCells(column, after).length > 0)
      return after;
    const base = this.cells.get(column.cellKey) ?? this.#write.old?.entity.cells.get(column.cellKey)?.value;
    return base === undefined || isClearedBase(base) ? undefined : after;
  }

  #collection(edit: ColumnEdit): void {
    const { column, operation, value } = edit;
    if (operation === "set") this.#assign(column, value);
    else if (operation === "add")
      for (const [name, cell] of elementCells(column, value))
        this.cells.set(elementCellKey(column.cellKey, name), cell);
    else for (const name of takenNames(value)) this.cells.set(elementCellKey(column.cellKey, name), undefined);
  }

  #assign(column: LoadedColumn, value: Value | undefined): void {
    const { old, fresh } = this.#write;
    const elements = elementCells(column, value);
    const prefix = `${column.cellKey}/`;
    for (const key of [...(old?.entity.cells.keys ?? []), ...this.cells.keys()])
      if (key.startsWith(prefix)) this.cells.set(key, undefined);
    // A new object has no elements of other writers, so a base would hide nothing.
    if (!fresh || (value !== undefined && elements.length === 0))
      this.cells.set(column.cellKey, value === undefined ? CLEARED_CELL : ASSIGNED_CELL);
    for (const [name, cell] of elements) this.cells.set(elementCellKey(column.cellKey, name), cell);
  }

  #index(edit: ColumnEdit, before: Value | undefined, after: Value | undefined): void {
    const { column, operation } = edit;
    if (after !== undefined || this.#write.old !== undefined)
      for (const slot of column.slots) this.numbers.set(slot, slotNumber(after));
    if (typeof after === "object") this.#indexTouched = true;
    if (operation === "add") this.#exchange([], valueTerms(column, edit.value));
    else
      this.#exchange(
        valueTerms(column, before),
        operation === "set" ? valueTerms(column, after) : [],
        valueTerms(column, after),
      );
  }

  #exchangeShared(before: readonly string[], after: readonly string[]): void {
    const staying = new Set(after);
    for (const term of after) {
      this.addTerms.add(term);
      this.dropTerms.delete(term);
    }
    for (const term of before) if (!staying.has(term)) this.dropShared.add(term);
  }

  /** Drops the terms of `before` that are neither added nor kept. */
  #exchange(before: readonly string[], added: readonly string[], kept: readonly string[] = added): void {
    for (const term of added) {
      this.addTerms.add(term);
      this.dropTerms.delete(term);
    }
    if (before.length === 0) return;
    const staying = new Set(kept);
    for (const term of before) {
      // Elements with the same beginning share a cut term, so it is kept. Reads recheck what a stale term finds.
      if (staying.has(term) || mayBeCut(term)) continue;
      this.addTerms.delete(term);
      this.dropTerms.add(term);
    }
  }
}

/** The value of the column after the edit. */
function edited(edit: ColumnEdit, before: Value | undefined): Value | undefined {
  if (edit.operation === "set" || edit.value === undefined) return edit.operation === "set" ? edit.value : before;
  if (edit.column.type === "map") return editedMap(edit, isObject(before) ? before : {}, before);
  const elements: readonly Value[] = Array.isArray(before) ? (before as readonly Value[]) : [];
  const given: readonly Value[] = Array.isArray(edit.value) ? (edit.value as readonly Value[]) : [];
  const names = new Set((edit.operation === "take" ? given : elements).map(canonicalText));
  if (edit.operation === "take")
    return before === undefined ? undefined : elements.filter((element) => !names.has(canonicalText(element)));
  return [
    ...elements,
    ...(edit.column.type === "list" ? given : given.filter((element) => !names.has(canonicalText(element)))),
  ];
}

function editedMap(
  edit: ColumnEdit,
  entries: { readonly [key: string]: Value },
  before: Value | undefined,
): Value | undefined {
  if (edit.operation === "add") return { ...entries, ...(isObject(edit.value) ? edit.value : {}) };
  const taken = new Set(takenNames(edit.value));
  return before === undefined
    ? undefined
    : Object.fromEntries(Object.entries(entries).filter(([key]) => !taken.has(key)));
}

function takenNames(value: Value | undefined): string[] {
  return Array.isArray(value) ? value.map((element: Value) => canonicalText(element)) : [];
}
