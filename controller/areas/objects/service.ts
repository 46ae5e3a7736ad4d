import { AppError } from "../../../common/errors.ts";
import { classAccess, requirePermission, type Principal } from "../permissions/index.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { alterClass, createClass, createEdgeType, dropClass, dropEdgeType } from "./classchanges.ts";
import type { Draft } from "./draft.ts";
import { hasObjects } from "./emptiness.ts";
import { placesOf, type Place } from "./locate.ts";
import { outlineOf } from "./outline.ts";
import type { Snapshot } from "./snapshot.ts";
import { openTenantObjects, type TenantObjects } from "./tenant.ts";
import type {
  ClassCatalog, ClassChange, ClassSpec, ClassView, Edit, EdgeType, NewRecord, ObjectChangeEvent, ObjectRef, ObjectRow, Objects, ReadPlan,
  ReadRequest, SystemClass,
} from "./types.ts";
import type { LoadedClass } from "./views.ts";
import type { WriteContext } from "./writer.ts";

type ChangeListener = (events: readonly ObjectChangeEvent[]) => void;

export interface ObjectServiceDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
}

/** The object database: classes and objects of all tenants. Each tenant is opened when it is first asked for. */
export class ObjectService implements Objects {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #systemClasses = new Map<string, SystemClass>();
  readonly #tenants = new Map<string, Promise<TenantObjects>>();
  readonly #listeners = new Set<{ readonly listener: ChangeListener; readonly wants: (tenant: string) => boolean }>();
  #closed = false;

  constructor(of: ObjectServiceDependencies) {
    this.#stores = of.stores;
    this.#runtime = of.runtime;
  }

  registerSystemClass(definition: SystemClass): void {
    if (this.#tenants.size > 0) throw new Error(`The system class ${definition.path} is registered after a tenant was opened.`);
    if (this.#systemClasses.has(definition.path)) throw new Error(`The system class ${definition.path} is registered twice.`);
    this.#systemClasses.set(definition.path, definition);
  }

  async catalog(principal: Principal): Promise<ClassCatalog> {
    return (await this.#tenant(principal)).catalog.current();
  }

  async createClass(principal: Principal, spec: ClassSpec, options: { readonly ifNotExists?: boolean } = {}): Promise<ClassView> {
    return this.#define(principal, spec.path, (draft) => {
      if (options.ifNotExists && draft.class(spec.path) !== undefined) return;
      createClass(draft, spec, principal.ospace);
    });
  }

  async alterClass(principal: Principal, path: string, change: ClassChange): Promise<ClassView> {
    return this.#define(principal, path, (draft) => alterClass(draft, path, change));
  }

  async dropClass(principal: Principal, path: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    requirePermission(principal, "objects:write");
    const tenant = await this.#tenant(principal);
    const view = tenant.catalog.requireCurrent().get(path);
    if (view === undefined) {
      if (options.ifExists) return;
      throw notFound(path);
    }
    if (await hasObjects(view, { store: tenant.store.objects, patience: tenant.patience })) {
      throw new AppError("conflict", "[Valid]: Class Has Data or Version Data, Can't Drop.");
    }
    await tenant.catalog.change((draft) => {
      if (options.ifExists && draft.class(path) === undefined) return;
      dropClass(draft, path);
    });
  }

  async createEdgeType(principal: Principal, type: EdgeType, options: { readonly ifNotExists?: boolean } = {}): Promise<void> {
    requirePermission(principal, "objects:write");
    const tenant = await this.#tenant(principal);
    await tenant.catalog.change((draft) => {
      if (options.ifNotExists && draft.edgeType(type.name) !== undefined) return;
      createEdgeType(draft, type);
    });
  }

  async dropEdgeType(principal: Principal, name: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    requirePermission(principal, "objects:write");
    const tenant = await this.#tenant(principal);
    await tenant.catalog.change((draft) => {
      if (options.ifExists && draft.edgeType(name) === undefined) return;
      dropEdgeType(draft, name);
    });
  }

  async insert(principal: Principal, path: string, rows: readonly Row[], options: { readonly atMs?: number } = {}): Promise<readonly string[]> {
    const { tenant, context, view } = await this.#writing(principal, path);
    return tenant.writer.insert(context, view, rows, options.atMs);
  }

  async ingest(principal: Principal, path: string, records: readonly NewRecord[]): Promise<readonly string[]> {
    const { tenant, context, view } = await this.#writing(principal, path);
    return tenant.writer.ingest(context, view, records);
  }

  async update(principal: Principal, ref: ObjectRef, edits: readonly Edit[]): Promise<boolean> {
    const tenant = await this.#tenant(principal);
    const context = this.#context(principal, tenant);
    const places = writablePlaces(principal, context.snapshot, ref);
    const [first] = places;
    if (first !== undefined && places.every((place) => place.view.kind === "record")) {
      throw new AppError("unsupported", `[Valid] class ${first.view.path} keeps records, which are not updated.`);
    }
    return places.length > 0 && tenant.writer.update(context, places, edits);
  }

  async remove(principal: Principal, refs: readonly ObjectRef[], options: { readonly withVersions?: boolean } = {}): Promise<number> {
    const tenant = await this.#tenant(principal);
    const context = this.#context(principal, tenant);
    const places = refs.map((ref) => writablePlaces(principal, context.snapshot, ref));
    return tenant.writer.remove(context, places, options.withVersions ?? false);
  }

  async get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    const tenant = await this.#tenant(principal);
    const snapshot = tenant.catalog.current();
    return tenant.reader.get(refs.map((ref) => placesOf(snapshot, ref, (view) => isReadable(principal, view))));
  }

  async *read(principal: Principal, request: ReadRequest): AsyncGenerator<readonly ObjectRow[]> {
    const tenant = await this.#tenant(principal);
    const snapshot = tenant.catalog.current();
    const outline = outlineOf(snapshot, request, (view) => isReadable(principal, view));
    yield* tenant.reader.read({ snapshot, principal, request }, outline);
  }

  async plan(principal: Principal, request: ReadRequest): Promise<ReadPlan> {
    const tenant = await this.#tenant(principal);
    return outlineOf(tenant.catalog.current(), request, (view) => isReadable(principal, view)).plan;
  }

  onChange(listener: ChangeListener, wants: (tenant: string) => boolean = () => true): () => void {
    const entry = { listener, wants };
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Stops following definitions; afterwards every call is refused. The stores stay open. */
  async close(): Promise<void> {
    this.#closed = true;
    const opened = await Promise.allSettled(this.#tenants.values());
    this.#tenants.clear();
    await Promise.all(opened.flatMap((tenant) => (tenant.status === "fulfilled" ? [tenant.value.catalog.close()] : [])));
  }

  #tenant(principal: Principal): Promise<TenantObjects> {
    if (this.#closed) return Promise.reject(new AppError("unavailable", "The object database is closed."));
    const known = this.#tenants.get(principal.tenant);
    if (known !== undefined) return known;
    const opening = this.#open(principal);
    this.#tenants.set(principal.tenant, opening);
    // The next call tries again; this one's caller gets the error.
    opening.catch(() => this.#tenants.delete(principal.tenant));
    return opening;
  }

  async #open(principal: Principal): Promise<TenantObjects> {
    const store = await this.#stores.tenant(principal.tenant);
    const systemClasses = [...this.#systemClasses.values()];
    return openTenantObjects({ store, runtime: this.#runtime, ospace: principal.ospace, systemClasses });
  }

  async #define(principal: Principal, path: string, edit: (draft: Draft) => void): Promise<ClassView> {
    requirePermission(principal, "objects:write");
    const { catalog } = await this.#tenant(principal);
    await catalog.change(edit);
    const view = catalog.current().get(path);
    if (view === undefined) throw new AppError("conflict", `[NotExist] class ${path} was dropped by somebody else meanwhile.`);
    return view;
  }

  async #writing(principal: Principal, path: string): Promise<{ tenant: TenantObjects; context: WriteContext; view: LoadedClass }> {
    const tenant = await this.#tenant(principal);
    const context = this.#context(principal, tenant);
    const view = context.snapshot.get(path);
    if (view === undefined) throw notFound(path);
    requireWritable(principal, view);
    if (view.provide !== undefined) throw new AppError("unsupported", `[Valid] class ${path} is kept by its owner and takes no objects.`);
    return { tenant, context, view };
  }

  #context(principal: Principal, tenant: TenantObjects): WriteContext {
    const snapshot = tenant.catalog.requireCurrent();
    const { tenant: name, traceparent } = principal;
    const listeners = [...this.#listeners].filter(({ wants }) => wants(name));
    if (listeners.length === 0) return { snapshot, tell: undefined };
    return {
      snapshot,
      tell: (events) => {
        const whole = events.map((event) => ({ ...event, tenant: name, traceparent }));
        for (const { listener } of listeners) listener(whole);
      },
    };
  }
}

function isReadable(principal: Principal, view: LoadedClass): boolean {
  return classAccess(principal, view.path).readable;
}

function requireWritable(principal: Principal, view: LoadedClass): void {
  if (classAccess(principal, view.path).writable) return;
  throw new AppError("denied", `${principal.user} may not change objects of ${view.path}.`, { details: { class: view.path } });
}

/** Classes that do not exist for the principal are passed over; refused when there are only such as may be seen but not changed. */
function writablePlaces(principal: Principal, snapshot: Snapshot, ref: ObjectRef): readonly Place[] {
  const places = placesOf(snapshot, ref, (view) => isReadable(principal, view));
  const writable = places.filter((place) => classAccess(principal, place.view.path).writable);
  const [first] = places;
  if (writable.length === 0 && first !== undefined) requireWritable(principal, first.view);
  return writable;
}

function notFound(path: string): AppError {
  return new AppError("not_found", `[NotExist] class : ${path} not find !`);
}
