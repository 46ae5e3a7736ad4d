import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import {
  TABLE_MAX_BYTES,
  TABLE_NAME_MAX_BYTES,
  TABLE_ROWS_MAX,
  TABLES_PER_TENANT_MAX,
} from "../../../common/limits.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import { merged, type TableRow } from "./rows.ts";
import { TableService } from "./service.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const viewer = testPrincipal("viewer");
const stranger = { ...admin, user: "bob", grants: ["objects:read", "rules:*"] };
/** Number of writes made one after another, each flushed. */
const AGED = onCluster ? 200 : 1_000;
const AT_ONCE = 32;

let engine: TestEngine;
let tables: TableService;
beforeAll(async () => {
  engine = await openTestEngine();
  tables = serviceOf(engine);
});
afterAll(() => engine.close());

/** Another controller. */
function serviceOf(stores: Stores): TableService {
  const random = { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
  return new TableService({ stores, runtime: { ...testRuntime(realClock), random } });
}

function storesWith(change: (kv: KvStore) => Partial<KvStore>): Stores {
  return {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      return { ...store, kv: wrappedKv(store.kv, change(store.kv)) };
    },
  };
}

describe("a table", () => {
  test("is made, listed, read, replaced, merged and removed, at once for another controller", async () => {
    const other = serviceOf(engine);
    expect((await tables.replace(admin, "life", [{ key: "a", n: 1 }, { n: 2 }])).rows).toEqual([
      { key: "a", n: 1 },
      { n: 2 },
    ]);
    expect(await other.rows(admin, "life")).toEqual([{ key: "a", n: 1 }, { n: 2 }]);
    expect((await other.merge(admin, "life", [{ key: "b" }, { key: "a", n: 3 }])).rows).toEqual([
      { key: "a", n: 3 },
      { n: 2 },
      { key: "b" },
    ]);
    expect(await tables.rows(admin, "life")).toEqual([{ key: "a", n: 3 }, { n: 2 }, { key: "b" }]);
    await tables.merge(admin, "a/life é", []);
    expect((await other.names(admin)).filter((name) => name.includes("life"))).toEqual(["a/life é", "life"]);
    await other.remove(admin, "life");
    await expect(tables.rows(admin, "life")).rejects.toMatchObject({ code: "not_found" });
    await expect(tables.remove(admin, "life")).rejects.toMatchObject({ code: "not_found" });
    expect((await tables.names(admin)).filter((name) => name.includes("life"))).toEqual(["a/life é"]);
    expect(await tables.rows(admin, "a/life é")).toEqual([]);
  });

  test("that two controllers change at once has the rows of both", async () => {
    const controllers = [tables, serviceOf(engine)];
    const keys = Array.from({ length: 10 }, (_, n) => `k${n}`);
    await Promise.all(
      controllers.flatMap((one, at) => keys.map((key) => one.merge(admin, "both", [{ key: at + key }]))),
    );
    const rows = await tables.rows(admin, "both");
    expect(new Set(rows.map(({ key }) => key))).toEqual(new Set([0, 1].flatMap((at) => keys.map((key) => at + key))));
    expect(rows).toHaveLength(20);
  });

  test("that was changed very often is one value", async () => {
    for (let n = 0; n < AGED; n++) await tables.merge(admin, "aged", [{ key: "a", n }]);
    let reads = 0;
    const reading = storesWith((kv) => ({
      get: (key) => {
        reads += 1;
        return kv.get(key);
      },
    }));
    expect(await serviceOf(reading).rows(admin, "aged")).toEqual([{ key: "a", n: AGED - 1 }]);
    expect(reads).toBe(1);
  });
});

describe("what is refused", () => {
  test("is said by name: names, keys, sizes", async () => {
    const long = "é".repeat(TABLE_NAME_MAX_BYTES / 2);
    expect((await tables.replace(admin, long, [])).rows).toEqual([]);
    await expect(tables.replace(admin, `${long}x`, [])).rejects.toMatchObject({ code: "too_large" });
    for (const name of ["", "a\nb", "\ud800"])
      await expect(tables.merge(admin, name, [])).rejects.toMatchObject({ code: "invalid" });
    await expect(tables.merge(admin, "large", [{ key: true }])).rejects.toThrow("The key of row 1");
    const rows = Array.from({ length: TABLE_ROWS_MAX }, (_, key) => ({ key }));
    expect((await tables.replace(admin, "large", rows)).rows).toHaveLength(TABLE_ROWS_MAX);
    const tooMany = { details: { limit: "TABLE_ROWS_MAX" } };
    await expect(tables.merge(admin, "large", [{ key: "more" }])).rejects.toMatchObject(tooMany);
    expect((await tables.merge(admin, "large", [{ key: "7", n: 1 }])).rows).toHaveLength(TABLE_ROWS_MAX);
    const text = (length: number) => [{ text: "x".repeat(length) }];
    await tables.replace(admin, "large", text(TABLE_MAX_BYTES - 100));
    const tooLarge = { details: { limit: "TABLE_MAX_BYTES" } };
    await expect(tables.merge(admin, "large", text(200))).rejects.toMatchObject(tooLarge);
    expect(await tables.rows(admin, "large")).toHaveLength(1);
    await tables.remove(admin, "large");
  });

  test("a tenant has a most of tables, whose rows are still changed", async () => {
    const others = await tables.names(neighbour);
    const made = Array.from({ length: TABLES_PER_TENANT_MAX - others.length }, (_, n) => `t${n}`);
    await mapLimited(made, AT_ONCE, (name) => tables.replace(neighbour, name, []));
    const tooMany = { details: { limit: "TABLES_PER_TENANT_MAX" } };
    await expect(tables.merge(neighbour, "one more", [])).rejects.toMatchObject(tooMany);
    expect((await tables.merge(neighbour, "t1", [{ n: 1 }])).rows).toEqual([{ n: 1 }]);
    expect((await tables.replace(admin, "not the neighbour's", [])).rows).toEqual([]);
    await mapLimited(made, AT_ONCE, (name) => tables.remove(neighbour, name));
  });

  test("who may read only reads, and who may do neither does neither", async () => {
    await tables.replace(admin, "rights", [{ n: 1 }]);
    expect(await tables.rows(viewer, "rights")).toEqual([{ n: 1 }]);
    expect(await tables.names(viewer)).toContain("rights");
    for (const who of [viewer, stranger]) {
      await expect(tables.replace(who, "rights", [])).rejects.toMatchObject({ code: "denied" });
      await expect(tables.merge(who, "rights", [])).rejects.toMatchObject({ code: "denied" });
      await expect(tables.remove(who, "rights")).rejects.toMatchObject({ code: "denied" });
    }
    await expect(tables.rows(stranger, "rights")).rejects.toMatchObject({ code: "denied" });
    await expect(tables.names(stranger)).rejects.toMatchObject({ code: "denied" });
  });

  test("a neighbour sees and changes only what is its own", async () => {
    await tables.replace(admin, "shared", [{ n: 1 }]);
    await expect(tables.rows(neighbour, "shared")).rejects.toMatchObject({ code: "not_found" });
    await expect(tables.remove(neighbour, "shared")).rejects.toMatchObject({ code: "not_found" });
    await tables.replace(neighbour, "shared", [{ n: 2 }]);
    await tables.remove(neighbour, "shared");
    expect(await tables.rows(admin, "shared")).toEqual([{ n: 1 }]);
  });
});

describe("with a store that fails", () => {
  test("a change whose answer was lost is made once, rows without a key among it", async () => {
    await tables.replace(admin, "lost", [{ n: 0 }]);
    let lost = 0;
    const stores = storesWith((kv) => ({
      txn: async (request) => {
        const answer = await kv.txn(request);
        if (lost++ < 2) throw new AppError("unknown_outcome", "The answer was lost.");
        return answer;
      },
    }));
    expect((await serviceOf(stores).merge(admin, "lost", [{ n: 1 }])).rows).toEqual([{ n: 0 }, { n: 1 }]);
    expect(await tables.rows(admin, "lost")).toEqual([{ n: 0 }, { n: 1 }]);
    lost = 0;
    await serviceOf(stores).remove(admin, "lost");
    expect(await tables.names(admin)).not.toContain("lost");
  });

  test("a change that another controller's crossed is made over it", async () => {
    await tables.replace(admin, "crossed", []);
    let crossed = 0;
    const stores = storesWith((kv) => ({
      txn: async (request) => {
        if (crossed++ < 3) await tables.merge(admin, "crossed", [{ key: `theirs ${crossed}` }]);
        return kv.txn(request);
      },
    }));
    expect((await serviceOf(stores).merge(admin, "crossed", [{ key: "mine" }])).rows).toEqual([
      { key: "theirs 1" },
      { key: "theirs 2" },
      { key: "theirs 3" },
      { key: "mine" },
    ]);
  });

  test("a table that others change all the time is left to them", async () => {
    await tables.replace(admin, "contested", []);
    const stores = storesWith((kv) => ({
      txn: async (request) => {
        await tables.merge(admin, "contested", [{ key: "theirs" }]);
        return kv.txn(request);
      },
    }));
    const mine = serviceOf(stores).merge(admin, "contested", [{ key: "mine" }]);
    await expect(mine).rejects.toMatchObject({ code: "conflict" });
    expect(await tables.rows(admin, "contested")).toEqual([{ key: "theirs" }]);
  });

  test("that stays away, a call fails by that name, and the next one is made", async () => {
    let isAway = true;
    const stores = storesWith((kv) => ({
      get: (key) => (isAway ? Promise.reject(new AppError("unavailable", "away")) : kv.get(key)),
    }));
    const service = serviceOf(stores);
    await expect(service.merge(admin, "away", [{ n: 1 }])).rejects.toMatchObject({ code: "unavailable" });
    isAway = false;
    expect((await service.merge(admin, "away", [{ n: 2 }])).rows).toEqual([{ n: 2 }]);
  });

  test.each(TIMES > 1 ? [1, 2, 3] : [1])("everything is as the answered calls left it (seed %i)", async (seed) => {
    await using nasty = await openTestEngine({ faultySeed: seed });
    const random = seededRandom(seed);
    const below = (end: number): number => Math.floor(random.next() * end);
    const service = serviceOf(nasty);
    const model = new Map<string, readonly TableRow[]>();
    for (let round = 0; round < 100; round++) {
      const name = `t${below(4)}`;
      const kind = below(6);
      if (kind === 0 && model.has(name)) {
        await untilDone(() => service.remove(admin, name), "not_found");
        model.delete(name);
      } else if (kind < 3) {
        await untilDone(() => service.replace(admin, name, [{ key: "a", round }]));
        model.set(name, [{ key: "a", round }]);
      } else {
        const row = { key: `k${below(3)}`, round };
        await untilDone(() => service.merge(admin, name, [row]));
        model.set(name, merged(model.get(name) ?? [], [row]));
      }
      expect(await untilDone(() => service.names(admin)), `seed ${seed} round ${round}`).toEqual(
        [...model.keys()].sort(),
      );
      for (const [one, rows] of model) expect(await untilDone(() => service.rows(admin, one))).toEqual(rows);
    }
  });
});

/** Repeats the call until it has surely taken effect. `done` is the error of a repetition after it did. */
async function untilDone<T>(call: () => Promise<T>, done?: string): Promise<T | undefined> {
  let isDoubtful = false;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (isDoubtful && error.code === done) return undefined;
      if (!["unavailable", "unknown_outcome"].includes(error.code)) throw error;
      isDoubtful ||= error.code === "unknown_outcome";
    }
  }
}
