import { afterAll, beforeAll, expect, test } from "vitest";
import type { Clock } from "../../common/time.ts";
import type { TenantStore } from "../../controller/store/engine.ts";
import type { EntityKey } from "../../controller/store/objects.ts";
import { realClock } from "../helpers/time/clock.ts";
import { openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { openRing } from "../helpers/cluster/ring.ts";

const BEHIND_MS = -5_000;
const TURNS = 40;
const TTL_MS = 3_000;
/** Number of tests here; the promise is proved when all of them have ended. */
const CASES = 4;
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** A wrong time of day. Durations are still measured correctly. */
const behind: Clock = { ...realClock, nowMs: () => realClock.nowMs() + BEHIND_MS };

let right: TestClusterEngine;
let late: TestClusterEngine;
/** Both stores in turns, the one with the right clock first. */
let stores: readonly { readonly store: TenantStore; readonly clock: Clock }[];
let kept = 0;

beforeAll(async () => {
  const { settings } = await openRing();
  right = await openTestClusterEngine({ tenants: ["matrix"], settings });
  late = await openTestClusterEngine({ prefix: right.prefix, tenants: [], settings, clock: behind });
  stores = [
    { store: await right.tenant("matrix"), clock: realClock },
    { store: await late.tenant("matrix"), clock: behind },
  ];
});
afterAll(async () => {
  if (kept === CASES) prove("ring-clocks-apart", { apartMs: -BEHIND_MS, turns: TURNS, cases: CASES });
  await late?.close();
  await right?.[Symbol.asyncDispose]();
});

test("of writes by turns, each after a look, the last one wins although every other writer is five seconds behind", async () => {
  const key: EntityKey = { cid: 1, id: "by turns" };
  for (let turn = 0; turn < TURNS; turn++) {
    const { store, clock } = taker(turn);
    const [entity] = await store.objects.get([key]);
    if (turn > 0) expect(told(entity?.cells.get("1")?.value)).toBe(`turn ${turn - 1}`);
    const timeUs = Math.max(clock.nowMs() * 1_000, (entity?.lastUs ?? 0) + 1);
    await store.objects.change([
      {
        key,
        timeUs,
        ...(turn === 0 ? { birth: true as const } : {}),
        cells: new Map([["1", text(`turn ${turn}`)]]),
        version: text(`${turn}`),
      },
    ]);
  }
  const { items } = await taker(0).store.objects.history(key, {}, { limit: 2 * TURNS });
  expect(items.map((version) => told(version.value))).toEqual(
    Array.from({ length: TURNS }, (_, index) => `${TURNS - 1 - index}`),
  );
  kept += 1;
});

test("a mark set after one was taken away stays, whoever's clock is behind", async () => {
  const owner = "depot/web/1.0.0";
  for (let turn = 0; turn < 4; turn++) {
    const bytes = text(`content ${turn}`);
    const [first, second] = [taker(turn).store.blobs, taker(turn + 1).store.blobs];
    const { digest } = await first.put([bytes], owner);
    await first.unmark(digest, owner);
    await second.put([bytes], owner);
    await first.sweep(-60_000);
    expect(await second.stat(digest), `turn ${turn}`).toMatchObject({ digest });
    await second.unmark(digest, owner);
    await first.sweep(-60_000);
    expect(await second.stat(digest), `turn ${turn}`).toBeUndefined();
  }
  kept += 1;
});

test("a lease lasts as long by either clock, and is seen alike", async () => {
  await Promise.all(
    stores.map(async ({ store }, turn) => {
      const lease = await store.kv.lease(TTL_MS);
      await store.kv.put(`held/${turn}`, text("mine"), { lease: lease.id });
      const began = performance.now();
      while (performance.now() - began < 2 * TTL_MS) {
        expect(await taker(turn + 1).store.kv.get(`held/${turn}`)).toMatchObject({ lease: lease.id });
        expect(lease.lost.aborted).toBe(false);
      }
      await lease.revoke();
      expect(await taker(turn + 1).store.kv.get(`held/${turn}`)).toBeUndefined();
    }),
  );
  kept += 1;
});

test("what an entity lives, it lives by its writer's clock", async () => {
  await Promise.all(
    stores.map(async ({ store, clock }, turn) => {
      const key: EntityKey = { cid: 2, id: `short-lived ${turn}` };
      const began = performance.now();
      await store.objects.change([
        { key, timeUs: clock.nowMs() * 1_000, birth: true, expiresAtMs: clock.nowMs() + TTL_MS },
      ]);
      let livedMs = 0;
      await expect
        .poll(async () => (await lives(key)) || ((livedMs = performance.now() - began), false), { timeout: 60_000 })
        .toBe(false);
      expect(livedMs).toBeGreaterThan(TTL_MS - 1_000);
    }),
  );
  kept += 1;

  async function lives(key: EntityKey): Promise<boolean> {
    const seen = await Promise.all(stores.map(({ store }) => store.objects.get([key])));
    return seen.some(([entity]) => entity !== undefined);
  }
});

function taker(turn: number): { readonly store: TenantStore; readonly clock: Clock } {
  const found = stores[turn % stores.length];
  if (found === undefined) throw new Error("There are two.");
  return found;
}

function told(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}
