import { afterAll, beforeAll, expect, test } from "vitest";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, SearchService, visibleObjects } from "./index.ts";

/**
 * Objects that the owner of a class hides from a user by a condition that no rule has: for that user they do not exist.
 */

const admin = testPrincipal();
const SHELF = "/matrix/shelf";
/** By the same rules as the administrator's, so that what is kept for these rules is shared. */
const ann: Principal = { ...admin, user: "ann" };
const bob: Principal = { ...admin, user: "bob" };
let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;
let search: SearchService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  objects.registerSystemClass({
    path: "/shelf",
    columns: [
      { name: "name", type: "varchar", meaning: "Name" },
      { name: "holder", type: "varchar", meaning: "Holder" },
      { name: "note", type: "text", meaning: "Note" },
      { name: "size", type: "int", meaning: "Size" },
    ],
    keys: ["name"],
    indexes: ["name", "size"],
    options: { version: true, autosearch: true },
    guard: {
      reading: { permission: "objects:read" },
      permission: "objects:write",
      limit: {
        columns: ["holder"],
        of: ({ user }) => (user === "administrator" ? undefined : ({ holder }) => holder === user),
      },
      insert: (principal, rows) => objects.unrestricted.insert(principal, SHELF, rows),
      remove: (principal, ids) =>
        objects.unrestricted.remove(
          principal,
          ids.map((id) => ({ id, class: SHELF })),
        ),
    },
  });
  query = new QueryService({ objects, runtime });
  search = new SearchService({ objects, runtime });
  const early = Date.UTC(2024, 0, 1);
  const row = (name: string, holder: string, size: number): Row => ({ name, holder, size, note: `words of ${name}` });
  await objects.unrestricted.insert(admin, SHELF, [row("a", "ann", 1), row("b", "bob", 2), row("c", "ann", 3)], {
    atMs: early,
  });
  // The new holder of ann's object is bob.
  await objects.unrestricted.insert(admin, SHELF, [{ name: "c", holder: "bob" }]);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const EARLY = "AS OF '2024-02-01'";

test.each([
  [`select name from ${SHELF} order by name`, ["a"], ["b", "c"]],
  [`select name from ${SHELF} order by size desc limit 1`, ["a"], ["c"]],
  [`select name from ${SHELF} ${EARLY} order by name`, ["a", "c"], ["b"]],
  [`select name from ${SHELF} where note match 'words' order by name`, ["a"], ["b", "c"]],
  [`select name from ${SHELF} where name in ('a', 'b') order by name limit 5 cursor ''`, ["a"], ["b"]],
  [`select distinct name from ${SHELF}/ order by name`, ["a"], ["b", "c"]],
])("%s", async (text, anns, bobs) => {
  const names = async (principal: Principal) => (await query.rows(principal, text)).map(({ name }) => name);
  expect(await names(ann)).toEqual(anns);
  expect(await names(bob)).toEqual(bobs);
  expect(await names({ ...bob, user: "eve" })).toEqual([]);
});

test("counts, without rows too, are of those that are there for the caller", async () => {
  const text = `select count(*) as n from ${SHELF}`;
  expect(await query.rows(admin, `explain ${text}`)).toContainEqual(
    expect.objectContaining({ work: expect.stringContaining("counted without rows") }),
  );
  const counts = await Promise.all([admin, ann, bob].map((principal) => query.rows(principal, text)));
  expect(counts).toEqual([[{ n: 3 }], [{ n: 1 }], [{ n: 2 }]]);
  expect(await query.rows(ann, `select count(*) as n from ${SHELF} ${EARLY}`)).toEqual([{ n: 2 }]);
});

test("EXPLAIN ANALYZE tells no estimates and no rows of others", async () => {
  const of = async (principal: Principal) => {
    const steps = await query.rows(principal, `explain analyze select name from ${SHELF}`);
    return steps.find(({ work }) => work === `read ${SHELF}`);
  };
  expect(await of(ann)).toMatchObject({ rows: 1, estimated: null });
  expect(await of(admin)).toMatchObject({ rows: 3, estimated: 3 });
});

test("a search finds what is there for the caller, or was at that time", async () => {
  const found = async (principal: Principal, text: string) => {
    const names: unknown[] = [];
    for await (const page of (await search.search(principal, text)).rows) names.push(...page.map(({ name }) => name));
    return names.sort();
  };
  expect(await found(ann, "words")).toEqual(["a"]);
  expect(await found(ann, `${SHELF} | words | at 2024-02-01 00:00:00`)).toEqual(["a", "c"]);
  expect(await found(ann, `#${SHELF} | words`)).toEqual(["a"]);
  expect(await found(bob, `#${SHELF} | words`)).toEqual(["b", "c"]);
});

test("neither overwritten nor removed, and not made for others", async () => {
  await expect(query.rows(ann, `insert into ${SHELF} name='b', holder='ann'`)).rejects.toMatchObject({
    code: "denied",
  });
  await expect(query.rows(ann, `insert into ${SHELF} name='d', holder='bob'`)).rejects.toMatchObject({
    code: "denied",
  });
  expect(await query.rows(ann, `delete from ${SHELF} where name = 'b'`)).toEqual([{ count: 0 }]);
  expect(await query.rows(admin, `select holder from ${SHELF} where name = 'b'`)).toEqual([{ holder: "bob" }]);
});

test("a filter for what is no query sees the same", async () => {
  const object = { id: "shelf:a", values: { name: "a", holder: "ann" }, vtimeMs: 0, ctimeMs: 0 };
  for (const [principal, seen] of [
    [admin, true],
    [ann, true],
    [bob, false],
  ] as const)
    expect((await objects.visible.of(principal, SHELF)).sees(object), principal.user).toBe(seen);
});
