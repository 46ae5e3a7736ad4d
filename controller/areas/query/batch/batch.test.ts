import { withReplaced } from "../../../../test/helpers/objects/replaced.ts";
import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import type { Stores } from "../../../store/engine.ts";
import {
  admin,
  WHOLE,
  NOTHING,
  engine,
  objects,
  entries,
  useBatches,
  queryOf,
  openBatches,
  script,
  stateOf,
} from "../../../../test/helpers/mql/batch-world.ts";

useBatches();

function added(name: string): string {
  return `update /matrix/box notes = notes + ['${name}'] where id = 'box:8-a'`;
}

test("a row of a batch with a time of its own keeps it, whatever its object is since", async () => {
  const query = queryOf("dated");
  await query.rows(admin, "insert into /matrix/box (host, size) values ('dated', 2)");
  await query.rows(admin, "begin insert into /matrix/box (host, size) values ('dated', 1) at '2024-01-01'; end");
  const sizes = async (at: string) =>
    (await query.rows(admin, `select size from /matrix/box where host='dated' ${at}`)).map(({ size }) => size);
  expect([await sizes(""), await sizes("as of '2024-02-01'")]).toEqual([[2], [1]]);
});

test("what batches and single updates add to one list at the same time is all kept, once", async () => {
  const query = queryOf("first");
  await query.rows(admin, "insert into /matrix/box host='8-a', run=8");
  const names = Array.from({ length: 24 }, (_, at) => `n${at}`);
  await Promise.all(
    names.map((name, at) => query.rows(admin, at % 2 === 0 ? `begin ${added(name)} end` : added(name))),
  );
  const [row] = await query.rows(admin, "select notes from /matrix/box where run=8");
  expect([...(row?.["notes"] as readonly string[])].sort()).toEqual([...names].sort());
  expect(await openBatches()).toEqual([]);
});

test("where the stores fail in the middle, whoever asked is told that the rest will come, and it comes once", async () => {
  const failing = withReplaced(objects, { update: () => Promise.reject(new AppError("unavailable", "away")) });
  entries.length = 0;
  const query = queryOf("first", { objects: failing });
  const text = `insert into /matrix/event run=?, n=0; ${script(2).replace("size=10", "size=?")}; select edge type`;
  await expect(query.run(admin, text, { values: [[-1, 10]] })).rejects.toMatchObject({
    code: "unknown_outcome",
    details: { made: 3, line: 4 },
  });
  expect((await stateOf(2)).box).toHaveLength(2);
  await queryOf("first").maintain("matrix");
  expect(await stateOf(2)).toEqual(WHOLE);
  await queryOf("first").maintain("matrix");
  const action =
    "insert /matrix/box, insert /matrix/event, insert /matrix/line, update /matrix/box, delete /matrix/box, insert /matrix/event";
  expect(entries.map(({ action: told, outcome }) => [told, outcome])).toEqual([
    [`MQL insert /matrix/event, ${action}`, "failed"],
    [`MQL ${action}`, "ok"],
  ]);
});

test.each([
  ["a value", "insert into /matrix/box host='x', run=3, size='many'", "invalid"],
  ["a value of an update", "update /matrix/box set size='many' where run=3", "invalid"],
  ["a name", "insert into /matrix/box nothing=1", "not_found", 26],
  ["a key", "insert into /matrix/box run=3", "invalid"],
  ["rights", "delete from /matrix/line", "denied"],
  ["a row condition", "update /matrix/box set run=4 where host='3-own'", "denied"],
])("%s that is wrong is told before anything is written, with its place", async (_, wrong, code, column = 2) => {
  await queryOf("first").rows(admin, "insert into /matrix/box host='3-own', run=3");
  const data = [
    { class: "/", access: "write" },
    { class: "/matrix/box", access: "write", where: "run = 3" },
    { class: "/matrix/line", access: "read" },
  ] as const;
  const failed = queryOf("first").run(
    { ...admin, data },
    `begin insert into /matrix/event run=3, n=1;\n ${wrong}; end`,
  );
  await expect(failed).rejects.toMatchObject({ code, details: { line: 2, column } });
  expect((await stateOf(3)).event).toEqual([]);
  expect(await openBatches()).toEqual([]);
});

test("what can be told only when earlier changes are made ends the batch there, and says so", async () => {
  const failed = queryOf("first").run(
    admin,
    "begin insert into /matrix/box host='4-a', run=4; update /matrix/box set host='4-b' where run=4; insert into /matrix/event run=4, n=1 end",
  );
  await expect(failed).rejects.toThrow("cannot be changed. The 1 change before it was made.");
  expect((await stateOf(4)).event).toEqual([]);
  expect(await openBatches()).toEqual([]);
});

test("a batch that does not fit its journal is refused by the name of the limit", async () => {
  const large = ["a", "b", "c"].map(
    (name) => `insert into /matrix/box host='5-${name}', run=5, notes=['${"x".repeat(400_000)}']`,
  );
  await expect(queryOf("first").run(admin, `begin ${large.join(";")} end`)).rejects.toMatchObject({
    code: "too_large",
    details: { limit: "QUERY_BATCH_JOURNAL_MAX_BYTES" },
  });
  expect(await stateOf(5)).toEqual(NOTHING);
});

test("changes that do not look at each other's objects are journalled together", async () => {
  const noted: unknown[] = [];
  const stores: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      const kv = new Proxy(store.kv, {
        get(target, member) {
          if (member === "txn") noted.push(member);
          const found: unknown = Reflect.get(target, member);
          return typeof found === "function" ? (found.bind(target) as unknown) : found;
        },
      });
      return { ...store, kv };
    },
  };
  const query = queryOf("first", { stores });
  await query.rows(admin, "insert into /matrix/box (host, run) values ('6-a', 6), ('6-b', 6)");
  const changes =
    "insert into /matrix/box (host, run, size) values ('6-c', 6, 3), ('6-c', 6, 4); update /matrix/box set size=1 where id='box:6-a'; delete from /matrix/box where id='box:6-b'";
  expect(await query.rows(admin, `begin ${changes} end`)).toEqual([{ count: 1 }]);
  expect(noted).toHaveLength(1);
  expect((await stateOf(6)).box).toMatchObject([
    { host: "a", size: 1 },
    { host: "c", size: 4 },
  ]);
  await query.rows(
    admin,
    "begin update /matrix/box set size=2 where id='box:6-a'; update /matrix/box set size=3 where size=2 and id='box:6-a' end",
  );
  expect(noted).toHaveLength(3);
  expect((await stateOf(6)).box).toMatchObject([
    { host: "a", size: 3 },
    { host: "c", size: 4 },
  ]);
});

test("definitions, and objects whose owners write them, make a script of a batch: nothing is journalled", async () => {
  const query = queryOf("first", {
    stores: { system: () => engine.system(), tenant: () => Promise.reject(new Error("no journal is asked for")) },
  });
  await query.rows(admin, "begin create class if not exists /matrix/made (n int); insert into /matrix/made n=1 end");
  const wrong = query.rows(
    admin,
    "begin insert into /matrix/owned a=1; insert into /matrix/made n=3; insert into /matrix/made n='many' end",
  );
  await expect(wrong).rejects.toMatchObject({ code: "invalid", details: { column: 68 } });
  expect(
    await query.rows(
      admin,
      "begin insert into /matrix/owned a=1; insert into /matrix/made n=2; select n from /matrix/made order by n end",
    ),
  ).toEqual([{ n: 1 }, { n: 2 }]);
});
