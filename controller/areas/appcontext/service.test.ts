import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  APPCONTEXT_ITEM_MAX_BYTES,
  APPCONTEXT_NAME_MAX_BYTES,
  APPCONTEXT_TEXT_MAX_BYTES,
  APPCONTEXT_TTL_MAX_SECONDS,
} from "../../../common/limits.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { AppcontextService } from "./service.ts";
import {
  admin,
  appcontext,
  useAppcontext,
  serviceAt,
  all,
  create,
  counting,
} from "../../../test/helpers/areas/appcontext-world.ts";

useAppcontext();

const neighbour = testPrincipal("administrator", "second");
const viewer = testPrincipal("viewer");
const stranger = { ...admin, user: "bob", grants: ["objects:read", "jobs:*"] };

describe("a variable", () => {
  test("is the text that was set last, to every controller, and is gone when it is removed", async () => {
    const other = serviceAt();
    for (const text of ["one", "", '{"a": [1,  2]}', "二\u0000\n"]) {
      await appcontext.setVariable(admin, { key: "v", text });
      expect(await other.variable(admin, "v")).toBe(text);
    }
    await other.removeVariable(admin, "v");
    await other.removeVariable(admin, "v");
    await expect(appcontext.variable(admin, "v")).rejects.toMatchObject({ code: "not_found" });
    await appcontext.setVariable(admin, { key: "v", text: "again" });
    expect(await other.variable(admin, "v")).toBe("again");
  });

  test("expires after its ttl, which every set gives anew", async () => {
    const later = serviceAt(61_000);
    await appcontext.setVariable(admin, { key: "ttl", text: "short", ttlSeconds: 60 });
    expect(await appcontext.variable(admin, "ttl")).toBe("short");
    await expect(later.variable(admin, "ttl")).rejects.toMatchObject({ code: "not_found" });
    await appcontext.setVariable(admin, { key: "ttl", text: "for ever" });
    expect(await later.variable(admin, "ttl")).toBe("for ever");
    await appcontext.setVariable(admin, { key: "ttl", text: "longer", ttlSeconds: 120 });
    expect(await later.variable(admin, "ttl")).toBe("longer");
    await appcontext.setVariable(admin, { key: "ttl", text: "zero", ttlSeconds: 0 });
    expect(await serviceAt(10 * 365 * 24 * 3_600_000).variable(admin, "ttl")).toBe("zero");
  });

  test("is written over by the controller whose clock is behind", async () => {
    await serviceAt(3_600_000).setVariable(admin, { key: "clocks", text: "ahead" });
    await appcontext.setVariable(admin, { key: "clocks", text: "behind" });
    expect(await appcontext.variable(admin, "clocks")).toBe("behind");
    await appcontext.removeVariable(admin, "clocks");
    await expect(appcontext.variable(admin, "clocks")).rejects.toMatchObject({ code: "not_found" });
  });

  test("that two controllers set at once is one of the two for both", async () => {
    const other = serviceAt();
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        appcontext.setVariable(admin, { key: "race", text: `mine ${round}` }),
        other.setVariable(admin, { key: "race", text: `theirs ${round}` }),
      ]);
      const text = await appcontext.variable(admin, "race");
      expect([`mine ${round}`, `theirs ${round}`]).toContain(text);
      expect(await other.variable(admin, "race")).toBe(text);
    }
  });
});

describe("a collection", () => {
  test("answers its items in the order in which they were made, each with its id", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push(await create("order", { n }));
    await appcontext.replace(admin, { collection: "order", id: ids[1] ?? "", text: '{"n":"new"}' });
    expect(await all(serviceAt(), { collection: "order" })).toEqual(
      ids.map((id, n) => ({ id, n: n === 1 ? "new" : n })),
    );
    expect(await appcontext.end(admin, { collection: "order" }, "first")).toEqual({ id: ids[0], n: 0 });
    expect(await appcontext.end(admin, { collection: "order" }, "last")).toEqual({ id: ids[4], n: 4 });
    expect(new Set(ids.map((id) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)))).toEqual(new Set([true]));
  });

  test("is in that order also when one of its items is of a controller whose clock was years ahead", async () => {
    const [ahead, present] = [serviceAt(4 * 365 * 86_400_000), serviceAt()];
    const put = (by: AppcontextService, id: string) => by.put(admin, { collection: "ahead", id, text: "{}" });
    await put(ahead, "future");
    await put(present, "future");
    await put(present, "first");
    // Two controllers do not agree on an order within one millisecond.
    await put(serviceAt(1_000), "second");
    expect((await all(present, { collection: "ahead" })).map(({ id }) => id)).toEqual(["first", "second", "future"]);
  });

  test("that nothing was put into is empty", async () => {
    expect(await all(appcontext, { collection: "none" })).toEqual([]);
    expect(await appcontext.end(admin, { collection: "none" }, "first")).toBeUndefined();
    await appcontext.removeItems(admin, "none");
    await appcontext.removeItem(admin, "none", "x");
    await expect(appcontext.item(admin, "none", "x")).rejects.toMatchObject({ code: "not_found" });
  });

  test("answers what fulfils a condition, of all items its first and last", async () => {
    for (let n = 0; n < 300; n++) await create("where", { n, os: n % 3 === 0 ? "linux" : "aix", tags: [`t${n % 7}`] });
    const where = "os = 'linux' && n % 2 = 0 && (n > 290 || tags contains 't0' && n < 50)";
    const found = await all(appcontext, { collection: "where", where });
    expect(found.map(({ n }) => n)).toEqual([0, 42, 294]);
    expect((await appcontext.end(admin, { collection: "where", where }, "first"))?.["n"]).toBe(0);
    expect((await appcontext.end(admin, { collection: "where", where }, "last"))?.["n"]).toBe(294);
    expect(await appcontext.end(admin, { collection: "where", where: "n > 1000" }, "last")).toBeUndefined();
    expect(await all(appcontext, { collection: "where", where: `id = '${found[1]?.id}'` })).toEqual([found[1]]);
    expect(await all(appcontext, { collection: "where", where: " " })).toHaveLength(300);
  });

  test("loses its items as they expire", async () => {
    const stays = await create("expiry", { n: 1 });
    const goes = await create("expiry", { n: 2 }, 60);
    const later = serviceAt(61_000);
    expect((await all(appcontext, { collection: "expiry" })).map(({ id }) => id)).toEqual([stays, goes]);
    expect((await all(later, { collection: "expiry" })).map(({ id }) => id)).toEqual([stays]);
    expect((await later.end(admin, { collection: "expiry" }, "last"))?.id).toBe(stays);
    await expect(later.item(admin, "expiry", goes)).rejects.toMatchObject({ code: "not_found" });
    const expired = { collection: "expiry", id: goes, text: "{}" };
    await expect(later.replace(admin, expired)).rejects.toMatchObject({ code: "not_found" });
    await later.put(admin, expired);
    expect((await all(later, { collection: "expiry" })).map(({ id }) => id)).toEqual([stays, goes]);
  });

  test("keeps its items apart from those of names that begin alike, and is emptied alone", async () => {
    await create("alike", { n: 1 });
    await create("alike/2", { n: 2 });
    await create("ALIKE", { n: 3 });
    await appcontext.setVariable(admin, { key: "alike", text: "variable" });
    await appcontext.removeItems(admin, "alike");
    expect(await all(appcontext, { collection: "alike" })).toEqual([]);
    expect(await all(appcontext, { collection: "alike/2" })).toHaveLength(1);
    expect(await all(appcontext, { collection: "ALIKE" })).toHaveLength(1);
    expect(await appcontext.variable(admin, "alike")).toBe("variable");
  });

  test("takes an item of any id, and says when its member id is another", async () => {
    const item = { collection: "own", id: "Ä/b c:%", text: '{"id":"Ä/b c:%","__proto__":{"x":1},"n":1}' };
    expect(await appcontext.put(admin, item)).toEqual({ id: item.id, warnings: [] });
    expect(await appcontext.item(admin, "own", item.id)).toEqual({ id: item.id, n: 1 });
    const { warnings } = await appcontext.put(admin, { ...item, text: '{"id":7}' });
    expect(warnings).toEqual([`The member id of an item is its id in the collection, ${item.id}.`]);
    expect(await all(appcontext, { collection: "own" })).toEqual([{ id: item.id }]);
  });
});

describe("what is refused", () => {
  test("is said by name: keys, sizes, ttl, forms", async () => {
    const set = (key: string, text = "", ttlSeconds = 0) => appcontext.setVariable(admin, { key, text, ttlSeconds });
    const put = (id: string, text = "{}") => appcontext.put(admin, { collection: "c", id, text });
    const long = "é".repeat(APPCONTEXT_NAME_MAX_BYTES / 2);
    await set(long, "x");
    expect(await appcontext.variable(admin, long)).toBe("x");
    await expect(set(`${long}x`)).rejects.toMatchObject({ code: "too_large" });
    await expect(set("")).rejects.toThrow("The key is empty.");
    await expect(set("a\nb")).rejects.toThrow("control characters");
    await expect(put("a\u0000")).rejects.toThrow("control characters");
    await expect(put("\ud800")).rejects.toMatchObject({ code: "invalid" });
    await expect(create("c\n", {})).rejects.toMatchObject({ code: "invalid" });
    await set("large", "x".repeat(APPCONTEXT_TEXT_MAX_BYTES));
    expect(await appcontext.variable(admin, "large")).toHaveLength(APPCONTEXT_TEXT_MAX_BYTES);
    await expect(set("large", "x".repeat(APPCONTEXT_TEXT_MAX_BYTES + 1))).rejects.toMatchObject({ code: "too_large" });
    await put("large", JSON.stringify({ x: "x".repeat(APPCONTEXT_ITEM_MAX_BYTES - 8) }));
    await expect(put("l", JSON.stringify({ x: "x".repeat(APPCONTEXT_ITEM_MAX_BYTES - 7) }))).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(set("t", "", -1)).rejects.toThrow("ttl is a number of seconds from 1");
    await expect(set("t", "", APPCONTEXT_TTL_MAX_SECONDS + 1)).rejects.toMatchObject({ code: "invalid" });
    for (const text of ["[1]", "null", "5", '"text"']) await expect(put("p", text)).rejects.toThrow("is a JSON object");
    for (const text of ["", "{", "a=1", `${'{"a":'.repeat(100)}1${"}".repeat(100)}`])
      await expect(put("p", text)).rejects.toBeInstanceOf(AppError);
    await expect(appcontext.item(admin, "c", "p")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a condition that is too long or too deep is, before an item is read", async () => {
    const { service, counts } = counting();
    for (const where of ["a".repeat(1_000_000), "(".repeat(60_000), "size = ", "a ~= '(?=a)'"]) {
      await expect(all(service, { collection: "c", where })).rejects.toBeInstanceOf(AppError);
      await expect(service.end(admin, { collection: "c", where }, "last")).rejects.toBeInstanceOf(AppError);
    }
    expect(counts.find).toBe(0);
  });

  test("who may read only reads, and who may do neither does neither", async () => {
    await appcontext.setVariable(admin, { key: "rights", text: "seen" });
    const id = await create("rights", { n: 1 });
    expect(await appcontext.variable(viewer, "rights")).toBe("seen");
    expect(await all(appcontext, { collection: "rights" }, viewer)).toEqual([{ id, n: 1 }]);
    const item = { collection: "rights", id, text: "{}" };
    for (const who of [viewer, stranger]) {
      const denied = { code: "denied" };
      await expect(appcontext.setVariable(who, { key: "rights", text: "" })).rejects.toMatchObject(denied);
      await expect(appcontext.removeVariable(who, "rights")).rejects.toMatchObject(denied);
      await expect(appcontext.create(who, item)).rejects.toMatchObject(denied);
      await expect(appcontext.put(who, item)).rejects.toMatchObject(denied);
      await expect(appcontext.replace(who, item)).rejects.toMatchObject(denied);
      await expect(appcontext.removeItem(who, "rights", id)).rejects.toMatchObject(denied);
      await expect(appcontext.removeItems(who, "rights")).rejects.toMatchObject(denied);
    }
    await expect(appcontext.variable(stranger, "rights")).rejects.toMatchObject({ code: "denied" });
    await expect(appcontext.item(stranger, "rights", id)).rejects.toMatchObject({ code: "denied" });
    await expect(all(appcontext, { collection: "rights" }, stranger)).rejects.toMatchObject({ code: "denied" });
    await expect(appcontext.end(stranger, { collection: "rights" }, "last")).rejects.toMatchObject({ code: "denied" });
  });

  test("a neighbour sees and removes only what is its own", async () => {
    await appcontext.setVariable(admin, { key: "shared", text: "mine" });
    const id = await create("shared", { n: 1 });
    await appcontext.removeVariable(neighbour, "shared");
    await appcontext.removeItems(neighbour, "shared");
    await appcontext.removeItem(neighbour, "shared", id);
    expect(await all(appcontext, { collection: "shared" }, neighbour)).toEqual([]);
    await expect(appcontext.item(neighbour, "shared", id)).rejects.toMatchObject({ code: "not_found" });
    expect(await appcontext.variable(admin, "shared")).toBe("mine");
    expect(await all(appcontext, { collection: "shared" })).toHaveLength(1);
  });
});
