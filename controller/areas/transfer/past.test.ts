import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { IMPORT_CHUNK_MAX_ROWS } from "../../../common/limits.ts";
import { parseTimestamp } from "../../../common/timestamps.ts";
import type { Row } from "../../../common/value.ts";
import { ClassTreeGenerator } from "../../../test/helpers/mql/class-trees.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import type { Stores } from "../../store/engine.ts";
import type { Principal } from "../permissions/index.ts";
import { ImportService } from "./import.ts";
import { scriptParts } from "./source.ts";

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

const rows = (text: string) => transfer.query.rows(admin, text);

/** Renames the classes for the second tenant. */
function moved(script: string): string {
  return script.replaceAll("/matrix/", "/second/");
}

/** Query results for a class: current, at earlier times, and its history. */
async function known(
  principal: Principal,
  path: string,
  times: readonly string[],
): Promise<Readonly<Record<"now" | "then" | "related" | "from" | "history", unknown>>> {
  const ask = async (text: string): Promise<readonly string[]> => {
    const found = await transfer.query.rows(principal, principal === other ? moved(text) : text);
    return found.map((row) => JSON.stringify(row).replaceAll("/second/", "/matrix/")).sort();
  };
  const at = (text: string) => Promise.all(times.map((time) => ask(`${text} as of '${time}'`)));
  return {
    now: await ask(`select * from ${path}`),
    then: await at(`select * from ${path}`),
    related: await at("match (:box)-[:past]->(:box)"),
    from: await Promise.all(times.map((time) => edgesTo(principal, path, parseTimestamp(time) ?? 0))),
    history: await historyOf(principal, path),
  };
}

async function edgesTo(principal: Principal, path: string, asOfMs: number): Promise<readonly string[]> {
  const found: string[] = [];
  for (const id of ["box:b", "box:c"]) {
    const ref = { id, class: principal === other ? moved(path) : path };
    for await (const edges of transfer.objects.unrestricted.edges(principal, [ref], { direction: "in", asOfMs }))
      found.push(...edges.map(({ source, target }) => `${source} ${target}`));
  }
  return found.sort();
}

async function historyOf(principal: Principal, path: string): Promise<unknown> {
  const found: unknown[] = [];
  for (const id of ["a", "b", "c", "d", "e", "f", "g"]) {
    const ref = { id: `box:${id}`, class: principal === other ? moved(path) : path };
    for await (const states of transfer.objects.unrestricted.history(principal, ref))
      found.push(...states.map(({ class: _class, ...state }) => state));
  }
  return found;
}

test("an import with times brings times, earlier states, removals and relations back as they were", async () => {
  const path = "/matrix/past/box";
  await rows(`create edge type past; create class ${path} (host varchar, size int, note varchar, tags set<varchar>, keys(host)) with version=true;
    create class /matrix/past/plain (host varchar, size int, keys(host));
    insert into ${path} (host, size, tags) values ('a', 1, ['x', 'y']), ('b', 1, ['x']), ('c', 1, []) at '2026-01-01 10:00:00';
    insert into ${path} host='d', size=1, past=['box:b'] at '2026-01-01 10:00:00.5';
    insert into ${path} host='a', size=2, tags=['y'], past=['box:b','box:c'] at '2026-01-02';
    insert into ${path} host='a', size=null, past=['box:c'] at '2026-01-03';
    insert into ${path} host='f', past=['box:d'] at '2026-01-01'; insert into ${path} host='f', past=[] at '2026-01-03';
    insert into ${path} host='g', size=7 at '2026-01-01';
    insert into ${path} host='e', size=1, note='late' at '2026-01-03'; insert into ${path} host='e', size=0, note='early', tags=['z'] at '2026-01-02';
    insert into /matrix/past/plain host='p', size=1 at '2026-01-01'; insert into /matrix/past/plain host='p', size=2 at '2026-01-05'`);
  await rows(
    `delete from ${path} where host = 'b'; delete from ${path} where host = 'c'; insert into ${path} host='c', size=9; delete from ${path} where host = 'g'`,
  );
  await rows(`insert into ${path} host='e', size=3`);
  const times = ["2025-12-31", "2026-01-01 12:00", "2026-01-02 12:00", "2026-01-04"];
  const script = await transfer.script(admin, { class: "/matrix/past/", relations: true, times: true });
  expect(await transfer.take(other, moved(script), { times: true })).toMatchObject({ state: "done", message: "" });
  expect(await transfer.query.rows(other, "select times from /second/system/transfer")).toEqual([{ times: true }]);
  const plain = "select host, size, vtime, ctime from /matrix/past/plain";
  expect(await transfer.query.rows(other, moved(plain))).toEqual(await rows(plain));
  expect(await known(other, path, times)).toEqual(await known(admin, path, times));
  expect(await transfer.script(other, { class: "/second/past/", relations: true, times: true })).toBe(moved(script));
  expect(await transfer.take(other, moved(script), { times: true })).toMatchObject({ state: "done", message: "" });
  expect(await transfer.script(other, { class: "/second/past/", relations: true, times: true })).toBe(moved(script));
  for (const by of [admin, other]) {
    const [place = ""] = by === other ? [moved(path)] : [path];
    await transfer.query.rows(by, `insert into ${place} (host, note) values ('a', 'new'), ('d', 'new'), ('f', 'new')`);
    // A removal is known where it was imported.
    expect(await transfer.query.rows(by, `insert into ${place} host='b' at '2026-02-01'`)).toMatchObject([
      { count: 0 },
    ]);
  }
  const [there, here] = [await known(other, path, times), await known(admin, path, times)];
  for (const of of ["then", "related", "from"] as const) expect(there[of]).toEqual(here[of]);
});

test("random objects keep all of their earlier states, value by value", async () => {
  const generator = new ClassTreeGenerator(seededRandom(5));
  const root = "/matrix/states";
  for (const { spec, rows: made } of generator.tree(root, 4)) {
    await transfer.objects.createClass(admin, { ...spec, options: { ...spec.options, version: true } });
    const ids = await transfer.objects.unrestricted.insert(admin, spec.path, made);
    const others = ids.map((id, at) => ({ ...made[(at + 1) % made.length], id }));
    await transfer.objects.unrestricted.insert(admin, spec.path, others);
    await transfer.objects.unrestricted.remove(admin, [{ id: ids[0] ?? "", class: spec.path }]);
  }
  const script = await transfer.script(admin, { class: `${root}/`, times: true });
  expect(script.match(/INSERT VERSION/g)?.length).toBeGreaterThanOrEqual(20);
  expect(await transfer.take(other, moved(script), { times: true })).toMatchObject({ state: "done", message: "" });
  expect(await transfer.script(other, { class: moved(`${root}/`), times: true })).toBe(moved(script));
});

test("an object that has ended comes back as one of the past, and what a versionttl has ended does not", async () => {
  const path = "/matrix/ending/box";
  const hour = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();
  await rows(`create class ${path} (host varchar, size int, keys(host)) with version=true, ttl=10 hour;
    insert into ${path} host='a', size=1 at '${hour(20)}'; insert into ${path} host='a', size=2 at '${hour(12)}';
    insert into ${path} host='b', size=1 at '${hour(8)}'; insert into ${path} host='b', size=2 at '${hour(1)}'`);
  const times = [hour(19), hour(11), hour(5), hour(1), hour(0)];
  const [unaltered] = await rows(`alter class ${path} set ttl=20 hour; select count(*) from ${path}`);
  expect(unaltered).toEqual({ count: 1 });
  const script = await transfer.script(admin, { class: path, times: true });
  expect(await transfer.take(other, moved(script), { times: true })).toMatchObject({ state: "done", message: "" });
  // The last state of b also ends at another time than its class would give it.
  expect(script.match(/INSERT VERSION .* UNTIL '/g)).toHaveLength(4);
  expect(await known(other, path, times)).toEqual(await known(admin, path, times));
  const brief = `create class /matrix/brief/box (host varchar, size int, keys(host)) with version=true, versionttl=3 hour;${script
    .slice(script.lastIndexOf("CREATE CLASS"))
    .replace(/^.*\n/, "")
    .replaceAll("/ending/", "/brief/")}`;
  expect((await transfer.take(admin, brief, { times: true })).message).toBe(
    "Earlier states not taken, as their versionttl is over (1): box:a.",
  );
  expect(await historyOf(admin, "/matrix/brief/box")).toMatchObject([
    { id: "box:a", values: { size: 2 } },
    { id: "box:b", values: { size: 2 } },
    { id: "box:b", values: { size: 1 } },
  ]);
});

test("without times the present states are new writes, and the plan and the report count what was not taken", async () => {
  const path = "/matrix/plainly/box";
  await rows(`create class ${path} (host varchar, size int, keys(host)) with version=true;
    insert into ${path} (host, size) values ('a', 1), ('b', 1) at '2026-01-01'; insert into ${path} host='a', size=2 at '2026-01-02'`);
  await rows(`delete from ${path} where host = 'b'`);
  const script = moved(await transfer.script(admin, { class: path, times: true }));
  const message =
    "Times of rows not taken, as the import has no times=true (1).\n" +
    "Earlier states and removals of objects not taken, as the import has no times=true (3).";
  const parts = () => scriptParts(Readable.from([Buffer.from(script)]));
  const upload = { name: "test.mql", parts, content: () => Readable.from([Buffer.from(script)]) };
  expect(await transfer.imports.plan(other, upload)).toMatchObject({ total: 6, message });
  expect(await transfer.imports.plan(other, upload, { times: true })).toMatchObject({ total: 6, message: "" });
  const before = Date.now();
  expect(await transfer.take(other, script)).toMatchObject({ state: "done", message });
  const [only, ...more] = (await historyOf(other, path)) as { vtimeMs: number; ctimeMs: number; values: unknown }[];
  expect(more).toEqual([]);
  expect(only).toMatchObject({ id: "box:a", values: { host: "a", size: 2 } });
  expect(Math.min(only?.vtimeMs ?? 0, only?.ctimeMs ?? 0)).toBeGreaterThanOrEqual(before);
});

test("objects that were written or removed later stay as they are with all of their history, however many rows they have", async () => {
  const path = "/matrix/later/box";
  await rows(`create class ${path} (host varchar, size int, keys(host)) with version=true;
    insert into ${path} host='a', size=5; insert into ${path} host='b', size=5; delete from ${path} where host = 'b';
    insert into ${path} host='e', size=5 at '2026-01-01'; delete from ${path} where host = 'e';
    insert into ${path} host='c', size=5 at '2026-01-05'; insert into ${path} host='d', size=5 at '2026-01-02'`);
  const before = await historyOf(admin, path);
  const insert = (of: string, id: string, set: string) =>
    `insert ${of} into ${path} set id='box:${id}', ${set}`.replace("  ", " ");
  const many = Array.from({ length: IMPORT_CHUNK_MAX_ROWS + 10 }, (_, at) =>
    insert("version", "a", `size=${at}, vtime=${1_700_000_000_000 - at}`),
  );
  const script = [
    insert("", "a", "size=1, vtime='2026-01-03', ctime='2026-01-01'"),
    ...many,
    insert("", "b", "size=1, vtime='2026-01-03', ctime='2026-01-01'"),
    insert("removal", "e", "vtime='2026-01-06'"),
    insert("version", "e", "size=1, vtime='2026-01-04'"),
    insert("removal", "c", "vtime='2026-01-06'"),
    insert("version", "c", "size=1, vtime='2026-01-04'"),
    insert("", "d", "size=6, vtime='2026-01-03'"),
    insert("version", "d", "size=7, vtime='2026-01-02'"),
    insert("version", "d", "size=8, vtime='2026-01-01'"),
  ].join(";\n");
  const content = (): Readable => Readable.from([Buffer.from(script)]);
  const upload = { name: "test.mql", parts: () => scriptParts(content()), content };
  // A plan checks objects that exist.
  expect(await transfer.imports.plan(admin, upload, { times: true })).toEqual({
    total: many.length + 9,
    message:
      "Objects not taken, as they were written or removed later (1): box:a.\n" +
      "Objects not taken, as they exist and the import has them as removed (1): box:c.",
  });
  expect((await transfer.take(admin, script, { times: true })).message.split("\n").sort()).toEqual([
    "Earlier states not taken, as the object has another version of that time (1): box:d.",
    "Objects not taken, as they exist and the import has them as removed (1): box:c.",
    "Objects not taken, as they were written or removed later (3): box:a, box:e, box:b.",
  ]);
  const after = (await historyOf(admin, path)) as { id: string; values?: Row }[];
  expect(after.filter(({ id }) => id !== "box:d")).toEqual(
    (before as { id: string }[]).filter(({ id }) => id !== "box:d"),
  );
  expect(after.filter(({ id }) => id === "box:d").map(({ values }) => values?.["size"])).toEqual([6, 5, 8]);
});

test("an object that was last written before the file becomes that of the file, without what that does not have", async () => {
  const path = "/matrix/renewed/crate";
  await rows(`create edge type bound; create class ${path} (host varchar, size int, note varchar, marks set<varchar>, keys(host)) with version=true;
    insert into ${path} (host, size) values ('a', 1), ('b', 1) at '2026-01-01';
    insert into ${path} host='a', note='old', marks=['x'], bound=['crate:b'] at '2026-01-02'`);
  const script = (by: Principal) =>
    transfer.script(by, { class: by === other ? moved(path) : path, relations: true, times: true });
  await transfer.take(other, moved(await script(admin)), { times: true });
  await rows(`insert into ${path} host='a', size=2, note=null, marks=null, bound=[] at '2026-02-01'`);
  expect(await transfer.take(other, moved(await script(admin)), { times: true })).toMatchObject({ message: "" });
  expect(await script(other)).toBe(moved(await script(admin)));
  await transfer.query.rows(other, `insert into ${moved(path)} host='c', note='theirs' at '2026-01-09'`);
  const renewed = `insert into ${moved(path)} set id='crate:c', size=3, ctime='2026-01-05', vtime='2026-02-02'`;
  const part = { class: "/second", access: "write", hidden: ["marks"], group: "writers" } as const;
  const partly: Principal = { ...other, data: [part, { class: "/second", access: "read", group: "readers" }] };
  for (const by of [partly, other]) {
    await transfer.take(by, renewed.replace("02-02", by === other ? "02-03" : "02-02"), { times: true });
    const note = by === other ? null : "theirs";
    const text = `select size, note, ctime from ${moved(path)} where id = 'crate:c'`;
    expect(await transfer.query.rows(other, text)).toEqual([{ size: 3, note, ctime: Date.UTC(2026, 0, 5) }]);
  }
  // Relations written in the second pass, because several classes may have their targets, are not removed before.
  await transfer.query.rows(
    other,
    `create class /second/shared/x/thing (k varchar, keys(k)); create class /second/shared/y/thing (k varchar, keys(k));
    insert into /second/shared/x/thing k='1'; insert into /second/shared/y/thing k='2';
    insert into ${moved(path)} host='d', bound=['thing:1'] at '2026-01-01'`,
  );
  const related = `insert into ${moved(path)} set id='crate:d', bound=['thing:1','thing:2'], vtime='2026-01-02'`;
  await transfer.take(other, related, { times: true });
  expect(await script(other)).toContain("bound = ['thing:1', 'thing:2']");
});

test("an import is refused as a whole for times ahead, states without order or end, and times where none can be", async () => {
  await rows(`create class /matrix/refused/box (host varchar, size int, keys(host)) with version=true;
    create class /matrix/refused/line (n int) with kind='record'; create class /matrix/refused/bare (host varchar, keys(host))`);
  const box = "into /matrix/refused/box set id='box:a'";
  const ahead = new Date(Date.now() + 600_000).toISOString();
  for (const [script, fault] of [
    [`insert ${box}, vtime='${ahead}'`, "In all 1 row is too far ahead of the clock"],
    [`insert ${box}, vtime='2026-01-01'; insert version ${box}, vtime='2026-01-01'`, "newest first"],
    [`insert version ${box}, vtime='2026-01-01'; insert ${box}, vtime='2026-01-02'`, "newest first"],
    [`insert ${box}, vtime='2026-01-01'; insert ${box}, vtime='2026-01-01'`, "newest first"],
    [
      `create edge type beyond; insert removal ${box}, vtime='2026-01-02'; insert version ${box}, vtime='2026-01-01' lost {"beyond":{"box:b":"${ahead}"}}`,
      "In all 1 row is too far ahead of the clock",
    ],
    [`insert version ${box}, vtime='2026-01-01'`, "neither its present state nor its removal"],
    [`insert ${box}, vtime='2026-01-01', ctime='2026-01-02'`, "ctime is later than vtime"],
    [`insert ${box}, vtime='x'`, 'vtime "x" is no time'],
    [`insert ${box}, size='many', vtime='2026-01-01'`, "size"],
    [`insert removal ${box}, size=1, vtime='2026-01-01'`, "names id and vtime alone"],
    [`insert removal ${box}, ctime='2025-01-01', vtime='2026-01-01'`, "names id and vtime alone"],
    [`insert version ${box}, vtime='2026-01-02' until '2026-01-02'`, "UNTIL 2026-01-02T00:00:00.000000Z is not later"],
    [
      `create edge type earlier; insert removal ${box}, vtime='2026-01-03'; insert version ${box}, vtime='2026-01-02' lost {"earlier":{"box:b":"2026-01-01"}}`,
      "LOST 2026-01-01T00:00:00.000000Z is not later",
    ],
    [`insert into /matrix/refused/line (n, vtime) values (1, '2026-01-01')`, "have the time of their id"],
    [`insert json '{"class":"/matrix/refused/box","id":"a"}'`, "INSERT JSON has no times"],
    [
      `insert removal ${box}, vtime='2026-01-01'; insert version ${box}, vtime='2025-01-01' added {"none":["box:b"]}`,
      "none",
    ],
  ] as const)
    await expect(transfer.take(admin, script, { times: true }), script).rejects.toThrow(fault);
  expect(await historyOf(admin, "/matrix/refused/box")).toEqual([]);
  await expect(rows(`insert version ${box}, vtime='2026-01-01'`)).rejects.toMatchObject({ code: "unsupported" });
  const bare = "into /matrix/refused/bare set id='bare:a', vtime=";
  const { message } = await transfer.take(admin, `insert ${bare}'2026-01-02'; insert version ${bare}'2026-01-01'`, {
    times: true,
  });
  expect(message).toBe("Earlier states not taken, as their class keeps no versions (1): bare:a.");
});

test("history takes rights to all of a class, in an export and in an import, and is none of a class of the platform", async () => {
  await rows("create class /matrix/partly/box (host varchar, keys(host)) with version=true");
  const bob: Principal = {
    ...testPrincipal("viewer"),
    data: [{ class: "/matrix/partly/box", access: "read", where: "host = 'bob'" }],
  };
  const request = { class: "/matrix/partly/box", times: true };
  await expect(transfer.script(bob, request)).rejects.toMatchObject({ code: "denied" });
  expect(await transfer.script(bob, { ...request, times: false })).toContain("/matrix/partly/box");
  await rows("insert into /matrix/partly/box host='bob' at '2026-01-01'");
  const into = "into /matrix/partly/box set id='box:bob', host='bob', vtime=";
  for (const rule of [{ where: "host = 'bob'" }, { hidden: ["note"] }]) {
    const writer: Principal = { ...admin, data: [{ class: "/matrix/partly", access: "write", ...rule }] };
    expect(await transfer.take(writer, `insert ${into}'2026-01-02'`, { times: true })).toMatchObject({ message: "" });
    for (const script of [
      `insert ${into}'2026-01-02'; insert version ${into}'2025-01-01'`,
      `insert removal into /matrix/partly/box set id='box:gone', vtime='2026-01-02'`,
    ])
      await expect(transfer.take(writer, script, { times: true }), script).rejects.toMatchObject({ code: "denied" });
  }
  await expect(transfer.script(admin, { class: "/matrix/system/transfer", times: true })).rejects.toThrow(
    "they are exported without times",
  );
});

/** Imports with times on a controller that dies at one of its writes. Returns false if it survived. */
async function diesAt(mortality: Mortality, script: string, root: string): Promise<boolean> {
  const stores: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      return { ...store, kv: mortality.mortal(store.kv), blobs: mortality.mortal(store.blobs) };
    },
  };
  const imports = new ImportService({
    stores,
    objects: mortality.mortal(transfer.objects),
    notifications: { publish: () => undefined },
    runtime: transfer.runtime,
    controllers: { own: "dead", has: () => true },
  });
  const content = (): Readable => Readable.from([Buffer.from(script)]);
  const upload = { name: "a.mql", content, parts: () => scriptParts(content()) };
  const lived = imports.import(admin, upload, { root, times: true }).then(() => false);
  return Promise.race([lived, mortality.died.then(() => true)]);
}

test("at whatever write its controller dies, an import with times is whole in the end, or was never begun", async () => {
  const path = "/matrix/broken/box";
  await rows(`create class ${path} (host varchar, size int, keys(host)) with version=true;
    insert into ${path} (host, size) values ('a', 1), ('b', 1) at '2026-01-01'; insert into ${path} host='a', size=2 at '2026-01-02'`);
  await rows(`delete from ${path} where host = 'b'`);
  const script = await transfer.script(admin, { class: path, times: true });
  const whole = new Set<boolean>();
  for (let writes = 0; ; writes += 1) {
    const root = `/matrix/broken_${writes}`;
    const died = await diesAt(new Mortality(writes, false), script, root);
    for (let time = 0; time < 3; time += 1) {
      await transfer.imports.maintain("matrix");
      await transfer.imports.settled();
    }
    const isThere = (await transfer.objects.catalog(admin)).get(`${root}/broken/box`) !== undefined;
    const copy = isThere ? await transfer.script(admin, { class: `${root}/broken/box`, times: true }) : "";
    const expected = script.replaceAll("/matrix/", `${root}/`).replace(/^/, `CREATE CLASS IF NOT EXISTS ${root} ();\n`);
    expect(copy, `dead at write ${writes}`).toBe(isThere ? expected : "");
    whole.add(isThere);
    if (!died) break;
  }
  expect([...whole]).toEqual([false, true]);
});
