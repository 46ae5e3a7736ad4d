import { afterAll, beforeAll, expect, test } from "vitest";
import { ClassTreeGenerator } from "../../../test/helpers/mql/class-trees.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import { EXPORT_PIECE_CHARACTERS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";

const admin = testPrincipal();
/** Principal of the second tenant, which has no data of the first. */
const other = testPrincipal("administrator", "second");

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

/** Renames the classes for the second tenant. */
function moved(script: string): string {
  return script.replaceAll("/matrix/", "/second/");
}

async function rowsOf(principal: Principal, path: string): Promise<readonly Row[]> {
  const rows = await transfer.query.rows(principal, `select * from ${path} limit -1`);
  const kept = rows.map(({ vtime: _vtime, ctime: _ctime, mtime: _mtime, day: _day, class: _class, ...row }) => row);
  return [...kept].sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
}

test.each(onCluster ? [{ seed: 1 }] : [{ seed: 1 }, { seed: 2 }, { seed: 3 }, { seed: 4 }])(
  "random classes and objects come back byte for byte (%j)",
  async ({ seed }) => {
    const generator = new ClassTreeGenerator(seededRandom(seed));
    const root = `/matrix/random_${seed}`;
    const classes = generator.tree(root, onCluster ? 6 : 12);
    await transfer.objects.createEdgeType(admin, { name: `near.by_${seed}`, remedy: "it's near" });
    const ids: string[] = [];
    for (const { spec, rows } of classes) {
      await transfer.objects.createClass(admin, spec);
      ids.push(...(await transfer.objects.unrestricted.insert(admin, spec.path, rows)));
    }
    for (const { spec, rows } of classes) {
      const related = rows
        .filter((_, at) => at % 3 === 0)
        .map(({ id = null }, at) => ({ id, [`near.by_${seed}`]: ids.slice(at, at + 3) }));
      await transfer.objects.unrestricted.insert(admin, spec.path, related);
    }
    const script = await transfer.script(admin, { class: `${root}/`, relations: true });
    expect(await transfer.take(other, moved(script))).toMatchObject({ state: "done" });
    expect(await transfer.script(other, { class: moved(`${root}/`), relations: true })).toBe(moved(script));
    for (const { spec } of classes)
      expect(await rowsOf(other, moved(spec.path)), spec.path).toEqual(await rowsOf(admin, spec.path));
  },
);

test("what is taken in over itself changes nothing", async () => {
  await transfer.query.rows(
    admin,
    "create class /matrix/again (host varchar, tags set<varchar>, keys(host)); insert into /matrix/again host='a', tags=['x','y']",
  );
  const script = await transfer.script(admin, { class: "/matrix/again" });
  await transfer.take(admin, script);
  await transfer.take(admin, script);
  expect(await transfer.script(admin, { class: "/matrix/again" })).toBe(script);
});

test("records keep their ids and so their times, edges what they lead to", async () => {
  await transfer.query.rows(
    admin,
    "create edge type holds; create class /matrix/kept/box (host varchar, keys(host)); create class /matrix/kept/event (text varchar) with kind='record'",
  );
  await transfer.objects.unrestricted.ingest(admin, "/matrix/kept/event", [
    { values: { text: "one" }, timeMs: Date.now() - 5_000, identity: "a" },
  ]);
  await transfer.query.rows(
    admin,
    "insert into /matrix/kept/box host='b'; insert into /matrix/kept/box host='a', holds=['box:b']",
  );
  const script = await transfer.script(admin, { class: "/matrix/kept/", relations: true });
  await transfer.take(other, moved(script));
  const vtime = "select text, vtime from /matrix/kept/event";
  expect(await transfer.query.rows(other, moved(vtime))).toEqual(await transfer.query.rows(admin, vtime));
  const edges = [];
  for await (const some of transfer.objects.unrestricted.edges(other, [{ id: "box:a", class: "/second/kept/box" }], {
    direction: "out",
  }))
    edges.push(...some);
  expect(edges).toMatchObject([{ type: "holds", source: "box:a", target: "box:b" }]);
});

test("a class comes with the definitions it inherits from; objects, fields and classes that are not wanted stay away", async () => {
  await transfer.query.rows(
    admin,
    `create class /matrix/part (a varchar, keys(a), index(a)) with key=md5; create class /matrix/part/leaf (b int, c int) with version=true, versionttl=90, time_zone='Asia/Kathmandu';
    create class /matrix/part/left (d int); insert into /matrix/part/leaf a='2', b=2, c=3; insert into /matrix/part/leaf a='1', b=1; insert into /matrix/part/left a='x'`,
  );
  const part = "CREATE CLASS IF NOT EXISTS /matrix/part (a varchar, KEYS(a), INDEX(a)) WITH key = 'md5';\n";
  const leaf =
    "CREATE CLASS IF NOT EXISTS /matrix/part/leaf (b int) WITH version = true, versionttl = 90, time_zone = 'Asia/Kathmandu';\n";
  const [first = "", second = ""] = (await rowsOf(admin, "/matrix/part/leaf")).map(
    ({ id, a, b }) => `INSERT INTO /matrix/part/leaf SET id = '${String(id)}', a = '${String(a)}', b = ${String(b)};\n`,
  );
  const request = { class: "/matrix/part/leaf", ignoredFields: ["c"] };
  expect(await transfer.script(admin, request)).toBe(part + leaf + first + second);
  expect(await transfer.script(admin, { ...request, limit: 1 })).toBe(part + leaf + first);
  expect(await transfer.script(admin, { ...request, limit: 0 })).toBe(part + leaf);
  expect(
    await transfer.script(admin, {
      ...request,
      class: "/matrix/part",
      recursive: true,
      ignoredClasses: ["/matrix/part/left"],
      limit: 0,
    }),
  ).toBe(part + leaf);
  await expect(transfer.script(admin, { ...request, ignoredFields: ["a"] })).rejects.toThrow(
    "a is a key of /matrix/part",
  );
  await expect(transfer.script(admin, { class: "/matrix/none" })).rejects.toMatchObject({ code: "not_found" });
});

test("classes of the platform come when they are named, and with nothing else", async () => {
  const everything = await transfer.script(admin, { limit: 0 });
  expect(everything).toContain("/matrix/kept/box");
  expect(everything).not.toContain("/matrix/system/transfer");
  expect(await transfer.script(admin, { class: "/matrix/system/transfer", limit: 0 })).toContain(
    "/matrix/system/transfer (transfer varchar",
  );
});

test("more ids than may be held are sorted in several goes", async () => {
  const hosts = Array.from({ length: 12 }, (_, at) => ({ host: `h${(at * 5) % 12}` }));
  await transfer.query.rows(admin, "create class /matrix/many (host varchar, keys(host))");
  await transfer.objects.unrestricted.insert(admin, "/matrix/many", hosts);
  const whole = await transfer.script(admin, { class: "/matrix/many" });
  for (const idsHeldMax of [1, 5, 12]) {
    expect(await transfer.script(admin, { class: "/matrix/many" }, { idsHeldMax })).toBe(whole);
    expect((await transfer.script(admin, { class: "/matrix/many", limit: 7 }, { idsHeldMax })).split("\n")).toEqual([
      ...whole.split("\n").slice(0, 8),
      "",
    ]);
  }
});

test("relations to ids that several classes can have lead where they led, whatever comes first", async () => {
  await transfer.query.rows(
    admin,
    `create edge type twin; create class /matrix/two/a/disk (n int, keys(n)); create class /matrix/two/b/disk (n int, keys(n));
    insert into /matrix/two/b/disk n=2; insert into /matrix/two/a/disk n=1, twin=['disk:2']; insert into /matrix/two/b/disk n=2, twin=['disk:1']`,
  );
  const script = await transfer.script(admin, { class: "/matrix/two/", relations: true });
  expect(await transfer.take(other, moved(script))).toMatchObject({ state: "done" });
  expect(await transfer.script(other, { class: "/second/two/", relations: true })).toBe(moved(script));
  const edges = [];
  for await (const some of transfer.objects.unrestricted.edges(other, [{ id: "disk:1", class: "/second/two/a/disk" }], {
    direction: "out",
  }))
    edges.push(...some);
  expect(edges).toMatchObject([{ type: "twin", target: "disk:2", targetClass: "/second/two/b/disk" }]);
});

test("an export holds what its principal sees: no hidden column, no object outside the row condition, no edge to one", async () => {
  await transfer.query.rows(
    admin,
    `create edge type sees; create class /matrix/veil (host varchar, owner varchar, secret varchar, keys(host), index(secret));
    insert into /matrix/veil host='c', owner='bob'; insert into /matrix/veil host='b', owner='eve', secret='s';
    insert into /matrix/veil host='a', owner='bob', secret='s', sees=['veil:b','veil:c']`,
  );
  const bob: Principal = {
    ...testPrincipal("viewer"),
    data: [{ class: "/matrix/veil", access: "read", where: "owner = 'bob'", hidden: ["secret"] }],
  };
  expect(await transfer.script(bob, { class: "/matrix/veil" })).toBe(
    "CREATE CLASS IF NOT EXISTS /matrix/veil (host varchar, owner varchar, KEYS(host));\n" +
      "INSERT INTO /matrix/veil SET id = 'veil:a', host = 'a', owner = 'bob', sees = ['veil:c'];\n" +
      "INSERT INTO /matrix/veil SET id = 'veil:c', host = 'c', owner = 'bob';\n",
  );
  await expect(transfer.script(bob, { class: "/matrix/kept/box" })).rejects.toMatchObject({ code: "not_found" });
});

test("an export holds no edge to an object that the owner of its class hides from the principal", async () => {
  const limit = {
    columns: ["a"],
    of: ({ user }: Principal) => (user === "administrator" ? undefined : ({ a }: Row) => a === 1),
  };
  const guard = { reading: { permission: "objects:read" }, permission: "objects:write", limit } as const;
  const owned = new TestTransfer(engine, { own: "two", guards: { "/owned": guard } });
  try {
    await owned.query.rows(admin, "create edge type uses; create class /matrix/user (host varchar, keys(host))");
    const [open = "", hidden = ""] = await owned.objects.unrestricted.insert(admin, "/matrix/owned", [
      { a: 1 },
      { a: 2 },
    ]);
    await owned.objects.unrestricted.insert(admin, "/matrix/user", [{ host: "a", uses: [open, hidden] }]);
    const asked = { class: "/matrix/user" };
    expect(await owned.script(admin, asked)).toContain(hidden);
    const script = await owned.script({ ...admin, user: "bob" }, asked);
    expect(script).toContain(open);
    expect(script).not.toContain(hidden);
  } finally {
    await owned.close();
  }
});

test("others have the thread between two pieces of an export", async () => {
  const pieces = 20;
  await transfer.objects.createClass(admin, { path: "/matrix/piece", columns: [{ name: "note", type: "text" }] });
  const note = "n".repeat(EXPORT_PIECE_CHARACTERS);
  await transfer.objects.unrestricted.insert(admin, "/matrix/piece", Array(pieces).fill({ note }));
  using pauses = new CountedPauses();
  const script = await transfer.script(admin, { class: "/matrix/piece" });
  expect(script.length).toBeGreaterThan(pieces * EXPORT_PIECE_CHARACTERS);
  // Without the pauses between pieces there are five, from its two queries.
  expect(pauses.count).toBeGreaterThanOrEqual(pieces);
});

test("marked records come back with their marks and raw bytes; those of a class with such columns are its own", async () => {
  await transfer.query.rows(
    admin,
    `create class /matrix/marked (n int) with kind=record;
     create class /matrix/marked/own (marks varchar) with kind=record`,
  );
  const rawBytes = Buffer.from("ff00", "hex").toString("base64");
  const at = { timeMs: Date.now() - 5_000, identity: "marked" };
  await transfer.objects.unrestricted.ingest(admin, "/matrix/marked", [
    { ...at, ordinal: 0, values: { n: 0 } },
    { ...at, ordinal: 1, values: { n: 1 }, marked: { marks: ["cut", "malformed"], rawBytes } },
  ]);
  await transfer.objects.unrestricted.ingest(admin, "/matrix/marked/own", [
    { ...at, values: { n: 2, marks: "mine" }, marked: { marks: ["cut"] } },
    { ...at, ordinal: 1, values: { n: 3, marks: "mine" }, marked: { marks: ["malformed"], rawBytes } },
  ]);
  const script = await transfer.script(admin, { class: "/matrix/marked/" });
  expect(script).toContain(`n = 1, marks = ['cut', 'malformed'], _rawbytes = '${rawBytes}'`);
  await transfer.take(other, moved(script));
  await transfer.take(other, moved(script));
  expect(await transfer.script(other, { class: "/second/marked/" })).toBe(moved(script));
  const marks = "select n, marks, _rawbytes from /matrix/marked order by n";
  expect(await transfer.query.rows(other, moved(marks))).toEqual(await transfer.query.rows(admin, marks));
  expect(await transfer.script(admin, { class: "/matrix/marked", ignoredFields: ["_rawbytes"] })).not.toContain(
    "_rawbytes",
  );
});

test("an export that leaves out a column of a class leaves out its raw bytes, which say the same", async () => {
  await transfer.query.rows(
    admin,
    `create class /matrix/masked (name varchar) with kind=record;
     create class /matrix/masked/paid (card varchar) with kind=record`,
  );
  const rawBytes = Buffer.from("a\xff,4111", "latin1").toString("base64");
  const record = {
    timeMs: Date.now() - 5_000,
    identity: "masked",
    marked: { marks: ["malformed"], rawBytes },
  } as const;
  await transfer.objects.unrestricted.ingest(admin, "/matrix/masked", [{ ...record, values: { name: "one" } }]);
  await transfer.objects.unrestricted.ingest(admin, "/matrix/masked/paid", [
    { ...record, values: { name: "two", card: "4111" } },
  ]);
  const script = await transfer.script(admin, { class: "/matrix/masked/", ignoredFields: ["card"] });
  expect(script).toContain(`name = 'one', marks = ['malformed'], _rawbytes = '${rawBytes}'`);
  expect(script).toContain("name = 'two', marks = ['malformed'];");
  await transfer.query.rows(admin, "create class /matrix/masked/own (card varchar, _rawbytes int) with kind=record");
  const own = await transfer.script(admin, { class: "/matrix/masked/own", ignoredFields: ["card"] });
  expect(own).toContain("/matrix/masked/own (_rawbytes int)");
});

test("raw bytes that an export tells without marks come back as those of malformed records", async () => {
  await transfer.query.rows(admin, "create class /matrix/unmarked (n int) with kind=record");
  const rawBytes = Buffer.from("ff00", "hex").toString("base64");
  await transfer.objects.unrestricted.ingest(admin, "/matrix/unmarked", [
    { timeMs: Date.now() - 5_000, identity: "unmarked", values: { n: 1 }, marked: { marks: ["malformed"], rawBytes } },
  ]);
  const script = await transfer.script(admin, { class: "/matrix/unmarked", ignoredFields: ["marks"] });
  expect(script).not.toContain("marks =");
  await transfer.take(other, moved(script));
  await transfer.take(other, "insert into /second/unmarked set n=2, _rawbytes=null;");
  expect(await transfer.query.rows(other, "select n, marks, _rawbytes from /second/unmarked order by n")).toEqual([
    { n: 1, marks: ["malformed"], _rawbytes: rawBytes },
    { n: 2, marks: null, _rawbytes: null },
  ]);
});

test.each([
  ["marks=['torn']", 'marks has cut and malformed, not "torn"'],
  ["marks='cut, torn'", "marks has cut and malformed"],
  ["marks=['cut'], _rawbytes='YQ=='", "_rawbytes is only of records whose marks has malformed"],
  ["marks=['malformed'], _rawbytes='?'", "_rawbytes"],
])("a script whose record has %s is refused", async (given, message) => {
  await transfer.query.rows(admin, "create class if not exists /matrix/badmarks (n int) with kind=record");
  await expect(transfer.take(admin, `insert into /matrix/badmarks set n=1, ${given};`)).rejects.toThrow(message);
  expect(await transfer.query.rows(admin, "select n from /matrix/badmarks")).toEqual([]);
});
