import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Mortality, mortalStores } from "../../../test/helpers/engines/mortal.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagController, tagRuntime, type TagController } from "../../../test/helpers/objects/tags.ts";
import { AppError } from "../../../common/errors.ts";
import { TAG_MOVE_ANSWER_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { ObjectService, type SystemClass } from "../objects/index.ts";
import { TAG_MOVE_CLASS } from "./classes.ts";
import { TagService } from "./service.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const BOX = "/matrix/ent/box";
const MANY = onCluster ? 100 : 1_000;

/** Rows that no store contains. */
const provided = { tags: ["own/t", "own/u"] as readonly string[] };
const PROVIDED: SystemClass = {
  path: "/system/providedthing",
  columns: [{ name: "name", type: "varchar", meaning: "Name" }],
  guard: {
    reading: { permission: "objects:read" },
    permission: "objects:write",
    update(_principal, _id, edits) {
      for (const { operation, value } of edits) {
        const given = value as readonly string[];
        const kept = provided.tags.filter((tag) => !given.includes(tag));
        provided.tags = operation === "add" ? [...kept, ...given] : kept;
      }
      return Promise.resolve(true);
    },
  },
  async *provide() {
    yield await Promise.resolve([
      { id: "providedthing:1", class: "/matrix/system/providedthing", tags: [...provided.tags] },
    ]);
  },
};
/** The owner of this class offers no changes. */
const CLOSED: SystemClass = {
  path: "/system/closedthing",
  columns: [{ name: "name", type: "varchar", meaning: "Name" }],
  guard: { reading: { permission: "objects:read" } },
  async *provide() {
    yield await Promise.resolve([{ id: "closedthing:1", class: "/matrix/system/closedthing", tags: ["closed/t"] }]);
  },
};

let engine: TestEngine;
let one: TagController;
beforeAll(async () => {
  engine = await openTestEngine();
  one = tagController(engine, { classes: () => [PROVIDED, CLOSED] });
  await one.query.rows(admin, `create class ${BOX} (host varchar, note text, keys(host)) with autosearch=true`);
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await engine.close();
});

const box = (host: string, ...tags: readonly string[]) => ({ host, note: `box ${host}`, tags: [...tags] });
const insert = (...rows: readonly ReturnType<typeof box>[]) => one.objects.unrestricted.insert(admin, BOX, rows);
const addTag = (domain: string, path: string) => one.tags.add(admin, { domain, path });

async function tagsOf(host: string): Promise<readonly unknown[] | undefined> {
  const [row] = await one.objects.unrestricted.get(admin, [{ id: `box:${host}` }]);
  const tags = row?.values["tags"] as readonly string[] | undefined;
  return tags && [...tags].sort();
}
async function idsOf(condition: string): Promise<readonly unknown[]> {
  const rows = await one.query.rows(admin, `select id from ${BOX} where ${condition} limit 10000`);
  return rows.map(({ id }) => id).sort();
}
const movesOf = (domain: string) =>
  one.query.rows(
    admin,
    `select tagpath, topath, state, done, refused from /matrix/system/tagmove where domain='${domain}'`,
  );

async function open(): Promise<readonly string[]> {
  const { kv } = await engine.tenant("matrix");
  const keys: string[] = [];
  for await (const { key } of entriesUnder(kv, "tags/open/")) keys.push(key);
  return keys;
}

describe("a tag that is moved", () => {
  test("moves on all that bears it or one below it, also what MQL wrote and no tree shows", async () => {
    const before = Date.now();
    await addTag("life", "a/b");
    await insert(box("l1", "a/b", "z"), box("l2", "a/b/deep/er"), box("l3", "a/bc", "a"), box("l4", "a/b", "a/b/c"));
    expect(await one.tags.move(admin, { domain: "life", path: "a/b" }, "x/y")).toEqual([]);
    expect(await tagsOf("l1")).toEqual(["x/y", "z"]);
    expect(await tagsOf("l2")).toEqual(["x/y/deep/er"]);
    expect(await tagsOf("l3")).toEqual(["a", "a/bc"]);
    expect(await tagsOf("l4")).toEqual(["x/y", "x/y/c"]);
    expect(await idsOf("tags = 'a/b' or tags like 'a/b/*'")).toEqual([]);
    expect(await idsOf("tags like 'x/*'")).toEqual(["box:l1", "box:l2", "box:l4"]);
    expect(await idsOf("note match 'box'")).toHaveLength(4);
    expect(await movesOf("life")).toEqual([{ tagpath: "a/b", topath: "x/y", state: "done", done: 3, refused: 0 }]);
    const [told] = await one.query.rows(
      admin,
      "select started, ended, user, message, vtime from /matrix/system/tagmove where domain='life'",
    );
    expect(told).toMatchObject({ user: "administrator", message: "", ended: told?.["vtime"] });
    expect(Number(told?.["started"])).toBeGreaterThanOrEqual(before);
    expect(Number(told?.["ended"])).toBeGreaterThanOrEqual(Number(told?.["started"]));
    expect(await open()).toEqual([]);
  });

  test("to a place below where it lay above moves once", async () => {
    await addTag("up", "up/a/b");
    await insert(box("u1", "up/a/b", "up/a/b/c"));
    await one.tags.move(admin, { domain: "up", path: "up/a/b" }, "up/b");
    expect(await tagsOf("u1")).toEqual(["up/b", "up/b/c"]);
  });

  test("moves on rows that an owner provides; what no owner changes is told", async () => {
    await addTag("owners", "own");
    expect(await one.tags.move(admin, { domain: "owners", path: "own" }, "owned")).toEqual([]);
    expect([...provided.tags].sort()).toEqual(["owned/t", "owned/u"]);
    await addTag("owners", "closed");
    const warnings = await one.tags.move(admin, { domain: "owners", path: "closed" }, "shut");
    expect(warnings).toEqual([expect.stringMatching(/^1 object keeps the tag: .*closedthing/)]);
    const moves = await movesOf("owners");
    expect(moves.map(({ tagpath, done, refused }) => [tagpath, done, refused]).sort()).toEqual([
      ["closed", 0, 1],
      ["own", 1, 0],
    ]);
  });

  test("moves on many objects", async () => {
    await addTag("many", "many/one");
    for (let from = 0; from < MANY; from += 500)
      await insert(...Array.from({ length: Math.min(500, MANY - from) }, (_, n) => box(`m${from + n}`, "many/one")));
    await one.tags.move(admin, { domain: "many", path: "many" }, "lots");
    expect(await idsOf("tags = 'lots/one'")).toHaveLength(MANY);
    expect(await one.tags.isUnused(admin, "many")).toBe(true);
    expect(await movesOf("many")).toMatchObject([{ done: MANY, state: "done" }]);
  });

  test("is its tenant's", async () => {
    await addTag("mine", "mine");
    await insert(box("mine", "mine"));
    const neighbour = testPrincipal("administrator", "second");
    await one.tags.add(neighbour, { domain: "mine", path: "mine" });
    await one.tags.move(neighbour, { domain: "mine", path: "mine" }, "yours");
    expect(await tagsOf("mine")).toEqual(["mine"]);
  });
});

describe("a tag that is removed", () => {
  test("goes from all that bears it, but where another domain shows it", async () => {
    for (const path of ["r/a", "r/b"]) await addTag("removed", path);
    await addTag("other", "r/b");
    await insert(box("r1", "r/a", "r/b", "s"), box("r2", "r"), box("r3", "r/a"));
    await one.tags.remove(admin, { domain: "removed", path: "r" });
    expect(await tagsOf("r1")).toEqual(["r/b", "s"]);
    expect(await tagsOf("r2")).toEqual(["r"]);
    expect((await tagsOf("r3")) ?? []).toEqual([]);
    await one.tags.remove(admin, { domain: "other", path: "r" });
    expect(await tagsOf("r1")).toEqual(["s"]);
    expect(await one.tags.isUnused(admin, "r")).toBe(true);
  });
});

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, a tag is moved to the end by another one or was never begun (that write came to pass: %j)",
  async (isWritten) => {
    let mortality = new Mortality(Infinity, isWritten);
    const { keys, data } = mortalStores(engine, () => mortality);
    const runtime = tagRuntime();
    const objects = new ObjectService({ visible: visibleObjects, stores: data, runtime });
    objects.registerSystemClass(TAG_MOVE_CLASS);
    await objects.catalog(admin);
    const shared = { stores: keys, objects, query: one.query, runtime };
    const heirs = ["heir", "other"].map((own) => tagController(engine, { own, gone: new Set(["dying"]) }));
    const names: string[] = [];
    for (let writes = 0; ; writes += 1) {
      const name = `d${isWritten ? "w" : "n"}${writes}`;
      await addTag("death", `${name}/t`);
      await insert(box(`${name}a`, `${name}/t`), box(`${name}b`, `${name}/t`, "kept"));
      mortality = new Mortality(writes, isWritten);
      const dying = new TagService({ ...shared, controllers: { own: "dying", has: () => true } });
      const lived = dying.move(admin, { domain: "death", path: name }, `${name}-new`).then(() => false);
      if (!(await Promise.race([lived, mortality.died.then(() => true)]))) break;
      await Promise.all(heirs.map(({ tags }) => tags.maintain("matrix")));
      await Promise.all(heirs.map(({ tags }) => tags.settled()));
      expect(await open(), name).toEqual([]);
      const isMoved = (await one.tags.tree(admin, "death")).nodes.some((node) => node.name === `${name}-new`);
      if (isMoved) names.push(name);
      const now = isMoved ? `${name}-new` : name;
      expect(await tagsOf(`${name}a`), name).toEqual([`${now}/t`]);
      expect(await tagsOf(`${name}b`), name).toEqual([`${now}/t`, "kept"]);
      // No open move blocks the tag any more.
      await one.tags.move(admin, { domain: "death", path: now }, `${name}-last`);
      expect(await tagsOf(`${name}a`), name).toEqual([`${name}-last/t`]);
    }
    // Deaths after the change of the trees: at the objects, the end, its record and the removal of the entry.
    expect(names.length).toBeGreaterThanOrEqual(5);
    for (const heir of heirs) await heir[Symbol.asyncDispose]();
    await objects.close();
  },
);

test("a move is not met by another while it is under way, and goes on when the stores are back", async () => {
  await addTag("away", "away/a");
  await insert(box("away", "away/a"));
  let isAway = true;
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const change: typeof store.objects.change = (changes) =>
        isAway ? Promise.reject(new AppError("unavailable", "the store is away")) : store.objects.change(changes);
      return {
        ...store,
        objects: new Proxy(store.objects, {
          get: (target, name) => (name === "change" ? change : bound(target, name)),
        }),
      };
    },
  };
  const hasty = (delayMs: number): number => (delayMs < TAG_MOVE_ANSWER_MS ? delayMs / 100 : delayMs);
  const clock: Clock = { ...realClock, after: (delayMs, callback) => realClock.after(hasty(delayMs), callback) };
  await using resting = tagController(stores, { own: "resting", clock });
  const moving = resting.tags.move(admin, { domain: "away", path: "away" }, "back");
  await expect(moving).rejects.toMatchObject({ code: "deadline", details: { done: 0 } });
  await expect(one.tags.move(admin, { domain: "away", path: "back/a" }, "b")).rejects.toMatchObject({
    code: "conflict",
  });
  await expect(one.tags.remove(admin, { domain: "away", path: "back" })).rejects.toMatchObject({ code: "conflict" });
  expect(await tagsOf("away")).toEqual(["away/a"]);
  isAway = false;
  await resting.tags.maintain("matrix");
  await resting.tags.settled();
  expect(await tagsOf("away")).toEqual(["back/a"]);
  await one.tags.move(admin, { domain: "away", path: "back/a" }, "b");
  expect(await tagsOf("away")).toEqual(["b"]);
});

function bound(target: object, name: string | symbol): unknown {
  const member: unknown = Reflect.get(target, name);
  return typeof member === "function" ? (member.bind(target) as unknown) : member;
}
