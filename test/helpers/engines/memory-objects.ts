import { createHash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import type { Row, Value } from "../../../common/value.ts";
import {
  canonicalText,
  canonicalValue,
  type ClassCatalog,
  type ClassChange,
  type ClassGuard,
  type ClassOptions,
  type ClassSpec,
  type ClassView,
  type Column,
  type EdgeRequest,
  type EdgeType,
  type Edit,
  type IndexStatus,
  type NewRecord,
  type ObjectChange,
  type ObjectEdge,
  type ObjectRef,
  type ObjectRow,
  type Objects,
  type OrderedRead,
  type OrderedRequest,
  type Pushdown,
  type ReadExplanation,
  type ReadOrder,
  type ReadRequest,
  type UpdateOptions,
  type SystemClass,
} from "../../../controller/areas/objects/index.ts";
import { classAccess, type Principal, requirePermission } from "../../../controller/areas/permissions/index.ts";
import { withEdits } from "../../../controller/areas/query/write/edits.ts";
import { MemoryEdges } from "./memory-edges.ts";

export interface MemoryObjectsOptions {
  readonly nowMs: () => number;
  /** Rows per page; every second page is empty. */
  readonly pageSize?: number;
  /** False: conditions do not narrow a read at all, as the contract allows. True: they narrow it as far as possible. */
  readonly narrows?: boolean;
  /** Ordered reads return this many rows and then give up. Absent: ordered reads are not supported. */
  readonly orderedMost?: number;
}

interface Tenant {
  readonly specs: Map<
    string,
    ClassSpec & { readonly cid: number; readonly guard?: ClassGuard; readonly modifiedAtMs: number }
  >;
  readonly edgeTypes: Map<string, EdgeType>;
  readonly edges: MemoryEdges;
  /** By class path, then by full id. */
  readonly rows: Map<string, Map<string, ObjectRow>>;
  readonly numbers: Map<string, number>;
  views: Map<string, ClassView>;
}

/** For services that need only the classes of row conditions. */
export function noClasses(): MemoryObjects {
  return new MemoryObjects({ nowMs: () => 0 });
}

/** The object database in its simplest form: maps and loops. Results of queries over it can be verified by reading. */
export class MemoryObjects implements Objects {
  readonly #options: MemoryObjectsOptions;
  readonly #tenants = new Map<string, Tenant>();
  readonly #system: SystemClass[] = [];
  #ids = 0;
  #lastMs = 0;
  /** Every requested read. */
  readonly reads: ReadRequest[] = [];

  constructor(options: MemoryObjectsOptions) {
    this.#options = options;
  }

  catalog(principal: Principal): Promise<ClassCatalog> {
    const tenant = this.#tenant(principal);
    const views = [...tenant.views.values()];
    const below = (path: string) =>
      views.filter((view) => path === "/" || view.path === path || view.path.startsWith(`${path}/`));
    return Promise.resolve({
      revision: views.length,
      get: (path) => tenant.views.get(path),
      basis: () => undefined,
      byCid: (cid) => views.find((view) => view.cid === cid),
      byLabel: (label) => views.filter((view) => view.label === label),
      tree: below,
      children: (path) => views.filter((view) => view.parent === path),
      edgeTypes: () => [...tenant.edgeTypes.values()],
    });
  }

  createClass(
    principal: Principal,
    spec: ClassSpec,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<ClassView> {
    requirePermission(principal, "objects:write");
    const tenant = this.#tenant(principal);
    const known = tenant.views.get(spec.path);
    if (known && options.ifNotExists) return Promise.resolve(known);
    if (known) throw new AppError("conflict", `[Valid] class ${spec.path} exists.`);
    tenant.specs.set(spec.path, { ...spec, cid: tenant.specs.size + 1, modifiedAtMs: this.#now() });
    return Promise.resolve(this.#rebuilt(tenant, spec.path));
  }

  alterClass(principal: Principal, path: string, change: ClassChange): Promise<ClassView> {
    requirePermission(principal, "objects:write");
    const tenant = this.#tenant(principal);
    const spec = tenant.specs.get(path);
    if (!spec) throw notFound(path);
    tenant.specs.set(path, { ...spec, ...changed(spec, change) });
    return Promise.resolve(this.#rebuilt(tenant, path));
  }

  dropClass(principal: Principal, path: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    requirePermission(principal, "objects:write");
    const tenant = this.#tenant(principal);
    if (!tenant.specs.has(path)) return options.ifExists ? Promise.resolve() : Promise.reject(notFound(path));
    const isUsed =
      (tenant.rows.get(path)?.size ?? 0) > 0 || [...tenant.specs.keys()].some((other) => other.startsWith(`${path}/`));
    if (isUsed) throw new AppError("conflict", "[Valid]: Class Has Data or Version Data, Can't Drop.");
    tenant.specs.delete(path);
    tenant.views.delete(path);
    return Promise.resolve();
  }

  createEdgeType(
    principal: Principal,
    type: EdgeType,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<void> {
    const { edgeTypes } = this.#tenant(principal);
    if (edgeTypes.has(type.name) && !options.ifNotExists)
      throw new AppError("conflict", `[Valid] edge type ${type.name} exists.`);
    if (!edgeTypes.has(type.name)) edgeTypes.set(type.name, type);
    return Promise.resolve();
  }

  dropEdgeType(principal: Principal, name: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    const gone = this.#tenant(principal).edgeTypes.delete(name);
    if (!gone && !options.ifExists) throw new AppError("not_found", `[NotExist] edge type ${name} does not exist.`);
    return Promise.resolve();
  }

  async *edges(
    principal: Principal,
    refs: readonly ObjectRef[],
    request: EdgeRequest,
  ): AsyncIterable<readonly ObjectEdge[]> {
    const { edges, edgeTypes } = this.#tenant(principal);
    const isThere = (one: Required<ObjectRef>) =>
      classAccess(principal, one.class).readable && this.#table(principal, one.class).has(one.id);
    yield await Promise.resolve(edges.of(refs, request, isThere).filter((edge) => edgeTypes.has(edge.type)));
  }

  // There are no versions.
  history(): AsyncIterable<never> {
    throw new AppError("unsupported", "Versions are not kept here.");
  }

  async *removedObjects(): AsyncIterable<never> {
    // Removed objects leave no trace.
  }

  removed(): AsyncIterable<never> {
    throw new AppError("unsupported", "Versions are not kept here.");
  }

  registerSystemClass(definition: SystemClass): void {
    this.#system.push(definition);
  }

  insert(
    principal: Principal,
    path: string,
    rows: readonly Row[],
    options: { readonly atMs?: number } = {},
  ): Promise<readonly string[]> {
    const view = this.#writable(principal, path);
    const isRelation = (name: string) => view.column(name) === undefined && this.#tenant(principal).edgeTypes.has(name);
    const values = rows.map((row) =>
      canonicalRow(view, Object.fromEntries(Object.entries(row).filter(([name]) => !isRelation(name)))),
    );
    const ids = values.map((row, index) =>
      this.#put(principal, view, { values: row, id: this.#idOf(view, rows[index] ?? {}, row), atMs: options.atMs }),
    );
    for (const [index, id] of ids.entries()) {
      const relations = Object.entries(rows[index] ?? {}).filter(([name]) => isRelation(name));
      for (const [column, value] of relations)
        this.#relate(principal, { id, class: view.path }, { column, operation: "set", value });
    }
    return Promise.resolve(ids);
  }

  #relate(principal: Principal, from: Required<ObjectRef>, edit: Edit): void {
    const tenant = this.#tenant(principal);
    const classOf = (id: string): string => {
      const views = [...tenant.views.values()].filter((view) => id.startsWith(`${view.label}:`));
      const view = views.find(({ path }) => this.#table(principal, path).has(id)) ?? views[0];
      if (view) return view.path;
      throw new AppError("invalid", `[NotExist] Not Found Class For ID ${id}`);
    };
    tenant.edges.write(from, edit, classOf);
  }

  ingest(principal: Principal, path: string, records: readonly NewRecord[]): Promise<readonly string[]> {
    const view = this.#writable(principal, path);
    return Promise.resolve(
      records.map(({ values, timeMs, identity }) =>
        this.#put(principal, view, {
          values: canonicalRow(view, values),
          id: `${view.label}:${timeMs}-${digest(identity)}`,
          atMs: timeMs,
        }),
      ),
    );
  }

  update(
    principal: Principal,
    ref: ObjectRef,
    given: readonly Edit[],
    { compute = () => [] }: UpdateOptions = {},
  ): Promise<boolean> {
    const row = this.#find(principal, ref);
    const computed = row && compute(row);
    if (!row || !computed) return Promise.resolve(false);
    const edits = [...given, ...computed];
    const view = this.#writable(principal, row.class.path);
    const { edgeTypes } = this.#tenant(principal);
    for (const edit of edits)
      if (!view.column(edit.column) && !edgeTypes.has(edit.column))
        throw new AppError("not_found", `Field ${edit.column} Not Exist`);
    const isRelation = (edit: Edit) => view.column(edit.column) === undefined;
    for (const edit of edits.filter(isRelation)) this.#relate(principal, { id: row.id, class: view.path }, edit);
    const values = withEdits(
      row,
      edits.filter((edit) => !isRelation(edit)),
    );
    this.#table(principal, view.path).set(row.id, { ...row, values, vtimeMs: this.#now() });
    return Promise.resolve(true);
  }

  remove(principal: Principal, refs: readonly ObjectRef[]): Promise<number> {
    let count = 0;
    for (const ref of refs) {
      const row = this.#find(principal, ref);
      if (!row) continue;
      this.#writable(principal, row.class.path);
      if (this.#table(principal, row.class.path).delete(row.id)) count += 1;
      this.#tenant(principal).edges.forget({ id: row.id, class: row.class.path });
    }
    return Promise.resolve(count);
  }

  writeTimes(_principal: Principal, refs: readonly (ObjectRef | undefined)[]): Promise<readonly number[]> {
    const timeUs = this.#now() * 1_000;
    return Promise.resolve(refs.map(() => timeUs));
  }

  /** There are no indexes. */
  refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number> {
    return Promise.resolve(refs.filter((ref) => this.#find(principal, ref) !== undefined).length);
  }

  indexStates(): Promise<readonly IndexStatus[]> {
    return Promise.resolve([]);
  }

  get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    return Promise.resolve(refs.map((ref) => this.#find(principal, ref)));
  }

  async *read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]> {
    this.reads.push(request);
    const { views } = this.#tenant(principal);
    const paths = request.subtree ? [...views.keys()].filter((path) => isBelow(path, request.class)) : [request.class];
    const all = paths.flatMap((path) => [...this.#table(principal, path).values()]);
    const kept = all.filter(
      (row) =>
        !(request.ids && !request.ids.includes(row.id)) && (!this.#options.narrows || fits(row, request.where ?? [])),
    );
    if (request.newestFirst) kept.sort((left, right) => right.vtimeMs - left.vtimeMs || (left.id < right.id ? 1 : -1));
    const size = this.#options.pageSize ?? 3;
    for (let at = 0; at < kept.length; at += size) {
      yield await Promise.resolve([]);
      yield kept.slice(at, at + size);
    }
  }

  explain(_principal: Principal, request: ReadRequest): Promise<ReadExplanation> {
    return Promise.resolve({ steps: [`scan of class ${request.class}${request.subtree ? "/" : ""}`], used: [] });
  }

  /** At most `orderedMost` rows, ordered by any column. */
  inOrder(principal: Principal, request: OrderedRequest): Promise<OrderedRead | undefined> {
    const { orderedMost: most } = this.#options;
    return most === undefined
      ? Promise.resolve(undefined)
      : orderedRead(this.read(principal, request), request.order, most);
  }

  estimate(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  count(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  onChange(_listener: (events: readonly ObjectChange[]) => void): () => void {
    return () => undefined;
  }

  #tenant(principal: Principal): Tenant {
    const known = this.#tenants.get(principal.tenant);
    if (known) return known;
    const tenant: Tenant = {
      specs: new Map(),
      edgeTypes: new Map(),
      edges: new MemoryEdges(),
      rows: new Map(),
      numbers: new Map(),
      views: new Map(),
    };
    this.#tenants.set(principal.tenant, tenant);
    const root: ClassSpec = {
      path: principal.ospace,
      columns: [{ name: "tags", type: "set", elements: ["varchar"] }],
      indexes: ["tags"],
    };
    for (const spec of [root, ...this.#system.map((one) => ({ ...one, path: `${principal.ospace}${one.path}` }))]) {
      tenant.specs.set(spec.path, { ...spec, cid: tenant.specs.size + 1, modifiedAtMs: this.#now() });
      this.#rebuilt(tenant, spec.path);
    }
    return tenant;
  }

  #rebuilt(tenant: Tenant, path: string): ClassView {
    tenant.views = new Map([...tenant.specs.keys()].sort().map((one) => [one, viewOf(one, tenant)]));
    for (const [one, rows] of tenant.rows) {
      const view = tenant.views.get(one);
      if (view) for (const row of rows.values()) rows.set(row.id, { ...row, class: view });
    }
    const view = tenant.views.get(path);
    if (!view) throw notFound(path);
    return view;
  }

  #table(principal: Principal, path: string): Map<string, ObjectRow> {
    const { rows } = this.#tenant(principal);
    const table = rows.get(path) ?? new Map<string, ObjectRow>();
    rows.set(path, table);
    return table;
  }

  #find(principal: Principal, ref: ObjectRef): ObjectRow | undefined {
    const paths = ref.class === undefined ? [...this.#tenant(principal).views.keys()] : [ref.class];
    return paths.map((path) => this.#table(principal, path).get(ref.id)).find((row) => row !== undefined);
  }

  #writable(principal: Principal, path: string): ClassView {
    const view = this.#tenant(principal).views.get(path);
    if (!view) throw notFound(path);
    if (!classAccess(principal, path).writable)
      throw new AppError("denied", `${principal.user} may not write ${path}.`);
    return view;
  }

  #idOf(view: ClassView, given: Row, values: Row): string {
    const id = canonicalText(given.id ?? "");
    if (id !== "" && given.id !== null) return id.startsWith(`${view.label}:`) ? id : `${view.label}:${id}`;
    if (view.keys.length === 0) {
      this.#ids += 1;
      return `${view.label}:${String(this.#ids).padStart(8, "0")}`;
    }
    const text = view.keys.map((key) => canonicalText(values[key] ?? "")).join(":");
    return `${view.label}:${view.options.keyMode === "md5" ? digest(text) : text}`;
  }

  #put(
    principal: Principal,
    view: ClassView,
    row: { readonly id: string; readonly values: Row; readonly atMs: number | undefined },
  ): string {
    const table = this.#table(principal, view.path);
    const old = table.get(row.id);
    const vtimeMs = row.atMs ?? this.#now();
    table.set(row.id, {
      id: row.id,
      class: view,
      values: { ...old?.values, ...row.values },
      vtimeMs,
      ctimeMs: old?.ctimeMs ?? vtimeMs,
    });
    return row.id;
  }

  /** Never returns the same time twice, so that the order of writes is visible. */
  #now(): number {
    this.#lastMs = Math.max(this.#options.nowMs(), this.#lastMs + 1);
    return this.#lastMs;
  }
}

const DEFAULT_OPTIONS: ClassOptions = {
  keyMode: "uuid",
  ttlSeconds: undefined,
  version: false,
  versionTtlSeconds: undefined,
  timeZone: undefined,
  autosearch: false,
  alias: undefined,
  nickname: undefined,
  remedy: undefined,
  hints: {},
};

/** `lineage`: from the topmost class down. */
function inheritedOptions(lineage: readonly Pick<ClassSpec, "options">[]): Partial<ClassOptions> {
  const inherited: { -readonly [K in keyof ClassOptions]?: ClassOptions[K] } = {};
  for (const { options = {} } of lineage) {
    if (options.version !== undefined) inherited.version = options.version;
    if (options.autosearch !== undefined) inherited.autosearch = options.autosearch;
    if (options.timeZone !== undefined) inherited.timeZone = options.timeZone;
    if ("ttlSeconds" in options) inherited.ttlSeconds = options.ttlSeconds;
  }
  return inherited;
}

function viewOf(path: string, tenant: Tenant): ClassView {
  const spec = tenant.specs.get(path);
  if (!spec) throw notFound(path);
  const lineage = [...tenant.specs.values()]
    .filter((one) => isBelow(path, one.path))
    .sort((a, b) => a.path.length - b.path.length);
  const keys = [...new Set(lineage.flatMap((one) => one.keys ?? []))];
  const indexes = new Set(lineage.flatMap((one) => one.indexes ?? []));
  const columns = new Map<string, Column>();
  for (const one of lineage) {
    for (const column of one.columns) {
      if (columns.has(column.name)) continue;
      const name = `${one.path} ${column.name}`;
      const number = tenant.numbers.get(name) ?? tenant.numbers.size + 1;
      tenant.numbers.set(name, number);
      columns.set(column.name, {
        ...column,
        number,
        definedBy: one.path,
        indexed: indexes.has(column.name),
        key: keys.includes(column.name),
      });
    }
  }
  return {
    cid: spec.cid,
    path,
    label: path.split("/").at(-1) ?? "",
    parent: lineage.at(-2)?.path,
    kind: spec.kind ?? "entity",
    columns: [...columns.values()],
    keys,
    options: {
      ...DEFAULT_OPTIONS,
      keyMode: keys.length > 0 ? "manu" : "uuid",
      ...inheritedOptions(lineage),
      ...spec.options,
    },
    modifiedAtMs: spec.modifiedAtMs,
    system: spec.guard !== undefined,
    guard: spec.guard,
    column: (name) => columns.get(name),
  };
}

function changed(spec: ClassSpec, change: ClassChange): Partial<ClassSpec> {
  switch (change.kind) {
    case "add column":
      return { columns: [...spec.columns, change.column] };
    case "drop column":
      return { columns: spec.columns.filter((column) => column.name !== change.name) };
    case "add index":
      return { indexes: [...(spec.indexes ?? []), change.name] };
    case "drop index":
      return { indexes: (spec.indexes ?? []).filter((name) => name !== change.name) };
    case "add key":
      return { keys: [...(spec.keys ?? []), change.name] };
    case "drop key":
      return { keys: (spec.keys ?? []).filter((name) => name !== change.name) };
    case "set options":
      return { options: { ...spec.options, ...change.options } };
  }
}

function canonicalRow(view: ClassView, row: Row): Row {
  const values: Row = {};
  for (const [name, value] of Object.entries(row)) {
    if (name === "id") continue;
    const column = view.column(name);
    if (!column) throw new AppError("not_found", `Field ${name} Not Exist`);
    const kept = canonicalValue(column, value);
    if (kept !== undefined) values[name] = kept;
  }
  return values;
}

/** `undefined` if a value is not a number. */
async function orderedRead(
  pages: AsyncIterable<readonly ObjectRow[]>,
  { column, descending, from }: ReadOrder,
  most: number,
): Promise<OrderedRead | undefined> {
  const sign = descending ? -1 : 1;
  const found: { readonly row: ObjectRow; readonly place: number }[] = [];
  for await (const page of pages)
    for (const row of page) {
      const value = column === "vtime" || column === "mtime" ? row.vtimeMs : row.values[column];
      if (value === undefined || value === null) continue;
      if (typeof value !== "number") return undefined;
      if (from === undefined || sign * value >= sign * from) found.push({ row, place: sign * value });
    }
  const rows = found.sort((one, other) => one.place - other.place).map(({ row }) => row);
  const answered = async function* (): AsyncGenerator<readonly ObjectRow[]> {
    for (let at = 0; at < Math.min(most, rows.length); at += 2)
      yield await Promise.resolve(rows.slice(at, Math.min(most, at + 2)));
  };
  return { pages: answered(), isWhole: () => rows.length <= most, isById: () => false };
}

function fits(row: ObjectRow, where: readonly Pushdown[]): boolean {
  return where.every((pushdown) => {
    if (pushdown.kind === "words" || pushdown.kind === "pattern") return true;
    if (pushdown.kind === "equals") return equalsOne(row.values[pushdown.column], pushdown.values);
    const number =
      pushdown.column === "vtime"
        ? row.vtimeMs
        : pushdown.column === "ctime"
          ? row.ctimeMs
          : row.values[pushdown.column];
    if (number === undefined || number === null) return false;
    return Number(number) >= (pushdown.from ?? -Infinity) && Number(number) <= (pushdown.to ?? Infinity);
  });
}

function equalsOne(value: Value | undefined, wanted: readonly Value[]): boolean {
  if (value === undefined || value === null) return false;
  const own = Array.isArray(value)
    ? (value as readonly Value[])
    : typeof value === "object"
      ? Object.keys(value)
      : [value];
  const texts = new Set(wanted.map(canonicalText));
  return own.some((element) => texts.has(canonicalText(element)));
}

function isBelow(path: string, root: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}

function digest(text: string): string {
  return createHash("md5").update(text).digest("hex");
}

function notFound(path: string): AppError {
  return new AppError("not_found", `[NotExist] class : ${path} not find !`);
}
