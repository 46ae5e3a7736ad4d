import { CHANGE_BATCH_MAX, ENDS_MAINTAINED_MS, SCRUB_AGE_MIN_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import { encodeJson } from "../../store/format.ts";
import type { Entity, Page, PageRequest } from "../../store/objects.ts";
import type { Principal } from "../permissions/index.ts";
import { ownTerm, type LoadedClass } from "./definitions/views.ts";
import type { OpenTenants } from "./opening.ts";
import { changeAll } from "./writing/changeall.ts";
import { asOne, clearingLate, endsInParts } from "./writing/ends.ts";

/** Present where no object that an earlier version wrote ends in parts any more. */
const JOINED_KEY = "objects/joined";

interface EndsDependencies {
  readonly stores: Stores;
  readonly tenants: OpenTenants;
  readonly clock: Clock;
}

/** What any controller may do at any time for objects that end by themselves: in each call as much as a bounded time takes. */
export class Ends {
  readonly #of: EndsDependencies;
  /** Passes that go on with the next call. */
  readonly #joining = new Map<string, AsyncGenerator<void>>();
  readonly #joined = new Set<string>();

  constructor(of: EndsDependencies) {
    this.#of = of;
  }

  async maintain(principal: Principal): Promise<void> {
    await this.#clear(principal);
    if (!this.#joined.has(principal.tenant)) await this.#join(principal);
  }

  leave(tenant: string): void {
    this.#joining.delete(tenant);
    this.#joined.delete(tenant);
  }

  /** Clears up what has ended so long ago that no write of before can still arrive. */
  async #clear(principal: Principal): Promise<void> {
    const { stores, tenants, clock } = this.#of;
    const { scrub } = await stores.tenant(principal.tenant);
    const beforeMs = clock.nowMs() - SCRUB_AGE_MIN_MS;
    const isOver = this.#timeIsOver();
    for await (const entities of pages((page) => scrub.ended({ ...page, beforeMs }))) {
      if (entities.length === 0) continue;
      const { store, catalog } = await tenants.of(principal);
      const { snapshot } = await catalog.resumed();
      const changes = entities.map((entity) => clearingLate(snapshot.byCid(entity.key.cid), entity));
      await changeAll(store.objects, changes);
      if (isOver()) return;
    }
  }

  /** Gives objects of earlier versions one end each, once in the life of a tenant. */
  async #join(principal: Principal): Promise<void> {
    const { tenant } = principal;
    const { kv } = await this.#of.stores.tenant(tenant);
    const isDone = (await kv.get(JOINED_KEY)) !== undefined || (await this.#joinSome(principal));
    if (!isDone) return;
    await kv.put(JOINED_KEY, encodeJson({}));
    this.#joined.add(tenant);
  }

  /** Whether nothing is left. A pass that fails begins again. */
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
    const source = { store: store.objects };
    for (const view of snapshot.tree("/").filter(endsByItself))
      for await (const entities of pages((page) => store.objects.find({ terms: [ownTerm(view.cid)] }, page))) {
        for (const entity of entities)
          if (endsInParts(view, entity))
            for await (const changes of asOne(view, entity, source)) await changeAll(store.objects, changes);
        yield;
      }
  }

  #timeIsOver(): () => boolean {
    const { clock } = this.#of;
    const untilMs = clock.monotonicMs() + ENDS_MAINTAINED_MS;
    return () => clock.monotonicMs() >= untilMs;
  }
}

function endsByItself({ kind, options }: LoadedClass): boolean {
  return kind === "entity" && options.ttlSeconds !== undefined;
}

async function* pages(read: (page: PageRequest) => Promise<Page<Entity>>): AsyncGenerator<readonly Entity[]> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: CHANGE_BATCH_MAX, ...(cursor !== undefined && { cursor }) });
    yield page.items;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
