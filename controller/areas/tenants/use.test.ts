import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { CHANGE_BATCH_MAX, TENANT_USE_UNTOLD_MAX_OBJECTS } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { AppError } from "../../../common/errors.ts";
import type { AuditEntry } from "../audit/index.ts";
import { ObjectService } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import { keepInRoom, tenantSizes } from "./sizes.ts";
import { quotaOf, type Quota } from "./quotas.ts";
import type { ShownUse } from "./types.ts";
import { TenantUse } from "./use.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const second = testPrincipal("administrator", "second");
const RANDOM = { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
const NO_QUOTA: Quota = quotaOf({});

let engine: TestEngine;
let classes = 0;
/** Quotas by tenant, known to every controller. */
const quotas = new Map<string, Quota>();
const told: AuditEntry[] = [];

interface Controller extends AsyncDisposable {
  readonly use: TenantUse;
  readonly objects: ObjectService;
}

async function controller(id: string, stores: Stores = engine): Promise<Controller> {
  const runtime = { ...testRuntime(realClock), random: RANDOM };
  const actAs = (tenant: string) => Promise.resolve(systemPrincipal(tenant, `/${tenant}`, ""));
  const use = await TenantUse.open({
    stores,
    runtime,
    controllerId: `${id}-${classes}`,
    quotaOf: (tenant) => quotas.get(tenant) ?? NO_QUOTA,
    sizes: (tenant) => tenantSizes({ stores, objects, actAs }, tenant),
    audit: (entry) => Promise.resolve(void told.push(entry)),
    isFirst: () => id === "one",
  });
  const objects: ObjectService = new ObjectService({ visible: visibleObjects, stores, runtime, room: use });
  return {
    use,
    objects,
    async [Symbol.asyncDispose]() {
      await use.close();
      await objects.close();
    },
  };
}

beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

/** A class of the tenant. From then on the tenant has a quota, and `one` has counted it. */
async function limited(
  { objects, use }: Controller,
  room: Partial<Quota>,
  kind: "entity" | "record" = "entity",
): Promise<string> {
  quotas.delete("matrix");
  classes += 1;
  const path = `/matrix/quota${classes}`;
  const named = kind === "entity" ? { keys: ["name"] } : { kind };
  const columns = ["name", "text"].map((name) => ({ name, type: "varchar" as const }));
  await objects.createClass(admin, { path, columns, ...named });
  // Large limits, so that the use is counted first; earlier data is not part of the test.
  quotas.set("matrix", { objects: 1e15, bytes: 1e15 });
  const { objects: had, bytes } = await counted(use);
  quotas.set("matrix", {
    objects: room.objects === undefined ? Infinity : had + room.objects,
    bytes: room.bytes === undefined ? Infinity : bytes + room.bytes,
  });
  return path;
}

async function counted(use: TenantUse): Promise<ShownUse> {
  use.measureSoon("matrix");
  await use.settled();
  return use.shown("matrix") as ShownUse;
}

function rows(count: number, prefix = "row"): { readonly name: string }[] {
  return Array.from({ length: count }, (_, at) => ({ name: `${prefix}${at}` }));
}

test("beyond its quota of objects a tenant inserts nothing, changes and removes what it has, and has room again", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: 3 });
  await one.objects.unrestricted.insert(admin, path, rows(3));
  await expect(one.objects.unrestricted.insert(admin, path, rows(1, "more"))).rejects.toMatchObject({
    code: "too_large",
    message: expect.stringMatching(/may have \d+ objects and has about \d+.*raise config\.max_objects of matrix/s),
    details: { limit: "max_objects" },
  });
  // The rows exist already, so nothing grows.
  await one.objects.unrestricted.insert(admin, path, rows(3));
  const label = path.slice(path.lastIndexOf("/") + 1);
  await one.objects.unrestricted.update(admin, { id: `${label}:row0`, class: path }, []);
  expect(await one.objects.unrestricted.remove(admin, [{ id: `${label}:row0`, class: path }])).toBe(1);
  await one.objects.unrestricted.insert(admin, path, rows(1, "more"));
  await expect(one.objects.unrestricted.insert(admin, path, rows(1, "again"))).rejects.toMatchObject({
    code: "too_large",
  });
});

test("an insert of several batches for which there is no room writes nothing at all", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: CHANGE_BATCH_MAX + 1 });
  await expect(one.objects.unrestricted.insert(admin, path, rows(CHANGE_BATCH_MAX + 2))).rejects.toMatchObject({
    code: "too_large",
  });
  const before = one.use.shown("matrix");
  expect(await counted(one.use)).toMatchObject({ objects: before?.objects });
  await one.objects.unrestricted.insert(admin, path, rows(CHANGE_BATCH_MAX + 1));
});

test("values that grow need room in bytes; those that shrink and those of the same size do not", async () => {
  await using one = await controller("one");
  const path = await limited(one, { bytes: 1_000 });
  const label = path.slice(path.lastIndexOf("/") + 1);
  await one.objects.unrestricted.insert(admin, path, [{ name: "a", text: "x".repeat(500) }]);
  const set = (value: string) =>
    one.objects.unrestricted.update(admin, { id: `${label}:a`, class: path }, [
      { column: "text", operation: "set", value },
    ]);
  await expect(set("x".repeat(1_500))).rejects.toMatchObject({ code: "too_large", details: { limit: "max_bytes" } });
  expect(await set("y".repeat(500))).toBe(true);
  expect(await set("y".repeat(900))).toBe(true);
  const { bytes } = one.use.shown("matrix") as ShownUse;
  expect(bytes).toBe((await counted(one.use)).bytes);
  expect(await set("z")).toBe(true);
  await one.objects.unrestricted.insert(admin, path, [{ name: "b", text: "x".repeat(500) }]);
});

test("what agents bring is never refused: it is counted, told in the tenant's view and put on record once", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: 1 }, "record");
  told.length = 0;
  const records = rows(3).map((values, at) => ({ values, timeMs: Date.now(), identity: `agent/${classes}/${at}` }));
  await one.objects.unrestricted.ingest(systemPrincipal("matrix", "/matrix", ""), path, records);
  expect(one.use.shown("matrix")).toMatchObject({ beyond: ["objects"] });
  await one.use.maintain("matrix");
  await one.use.maintain("matrix");
  expect(told).toMatchObject([{ tenant: "matrix", action: "quota exceeded", object: "objects" }]);
  await expect(one.objects.unrestricted.insert(admin, path, rows(1))).rejects.toMatchObject({ code: "too_large" });
  quotas.set("matrix", { objects: 1e15, bytes: Infinity });
  await counted(one.use);
  expect(told.map(({ action }) => action)).toEqual(["quota exceeded", "quota kept again"]);
});

test("a neighbour pays nothing for a tenant that is full: neither room nor a count", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: 0 });
  await expect(one.objects.unrestricted.insert(admin, path, rows(1))).rejects.toMatchObject({ code: "too_large" });
  await one.objects.createClass(second, {
    path: `/second/free${classes}`,
    columns: [{ name: "name", type: "varchar" }],
  });
  await one.objects.unrestricted.insert(second, `/second/free${classes}`, rows(10));
  expect([one.use.shown("second"), one.use.isLimited("second")]).toEqual([undefined, false]);
});

test("after ten thousand changes the count is what is there", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: 1_001 });
  const label = path.slice(path.lastIndexOf("/") + 1);
  const before = one.use.shown("matrix");
  for (let round = 0; round < (onCluster ? 1 : 5); round++) {
    await one.objects.unrestricted.insert(admin, path, rows(1_000, `r${round}-`));
    const refs = rows(1_000, `r${round}-`).map(({ name }) => ({ id: `${label}:${name}`, class: path }));
    expect(await one.objects.unrestricted.remove(admin, refs)).toBe(1_000);
  }
  expect(one.use.shown("matrix")).toEqual(before);
  const { objects, bytes } = await counted(one.use);
  expect({ objects, bytes }).toEqual({ objects: before?.objects, bytes: before?.bytes });
}, 60_000);

test("records that are written anew need room for what they grow, and are counted once, removed or not", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: CHANGE_BATCH_MAX + 1 }, "record");
  const ids = await one.objects.unrestricted.insert(admin, path, rows(CHANGE_BATCH_MAX + 1));
  const anew = (text: string) => {
    const given = ids.map((id, at) => ({ id, name: `row${at}`, text }));
    return one.objects.unrestricted.insert(admin, path, given, { rewrites: true });
  };
  for (const text of onCluster ? ["longer than it was"] : ["longer than it was", "", "short", "short"]) {
    expect(await anew(text)).toEqual(ids);
    await one.objects.unrestricted.remove(admin, [{ id: ids[0]!, class: path }]);
    expect(await anew(text)).toEqual(ids);
    const shown = one.use.shown("matrix") as ShownUse;
    expect(await counted(one.use)).toMatchObject({ objects: shown.objects, bytes: shown.bytes });
  }
  await expect(one.objects.unrestricted.insert(admin, path, rows(1))).rejects.toMatchObject({ code: "too_large" });
  const trial = async (names: readonly object[]): Promise<void> => {
    const rehearsal = await one.objects.rehearse(admin);
    for (const row of names) rehearsal.checkRow(path, { ...row });
    await rehearsal.requireRoom();
  };
  await trial(ids.map((id) => ({ id, name: "as long" })));
  await expect(trial([...ids.map((id) => ({ id, name: "as long" })), { name: "more" }])).rejects.toMatchObject({
    code: "too_large",
  });
});

test("many calls at once on one controller have no more than there is room for", async () => {
  await using one = await controller("one");
  const path = await limited(one, { objects: 5 });
  const calls = await Promise.allSettled(
    Array.from({ length: 20 }, (_, at) => one.objects.unrestricted.insert(admin, path, rows(1, `c${at}-`))),
  );
  expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
});

test("a second controller keeps the quota too, and both together exceed it by no more than the bound", async () => {
  await using one = await controller("one");
  await using two = await controller("two");
  const room = 2 * TENANT_USE_UNTOLD_MAX_OBJECTS;
  const path = await limited(one, { objects: room });
  await expect.poll(() => two.use.shown("matrix"), { timeout: 30_000 }).toBeDefined();
  const fill = async ({ objects }: Controller, prefix: string): Promise<number> => {
    for (let at = 0; ; at++) {
      try {
        await objects.unrestricted.insert(admin, path, rows(250, `${prefix}${at}-`));
      } catch (error) {
        expect(error).toMatchObject({ code: "too_large" });
        return at * 250;
      }
    }
  };
  const [byOne, byTwo] = await Promise.all([fill(one, "one"), fill(two, "two")]);
  const bound = TENANT_USE_UNTOLD_MAX_OBJECTS + 250;
  expect(byOne + byTwo).toBeGreaterThan(room - bound);
  expect(byOne + byTwo).toBeLessThanOrEqual(room + bound);
  // Rows that one controller removes give room to the other, once that is reported.
  const label = path.slice(path.lastIndexOf("/") + 1);
  for (let at = 0; at * 250 < byOne; at++)
    await one.objects.unrestricted.remove(
      admin,
      rows(250, `one${at}-`).map(({ name }) => ({ id: `${label}:${name}`, class: path })),
    );
  await one.use.maintain("matrix");
  await expect
    .poll(
      () =>
        two.objects.unrestricted.insert(admin, path, rows(1, "after")).then(
          () => true,
          () => false,
        ),
      { timeout: 30_000 },
    )
    .toBe(true);
}, 60_000);

test("a controller that starts again goes on with what was counted and told", async () => {
  const one = await controller("one");
  const path = await limited(one, { objects: 3 });
  await one.objects.unrestricted.insert(admin, path, rows(2));
  const before = one.use.shown("matrix");
  await one[Symbol.asyncDispose]();
  classes += 1;
  await using again = await controller("one");
  expect(again.use.shown("matrix")).toEqual(before);
  await again.objects.unrestricted.insert(admin, path, rows(1, "third"));
  await expect(again.objects.unrestricted.insert(admin, path, rows(1, "more"))).rejects.toMatchObject({
    code: "too_large",
  });
});

test("an insert that fails gives its room back", async () => {
  let isAway = false;
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (tenant) => {
      const store = await engine.tenant(tenant);
      const change: typeof store.objects.change = (changes) =>
        isAway ? Promise.reject(new AppError("invalid", "away")) : store.objects.change(changes);
      return { ...store, objects: Object.assign(Object.create(store.objects), bound(store.objects), { change }) };
    },
  };
  await using one = await controller("one", stores);
  const path = await limited(one, { objects: 1 });
  isAway = true;
  await expect(one.objects.unrestricted.insert(admin, path, rows(1))).rejects.toMatchObject({ message: "away" });
  isAway = false;
  await one.objects.unrestricted.insert(admin, path, rows(1));
});

test("contents need room in bytes, and are counted once each", async () => {
  await using one = await controller("one");
  await limited(one, { bytes: 1_000 });
  const { blobs } = await engine.tenant("matrix");
  const of = { room: one.use, tenant: "matrix" };
  const content = (size: number) => [crypto.getRandomValues(new Uint8Array(size))];
  const keep = (bytes: Uint8Array[]) => keepInRoom(of, bytes, (admitted) => blobs.put(admitted, `quota/${classes}`));
  await keep(content(900));
  await expect(keep(content(200))).rejects.toMatchObject({ code: "too_large", details: { limit: "max_bytes" } });
  const { bytes } = one.use.shown("matrix") as ShownUse;
  expect((await counted(one.use)).bytes).toBe(bytes);
});

/** Methods of a store, which may be a class instance. */
function bound<T extends object>(store: T): Partial<T> {
  const names = [...Object.keys(store), ...Object.getOwnPropertyNames(Object.getPrototypeOf(store))];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value: unknown = Reflect.get(store, name);
      return name !== "constructor" && typeof value === "function" ? [[name, value.bind(store)]] : [];
    }),
  ) as Partial<T>;
}
