import { CHANGE_BATCH_MAX, ENDS_MAINTAINED_MS, SCRUB_AGE_MIN_MS } from "../../../common/limits.ts";
import { isAppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { isStoreDamaged } from "../../store/damage.ts";
import type { Stores } from "../../store/engine.ts";
import { encodeJson } from "../../store/format.ts";
import type { Entity, EntityChange, ObjectStore, Page, PageRequest } from "../../store/objects.ts";
import type { EndingInParts } from "../../store/scrub.ts";
import type { Principal } from "../permissions/index.ts";
import type { LoadedClass } from "./definitions/views.ts";
import type { OpenTenants } from "./opening.ts";
import { changeAll } from "./writing/changeall.ts";
import { asOne, clearingLate } from "./writing/entities/ends.ts";

/** Exists if the tenant has no more objects of earlier versions whose parts expire separately. */
const JOINED_KEY = "objects/joined";

interface EndsDependencies {
  readonly stores: Stores;
  readonly tenants: OpenTenants;
  readonly clock: Clock;
  readonly log: Runtime["log"];
}

/**
 * Maintains objects that expire. Any controller may do so at any time. Each call ends after a bounded time, and the
 * next call continues.
 */
export class Ends {
  readonly #of: EndsDependencies;
  /** Passes that continue with the next call. */
  readonly #joining = new Map<string, AsyncGenerator<void>>();
  readonly #joined = new Set<string>();

  constructor(of: EndsDependencies) {
    this.#of = of;
  }

  async maintain(principal: Principal): Promise<void> {
    try {
      await this.#clear(principal);
    } finally {
      if (!this.#joined.has(principal.tenant)) await this.#join(principal);
    }
  }

  leave(tenant: string): void {
    this.#joining.delete(tenant);
    this.#joined.delete(tenant);
  }

  /** Removes what expired so long ago that no earlier write can still arrive. */
  async #clear(principal: Principal): Promise<void> {
    const { stores, tenants, clock } = this.#of;
    const { scrub } = await stores.tenant(principal.tenant);
    const beforeMs = clock.nowMs() - SCRUB_AGE_MIN_MS;
    const isOver = this.#timeIsOver();
    for await (const entities of pages((page) => scrub.ended({ ...page, beforeMs }))) {
      if (entities.length === 0) continue;
      const { store, catalog } = await tenants.of(principal);
      const { snapshot } = await catalog.resumed();
      await changeAll(
        store.objects,
        entities.map((entity) => this.#clearing(snapshot.byCid(entity.key.cid), entity)),
      );
      if (isOver()) return;
    }
  }

  /** An object that cannot be decoded is removed without its terms. A scrub removes them later. */
  #clearing(view: LoadedClass | undefined, entity: Entity): EntityChange {
    try {
      return clearingLate(view, entity);
    } catch (error) {
      this.#warn(entity, error, "an object that has ended is removed without its index entries");
      return clearingLate(undefined, entity);
    }
  }

  #warn({ key: { cid, id } }: Entity, error: unknown, message: string): void {
    this.#of.log.warn({ err: error, object: `${cid}:${id}` }, message);
  }

  /**
   * Migrates objects of earlier versions, whose parts expired at different times: each object gets one end for all its
   * parts. Runs until the tenant has no such object left, then never again.
   */
  async #join(principal: Principal): Promise<void> {
    const { tenant } = principal;
    const { kv } = await this.#of.stores.tenant(tenant);
    const isDone = (await kv.get(JOINED_KEY)) !== undefined || (await this.#joinSome(principal));
    if (!isDone) return;
    await kv.put(JOINED_KEY, encodeJson({}));
    this.#joined.add(tenant);
  }

  /** Returns true when no object is left. A pass that fails starts again. */
  async #joinSome(principal: Principal): Promise<boolean> {
    const pass = this.#joining.get(principal.tenant) ?? this.#joinAll(principal);
    this.#joining.delete(principal.tenant);
    const isOver = this.#timeIsOver();
    while (!(await pass.next()).done) {
      if (!isOver()) continue;
      this.#joining.set(principal.tenant, pass);
      return false;
    }
    return true;
  }

  async *#joinAll(principal: Principal): AsyncGenerator<void> {
    const { store, catalog } = await this.#of.tenants.of(principal);
    const { snapshot } = await catalog.resumed();
    for await (const found of pages((page) => store.scrub.endingInParts(page))) {
      for (const ending of found) {
        // An entity without a class is internal, and its parts expire separately on purpose, or its class was dropped.
        const view = snapshot.byCid(ending.entity.key.cid);
        if (view !== undefined) await this.#joinOne(view, ending, store.objects);
      }
      yield;
    }
  }

  /** An object that the store refuses is logged and skipped, so that it does not block others. */
  async #joinOne(view: LoadedClass, { entity, endsAtMs }: EndingInParts, store: ObjectStore): Promise<void> {
    try {
      for await (const changes of asOne(view, entity, { store, endsAtMs })) await changeAll(store, changes);
    } catch (error) {
      if (isAppError(error, "unavailable", "unknown_outcome") && !isStoreDamaged(error)) throw error;
      this.#warn(entity, error, "an object of an earlier version still ends in parts");
    }
  }

  #timeIsOver(): () => boolean {
    const { clock } = this.#of;
    const untilMs = clock.monotonicMs() + ENDS_MAINTAINED_MS;
    return () => clock.monotonicMs() >= untilMs;
  }
}

async function* pages<T>(read: (page: PageRequest) => Promise<Page<T>>): AsyncGenerator<readonly T[]> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: CHANGE_BATCH_MAX, ...(cursor !== undefined && { cursor }) });
    yield page.items;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
