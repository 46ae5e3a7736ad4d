import { AppError } from "../../../common/errors.ts";
import { TRIGGER_CHAIN_STEPS_MAX } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import { classAccess, type Principal } from "../permissions/index.ts";
import type { WriteDefinitions } from "./definitions/confirm.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import { classNotFound, type LoadedClass } from "./definitions/views.ts";
import { isReadable, type OpenTenants } from "./opening.ts";
import { placesOf, type Place } from "./reading/locate.ts";
import type { TenantObjects } from "./tenant.ts";
import type { Triggers } from "./triggers.ts";
import type {
  Edit,
  InCommit,
  IngestOptions,
  InsertOptions,
  NewRecord,
  ObjectChange,
  ObjectRef,
  ObjectTriggers,
  RemoveOptions,
  Restored,
  RestoredState,
  UpdateOptions,
} from "./types.ts";
import type { ObjectHistories, ObjectWrites } from "./unrestricted.ts";
import { roomOf, type TenantRoom } from "./values/room.ts";
import { BeforeTriggers, type GivenBasis } from "./writing/beforetriggers.ts";
import { together, withAlso, writeInCommit } from "./writing/records/incommit.ts";
import { exchangeSealed } from "./writing/sealedcells.ts";
import type { WriteContext } from "./writing/writing.ts";

type ChangeListener = (events: readonly ObjectChange[]) => void;

interface WritesOptions {
  readonly tenants: OpenTenants;
  readonly triggers: Triggers;
  readonly runtime: Runtime;
  readonly runner: ObjectTriggers | undefined;
  readonly room: TenantRoom | undefined;
}

/** Inserts, updates and removals. They need the rights of their principal, run triggers and inform listeners. */
export class Writes implements ObjectWrites, Pick<ObjectHistories, "restore"> {
  readonly #options: WritesOptions;
  readonly #listeners = new Set<{ readonly listener: ChangeListener; readonly wants: (tenant: string) => boolean }>();

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  insert(
    principal: Principal,
    path: string,
    rows: readonly Row[],
    options: InsertOptions = {},
  ): Promise<readonly string[]> {
    return this.#writing(principal, (tenant, context) => {
      const view = writableClass(principal, context.snapshot, path);
      const given = this.#givenCommit(principal, context, options);
      return tenant.writer.insert(given, view, rows, options);
    });
  }

  async ingest(
    principal: Principal,
    path: string,
    records: readonly NewRecord[],
    { basis, inCommit, also, ...options }: IngestOptions = {},
  ): Promise<readonly string[]> {
    return this.#writing(
      principal,
      (tenant, context) => {
        const view = writableClass(principal, context.snapshot, path);
        const given = withAlso(this.#givenCommit(principal, context, { inCommit }), also);
        return tenant.writer.ingest(given, view, { records, ...options });
      },
      { given: basis && { path, basis }, isAdmitted: true },
    );
  }

  async ingestInCommit(principal: Principal, asked: InCommit): Promise<void> {
    return this.#writing(
      principal,
      async ({ store }, context) => {
        writableClass(principal, context.snapshot, asked.class);
        const inCommit = this.#inCommit(principal, context, asked);
        if (inCommit) await together(inCommit, (records) => store.objects.append([], records));
      },
      { isAdmitted: true },
    );
  }

  async restore(principal: Principal, path: string, states: readonly RestoredState[]): Promise<readonly Restored[]> {
    return this.#writing(principal, (tenant, context) =>
      tenant.restorer.restore(context, writableClass(principal, context.snapshot, path), states),
    );
  }

  async update(
    principal: Principal,
    ref: ObjectRef,
    edits: readonly Edit[],
    { inCommit, ...options }: UpdateOptions = {},
  ): Promise<boolean> {
    const isAdmitted = options.admitted === true || options.writeUs !== undefined;
    const update = async (tenant: TenantObjects, context: WriteContext): Promise<boolean> => {
      const places = writablePlaces(principal, context.snapshot, ref);
      const [first] = places;
      if (first !== undefined && places.every((place) => place.view.kind === "record")) {
        throw new AppError("unsupported", `[Valid] class ${first.view.path} keeps records, which are not updated.`);
      }
      if (places.length === 0) return false;
      return tenant.writer.update(this.#givenCommit(principal, context, { inCommit }), places, { edits, ...options });
    };
    return this.#writing(principal, update, { isAdmitted });
  }

  /**
   * Replaces the values of sealed columns by those that `exchanged` returns. A concurrent write or removal of the same
   * value wins. Runs no trigger, makes no version and sends no event. False when there is no such object.
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
    { inCommit, ...options }: RemoveOptions = {},
  ): Promise<number> {
    return this.#writing(principal, (tenant, context) => {
      const places = refs.map((ref) => writablePlaces(principal, context.snapshot, ref));
      return tenant.remover.remove(this.#givenCommit(principal, context, { inCommit }), places, options);
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
      return tenant.reindexing.refresh(
        context,
        refs.map((ref) => writablePlaces(principal, context.snapshot, ref)),
      );
    });
  }

  onChange(listener: ChangeListener, wants: (tenant: string) => boolean = () => true): () => void {
    const entry = { listener, wants };
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  async #writing<T>(
    principal: Principal,
    work: (tenant: TenantObjects, context: WriteContext) => Promise<T>,
    { given, isAdmitted = false }: { readonly given?: GivenBasis | undefined; readonly isAdmitted?: boolean } = {},
  ): Promise<T> {
    const { tenants } = this.#options;
    const tenant = tenants.opened(principal) ?? (await tenants.of(principal));
    const write = await tenant.catalog.begin();
    try {
      const definitions = { snapshot: write.snapshot, held: write, resumed: () => tenant.catalog.resumed() };
      const triggers = this.#beforeTriggers(principal, write.snapshot, given);
      const publish = this.#publisher(principal, tenant, definitions);
      const room = roomOf(this.#options.room, principal.tenant, isAdmitted);
      const readable = (view: LoadedClass): boolean => isReadable(principal, view);
      const context = { readable, publish, triggers, basis: given?.basis, room, ...definitions };
      return await work(tenant, context);
    } finally {
      write.end();
    }
  }

  #beforeTriggers(principal: Principal, snapshot: Snapshot, given: GivenBasis | undefined): BeforeTriggers | undefined {
    const { runner, runtime } = this.#options;
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
    const first = () => ({ id: Buffer.from(runtime.random.bytes(12)).toString("hex"), steps: 0, holds: [] });
    return new BeforeTriggers({ principal, runner, snapshot, given, chain: chain ?? first() });
  }

  /** The context of a write with the records that the caller gives for its commit. */
  #givenCommit(
    principal: Principal,
    context: WriteContext,
    { inCommit: asked }: Pick<InsertOptions, "inCommit">,
  ): WriteContext {
    const inCommit = this.#inCommit(principal, context, asked);
    return inCommit === undefined ? context : { ...context, inCommit };
  }

  #inCommit({ tenant }: Principal, context: WriteContext, inCommit: InCommit | undefined): WriteContext["inCommit"] {
    if (inCommit === undefined) return undefined;
    for (const { wants } of this.#listeners) if (wants(tenant)) return undefined;
    return writeInCommit(inCommit, context);
  }

  #publisher(
    { tenant: name, traceparent, chain }: Principal,
    tenant: TenantObjects,
    definitions: WriteDefinitions,
  ): WriteContext["publish"] {
    const listeners = [...this.#listeners].filter(({ wants }) => wants(name));
    return (events, write) => {
      this.#options.triggers.attach(tenant);
      const published = tenant.changes.publish({ definitions, traceparent, steps: chain?.steps ?? 0, events, write });
      if (listeners.length === 0) return published;
      return published.then(() => {
        const whole = events().map((event) => ({ ...event, tenant: name, traceparent }));
        for (const { listener } of listeners) listener(whole);
      });
    };
  }
}

/** The class, if the principal may insert objects into it. */
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

function requireWritable(principal: Principal, view: LoadedClass): void {
  if (classAccess(principal, view).writable) return;
  throw new AppError("denied", `${principal.user} may not change objects of ${view.path}.`, {
    details: { class: view.path },
  });
}

/**
 * Skips classes that do not exist for the principal. `AppError("denied")` if the principal may see the remaining
 * classes but change none.
 */
function writablePlaces(principal: Principal, snapshot: Snapshot, ref: ObjectRef): readonly Place[] {
  const places = placesOf(snapshot, ref, (view) => isReadable(principal, view));
  const writable = places.filter((place) => classAccess(principal, place.view).writable);
  const [first] = places;
  if (writable.length === 0 && first !== undefined) requireWritable(principal, first.view);
  return writable;
}
