import type { Clock } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import type { Page, PageRequest } from "../../store/objects.ts";
import { classAccess, requirePermission, type Principal } from "../permissions/index.ts";
import { DefinitionChanges } from "./definitionchanges.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import { Ends } from "./ends.ts";
import { IndexScrub, type IndexScrubPage, type IndexScrubRequest } from "./indexing/indexscrub.ts";
import type { ClassTriggers, ObjectChanges, Objects, DryRun, Rehearsals } from "./interface.ts";
import { OpenTenants } from "./opening.ts";
import { aheadOfClock, type AheadObject } from "./reading/ahead.ts";
import { Reads } from "./reads.ts";
import { DraftDryRun } from "./dry-run.ts";
import { sizes } from "./sizes.ts";
import { Triggers } from "./triggers.ts";
import type { SystemClass } from "./definitions/system-class.ts";
import type { IndexStatus, ObjectTriggers } from "./types.ts";
import { roomOf, type Growth, type TenantRoom } from "./values/room.ts";
import { endingJournal, type EndingJournal } from "./writing/edges/endings.ts";
import type { UnrestrictedObjects } from "./unrestricted.ts";
import type { VisibleObjects } from "./visible/interface.ts";
import { Writes } from "./writes.ts";

export interface ObjectServiceDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  /** Absent: no trigger runs, and none can be stored. */
  readonly triggers?: ObjectTriggers;
  /** Absent: no tenant has a quota. */
  readonly room?: TenantRoom;
  /** Makes `visible`, because conditions on rows are MQL. Absent: every use of `visible` fails. */
  readonly visible?: (objects: Pick<Objects, "catalog" | "unrestricted">) => VisibleObjects;
  /** Absent: this is the only controller. */
  readonly controllers?: Controllers;
}

/**
 * The object database: classes and objects of all tenants. A tenant is opened when it is first used. Each interface is
 * implemented by a part of its own.
 */
export class ObjectService implements Objects, ObjectChanges, ClassTriggers, Rehearsals {
  readonly #room: TenantRoom | undefined;
  readonly #clock: Clock;
  readonly #endings: EndingJournal;
  readonly #tenants: OpenTenants;
  readonly #ends: Ends;
  readonly #definitions: DefinitionChanges;
  readonly #triggers: Triggers;
  readonly #writes: Writes;
  readonly #reads: Reads;
  readonly #visible: VisibleObjects | undefined;
  readonly unrestricted: UnrestrictedObjects;

  constructor(of: ObjectServiceDependencies) {
    const { stores, runtime, triggers: runner, room } = of;
    this.#room = room;
    this.#clock = runtime.clock;
    this.#endings = endingJournal({ ...of, controllers: of.controllers ?? alone(runtime) });
    this.#tenants = new OpenTenants({ stores, runtime, endings: this.#endings });
    this.#ends = new Ends({ stores, tenants: this.#tenants, ...runtime });
    this.#definitions = new DefinitionChanges(this.#tenants);
    this.#triggers = new Triggers({ tenants: this.#tenants, clock: runtime.clock, runner });
    this.#writes = new Writes({ tenants: this.#tenants, triggers: this.#triggers, runtime, runner, room });
    this.#reads = new Reads(this.#tenants, runtime.clock);
    this.unrestricted = unrestrictedOf(this.#writes, this.#reads);
    this.#visible = of.visible?.(this);
  }

  get visible(): VisibleObjects {
    if (this.#visible === undefined) throw new Error("These objects were made without visible reads.");
    return this.#visible;
  }

  readonly catalog: Objects["catalog"] = (...given) => this.#definitions.catalog(...given);
  readonly catalogNow: Objects["catalogNow"] = (...given) => this.#definitions.catalogNow(...given);
  readonly createClass: Objects["createClass"] = (...given) => this.#definitions.createClass(...given);
  readonly alterClass: Objects["alterClass"] = (...given) => this.#definitions.alterClass(...given);
  readonly dropClass: Objects["dropClass"] = (...given) => this.#definitions.dropClass(...given);
  readonly createEdgeType: Objects["createEdgeType"] = (...given) => this.#definitions.createEdgeType(...given);
  readonly dropEdgeType: Objects["dropEdgeType"] = (...given) => this.#definitions.dropEdgeType(...given);
  readonly subscribe: ObjectChanges["subscribe"] = (...given) => this.#definitions.subscribe(...given);
  readonly unsubscribe: ObjectChanges["unsubscribe"] = (...given) => this.#definitions.unsubscribe(...given);

  readonly triggers: ClassTriggers["triggers"] = (...given) => this.#triggers.triggers(...given);
  readonly triggersBy: ClassTriggers["triggersBy"] = (...given) => this.#triggers.triggersBy(...given);
  readonly putTrigger: ClassTriggers["putTrigger"] = (...given) => this.#triggers.putTrigger(...given);
  readonly dropTrigger: ClassTriggers["dropTrigger"] = (...given) => this.#triggers.dropTrigger(...given);
  readonly followTriggers: ClassTriggers["followTriggers"] = (...given) => this.#triggers.followTriggers(...given);
  readonly triggerAt: ClassTriggers["triggerAt"] = (...given) => this.#triggers.triggerAt(...given);
  readonly foreignChanges: ClassTriggers["foreignChanges"] = (...given) => this.#triggers.foreignChanges(...given);

  readonly exchangeSealed: Writes["exchangeSealed"] = (...given) => this.#writes.exchangeSealed(...given);

  registerSystemClass(definition: SystemClass): void {
    this.#tenants.registerSystemClass(definition);
  }

  async rehearse(principal: Principal): Promise<DryRun> {
    const { catalog, store } = await this.#tenants.of(principal);
    await catalog.resumed();
    const room = roomOf(this.#room, principal.tenant, false);
    return new DraftDryRun(principal, catalog, room && { room, store: store.objects });
  }

  /**
   * Compares a page of objects of all classes with their indexes, or of indexes with their objects, and repairs
   * differences. Safe while others write.
   */
  async scrubIndexes(principal: Principal, request: IndexScrubRequest): Promise<IndexScrubPage> {
    requirePermission(principal, "cluster:write");
    const { store, catalog } = await this.#tenants.of(principal);
    const snapshot = async (): Promise<Snapshot> => (await catalog.resumed()).snapshot;
    return new IndexScrub({ ...store, snapshot }).page(request);
  }

  /** A page of the objects whose last write is too far ahead of the clock; see `aheadOfClock`. */
  async ahead(principal: Principal, page: PageRequest): Promise<Page<AheadObject>> {
    requirePermission(principal, "cluster:write");
    const { store, catalog } = await this.#tenants.of(principal);
    const { snapshot } = await catalog.resumed();
    return aheadOfClock(page, { store: store.objects, snapshot, principal, nowMs: this.#clock.nowMs() });
  }

  /**
   * Objects and bytes of the tenant's own classes, in parts that add up. The sum may miss or include concurrent writes.
   * Reads every object once.
   */
  async *sizes(principal: Principal): AsyncGenerator<Growth> {
    requirePermission(principal, "tenants:read");
    const { store, catalog } = await this.#tenants.of(principal);
    yield* sizes(store.objects, (await catalog.resumed()).snapshot);
  }

  async indexStates(principal: Principal): Promise<readonly IndexStatus[]> {
    const tenant = await this.#tenants.of(principal);
    const { snapshot } = await tenant.catalog.resumed();
    const statuses = await tenant.indexer.statuses(snapshot);
    return statuses.filter((status) => classAccess(principal, status.class).readable);
  }

  /** Stored events of all tenants on this controller that are not delivered to all subscriptions. */
  get changesWaiting(): number {
    return this.#tenants.changesWaiting;
  }

  /** Stops following the definitions of a tenant that no longer exists. A later tenant of that name is opened again. */
  leave(tenant: string): Promise<void> {
    this.#ends.leave(tenant);
    return this.#tenants.leave(tenant);
  }

  /**
   * Continues to remove edges to removed objects where no controller does so any more, and removes expired objects; see
   * `Area.maintain`.
   */
  async maintain(principal: Principal): Promise<void> {
    requirePermission(principal, "cluster:write");
    await this.#takeUpEndings(principal);
    await this.#ends.maintain(principal);
  }

  async #takeUpEndings(principal: Principal): Promise<void> {
    for await (const found of this.#endings.abandoned(principal.tenant)) {
      const { endings } = await this.#tenants.of(principal);
      if (!(await endings.takeUp(found))) return;
    }
  }

  /** Resolves when no background work of earlier calls runs on this controller. */
  async settled(): Promise<void> {
    await this.#endings.inFlight.settled();
  }

  /** Stops background work; another controller continues it. Idempotent. */
  async stop(): Promise<void> {
    await this.#endings.inFlight.close();
  }

  /** Stops following definitions. Every later call is refused. The stores stay open. */
  async close(): Promise<void> {
    await this.stop();
    await this.#tenants.close();
  }
}

function unrestrictedOf(writes: Writes, reads: Reads): UnrestrictedObjects {
  return {
    insert: (...given) => writes.insert(...given),
    ingest: (...given) => writes.ingest(...given),
    ingestInCommit: (...given) => writes.ingestInCommit(...given),
    restore: (...given) => writes.restore(...given),
    update: (...given) => writes.update(...given),
    remove: (...given) => writes.remove(...given),
    writeTimes: (...given) => writes.writeTimes(...given),
    refresh: (...given) => writes.refresh(...given),
    onChange: (...given) => writes.onChange(...given),
    get: (...given) => reads.get(...given),
    read: (...given) => reads.read(...given),
    explain: (...given) => reads.explain(...given),
    inOrder: (...given) => reads.inOrder(...given),
    estimate: (...given) => reads.estimate(...given),
    count: (...given) => reads.count(...given),
    edges: (...given) => reads.edges(...given),
    history: (...given) => reads.history(...given),
    times: (...given) => reads.times(...given),
    pastStates: (...given) => reads.pastStates(...given),
    removed: (...given) => reads.removed(...given),
    removedObjects: (...given) => reads.removedObjects(...given),
  };
}

function alone({ random }: Pick<Runtime, "random">): Controllers {
  const own = Buffer.from(random.bytes(12)).toString("hex");
  return { own, has: (id) => id === own };
}
