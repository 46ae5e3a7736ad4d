import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { KvLease, KvStore } from "../../../store/kv.ts";
import { TenantCatalog } from "./catalog.ts";
import { createClass, ensureRoot } from "./classchanges.ts";
import { DEFINITIONS_PREFIX } from "./draft.ts";

const runtime = (seed: number) => ({ ...testRuntime(realClock), random: seededRandom(seed) });

/** A store whose leases, watches and transactions fail when the test says so. */
class BreakableKv {
  readonly store: KvStore;
  leases = 0;
  broken = false;
  /** The definitions themselves cannot be read. */
  definitionsAway = false;
  /** Revocations of leases that do not reach the store. */
  lostRevocations = 0;
  /** Applied and then reported as unknown. */
  unknownTxns = 0;
  #lost = new AbortController();

  constructor(inner: KvStore) {
    this.store = wrappedKv(inner, {
      list: (prefix, options) =>
        this.broken || (this.definitionsAway && prefix === DEFINITIONS_PREFIX)
          ? Promise.reject(new AppError("unavailable", "away"))
          : inner.list(prefix, options),
      lease: (ttlMs) => this.#lease(inner, ttlMs),
      txn: async (request) => {
        const result = await inner.txn(request);
        if (this.unknownTxns-- > 0) throw new AppError("unknown_outcome", "who knows");
        return result;
      },
    });
  }

  loseLease(): void {
    this.#lost.abort();
  }

  async #lease(inner: KvStore, ttlMs: number): Promise<KvLease> {
    if (this.broken) throw new AppError("unavailable", "away");
    const lease = await inner.lease(ttlMs);
    this.leases++;
    this.#lost = new AbortController();
    return {
      id: lease.id,
      lost: AbortSignal.any([lease.lost, this.#lost.signal]),
      held: () => !this.#lost.signal.aborted && lease.held(),
      revoke: () => {
        if (this.lostRevocations-- > 0) return Promise.reject(new AppError("unavailable", "away"));
        return lease.revoke();
      },
    };
  }
}

test("a catalog that lost its lease refuses writes until it has read everything anew", async () => {
  await using engine = await openTestEngine();
  const { kv } = await engine.tenant("matrix");
  const breakable = new BreakableKv(kv);
  const catalog = new TenantCatalog({ kv: breakable.store, runtime: runtime(1), owners: new Map() });
  const healthy = new TenantCatalog({ kv, runtime: runtime(2), owners: new Map() });
  await catalog.open();
  await healthy.open();
  await catalog.change((draft) => ensureRoot(draft, "/matrix"));
  breakable.broken = true;
  breakable.loseLease();
  expect(() => catalog.requireCurrent()).toThrow(expect.objectContaining({ code: "unavailable" }));
  await expect(
    catalog.change((draft) => createClass(draft, { path: "/matrix/no", columns: [] }, "/matrix")),
  ).rejects.toMatchObject({ code: "unavailable" });
  await healthy.change((draft) => createClass(draft, { path: "/matrix/meanwhile", columns: [] }, "/matrix"));
  breakable.broken = false;
  await expect.poll(() => following(catalog), { timeout: 10_000 }).toBe(true);
  expect(catalog.current().get("/matrix/meanwhile")).toBeDefined();
  expect(catalog.current().get("/matrix/no")).toBeUndefined();
  await catalog.close();
  await healthy.close();
});

test("a change whose outcome is unknown is made once", async () => {
  await using engine = await openTestEngine();
  const breakable = new BreakableKv((await engine.tenant("matrix")).kv);
  const catalog = new TenantCatalog({ kv: breakable.store, runtime: runtime(3), owners: new Map() });
  await catalog.open();
  await catalog.change((draft) => ensureRoot(draft, "/matrix"));
  breakable.unknownTxns = 1;
  await catalog.change((draft) => createClass(draft, { path: "/matrix/once", columns: [] }, "/matrix"));
  expect(catalog.current().get("/matrix/once")).toMatchObject({ cid: 2 });
  await catalog.close();
});

test("a change does not wait for a catalog whose leaving had to be repeated", async () => {
  await using engine = await openTestEngine();
  const { kv } = await engine.tenant("matrix");
  const breakable = new BreakableKv(kv);
  const healthy = new TenantCatalog({ kv, runtime: runtime(4), owners: new Map() });
  await healthy.open();
  breakable.lostRevocations = 1;
  // It has joined when reading the definitions fails.
  breakable.definitionsAway = true;
  const leaving = new TenantCatalog({ kv: breakable.store, runtime: runtime(5), owners: new Map() });
  await expect(leaving.open()).rejects.toMatchObject({ code: "unavailable" });
  const revision = await healthy.change((draft) => ensureRoot(draft, "/matrix"));
  expect(await healthy.acknowledged(revision)).toBe(true);
  await healthy.close();
});

function following(catalog: TenantCatalog): boolean {
  try {
    catalog.requireCurrent();
    return true;
  } catch {
    return false;
  }
}
