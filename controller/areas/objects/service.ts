import { AppError } from "../../../common/errors.ts";
import { TRIGGER_CHAIN_STEPS_MAX } from "../../../common/limits.ts";
import { lazyPages } from "../../../common/pages.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { classAccess, requireDefining, requirePermission, type Principal } from "../permissions/index.ts";
import { alterClass, createClass, createEdgeType, dropEdgeType } from "./definitions/classchanges.ts";
import type { WriteDefinitions } from "./definitions/confirm.ts";
import { makesClass, makesEdgeType, requireDefiner } from "./definitions/definers.ts";
import type { Draft } from "./definitions/draft.ts";
import { permitted } from "./definitions/permitted.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import { putSubscription } from "./definitions/subscriptions.ts";
import { dropTrigger, putTrigger, TRIGGER_SUBSCRIPTION } from "./definitions/triggers.ts";
import { classNotFound, type LoadedClass } from "./definitions/views.ts";
import { planAsOfRead, explainAsOf, readAsOf } from "./history/asof.ts";
import { edgesAsOf } from "./history/edgesasof.ts";
import { keepsVersions, lastMicrosecond, lastStates, versionsOf, withoutVersions } from "./history/history.ts";
import { removedAmong, removedPlaces } from "./history/removed.ts";
import { IndexScrub, type IndexScrubPage, type IndexScrubRequest } from "./indexing/indexscrub.ts";
import type { ClassTriggers, ObjectChanges, Objects, Rehearsal, Rehearsals } from "./interface.ts";
import { planCount, tallies } from "./reading/counting.ts";
import { edgesOf } from "./reading/edges.ts";
import { placesOf, type Place } from "./reading/locate.ts";
import { planRead, type ReadPlan, scopeOf } from "./reading/readplan.ts";
import { estimatedReads } from "./reading/estimating.ts";
import { withWords } from "./reading/wordpatterns.ts";
import { DraftRehearsal } from "./rehearsal.ts";
import { roomOf, type Growth, type TenantRoom } from "./values/room.ts";
import { sizes } from "./sizes.ts";
import { dropClass, retire } from "./retirement.ts";
import { openTenantObjects, type TenantObjects } from "./tenant.ts";
import type {
  ChangeSubscription,
  ClassCatalog,
  ClassChange,
  ClassSpec,
  ClassView,
  CountRequest,
  EdgeRequest,
  EdgeType,
  Edit,
  HistoryRange,
  IndexStatus,
  NewRecord,
  ObjectChange,
  ObjectEdge,
  ObjectRef,
  ObjectRow,
  ObjectTriggers,
  ObjectVersion,
  PresetTime,
  ReadExplanation,
  ReadRequest,
  SystemClass,
  Tally,
  TriggerDefinition,
  UpdateOptions,
  WriteBasis,
} from "./types.ts";
import { wholeId } from "./values/identity.ts";
import { endingJournal, type EndingJournal } from "./writing/edgeendings.ts";
import { exchangeSealed } from "./writing/sealedcells.ts";
import { BeforeTriggers, type GivenBasis } from "./writing/beforetriggers.ts";
import type { WriteContext } from "./writing/writing.ts";

type ChangeListener = (events: readonly ObjectChange[]) => void;

/** What a read of one principal needs. */
interface Reading {
  readonly tenant: TenantObjects;
  readonly snapshot: Snapshot;
  readonly readable: (view: LoadedClass) => boolean;
}

export interface ObjectServiceDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  /** Absent: no trigger runs, and none can be stored. */
  readonly triggers?: ObjectTriggers;
  /** Absent: no tenant has a quota. */
  readonly room?: TenantRoom;
  /** Absent: there is none but this one. */
  readonly controllers?: Controllers;
}

/** The object database: classes and objects of all tenants. Each tenant is opened when it is first asked for. */
export class ObjectService implements Objects, ObjectChanges, ClassTriggers, Rehearsals {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #triggers: ObjectTriggers | undefined;
  readonly #room: TenantRoom | undefined;
  readonly #endings: EndingJournal;
  readonly #systemClasses = new Map<string, SystemClass>();
  readonly #tenants = new Map<string, Promise<TenantObjects>>();
  readonly #opened = new Map<string, TenantObjects>();
  readonly #listeners = new Set<{ readonly listener: ChangeListener; readonly wants: (tenant: string) => boolean }>();
  #closed = false;

  constructor(of: ObjectServiceDependencies) {
    this.#stores = of.stores;
    this.#runtime = of.runtime;
    this.#triggers = of.triggers;
    this.#room = of.room;
    this.#endings = endingJournal({ ...of, controllers: of.controllers ?? alone(of.runtime) });
  }

  registerSystemClass(definition: SystemClass): void {
    if (this.#tenants.size > 0)
      throw new Error(`The system class ${definition.path} is registered after a tenant was opened.`);
    if (this.#systemClasses.has(definition.path))
      throw new Error(`The system class ${definition.path} is registered twice.`);
    this.#systemClasses.set(definition.path, permitted(definition));
  }

  async catalog(principal: Principal): Promise<ClassCatalog> {
    return (await this.#reading(principal)).snapshot;
  }

  async createClass(
    principal: Principal,
    spec: ClassSpec,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<ClassView> {
    return this.#define(principal, spec.path, (draft) => {
      if (!makesClass(principal, spec.path, { isKnown: draft.class(spec.path) !== undefined, ...options })) return;
      createClass(draft, spec, principal.ospace);
    });
  }

  async alterClass(principal: Principal, path: string, change: ClassChange): Promise<ClassView> {
    const { catalog } = await this.#defining(principal);
    requireDefiner(principal, path);
    await retire(catalog, path, change);
    return this.#define(principal, path, (draft) => alterClass(draft, path, change));
  }

  async dropClass(principal: Principal, path: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    const tenant = await this.#defining(principal);
    if (options.ifExists && !classAccess(principal, path).readable) return;
    requireDefiner(principal, path);
    await tenant.drops.run([path], () => dropClass(tenant, path, options));
  }

  async createEdgeType(
    principal: Principal,
    type: EdgeType,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<void> {
    const { catalog } = await this.#defining(principal);
    const revision = await catalog.change((draft) => {
      if (!makesEdgeType(principal, { isKnown: draft.edgeType(type.name) !== undefined, ...options })) return;
      createEdgeType(draft, type);
    });
    await catalog.acknowledged(revision);
  }

  async dropEdgeType(principal: Principal, name: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    const { catalog } = await this.#defining(principal);
    requireDefining(principal, principal.ospace);
    const revision = await catalog.change((draft) => {
      if (options.ifExists && draft.edgeType(name) === undefined) return;
      dropEdgeType(draft, name);
    });
    await catalog.acknowledged(revision);
  }

  async rehearse(principal: Principal): Promise<Rehearsal> {
    const { catalog, store } = await this.#tenant(principal);
    await catalog.resumed();
    const room = roomOf(this.#room, principal.tenant, false);
    return new DraftRehearsal(principal, catalog, room && { room, store: store.objects });
  }

  async insert(
    principal: Principal,
    path: string,
    rows: readonly Row[],
    options: { readonly atMs?: number } = {},
  ): Promise<readonly string[]> {
    return this.#writing(principal, (tenant, context) => {
      return tenant.writer.insert(context, writableClass(principal, context.snapshot, path), rows, options.atMs);
    });
  }

  async ingest(
    principal: Principal,
    path: string,
    records: readonly NewRecord[],
    basis?: WriteBasis,
  ): Promise<readonly string[]> {
    return this.#writing(
      principal,
      (tenant, context) => tenant.writer.ingest(context, writableClass(principal, context.snapshot, path), records),
      { given: basis && { path, basis }, isAdmitted: true },
    );
  }

  async update(
    principal: Principal,
    ref: ObjectRef,
    edits: readonly Edit[],
    options: UpdateOptions = {},
  ): Promise<boolean> {
    const isAdmitted = options.admitted === true || options.writeUs !== undefined;
    const update = async (tenant: TenantObjects, context: WriteContext): Promise<boolean> => {
      const places = writablePlaces(principal, context.snapshot, ref);
      const [first] = places;
      if (first !== undefined && places.every((place) => place.view.kind === "record")) {
        throw new AppError("unsupported", `[Valid] class ${first.view.path} keeps records, which are not updated.`);
      }
      return places.length > 0 && tenant.writer.update(context, places, { edits, ...options });
    };
    return this.#writing(principal, update, { isAdmitted });
  }

  /**
   * Values of sealed columns in another form: what `exchanged` answers stands in the place of what it is given, unless
   * somebody writes or takes away the same value; that wins. No trigger, version or event. False when there is no such
   * object.
   */
  async exchangeSealed(principal: Principal, ref: ObjectRef, exchanged: (values: Row) => Row): Promise<boolean> {
    return this.#writing(principal, async ({ store }, { snapshot }) => {
      const [place] = writablePlaces(principal, snapshot, ref);
      return place !== undefined && exchangeSealed(place, { store: store.objects, exchanged });
    });
  }

  async remove(
    principal: Principal,
    refs: readonly ObjectRef[],
    options: PresetTime & { readonly withVersions?: boolean } = {},
  ): Promise<number> {
    return this.#writing(principal, (tenant, context) => {
      const places = refs.map((ref) => writablePlaces(principal, context.snapshot, ref));
      return tenant.remover.remove(context, places, options);
    });
  }

  async writeTimes(principal: Principal, refs: readonly (ObjectRef | undefined)[]): Promise<readonly number[]> {
    return this.#writing(principal, (tenant, { snapshot }) => {
      return tenant.writer.writeTimes(
        refs.map((ref) => (ref === undefined ? [] : writablePlaces(principal, snapshot, ref))),
      );
    });
  }

  async refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number> {
    return this.#writing(principal, (tenant, context) => {
      return tenant.writer.refresh(
        context,
        refs.map((ref) => writablePlaces(principal, context.snapshot, ref)),
      );
    });
  }

  /**
   * Compares a page of objects with their indexes, or of indexes with their objects, whatever their class, and mends what
   * differs. Safe while others write.
   */
  async scrubIndexes(principal: Principal, request: IndexScrubRequest): Promise<IndexScrubPage> {
    requirePermission(principal, "cluster:write");
    const { store, catalog } = await this.#tenant(principal);
    const snapshot = async (): Promise<Snapshot> => (await catalog.resumed()).snapshot;
    return new IndexScrub({ ...store, snapshot }).page(request);
  }

  /**
   * What the tenant has in classes of its own, in parts: their sum is what was there, give or take what is written
   * meanwhile. Reads every object once.
   */
  async *sizes(principal: Principal): AsyncGenerator<Growth> {
    requirePermission(principal, "tenants:read");
    const { store, catalog } = await this.#tenant(principal);
    yield* sizes(store.objects, (await catalog.resumed()).snapshot);
  }

  async indexStates(principal: Principal): Promise<readonly IndexStatus[]> {
    const tenant = await this.#tenant(principal);
    const { snapshot } = await tenant.catalog.resumed();
    const statuses = await tenant.indexer.statuses(snapshot);
    return statuses.filter((status) => classAccess(principal, status.class).readable);
  }

  async get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    return tenant.reader.get(refs.map((ref) => placesOf(snapshot, ref, readable)));
  }

  read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]> {
    return lazyPages(async () => {
      const { tenant, snapshot, readable } = await this.#reading(principal);
      const { asOfMs } = request;
      if (asOfMs === undefined) {
        const plan = await this.#plan(request, { tenant, snapshot, readable });
        return tenant.reader.read({ snapshot, principal, request }, plan);
      }
      const past = { ...request, asOfMs };
      const source = { store: tenant.store.objects, reader: tenant.reader, snapshot, principal };
      return readAsOf(past, planAsOfRead(snapshot, past, readable), source);
    });
  }

  async explain(principal: Principal, request: ReadRequest): Promise<ReadExplanation> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    const { asOfMs } = request;
    if (asOfMs === undefined) return (await this.#plan(request, { tenant, snapshot, readable })).explanation;
    const past = { ...request, asOfMs };
    return explainAsOf(planAsOfRead(snapshot, past, readable), past);
  }

  async estimate(principal: Principal, request: ReadRequest): Promise<number | undefined> {
    if (request.asOfMs !== undefined) return undefined;
    const { tenant, snapshot, readable } = await this.#reading(principal);
    return estimatedReads(await this.#plan(request, { tenant, snapshot, readable }), tenant.store.objects);
  }

  async #plan(request: ReadRequest, { tenant, snapshot, readable }: Reading): Promise<ReadPlan> {
    const views = (): readonly LoadedClass[] => scopeOf(snapshot, request).filter(readable);
    const known = await withWords(request, { store: tenant.store.objects, views });
    return planRead(snapshot, known, readable);
  }

  async count(principal: Principal, request: CountRequest): Promise<AsyncIterable<readonly Tally[]> | undefined> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    const counts = planCount(planRead(snapshot, request, readable), request);
    return counts && tallies(tenant.store.objects, counts, request.signal);
  }

  async *edges(
    principal: Principal,
    refs: readonly ObjectRef[],
    request: EdgeRequest,
  ): AsyncGenerator<readonly ObjectEdge[]> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    const places = refs.flatMap((ref) => placesOf(snapshot, ref, readable));
    const source = { store: tenant.store.objects, reader: tenant.reader, snapshot, readable, principal };
    const { asOfMs } = request;
    yield* asOfMs === undefined ? edgesOf(places, request, source) : edgesAsOf(places, { ...request, asOfMs }, source);
  }

  async *history(
    principal: Principal,
    ref: ObjectRef,
    range: HistoryRange = {},
  ): AsyncGenerator<readonly ObjectVersion[]> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    yield* versionsOf(placesOf(snapshot, ref, readable), range, { store: tenant.store.objects });
  }

  async *removed(
    principal: Principal,
    path: string,
    { fromMs, signal }: Pick<HistoryRange, "fromMs" | "signal"> = {},
  ): AsyncGenerator<readonly ObjectRef[]> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    const view = snapshot.get(path);
    if (view === undefined || !readable(view)) throw classNotFound(path);
    if (!keepsVersions(view)) throw withoutVersions(view);
    const afterUs = fromMs === undefined ? -Infinity : lastMicrosecond(fromMs - 1);
    const source = { store: tenant.store.objects, reader: tenant.reader };
    for await (const places of removedPlaces(view, { afterUs, signal }, source))
      yield places.map(({ key }) => ({ id: wholeId(view, key.id), class: path }));
  }

  async *removedObjects(
    principal: Principal,
    path: string,
    { ids, signal }: { readonly ids?: readonly string[]; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<readonly ObjectRow[]> {
    const { tenant, snapshot, readable } = await this.#reading(principal);
    const view = snapshot.get(path);
    if (view === undefined || !readable(view)) throw classNotFound(path);
    const source = { store: tenant.store.objects, reader: tenant.reader };
    const pages =
      ids === undefined ? removedPlaces(view, { afterUs: -Infinity, signal }, source) : removedAmong(view, ids, source);
    for await (const places of pages) yield await lastStates(places, source);
  }

  onChange(listener: ChangeListener, wants: (tenant: string) => boolean = () => true): () => void {
    const entry = { listener, wants };
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  async subscribe(principal: Principal, subscription: ChangeSubscription): Promise<void> {
    const { catalog, changes } = await this.#defining(principal);
    const { name, classes } = subscription;
    const revision = await catalog.change((draft) => putSubscription(draft, { name, classes }));
    if (!(await catalog.acknowledged(revision))) {
      throw new AppError(
        "unavailable",
        `The subscription ${name} is kept, but another controller does not say that it knows. Try again.`,
      );
    }
    changes.attach(subscription);
  }

  async unsubscribe(principal: Principal, name: string): Promise<void> {
    const { catalog, changes } = await this.#defining(principal);
    await catalog.change((draft) => draft.deleteSubscription(name));
    changes.detach(name);
  }

  async triggers(principal: Principal, path: string): Promise<readonly TriggerDefinition[]> {
    const { snapshot, readable } = await this.#reading(principal);
    const view = snapshot.get(path);
    if (view === undefined || !readable(view)) throw classNotFound(path);
    return [...snapshot.definitions.triggers.values()].filter((trigger) => trigger.class === path);
  }

  async triggersBy(principal: Principal, author: string): Promise<readonly TriggerDefinition[]> {
    const { snapshot, readable } = await this.#reading(principal);
    return [...snapshot.definitions.triggers.values()].filter((trigger) => {
      const view = snapshot.get(trigger.class);
      return trigger.author === author && view !== undefined && readable(view);
    });
  }

  async putTrigger(
    principal: Principal,
    trigger: Omit<TriggerDefinition, "author" | "modifiedAtMs">,
  ): Promise<TriggerDefinition> {
    requireDefiner(principal, trigger.class);
    const stored = { ...trigger, author: principal.user, modifiedAtMs: this.#runtime.clock.nowMs() };
    await this.#changeTriggers(principal, (draft) => putTrigger(draft, stored));
    return stored;
  }

  async dropTrigger(principal: Principal, trigger: Pick<TriggerDefinition, "class" | "name">): Promise<void> {
    requireDefiner(principal, trigger.class);
    await this.#changeTriggers(principal, (draft) => dropTrigger(draft, trigger));
  }

  async followTriggers(principal: Principal): Promise<void> {
    const { changes, catalog } = await this.#tenant(principal);
    this.#attachTriggers({ changes, catalog });
  }

  /** Stored events of all tenants on this controller that are not delivered to all subscriptions. */
  get changesWaiting(): number {
    return [...this.#opened.values()].reduce((waiting, { changes }) => waiting + changes.waiting, 0);
  }

  /** The tenant is there no more: stops following its definitions. A later one of that name is opened anew. */
  async leave(tenant: string): Promise<void> {
    const opening = this.#tenants.get(tenant);
    if (!opening) return;
    this.#tenants.delete(tenant);
    const opened = await opening.catch(() => undefined);
    if (!opened) return;
    if (this.#opened.get(tenant) === opened) this.#opened.delete(tenant);
    await closeTenant(opened);
  }

  /**
   * Goes on with edges to removed objects that no controller takes away any more; see `Area.maintain`. Resolves when it
   * is begun.
   */
  async maintain(principal: Principal): Promise<void> {
    requirePermission(principal, "cluster:write");
    for await (const found of this.#endings.abandoned(principal.tenant)) {
      const { endings } = await this.#tenant(principal);
      if (!(await endings.takeUp(found))) return;
    }
  }

  /** Resolves when nothing that calls left to the background goes on here. */
  async settled(): Promise<void> {
    await this.#endings.underWay.settled();
  }

  /** What goes on in the background comes to rest, to be carried on by another controller. Idempotent. */
  async stop(): Promise<void> {
    await this.#endings.underWay.close();
  }

  /** Stops following definitions; afterwards every call is refused. The stores stay open. */
  async close(): Promise<void> {
    await this.stop();
    this.#closed = true;
    const opened = await Promise.allSettled(this.#tenants.values());
    this.#tenants.clear();
    await Promise.all(opened.flatMap((tenant) => (tenant.status === "fulfilled" ? [closeTenant(tenant.value)] : [])));
  }

  async #reading(principal: Principal): Promise<Reading> {
    // Every call passes here: it waits only while the tenant opens or its definitions are read again.
    const tenant = this.#openTenant(principal) ?? (await this.#tenant(principal));
    const { snapshot } = tenant.catalog.now() ?? (await tenant.catalog.resumed());
    return { tenant, snapshot, readable: (view) => isReadable(principal, view) };
  }

  #openTenant({ tenant }: Principal): TenantObjects | undefined {
    return this.#closed ? undefined : this.#opened.get(tenant);
  }

  #tenant(principal: Principal): Promise<TenantObjects> {
    if (this.#closed) return Promise.reject(new AppError("unavailable", "The object database is closed."));
    const known = this.#tenants.get(principal.tenant);
    if (known !== undefined) return known;
    const opening = this.#open(principal);
    this.#tenants.set(principal.tenant, opening);
    // The next call tries again; this one's caller gets the error.
    opening.catch(() => this.#tenants.get(principal.tenant) === opening && this.#tenants.delete(principal.tenant));
    return opening;
  }

  async #open(principal: Principal): Promise<TenantObjects> {
    const store = await this.#stores.tenant(principal.tenant);
    const systemClasses = [...this.#systemClasses.values()];
    const { tenant, ospace } = principal;
    const options = { tenant, store, runtime: this.#runtime, ospace, systemClasses, endings: this.#endings };
    const opened = await openTenantObjects(options);
    this.#opened.set(tenant, opened);
    return opened;
  }

  async #defining(principal: Principal): Promise<TenantObjects> {
    requirePermission(principal, "objects:write");
    const tenant = await this.#tenant(principal);
    await tenant.catalog.resumed();
    return tenant;
  }

  async #define(principal: Principal, path: string, edit: (draft: Draft) => void): Promise<ClassView> {
    const { catalog } = await this.#defining(principal);
    const revision = await catalog.change(edit);
    const view = catalog.current().get(path);
    if (view === undefined)
      throw new AppError("conflict", `[NotExist] class ${path} was dropped by somebody else meanwhile.`);
    // A controller that has not acknowledged in time does not use the new definition, and nothing relies on it before
    // all have.
    await catalog.acknowledged(revision);
    return view;
  }

  /** When it resolves, every controller runs the changed triggers and none the former. */
  async #changeTriggers(principal: Principal, edit: (draft: Draft) => void): Promise<void> {
    const { catalog, changes } = await this.#defining(principal);
    const revision = await catalog.change(edit);
    this.#attachTriggers({ changes, catalog });
    if (await catalog.acknowledged(revision)) return;
    throw new AppError(
      "unavailable",
      "The trigger is changed, but another controller does not say that it knows. Try again.",
    );
  }

  /** Takes part in the delivery to triggers if there are any, and ends it when there are none any more. */
  #attachTriggers({ changes, catalog }: Pick<TenantObjects, "changes" | "catalog">): void {
    const runner = this.#triggers;
    const subscription = catalog.current().definitions.subscriptions.get(TRIGGER_SUBSCRIPTION);
    const isAttached = changes.isAttached(TRIGGER_SUBSCRIPTION);
    if (runner === undefined || isAttached === (subscription !== undefined)) return;
    if (subscription === undefined) return changes.detach(TRIGGER_SUBSCRIPTION);
    const triggersOf = (path: string): readonly TriggerDefinition[] => {
      const view = catalog.current().get(path);
      return view === undefined
        ? []
        : catalog
            .current()
            .triggersFor(view)
            .filter(({ before }) => !before);
    };
    changes.attach({ ...subscription, deliver: (events) => runner.after(events, triggersOf) });
  }

  async #writing<T>(
    principal: Principal,
    work: (tenant: TenantObjects, context: WriteContext) => Promise<T>,
    { given, isAdmitted = false }: { readonly given?: GivenBasis | undefined; readonly isAdmitted?: boolean } = {},
  ): Promise<T> {
    const tenant = this.#openTenant(principal) ?? (await this.#tenant(principal));
    const write = await tenant.catalog.begin();
    try {
      const definitions = { snapshot: write.snapshot, held: write, resumed: () => tenant.catalog.resumed() };
      const triggers = this.#beforeTriggers(principal, write.snapshot, given);
      const publish = this.#publisher(principal, tenant, definitions);
      const room = roomOf(this.#room, principal.tenant, isAdmitted);
      const context = { publish, triggers, basis: given?.basis, room, ...definitions };
      return await work(tenant, context);
    } finally {
      write.end();
    }
  }

  #beforeTriggers(principal: Principal, snapshot: Snapshot, given: GivenBasis | undefined): BeforeTriggers | undefined {
    const runner = this.#triggers;
    const { chain } = principal;
    if (chain !== undefined && chain.steps >= TRIGGER_CHAIN_STEPS_MAX) {
      throw new AppError(
        "invalid",
        `[Valid] A chain of triggers ends after ${TRIGGER_CHAIN_STEPS_MAX} steps: nothing was written.`,
        { details: { limit: "TRIGGER_CHAIN_STEPS_MAX" } },
      );
    }
    const count = snapshot.definitions.triggers.size + (given?.basis.triggers.length ?? 0);
    if (runner === undefined || (chain === undefined && count === 0)) return undefined;
    const first = () => ({ id: Buffer.from(this.#runtime.random.bytes(12)).toString("hex"), steps: 0, holds: [] });
    return new BeforeTriggers({ principal, runner, snapshot, given, chain: chain ?? first() });
  }

  #publisher(
    { tenant, traceparent, chain }: Principal,
    { changes, catalog }: TenantObjects,
    definitions: WriteDefinitions,
  ): WriteContext["publish"] {
    const listeners = [...this.#listeners].filter(({ wants }) => wants(tenant));
    return async (events, write) => {
      this.#attachTriggers({ changes, catalog });
      await changes.publish({ definitions, traceparent, steps: chain?.steps ?? 0, events, write });
      if (listeners.length === 0) return;
      const whole = events().map((event) => ({ ...event, tenant, traceparent }));
      for (const { listener } of listeners) listener(whole);
    };
  }
}

function alone({ random }: Pick<Runtime, "random">): Controllers {
  const own = Buffer.from(random.bytes(12)).toString("hex");
  return { own, has: (id) => id === own };
}

async function closeTenant({ indexer, changes, catalog }: TenantObjects): Promise<void> {
  const indexed = indexer.close();
  await changes.close();
  // It may be the catalog that the indexer waits for.
  await catalog.close();
  await indexed;
}

/** The class that objects may be put into. */
function writableClass(principal: Principal, snapshot: Snapshot, path: string): LoadedClass {
  const view = snapshot.get(path);
  if (view === undefined) throw classNotFound(path);
  requireWritable(principal, view);
  if (view.provide !== undefined)
    throw new AppError("unsupported", `[Valid] class ${path} is kept by its owner and takes no objects.`);
  if (snapshot.isDropping(path))
    throw new AppError("unavailable", `[Valid] class ${path} is just being dropped: nothing was changed.`);
  return view;
}

function isReadable(principal: Principal, view: LoadedClass): boolean {
  return classAccess(principal, view).readable;
}

function requireWritable(principal: Principal, view: LoadedClass): void {
  if (classAccess(principal, view).writable) return;
  throw new AppError("denied", `${principal.user} may not change objects of ${view.path}.`, {
    details: { class: view.path },
  });
}

/** Skips classes that do not exist for the principal; refuses if only classes remain that it may see but not change. */
function writablePlaces(principal: Principal, snapshot: Snapshot, ref: ObjectRef): readonly Place[] {
  const places = placesOf(snapshot, ref, (view) => isReadable(principal, view));
  const writable = places.filter((place) => classAccess(principal, place.view).writable);
  const [first] = places;
  if (writable.length === 0 && first !== undefined) requireWritable(principal, first.view);
  return writable;
}
