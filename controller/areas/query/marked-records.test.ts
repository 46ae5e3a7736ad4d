import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OBJECT_MAX_BYTES } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { decodeStored, encodePacked } from "../../store/format.ts";
import { ObjectService, type NewRecord } from "../objects/index.ts";
import type { DataRule, Principal } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "./index.ts";

const admin = testPrincipal();
const RAW = Buffer.from("ff2c32", "hex").toString("base64");

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await rows(`create class /matrix/line (n int, host varchar, index(host)) with kind=record;
    create class /matrix/line/more (more varchar) with kind=record;
    create class /matrix/box (n int, keys(n)); insert into /matrix/box n=1`);
  const marked: readonly NewRecord["marked"][] = [
    undefined,
    { marks: ["cut"] },
    { marks: ["malformed"], rawBytes: RAW },
    { marks: ["cut", "malformed"], rawBytes: RAW },
  ];
  await ingest("/matrix/line", marked);
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function rows(text: string, by: Principal = admin): Promise<readonly Row[]> {
  return query.rows(by, text);
}

/** Records 0, 1, … of host `h`. */
function ingest(path: string, marked: readonly NewRecord["marked"][], more: Row = {}): Promise<readonly string[]> {
  const timeMs = realClock.nowMs();
  return objects.unrestricted.ingest(
    admin,
    path,
    marked.map((one, n) => ({ values: { n, host: "h", ...more }, timeMs, identity: path, ordinal: n, marked: one })),
  );
}

const ns = async (condition: string, by?: Principal) =>
  (await rows(`select n from /matrix/line where ${condition} order by n`, by)).map(({ n }) => n);

describe("marks and _rawbytes", () => {
  test("are answered where they are named, in any case, and null where a record has none", async () => {
    const found = [
      { n: 0, marks: null, _rawbytes: null },
      { n: 1, marks: ["cut"], _rawbytes: null },
      { n: 2, marks: ["malformed"], _rawbytes: RAW },
      { n: 3, marks: ["cut", "malformed"], _rawbytes: RAW },
    ];
    expect(await rows("select n, marks, _rawbytes from /matrix/line order by n")).toEqual(found);
    expect(await rows("select n, MARKS, _RawBytes from /matrix/line/ order by n")).toEqual(found);
    expect(await rows("select *, marks from /matrix/line where n = 3")).toMatchObject([
      { n: 3, marks: ["cut", "malformed"] },
    ]);
  });

  test("are no part of *", async () => {
    for (const row of await rows("select * from /matrix/line"))
      expect(Object.keys(row).sort()).toEqual(["class", "ctime", "day", "host", "id", "mtime", "n", "tags", "vtime"]);
    const { meta } = await query.run(admin, "select * from /matrix/line");
    expect(meta.columns["/matrix/line"]?.map(({ name }) => name)).not.toContain("marks");
  });

  test("are described as a set and a blob", async () => {
    const { meta } = await query.run(admin, "select marks, _rawbytes from /matrix/line");
    expect(meta.columns["/matrix/line"]).toMatchObject([
      { name: "marks", type: "set" },
      { name: "_rawbytes", type: "blob" },
    ]);
  });

  test.each([
    ["marks contains 'cut'", [1, 3]],
    ["marks contains 'malformed' and host = 'h'", [2, 3]],
    ["any(marks) = 'cut'", [1, 3]],
    ["marks is null", [0]],
    ["not (marks is null)", [1, 2, 3]],
    ["_rawbytes is not null", [2, 3]],
    ["marks contains 'cut' or n = 0", [0, 1, 3]],
  ])("narrow a read: %s", async (condition, expected) => {
    expect(await ns(condition)).toEqual(expected);
  });

  test("order, group and count", async () => {
    expect(await rows("select count(*) as count from /matrix/line where marks contains 'cut'")).toEqual([{ count: 2 }]);
    const groups = await rows("select marks, count(*) as count from /matrix/line group by marks");
    expect(new Set(groups.map(({ marks, count }) => `${JSON.stringify(marks)} ${String(count)}`))).toEqual(
      new Set(["null 1", '["cut"] 1', '["malformed"] 1', '["cut","malformed"] 1']),
    );
    expect(await rows("select n from /matrix/line order by length(_rawbytes) desc, n desc limit 2")).toEqual([
      { n: 3 },
      { n: 2 },
    ]);
  });

  test("belong to no class of entities", async () => {
    await expect(rows("select marks from /matrix/box")).rejects.toMatchObject({ code: "not_found" });
    expect(
      await rows("select n, marks from /matrix/box/ where n = 1").catch((error: Error) => error.message),
    ).toContain("marks");
  });

  test("cannot be written", async () => {
    const refused = {
      code: "invalid",
      message:
        "[Valid] marks of the records of /matrix/line is kept by the platform and cannot be written: leave it out.",
    };
    await expect(rows("insert into /matrix/line n=9, marks=['cut']")).rejects.toMatchObject(refused);
    await expect(rows(`insert json '{"class":"/matrix/line","n":9,"Marks":["cut"]}'`)).rejects.toMatchObject(refused);
    await expect(objects.unrestricted.insert(admin, "/matrix/line", [{ n: 9, marks: ["cut"] }])).rejects.toMatchObject(
      refused,
    );
    await expect(rows("insert into /matrix/line n=9, _rawbytes='YQ=='")).rejects.toMatchObject({ code: "invalid" });
    expect(await ns("n = 9")).toEqual([]);
  });

  test("are gone with their record", async () => {
    const [id = ""] = await ingest("/matrix/line/more", [{ marks: ["cut"] }], { more: "x" });
    expect(await rows("select marks from /matrix/line/more")).toEqual([{ marks: ["cut"] }]);
    await objects.unrestricted.remove(admin, [{ id, class: "/matrix/line/more" }]);
    expect(await rows("select marks from /matrix/line/more")).toEqual([]);
  });

  test("raw bytes are left out where the record would be too large with them", async () => {
    await rows("create class /matrix/large (n int, host varchar, body text) with kind=record");
    const body = "x".repeat(OBJECT_MAX_BYTES - 1_000);
    await ingest("/matrix/large", [{ marks: ["malformed"], rawBytes: RAW.repeat(300) }], { body });
    expect(await rows("select marks, _rawbytes, length(body) as size from /matrix/large")).toEqual([
      { marks: ["malformed"], _rawbytes: null, size: body.length },
    ]);
  });

  test("a record that is only too large with its marks is stored without them", async () => {
    await rows("create class /matrix/largest (n int, host varchar, body text) with kind=record");
    const view = (await objects.catalog(admin)).get("/matrix/largest");
    const empty = ["n", "host", "body"].flatMap((name) => [view?.column(name)?.number, name === "n" ? 0 : "h"]);
    // A long text has a head of five bytes in place of one.
    const body = "x".repeat(OBJECT_MAX_BYTES - encodePacked(empty).length - 4 + 1);
    await ingest("/matrix/largest", [{ marks: ["cut"] }, { marks: ["cut", "malformed"], rawBytes: RAW }], { body });
    const found = await rows("select marks, _rawbytes, length(body) as size from /matrix/largest");
    expect(found).toEqual(Array(2).fill({ marks: null, _rawbytes: null, size: body.length }));
  });
});

test("a record without marks is stored as by earlier versions, which find no column behind those of the class", async () => {
  await rows("create class /matrix/plain (n int, host varchar) with kind=record");
  const [plain = "", marked = ""] = await ingest("/matrix/plain", [undefined, { marks: ["cut"] }]);
  const view = (await objects.catalog(admin)).get("/matrix/plain");
  const numbers = ["n", "host"].map((name) => view?.column(name)?.number);
  const { objects: store } = await engine.tenant("matrix");
  const keys = [plain, marked].map((id) => ({ cid: view?.cid ?? 0, id: id.slice(id.indexOf(":") + 1) }));
  const values = (await store.getRecords(keys)).map((record) => Buffer.from(record?.value ?? []));
  const before = (n: number): readonly unknown[] => [numbers[0], n, numbers[1], "h"];
  expect(values[0]).toEqual(Buffer.from(encodePacked(before(0))));
  expect(decodeStored(values[1] ?? Buffer.alloc(0))).toEqual([...before(1), 2, ["cut"]]);
  expect(numbers.every((number) => (number ?? 0) >= 16)).toBe(true);
});

test("a change tells the columns of the class alone, while row conditions on it see the marks", async () => {
  await rows("create class /matrix/told (n int, host varchar) with kind=record");
  const told: unknown[] = [];
  const stop = objects.unrestricted.onChange((events) =>
    told.push(...events.map(({ fields, object }) => [fields, object.values])),
  );
  const ids = await ingest("/matrix/told", [undefined, { marks: ["malformed"], rawBytes: RAW }]);
  await objects.unrestricted.remove(
    admin,
    ids.slice(1).map((id) => ({ id, class: "/matrix/told" })),
  );
  stop();
  const second = { n: 1, host: "h" };
  expect(told).toEqual([
    [
      { n: 0, host: "h" },
      { n: 0, host: "h" },
    ],
    [second, { ...second, marks: ["malformed"] }],
    [{}, { ...second, marks: ["malformed"] }],
  ]);
});

describe("a name that is taken", () => {
  test("by a column of the class means that column, in whatever case it is written", async () => {
    await rows(`create class /matrix/own (n int, host varchar, Marks varchar, index(Marks)) with kind=record`);
    await ingest("/matrix/own", [{ marks: ["malformed"], rawBytes: RAW }, undefined], { Marks: "good" });
    await rows("insert into /matrix/own n=2, marks='bad'");
    expect(await rows("select n, marks from /matrix/own where marks = 'bad'")).toEqual([{ n: 2, Marks: "bad" }]);
    expect(await rows("select * from /matrix/own where n = 0")).toMatchObject([{ Marks: "good" }]);
    expect(await rows("select Marks, _rawbytes from /matrix/own where n = 0")).toEqual([
      { Marks: "good", _rawbytes: RAW },
    ]);
  });

  test("by a column of one class means no other in a statement about a tree", async () => {
    await rows(`create class /matrix/mixed (n int, host varchar) with kind=record;
      create class /matrix/mixed/own (marks varchar) with kind=record`);
    await ingest("/matrix/mixed", [{ marks: ["cut"] }]);
    await ingest("/matrix/mixed/own", [undefined], { marks: "mine" });
    const found = await rows("select marks from /matrix/mixed/");
    expect(found.map(({ marks = null }) => marks).sort()).toEqual(["mine", null]);
    expect(await rows("select marks from /matrix/mixed")).toEqual([{ marks: ["cut"] }]);
  });

  test("by a column of one class of a join means that one where no class is named", async () => {
    await rows(`create class /matrix/joined (n int, host varchar) with kind=record;
      create class /matrix/joins (host varchar, Marks varchar, keys(host));
      insert into /matrix/joins host='h', Marks='mine'`);
    await ingest("/matrix/joined", [{ marks: ["cut"] }]);
    const from = "from /matrix/joins a left outer join (b:/matrix/joined) on a.host = b.host";
    expect(await rows(`select Marks ${from}`)).toEqual([{ Marks: "mine" }]);
    expect(await rows(`select marks ${from}`)).toEqual([{ Marks: "mine" }]);
    expect(await rows(`select b.marks ${from}`)).toEqual([{ marks: ["cut"] }]);
    await expect(
      rows("select marks from /matrix/joined a left outer join (b:/matrix/line) on a.n = b.n"),
    ).rejects.toMatchObject({
      message: expect.stringContaining("a.marks or b.marks") as string,
    });
  });

  test("by a column that is dropped later is that of the platform again", async () => {
    await rows("create class /matrix/dropped (n int, host varchar, marks varchar) with kind=record");
    await ingest("/matrix/dropped", [{ marks: ["cut"] }], { marks: "mine" });
    expect(await rows("select marks from /matrix/dropped")).toEqual([{ marks: "mine" }]);
    await rows("alter class /matrix/dropped drop column marks");
    expect(await rows("select marks from /matrix/dropped")).toEqual([{ marks: ["cut"] }]);
  });
});

describe("rights", () => {
  const user = (...data: readonly DataRule[]): Principal => ({ ...testPrincipal("viewer"), data });
  const line = { class: "/matrix/line", access: "read" } as const;

  test("a rule that shows columns hides those that it does not name", async () => {
    const shown = user({ ...line, shown: ["n", "marks"] });
    expect(await ns("marks contains 'cut'", shown)).toEqual([1, 3]);
    await expect(rows("select _rawbytes from /matrix/line", shown)).rejects.toMatchObject({ code: "not_found" });
    await expect(rows("select marks from /matrix/line", user({ ...line, shown: ["n"] }))).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("a rule that hides a column hides the raw bytes, which say what it says", async () => {
    const hidden = user({ ...line, hidden: ["host"] });
    expect(await ns("marks contains 'cut'", hidden)).toEqual([1, 3]);
    await expect(rows("select _rawbytes from /matrix/line", hidden)).rejects.toMatchObject({ code: "not_found" });
    expect(await rows("select _rawbytes from /matrix/line where n = 2", user(line))).toEqual([{ _rawbytes: RAW }]);
  });

  test("a row condition means the marks of the platform beside classes with a column of that name", async () => {
    await rows(`create class /matrix/ruled (n int, host varchar) with kind=record;
      create class /matrix/ruled/own (marks varchar) with kind=record;
      create class /matrix/ruled/case (Marks varchar) with kind=record`);
    await ingest("/matrix/ruled", [undefined, { marks: ["cut"] }]);
    await ingest("/matrix/ruled/own", [{ marks: ["cut"] }], { n: 2, marks: "mine" });
    await rows("insert into /matrix/ruled/own n=3");
    await ingest("/matrix/ruled/case", [undefined], { n: 4, Marks: "mine" });
    const seen = async (where: string) => {
      const by = user({ class: "/matrix/ruled", access: "read", where });
      const found = async (path: string) => (await rows(`select n from ${path} order by n`, by)).map(({ n }) => n);
      const alone = [await found("/matrix/ruled"), await found("/matrix/ruled/own"), await found("/matrix/ruled/case")];
      expect(await found("/matrix/ruled/")).toEqual(alone.flat());
      return alone;
    };
    expect(await seen("marks is null")).toEqual([[0], [3], []]);
    expect(await seen("marks is not null")).toEqual([[1], [2], [4]]);
  });

  test("a row condition sees the marks", async () => {
    const ruled = user({ ...line, where: "not (marks contains 'malformed')", hidden: ["marks"] });
    expect(await ns("n >= 0", ruled)).toEqual([1]);
  });
});
