import type { Clock } from "../../../../common/time.ts";
import type { Engine, TenantStore } from "../../../../controller/store/engine.ts";
import type { ScrubStore } from "../../../../controller/store/scrub.ts";
import type { StoreCall } from "./call.ts";
import { MemoryBlobState, MemoryBlobStore } from "./blob-store.ts";
import { MemoryKvState, MemoryKvStore } from "./kv.ts";
import { MemoryObjectState } from "./object-state.ts";
import { MemoryObjectStore, noTenant } from "./object-store.ts";

export const AT_ONCE: StoreCall = {
  read: (_name, action) => Promise.resolve().then(action),
  write: (_name, action) => Promise.resolve().then(action),
  watch: (action) => Promise.resolve().then(action),
};

/** Nothing to scrub: every call reads all data, so there are no derived entries. */
const NOTHING_DERIVED: ScrubStore = {
  postings: () => Promise.resolve({ items: [] }),
  ended: () => Promise.resolve({ items: [] }),
  endingInParts: () => Promise.resolve({ items: [] }),
  missing: (entities) => Promise.resolve(entities.map(() => [])),
  add: () => Promise.resolve(),
  remove: () => Promise.resolve(),
  edges: () => Promise.resolve({ looked: 0, missing: 0, superfluous: 0, examples: [] }),
  contents: () => Promise.resolve({ items: [] }),
  verify: () => Promise.resolve("gone"),
  rows: () => Promise.resolve({ looked: 0, damaged: [] }),
  repairs: () => Promise.resolve([]),
};

interface TenantState {
  readonly kv: MemoryKvState;
  readonly objects: MemoryObjectState;
  readonly blobs: MemoryBlobState;
}

/**
 * The stores of a whole installation in maps, shared by all clients. They meet the store contract; nothing persists.
 */
export class MemoryDatabase {
  readonly #clock: Clock;
  readonly #tenants = new Map<string, TenantState>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.create("");
  }

  /** A copy that changes independently, without leases and without the history of changes. */
  fork(clock: Clock): MemoryDatabase {
    const copy = new MemoryDatabase(clock);
    for (const [name, { kv, objects, blobs }] of this.#tenants) {
      copy.#tenants.set(name, { kv: kv.fork(clock), objects: objects.fork(clock), blobs: blobs.fork(clock) });
    }
    return copy;
  }

  create(name: string): void {
    if (this.#tenants.has(name)) return;
    const clock = this.#clock;
    this.#tenants.set(name, {
      kv: new MemoryKvState(clock),
      objects: new MemoryObjectState(clock),
      blobs: new MemoryBlobState(clock),
    });
  }

  drop(name: string): void {
    this.#tenants.delete(name);
  }

  /** The system tenant has an empty name. */
  tenant(name: string): TenantState {
    const tenant = this.#tenants.get(name);
    if (!tenant) throw noTenant(name);
    return tenant;
  }

  /** An engine for one client, whose leases use its clock. */
  engine({ clock, call = AT_ONCE }: { readonly clock: Clock; readonly call?: StoreCall }): Engine {
    const stores = new Map<string, TenantStore>();
    const storeOf = (name: string): TenantStore => {
      const state = this.tenant(name);
      const known = stores.get(name) ?? {
        kv: new MemoryKvStore({ state: state.kv, call, clock }),
        objects: new MemoryObjectStore({ state: state.objects, call }),
        blobs: new MemoryBlobStore({ state: state.blobs, call }),
        scrub: NOTHING_DERIVED,
      };
      stores.set(name, known);
      return known;
    };
    return {
      kind: "cluster",
      isRemote: false,
      system: () => Promise.resolve().then(() => storeOf("")),
      tenant: (name) => Promise.resolve().then(() => storeOf(name)),
      createTenant: (name) => Promise.resolve().then(() => this.create(name)),
      dropTenant: (name) => Promise.resolve().then(() => this.drop(name)),
      releaseTenant: () => Promise.resolve(),
      nodes: () => Promise.resolve([]),
      ready: () => Promise.resolve({ lost: [] }),
      close: () => Promise.resolve(),
    };
  }
}
