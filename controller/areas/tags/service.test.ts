import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  TAG_DEPTH_MAX,
  TAG_DOMAIN_MAX_BYTES,
  TAG_PATH_MAX_BYTES,
  TAGS_PER_TENANT_MAX,
} from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { MemoryDatabase } from "../../../test/helpers/engines/memory/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagController, type TagController } from "../../../test/helpers/objects/tags.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import type { TagService } from "./service.ts";
import type { TagNode } from "./tree.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const RENAMES = onCluster ? 20 : 1_000;

let engine: TestEngine;
let tags: TagService;
const controllers: TagController[] = [];
beforeAll(async () => {
  engine = await openTestEngine();
  tags = serviceOf(engine);
});
afterAll(async () => {
  for (const controller of controllers) await controller[Symbol.asyncDispose]();
  await engine.close();
});

function memoryStores(): Stores {
  const database = new MemoryDatabase(realClock);
  database.create("matrix");
  return database.engine({ clock: realClock });
}

/** Another controller. */
function serviceOf(stores: Stores): TagService {
  const controller = tagController(stores);
  controllers.push(controller);
  return controller.tags;
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

function pathsOf({ nodes }: TagNode): readonly (string | undefined)[] {
  return nodes.flatMap((node) => [node.path, ...pathsOf(node)]);
}
const paths = async (domain: string, by = tags) => pathsOf(await by.tree(admin, domain));

describe("a tree", () => {
  test("holds with each tag all above it, and forgets a tag with all below it", async () => {
    await tags.add(admin, { domain: "whole", path: "a/b/c" });
    await tags.add(admin, { domain: "whole", path: "a/bc" });
    await tags.add(admin, { domain: "whole", path: "a" });
    expect(await paths("whole")).toEqual(["a", "a/b", "a/b/c", "a/bc"]);
    await tags.remove(admin, { domain: "whole", path: "a/b" });
    expect(await paths("whole")).toEqual(["a", "a/bc"]);
    await tags.remove(admin, { domain: "whole", path: "a" });
    expect(await paths("whole")).toEqual([]);
  });

  test("has a moved tag with all below it at the new path, and what lay above the old one", async () => {
    for (const path of ["a/b/c", "a/b/d", "a/bc"]) await tags.add(admin, { domain: "moved", path });
    await tags.move(admin, { domain: "moved", path: "a/b" }, "x/y/b2");
    expect(await paths("moved")).toEqual(["a", "a/bc", "x", "x/y", "x/y/b2", "x/y/b2/c", "x/y/b2/d"]);
    await tags.move(admin, { domain: "moved", path: "a/bc" }, "a/bc");
    await expect(tags.move(admin, { domain: "moved", path: "x" }, "x/y/z")).rejects.toMatchObject({ code: "invalid" });
    await expect(tags.move(admin, { domain: "moved", path: "a" }, "x/y")).rejects.toMatchObject({ code: "conflict" });
    await expect(tags.move(admin, { domain: "moved", path: "gone" }, "y")).rejects.toMatchObject({ code: "not_found" });
  });

  test("shows a tag that another domain shows too at its new path, as it is one tag", async () => {
    for (const domain of ["one", "two"]) await tags.add(admin, { domain, path: "shared/t" });
    await tags.add(admin, { domain: "three", path: "sharedness" });
    await tags.move(admin, { domain: "one", path: "shared" }, "common");
    expect(await paths("two")).toEqual(["common", "common/t"]);
    expect(await paths("three")).toEqual(["sharedness"]);
    await tags.remove(admin, { domain: "one", path: "common" });
    expect(await paths("two")).toEqual(["common", "common/t"]);
  });

  test("that two controllers change at once has the tags of both", async () => {
    const controllers = [tags, serviceOf(engine)];
    const names = Array.from({ length: 10 }, (_, n) => `k${n}`);
    await Promise.all(
      controllers.flatMap((one, at) => names.map((name) => one.add(admin, { domain: "both", path: `c${at}/${name}` }))),
    );
    expect((await paths("both")).length).toBe(2 + 20);
  });

  test("whose tag was renamed very often has that tag once, in a value that did not grow", async () => {
    // On an engine on disk, flushes would take minutes.
    const stores = onCluster ? engine : memoryStores();
    const one = serviceOf(stores);
    const { kv } = await stores.tenant("matrix");
    await one.add(admin, { domain: "aged", path: "n/below" });
    const before = (await kv.get("tags/trees"))?.value.length ?? 0;
    for (let n = 0; n < RENAMES; n += 2) {
      await one.move(admin, { domain: "aged", path: "n" }, "m");
      await one.move(admin, { domain: "aged", path: "m" }, "n");
    }
    expect(await paths("aged", one)).toEqual(["n", "n/below"]);
    expect((await kv.get("tags/trees"))?.value.length).toBe(before);
  });

  test("is its tenant's", async () => {
    await tags.add(admin, { domain: "mine", path: "a" });
    expect(pathsOf(await tags.tree(neighbour, "mine"))).toEqual([]);
    await tags.add(neighbour, { domain: "mine", path: "b" });
    await expect(tags.remove(neighbour, { domain: "mine", path: "a" })).rejects.toMatchObject({ code: "not_found" });
    expect(await paths("mine")).toEqual(["a"]);
  });
});

describe("a name", () => {
  const deep = (depth: number): string => Array.from({ length: depth }, () => "d").join("/");

  test.each([
    "",
    "/",
    "//",
    "a//b",
    "//a",
    "a/",
    "/a/",
    "a/./b",
    "..",
    "a/..",
    "a\nb",
    "a/\u0000",
    "\ud800",
    " a",
    "a/ b",
    "a /b",
  ])("%j is refused, or kept without a slash at its ends", async (path) => {
    if (path === "a/" || path === "/a/") {
      await tags.add(admin, { domain: "ends", path });
      expect(await paths("ends")).toEqual(["a"]);
    } else {
      await expect(tags.add(admin, { domain: "names", path })).rejects.toMatchObject({ code: "invalid" });
      expect(await paths("names")).toEqual([]);
    }
  });

  test("of a property, with dots, quotes or signs of patterns is a name", async () => {
    const names = ["__proto__", "constructor/toString", "a.b", "...", "'; drop", '"', "100 %", "*", "日本/語"];
    for (const path of names) await tags.add(admin, { domain: "__proto__", path });
    expect(new Set(await paths("__proto__"))).toEqual(new Set([...names, "constructor", "日本"]));
    await tags.move(admin, { domain: "__proto__", path: "__proto__" }, "valueOf");
    expect(await paths("__proto__")).toContain("valueOf");
  });

  test("has a longest path, a greatest depth and a longest domain", async () => {
    const longest = "é".repeat(TAG_PATH_MAX_BYTES / 2);
    await tags.add(admin, { domain: "long", path: longest });
    await tags.add(admin, { domain: "long", path: deep(TAG_DEPTH_MAX) });
    await tags.add(admin, { domain: "é".repeat(TAG_DOMAIN_MAX_BYTES / 2), path: "a" });
    const tooLarge = (limit: string) => ({ code: "too_large", details: { limit } });
    const adding = (domain: string, path: string) => expect(tags.add(admin, { domain, path })).rejects;
    await adding("long", `${longest}x`).toMatchObject(tooLarge("TAG_PATH_MAX_BYTES"));
    await adding("long", deep(TAG_DEPTH_MAX + 1)).toMatchObject(tooLarge("TAG_DEPTH_MAX"));
    await adding("é".repeat(TAG_DOMAIN_MAX_BYTES / 2 + 1), "a").toMatchObject(tooLarge("TAG_DOMAIN_MAX_BYTES"));
    await adding("a\u0007", "a").toMatchObject({ code: "invalid" });
    await adding("", "a").toMatchObject({ code: "invalid" });
  });

  test("below a moved tag must still fit, or nothing is moved", async () => {
    const path = `m/${deep(TAG_DEPTH_MAX - 1)}`;
    await tags.add(admin, { domain: "fit", path });
    const before = await paths("fit");
    await expect(tags.move(admin, { domain: "fit", path: "m" }, "m2/deeper")).rejects.toMatchObject({
      details: { limit: "TAG_DEPTH_MAX" },
    });
    await expect(
      tags.move(admin, { domain: "fit", path: "m" }, "x".repeat(TAG_PATH_MAX_BYTES - 1)),
    ).rejects.toMatchObject({
      details: { limit: "TAG_PATH_MAX_BYTES" },
    });
    expect(await paths("fit")).toEqual(before);
  });
});

test("a tenant has a most of tags, which are still renamed and removed", async () => {
  await using full = await openTestEngine();
  const one = serviceOf(full);
  const store = await full.tenant("matrix");
  const leaves = Array.from({ length: TAGS_PER_TENANT_MAX - 1 }, (_, n) => `t/${n}`);
  await one.add(admin, { domain: "full", path: "t" });
  const { value } = (await store.kv.get("tags/trees"))!;
  const text = Buffer.from(value).toString().replace('["t"]', JSON.stringify(leaves));
  await store.kv.put("tags/trees", Buffer.from(text));
  await expect(one.add(admin, { domain: "other", path: "more" })).rejects.toMatchObject({
    details: { limit: "TAGS_PER_TENANT_MAX" },
  });
  await one.add(admin, { domain: "full", path: "t/7" });
  await one.move(admin, { domain: "full", path: "t/7" }, "t/seven");
  await one.remove(admin, { domain: "full", path: "t/8" });
  await one.add(admin, { domain: "other", path: "more" });
});

test("a viewer reads, and changes nothing", async () => {
  const viewer = testPrincipal("viewer");
  await tags.add(admin, { domain: "rights", path: "a" });
  expect(pathsOf(await tags.tree(viewer, "rights"))).toEqual(["a"]);
  const denied = { code: "denied", details: { permission: "tags:write" } };
  await expect(async () => tags.add(viewer, { domain: "rights", path: "b" })).rejects.toMatchObject(denied);
  await expect(async () => tags.remove(viewer, { domain: "rights", path: "a" })).rejects.toMatchObject(denied);
  await expect(async () => tags.move(viewer, { domain: "rights", path: "a" }, "b")).rejects.toMatchObject(denied);
});

test("a change whose outcome the store does not know is made once", async () => {
  await tags.add(admin, { domain: "doubt", path: "a" });
  let puts = 0;
  const doubtful = serviceOf(
    storesWith((kv) => ({
      put: async (key, value, options) => {
        const answer = await kv.put(key, value, options);
        if (key === "tags/trees" && puts++ === 0) throw new AppError("unknown_outcome", "the answer was lost");
        return answer;
      },
    })),
  );
  await doubtful.move(admin, { domain: "doubt", path: "a" }, "b");
  // The doubtful write, its repetition, and the write that ends the move.
  expect(puts).toBe(3);
  expect(await paths("doubt")).toEqual(["b"]);
});

test("while the store is away nothing is answered as done", async () => {
  const away = serviceOf(storesWith(() => ({ get: () => Promise.reject(new AppError("invalid", "no store")) })));
  await expect(away.add(admin, { domain: "away", path: "a" })).rejects.toThrow("no store");
  expect(await paths("away")).toEqual([]);
});
