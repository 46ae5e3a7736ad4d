import { afterAll, beforeAll, expect, test } from "vitest";
import { QUERY_MEANINGS_KEPT_MAX } from "../../../../common/limits.ts";
import { parseScript, type Select } from "../../../../common/mql/index.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { admin, BOX as BOX_CLASS, ruled } from "../../../../test/helpers/mql/query-world.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../index.ts";
import { Meanings, MEANINGS } from "./meaning.ts";
import { type Scope, scopeOf } from "./names/scope.ts";
import { visibleObjects } from "../index.ts";

let engine: TestEngine;
let stored: ObjectService;
/** Over a store whose definitions stay the same until they are changed. */
let served: QueryService;
beforeAll(async () => {
  engine = await openTestEngine();
  stored = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  served = new QueryService({ objects: stored, runtime: { clock: realClock } });
  await served.rows(admin, BOX_CLASS);
  const host = (at: number): string => `h${String(at).padStart(6, "0")}`;
  await stored.unrestricted.insert(
    admin,
    BOX,
    Array.from({ length: 30 }, (_, at) => ({ host: host(at), size: at })),
  );
});
afterAll(async () => {
  await stored.close();
  await engine[Symbol.asyncDispose]();
});

const BOX = "/matrix/ent/box";
const TEXT = `select * from ${BOX} where host = ? limit ?`;

async function scope(principal: Principal): Promise<Scope> {
  const target = { path: BOX, subtree: false, alias: undefined };
  return scopeOf(principal, await stored.catalog(principal), target).following();
}

function parsed(text: string): Select {
  const [statement] = parseScript(text).statements;
  if (statement?.kind !== "select") throw new Error(`${text} is no SELECT`);
  return statement;
}

test("a text that comes again keeps its meaning for all with the same rights, and is given other values", async () => {
  const one = ruled({ class: "/", access: "read", hidden: ["state"] });
  const other = { ...one, user: "other" };
  const before = MEANINGS.size;
  const rows = [];
  for (const [by, host, limit] of [
    [one, "h000003", 1],
    [other, "h000007", 2],
    [one, "h000003", 0],
  ] as const)
    rows.push(await served.rows(by, TEXT, [host, limit]));
  expect(rows.map((found) => found.map(({ size }) => size))).toEqual([[3], [7], []]);
  expect(MEANINGS.size).toBe(before + 1);
});

test("a change of the class or of the rights is seen by the next statement of the same text", async () => {
  const names = async (by: Principal) => Object.keys((await served.rows(by, TEXT, ["h000003", 1]))[0] ?? {});
  const seen = ruled({ class: "/", access: "read" });
  expect(await names(seen)).toContain("size");
  expect(await names({ ...seen, data: [{ class: "/", access: "read", hidden: ["size"] }] })).not.toContain("size");
  await served.rows(admin, `alter class ${BOX} add column colour varchar`);
  expect(await names(seen)).toContain("colour");
  await served.rows(admin, `alter class ${BOX} drop column colour`);
  expect(await names(seen)).not.toContain("colour");
  const none: Principal = { ...seen, data: [{ class: "/", access: "none" }] };
  await expect(served.rows(none, TEXT, ["h000003", 1])).rejects.toMatchObject({ code: "not_found" });
});

test.each([
  ["select host, size + ? as more from /matrix/ent/box where host = 'h000003'", [[1], [5]], [4, 8]],
  ["select size from /matrix/ent/box where size = ? + 1", [[1], [5]], [2, 6]],
  ["select size from /matrix/ent/box order by size desc limit 1 offset ?", [[1], [5]], [28, 24]],
  ["select percentile(size, ?) as n from /matrix/ent/box", [[0], [100]], [0, 29]],
  ["select count(*) as n from /matrix/ent/box group by size having size = ?", [[1], [5]], [1, 1]],
  [
    "select size from /matrix/ent/box where size in (select size from /matrix/ent/box where size = ?)",
    [[1], [5]],
    [1, 5],
  ],
] as const)("%s takes the values of each run", async (text, values, answers) => {
  const found = [];
  for (const own of values) found.push(Object.values((await served.rows(admin, text, own))[0] ?? {}).at(-1));
  expect(found).toEqual(answers);
});

test("what each run binds by itself is not added to what is kept", async () => {
  const meanings = new Meanings();
  const select = parsed(`select * from ${BOX}`);
  const first = meanings.of(select, await scope(admin), []).scope;
  const field = { ...first.bind({ kind: "field", parts: ["size"], span: select.span }) };
  const source = meanings.of(select, await scope(admin), []).scope.source(field);
  expect(meanings.of(select, await scope(admin), []).scope.source(field)).not.toBe(source);
});

test("no more meanings are kept than the limit", async () => {
  const meanings = new Meanings();
  const own = await scope(admin);
  const selects = Array.from({ length: QUERY_MEANINGS_KEPT_MAX + 1 }, () => parsed(`select * from ${BOX}`));
  const [first, last] = [selects[0], selects.at(-1)];
  if (!first || !last) throw new Error("there are selects");
  const known = meanings.of(first, own, []);
  for (const select of selects) {
    meanings.of(select, own, []);
    expect(meanings.size).toBeLessThanOrEqual(QUERY_MEANINGS_KEPT_MAX);
  }
  expect(meanings.of(last, own, []).names).toBe(meanings.of(last, own, []).names);
  expect(meanings.of(first, own, []).names).not.toBe(known.names);
});
