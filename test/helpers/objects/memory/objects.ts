import { AppError } from "../../../../common/errors.ts";
import type { Row } from "../../../../common/value.ts";
import type {
  ClassCatalog,
  ClassChange,
  ClassSpec,
  ClassView,
  EdgeRequest,
  EdgeType,
  Edit,
  IndexStatus,
  NewRecord,
  ObjectChange,
  ObjectEdge,
  ObjectRef,
  ObjectRow,
  Objects,
  OrderedRead,
  OrderedRequest,
  ReadExplanation,
  ReadRequest,
  UnrestrictedObjects,
  UpdateOptions,
  SystemClass,
  VisibleObjects,
} from "../../../../controller/areas/objects/index.ts";
import { classAccess, type Principal, requirePermission } from "../../../../controller/areas/permissions/index.ts";
import { visibleObjects } from "../../../../controller/areas/query/index.ts";
import { withEdits } from "../../../../controller/areas/query/write/edits.ts";
import { notFound } from "./classes.ts";
import { orderedRead, pagesOf, selectedRows } from "./reads.ts";
import { canonicalRow, digest, idOf } from "./rows.ts";
import { MemoryTenant } from "./tenant.ts";

export interface MemoryObjectsOptions {
  readonly nowMs: () => number;
  /** Rows per page; every second page is empty. */
  readonly pageSize?: number;
  /** False: conditions do not narrow a read at all, as the contract allows. True: they narrow it as far as possible. */
  readonly narrows?: boolean;
  /** Ordered reads return this many rows and then give up. Absent: ordered reads are not supported. */
  readonly orderedMost?: number;
}

/** For services that need only the classes of row conditions. */
export function noClasses(): MemoryObjects {
  return new MemoryObjects({ nowMs: () => 0 });
}

/** The object database in its simplest form: maps and loops. Results of queries over it can be verified by reading. */
export class MemoryObjects implements Objects, UnrestrictedObjects {
  readonly #options: MemoryObjectsOptions;
  readonly #tenants = new Map<string, MemoryTenant>();
  readonly #system: SystemClass[] = [];
  #ids = 0;
  #lastMs = 0;
  /** Every requested read. */
  readonly reads: ReadRequest[] = [];
  readonly unrestricted: UnrestrictedObjects = this;
  readonly visible: VisibleObjects = visibleObjects(this);
  readonly history = withoutVersions;
  readonly removed = withoutVersions;
  readonly times = withoutVersions;
  readonly pastStates = withoutVersions;
  readonly restore = withoutVersions;
  /** Makes no records inside a commit. */
  readonly ingestInCommit = (): Promise<void> => Promise.resolve();

  constructor(options: MemoryObjectsOptions) {
    this.#options = options;
  }

  catalog(principal: Principal): Promise<ClassCatalog> {
    return Promise.resolve(this.#tenant(principal).classes.catalog());
  }

  readonly catalogNow = (principal: Principal): ClassCatalog => this.#tenant(principal).classes.catalog();

  createClass(
    principal: Principal,
    spec: ClassSpec,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<ClassView> {
    requirePermission(principal, "objects:write");
    const tenant = this.#tenant(principal);
    const known = tenant.classes.views.get(spec.path);
    if (known && options.ifNotExists) return Promise.resolve(known);
    if (known) throw new AppError("conflict", `[Valid] class ${spec.path} exists.`);
    return Promise.resolve(tenant.addClass({ ...spec, modifiedAtMs: this.#now() }));
  }

  alterClass(principal: Principal, path: string, changes: ClassChange | readonly ClassChange[]): Promise<ClassView> {
    requirePermission(principal, "objects:write");
    return Promise.resolve(this.#tenant(principal).alterClass(path, [changes].flat()));
  }

  dropClass(principal: Principal, path: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    requirePermission(principal, "objects:write");
    const tenant = this.#tenant(principal);
    if (!tenant.classes.views.has(path)) return options.ifExists ? Promise.resolve() : Promise.reject(notFound(path));
    if (tenant.isUsed(path)) throw new AppError("conflict", "[Valid]: Class Has Data or Version Data, Can't Drop.");
    tenant.classes.drop(path);
    return Promise.resolve();
  }

  createEdgeType(
    principal: Principal,
    type: EdgeType,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<void> {
    this.#tenant(principal).classes.addEdgeType(type, options);
    return Promise.resolve();
  }

  dropEdgeType(principal: Principal, name: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    this.#tenant(principal).classes.dropEdgeType(name, options);
    return Promise.resolve();
  }

  async *edges(
    principal: Principal,
    refs: readonly ObjectRef[],
    request: EdgeRequest,
  ): AsyncIterable<readonly ObjectEdge[]> {
    const tenant = this.#tenant(principal);
    const isThere = (one: Required<ObjectRef>) =>
      classAccess(principal, one.class).readable && tenant.table(one.class).has(one.id);
    const edges = tenant.edges.of(refs, request, isThere);
    yield await Promise.resolve(edges.filter((edge) => tenant.classes.edgeTypes.has(edge.type)));
  }

  async *removedObjects(): AsyncIterable<never> {
    // Removed objects leave no trace.
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
    const tenant = this.#tenant(principal);
    const isRelation = (name: string) => view.column(name) === undefined && tenant.classes.edgeTypes.has(name);
    const values = rows.map((row) =>
      canonicalRow(view, Object.fromEntries(Object.entries(row).filter(([name]) => !isRelation(name)))),
    );
    const ids = values.map((row, index) =>
      tenant.put(view, {
        values: row,
        id: idOf(view, rows[index] ?? {}, row) ?? this.#nextId(view),
        timeMs: options.atMs ?? this.#now(),
      }),
    );
    for (const [index, id] of ids.entries()) {
      const relations = Object.entries(rows[index] ?? {}).filter(([name]) => isRelation(name));
      for (const [column, value] of relations)
        tenant.relate({ id, class: view.path }, { column, operation: "set", value });
    }
    return Promise.resolve(ids);
  }

  ingest(principal: Principal, path: string, records: readonly NewRecord[]): Promise<readonly string[]> {
    const view = this.#writable(principal, path);
    const tenant = this.#tenant(principal);
    return Promise.resolve(
      records.map(({ values, timeMs, identity }) =>
        tenant.put(view, {
          values: canonicalRow(view, values),
          id: `${view.label}:${timeMs}-${digest(identity)}`,
          timeMs,
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
    const tenant = this.#tenant(principal);
    const row = tenant.find(ref);
    const computed = row && compute(row);
    if (!row || !computed) return Promise.resolve(false);
    const edits = [...given, ...computed];
    const view = this.#writable(principal, row.class.path);
    for (const edit of edits)
      if (!view.column(edit.column) && !tenant.classes.edgeTypes.has(edit.column))
        throw new AppError("not_found", `Field ${edit.column} Not Exist`);
    const isRelation = (edit: Edit) => view.column(edit.column) === undefined;
    for (const edit of edits.filter(isRelation)) tenant.relate({ id: row.id, class: view.path }, edit);
    const values = withEdits(
      row,
      edits.filter((edit) => !isRelation(edit)),
    );
    tenant.table(view.path).set(row.id, { ...row, values, vtimeMs: this.#now() });
    return Promise.resolve(true);
  }

  remove(principal: Principal, refs: readonly ObjectRef[]): Promise<number> {
    const tenant = this.#tenant(principal);
    let count = 0;
    for (const ref of refs) {
      const row = tenant.find(ref);
      if (!row) continue;
      this.#writable(principal, row.class.path);
      if (tenant.table(row.class.path).delete(row.id)) count += 1;
      tenant.edges.forget({ id: row.id, class: row.class.path });
    }
    return Promise.resolve(count);
  }

  writeTimes(_principal: Principal, refs: readonly (ObjectRef | undefined)[]): Promise<readonly number[]> {
    const timeUs = this.#now() * 1_000;
    return Promise.resolve(refs.map(() => timeUs));
  }

  /** There are no indexes. */
  refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number> {
    return Promise.resolve(refs.filter((ref) => this.#tenant(principal).find(ref) !== undefined).length);
  }

  indexStates(): Promise<readonly IndexStatus[]> {
    return Promise.resolve([]);
  }

  get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    return Promise.resolve(refs.map((ref) => this.#tenant(principal).find(ref)));
  }

  async *read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]> {
    this.reads.push(request);
    const rows = selectedRows(this.#tenant(principal).rows(request), request, this.#options.narrows ?? false);
    yield* pagesOf(rows, this.#options.pageSize ?? 3);
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

  #tenant(principal: Principal): MemoryTenant {
    const known = this.#tenants.get(principal.tenant);
    if (known) return known;
    const tenant = new MemoryTenant();
    this.#tenants.set(principal.tenant, tenant);
    const root: ClassSpec = {
      path: principal.ospace,
      columns: [{ name: "tags", type: "set", elements: ["varchar"] }],
      indexes: ["tags"],
    };
    for (const spec of [root, ...this.#system.map((one) => ({ ...one, path: `${principal.ospace}${one.path}` }))])
      tenant.addClass({ ...spec, modifiedAtMs: this.#now() });
    return tenant;
  }

  #writable(principal: Principal, path: string): ClassView {
    const view = this.#tenant(principal).classes.view(path);
    if (!classAccess(principal, path).writable)
      throw new AppError("denied", `${principal.user} may not write ${path}.`);
    return view;
  }

  #nextId(view: ClassView): string {
    this.#ids += 1;
    return `${view.label}:${String(this.#ids).padStart(8, "0")}`;
  }

  /** Never returns the same time twice, so that the order of writes is visible. */
  #now(): number {
    this.#lastMs = Math.max(this.#options.nowMs(), this.#lastMs + 1);
    return this.#lastMs;
  }
}

function withoutVersions(): never {
  throw new AppError("unsupported", "Versions are not kept here.");
}
