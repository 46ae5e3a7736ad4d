import type { ClassDetails, ClassRecord, FieldRecord, Indexing } from "../../../common/api/schema.ts";
import { AppError } from "../../../common/errors.ts";
import {
  type ClassCatalog,
  type ClassView,
  type Column,
  type IndexStatus,
  nameAmong,
  readablePaths,
  unknownClass,
} from "../objects/index.ts";
import { type ClassAccess, classAccess, type Principal } from "../permissions/index.ts";
import { isPseudo, PSEUDO_FIELDS, pseudoType } from "../query/index.ts";
import { baseType, indexOption, typeParameters } from "./field-types.ts";

/**
 * The classes and fields of a tenant as one principal sees them. Classes and fields that it may not read do not exist.
 */
export class VisibleSchema {
  readonly #principal: Principal;
  readonly #catalog: ClassCatalog;
  readonly #indexes: ReadonlyMap<string, IndexStatus>;
  readonly #access = new Map<ClassView, ClassAccess>();
  #below: ReadonlyMap<number, readonly ClassView[]> | undefined;

  /** Without `indexes` the records do not contain the state of the indexes. */
  constructor(principal: Principal, catalog: ClassCatalog, indexes: readonly IndexStatus[] = []) {
    this.#principal = principal;
    this.#catalog = catalog;
    this.#indexes = new Map(indexes.map((status) => [indexKey(status.class, status.column), status]));
  }

  /** Classes ordered by path. */
  get classes(): readonly ClassView[] {
    return this.tree("/");
  }

  tree(path: string): readonly ClassView[] {
    return this.#catalog.tree(path).filter((view) => this.#isReadable(view));
  }

  /** Finds a class by number or path. `AppError("not_found")` if there is none. */
  require(id: string): ClassView {
    const found = this.find(id);
    if (found) return found;
    throw isNumber(id)
      ? new AppError("not_found", `[NotExist] can't find class , cid is ${id} .`)
      : unknownClass(id, readablePaths(this.#principal, this.#catalog));
  }

  find(id: string): ClassView | undefined {
    const view = isNumber(id)
      ? this.#catalog.byCid(Number(id))
      : this.#catalog.get(id.length > 1 ? id.replace(/\/$/, "") : id);
    return view && this.#isReadable(view) ? view : undefined;
  }

  /** The class at the path, or the nearest existing one above it. */
  nearest(path: string): ClassView | undefined {
    for (let at = path; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) {
      const view = this.find(at);
      if (view) return view;
    }
    return undefined;
  }

  byLabel(label: string): readonly ClassView[] {
    return this.#catalog.byLabel(label).filter((view) => this.#isReadable(view));
  }

  /** Classes without a visible class above them. */
  roots(): readonly ClassView[] {
    return this.#childrenOf(-1);
  }

  /** Visible children; invisible classes in between are skipped. */
  children(view: ClassView): readonly ClassView[] {
    return this.#childrenOf(view.cid);
  }

  column(view: ClassView, name: string): Column | undefined {
    const column = view.column(name);
    return column && !column.sealed && !this.#accessTo(view).hidden.has(name) ? column : undefined;
  }

  /**
   * The exact name of a member that is written in any case: a column, otherwise an edge type, otherwise the text
   * itself.
   */
  memberName(view: ClassView, written: string): string {
    if (isPseudo(written) || this.column(view, written) || this.isEdgeType(written)) return written;
    const pseudo = written.toLowerCase();
    if (isPseudo(pseudo)) return pseudo;
    const columns = this.columns(view).map(({ name }) => name);
    const edgeTypes = this.#catalog.edgeTypes().map(({ name }) => name);
    return nameAmong(columns, written) ?? nameAmong(edgeTypes, written) ?? written;
  }

  /** Members that an object of the class can have. */
  namesOf(view: ClassView): readonly string[] {
    return [...PSEUDO_FIELDS, ...[...this.columns(view), ...this.#catalog.edgeTypes()].map(({ name }) => name)];
  }

  isEdgeType(name: string): boolean {
    return this.#catalog.edgeTypes().some((type) => type.name === name);
  }

  record(view: ClassView): ClassRecord {
    const {
      keyMode,
      ttlSeconds = -1,
      alias = "",
      nickname = "",
      remedy = "",
      autosearch,
      version,
      versionTtlSeconds = -1,
      timeZone = "",
      hints,
    } = view.options;
    const below = this.children(view).map((child) => child.path);
    return {
      cid: view.cid,
      pid: this.#parentOf(view),
      name: view.path,
      alias,
      nickname,
      remedy,
      child: below,
      subclass: below,
      fields: [...PSEUDO_FIELDS, ...this.#recordColumns(view), ...this.columns(view)].map(nameOfField),
      keys: view.keys.filter((name) => this.column(view, name) !== undefined),
      keymode: keyMode,
      keymethod: { manu: 0, uuid: 1, md5: 2 }[keyMode],
      kind: view.kind,
      autosearch: Number(autosearch),
      version: Number(version),
      versionttl: versionTtlSeconds,
      time_zone: timeZone,
      loption: hints,
      mtime: view.modifiedAtMs,
      revision: view.revision ?? "",
      tags: [],
      ttl: ttlSeconds,
      vtimebase: "",
    };
  }

  details(view: ClassView): ClassDetails {
    return { ...this.record(view), fields: this.fields(view), ...this.#indexing(view, undefined) };
  }

  /** The fields that every object has, then the columns of the class in their order. */
  fields(view: ClassView): FieldRecord[] {
    const common = { path: view.path, mtime: view.modifiedAtMs };
    const ofRecords = this.#recordColumns(view).map((column) => recordField(column, common));
    const columns = this.columns(view).map((column) => this.#fieldRecord(column, view));
    return [...pseudoFields(common), ...ofRecords, ...columns];
  }

  /** Columns that the platform adds to a class of records, without those that are hidden from the principal. */
  #recordColumns(view: ClassView): readonly Column[] {
    const { recordColumns = [] } = view;
    const isTaken = (name: string): boolean =>
      this.#catalog.edgeTypes().some((type) => type.name.toLowerCase() === name);
    return recordColumns.filter(({ name }) => !isTaken(name) && !this.#accessTo(view).hidden.has(name));
  }

  columns(view: ClassView): readonly Column[] {
    return view.columns.filter((column) => this.column(view, column.name) !== undefined);
  }

  /** Every field once. */
  *allFields(): Generator<FieldRecord> {
    yield* pseudoFields({
      path: this.#principal.ospace,
      mtime: this.#catalog.get(this.#principal.ospace)?.modifiedAtMs ?? 0,
    });
    const known = new Set<number>();
    for (const view of this.classes) {
      for (const column of this.#recordColumns(view)) {
        if (known.has(column.number)) continue;
        known.add(column.number);
        yield recordField(column, { path: this.#principal.ospace, mtime: view.modifiedAtMs });
      }
      for (const column of this.columns(view)) {
        if (known.has(column.number)) continue;
        known.add(column.number);
        yield this.#fieldRecord(column, view);
      }
    }
  }

  #fieldRecord(column: Column, view: ClassView): FieldRecord {
    const { name, type, title = name, indexed, key, definedBy } = column;
    const mtime = (this.#catalog.get(definedBy) ?? view).modifiedAtMs;
    const record = fieldRecord({ name, title, type, path: definedBy, mtime });
    return { ...record, fparam: typeParameters(column), isindex: indexed, iskey: key, ...this.#indexing(view, name) };
  }

  /**
   * The state of the index of a column, or of the words of the class. Searches the class and those above it: the first
   * index that is ready, otherwise the first one.
   */
  #indexing(view: ClassView, column: string | undefined): { readonly indexing?: Indexing } {
    const found: IndexStatus[] = [];
    if (column === undefined && !view.options.autosearch) return {};
    for (
      let at: ClassView | undefined = view;
      at;
      at = at.parent === undefined ? undefined : this.#catalog.get(at.parent)
    ) {
      const status = this.#indexes.get(indexKey(at.path, column));
      if (status) found.push(status);
      if (status && column === undefined) break;
    }
    const best = found.find((status) => status.state === "ready") ?? found[0];
    if (!best) return {};
    const { state, done, total, problem } = best;
    return {
      indexing: {
        state,
        ...(done !== undefined && { done }),
        ...(total !== undefined && { total }),
        ...(problem !== undefined && { problem }),
      },
    };
  }

  #isReadable(view: ClassView): boolean {
    return this.#accessTo(view).readable;
  }

  #accessTo(view: ClassView): ClassAccess {
    let known = this.#access.get(view);
    if (known === undefined) this.#access.set(view, (known = classAccess(this.#principal, view)));
    return known;
  }

  /** Number of the nearest visible class above; -1 if there is none. */
  #parentOf(view: ClassView): number {
    for (let path = view.parent; path !== undefined; ) {
      const above = this.#catalog.get(path);
      if (above && this.#isReadable(above)) return above.cid;
      path = above?.parent;
    }
    return -1;
  }

  #childrenOf(cid: number): readonly ClassView[] {
    this.#below ??= this.#group();
    return this.#below.get(cid) ?? [];
  }

  #group(): ReadonlyMap<number, readonly ClassView[]> {
    const groups = new Map<number, ClassView[]>();
    for (const view of this.classes) {
      const above = this.#parentOf(view);
      const group = groups.get(above);
      if (group) group.push(view);
      else groups.set(above, [view]);
    }
    return groups;
  }
}

function indexKey(path: string, column: string | undefined): string {
  return JSON.stringify([path, column]);
}

function isNumber(id: string): boolean {
  return /^-?\d+$/.test(id);
}

interface PlainField {
  readonly name: string;
  readonly title: string;
  readonly type: string;
  readonly path: string;
  readonly mtime: number;
}

function pseudoFields(of: { readonly path: string; readonly mtime: number }): FieldRecord[] {
  return PSEUDO_FIELDS.map((name) => fieldRecord({ name, title: name, type: pseudoType(name), ...of }));
}

function recordField(column: Column, of: { readonly path: string; readonly mtime: number }): FieldRecord {
  const { name, type } = column;
  return { ...fieldRecord({ name, title: name, type, ...of }), fparam: typeParameters(column) };
}

function nameOfField(field: string | Column): string {
  return typeof field === "string" ? field : field.name;
}

function fieldRecord({ name, title, type, path, mtime }: PlainField): FieldRecord {
  return {
    name,
    colname: name,
    title,
    dispname: title,
    type,
    ftype: type,
    loption: indexOption(type),
    fparam: [],
    isindex: false,
    iskey: false,
    isrel: false,
    note: "",
    remedy: "",
    btype: baseType(type),
    mtime,
    class: path,
  };
}
