import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";

const admin = testPrincipal();

let engine: TestEngine;
let transfer: TestTransfer;
beforeAll(async () => {
  engine = await openTestEngine();
  transfer = new TestTransfer(engine);
});
afterAll(async () => {
  await transfer.close();
  await engine[Symbol.asyncDispose]();
});

const rows = (text: string) => transfer.query.rows(admin, text);

test("an export brings back what was deleted since, objects and records, and changes what is other by now", async () => {
  await rows(`create edge type near; create class /matrix/kept/box (host varchar, size int, keys(host)) with version=true;
    create class /matrix/kept/line (n int, word varchar, index(word)) with kind='record';
    insert into /matrix/kept/box host='a', size=1; insert into /matrix/kept/box host='b', size=2, near=['box:a'];
    insert into /matrix/kept/line (n, word) values (1, 'one'), (2, 'two'), (3, 'three')`);
  const script = await transfer.script(admin, { class: "/matrix/kept/", relations: true });
  const [third] = await rows("select id from /matrix/kept/line where n = 3");
  for (let time = 0; time < 2; time += 1) {
    await rows("delete from /matrix/kept/box; delete from /matrix/kept/line");
    await rows(`insert into /matrix/kept/line id='${String(third?.["id"])}', n=4, word='other'`);
    expect(await transfer.take(admin, script)).toMatchObject({ state: "done", message: "" });
    expect(await transfer.script(admin, { class: "/matrix/kept/", relations: true })).toBe(script);
    expect(await rows("select n from /matrix/kept/line where word = 'two'")).toEqual([{ n: 2 }]);
    expect(await rows("select n from /matrix/kept/line where word = 'other'")).toEqual([]);
  }
  expect(await transfer.take(admin, script)).toMatchObject({ state: "done", message: "" });
  expect(await transfer.script(admin, { class: "/matrix/kept/", relations: true })).toBe(script);
});

test("rows of an import that have ended, or stay removed by their AT, are told by its end and its object", async () => {
  const at = new Date(Date.now() - 60_000).toISOString();
  await rows(`create class /matrix/past/box (host varchar, keys(host)); insert into /matrix/past/box host='gone';
    delete from /matrix/past/box; create class /matrix/past/flash (n int) with kind='record', ttl=60`);
  const script = `insert into /matrix/past/box host='gone' at '${at}'; insert into /matrix/past/box host='new';
    insert into /matrix/past/flash (id, n) values ('flash:01HKP1ABCDEFGHJKMNPQRSTVWX', 1)`;
  const { id, ...report } = await transfer.take(admin, script);
  const message =
    "box:gone does not exist: it was removed at the time of the write or later.\n" +
    "flash:01HKP1ABCDEFGHJKMNPQRSTVWX does not exist: the ttl of its class was over before the write.";
  expect(report).toEqual({ state: "done", total: 3, done: 3, message });
  expect(await rows(`select message from /matrix/system/transfer where transfer = '${id}'`)).toEqual([{ message }]);
  expect(await rows("select host from /matrix/past/box")).toEqual([{ host: "new" }]);
});

test("records of the past and of a time to come are imported again as often as they are deleted, with AT and without", async () => {
  await rows("create class /matrix/when/line (n int) with kind='record'");
  for (const time of ["2020-05-05 00:00:00", "2090-05-05 00:00:00"]) {
    const [row] = await rows(`insert into /matrix/when/line (n) values (7) at '${time}'`);
    const [id] = row?.["ids"] as readonly string[];
    const insert = `insert into /matrix/when/line (id, n) values ('${id}', 7)`;
    for (const script of [insert, insert, `${insert} at '2020-01-01 00:00:00'`, `${insert} at '2020-01-01 00:00:00'`]) {
      await rows(`delete from /matrix/when/line where id = '${id}'`);
      expect(await transfer.take(admin, script)).toMatchObject({ state: "done", message: "" });
      expect(await rows(`select n from /matrix/when/line where id = '${id}'`)).toEqual([{ n: 7 }]);
    }
  }
});

test("a row that stays removed and waits for the object that it is related to is reported once", async () => {
  const at = new Date(Date.now() - 60_000).toISOString();
  await rows(`create edge type pair; create class /matrix/pair/a/disk (n int, keys(n)); create class /matrix/pair/b/disk (n int, keys(n));
    insert into /matrix/pair/a/disk n=1; delete from /matrix/pair/a/disk where n = 1`);
  const script = `insert into /matrix/pair/a/disk n=1, pair=['disk:2'] at '${at}'; insert into /matrix/pair/b/disk n=2`;
  const { message } = await transfer.take(admin, script);
  expect(message).toBe("disk:1 does not exist: it was removed at the time of the write or later.");
});

test("an export is placed below another class, in another tenant, or both, by the root that is named", async () => {
  await rows(`create edge type beside; create class /matrix/moved/box (host varchar, keys(host));
    insert into /matrix/moved/box host='a'; insert into /matrix/moved/box host='b', beside=['box:a']`);
  const request = { class: "/matrix/moved/", relations: true };
  const script = await transfer.script(admin, request);
  const other = testPrincipal("administrator", "second");
  for (const [by, root, place] of [
    [admin, "/matrix/copy", "/matrix/copy"],
    [other, "/second", "/second"],
    [other, "/second/deep/er/", "/second/deep/er"],
  ] as const) {
    expect(await transfer.take(by, script, { root })).toMatchObject({ state: "done", message: "" });
    const there = await transfer.script(by, { ...request, class: `${place}/moved/` });
    const placed = script.replaceAll(" /matrix/", ` ${place}/`);
    // The import creates the parent classes without columns.
    expect(there.replace(/CREATE CLASS IF NOT EXISTS [^(]* \(\);\n/g, "")).toBe(
      placed.replace(/CREATE CLASS IF NOT EXISTS [^(]* \(\);\n/g, ""),
    );
  }
  const json = `begin alter class /matrix/moved/box add column size int; end;
    insert json '[{"class":"/matrix/moved/box","host":"c","size":3}]'`;
  await transfer.take(other, json, { root: "/second" });
  expect(await transfer.query.rows(other, "select host, size from /second/moved/box where size = 3")).toEqual([
    { host: "c", size: 3 },
  ]);
  await expect(transfer.take(other, script)).rejects.toMatchObject({ message: expect.stringContaining("/matrix/") });
  for (const root of ["", "/", "second", "/second//x", "/a b", "/matrix"])
    await expect(transfer.take(other, script, { root }), root).rejects.toBeInstanceOf(AppError);
});
