import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { StoppableStores } from "../../../test/helpers/engines/stoppable-stores.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored } from "../../store/format.ts";
import type { Principal } from "../permissions/index.ts";
import { ImportService } from "./import.ts";
import { scriptParts } from "./source.ts";
import type { OpenImport } from "./store.ts";

const admin = testPrincipal();
const MAINTENANCES_MAX = 5;

let engine: TestEngine;
let transfer: TestTransfer;
beforeAll(async () => {
  engine = await openTestEngine();
  transfer = new TestTransfer(engine, {
    guards: {
      "/guarded": {
        reading: { permission: "objects:read" },
        permission: "objects:write",
        insert: () => Promise.reject(new AppError("invalid", "its owner does not like it")),
      },
    },
  });
});
afterAll(async () => {
  await transfer.close();
  await engine[Symbol.asyncDispose]();
});

async function count(path: string): Promise<unknown> {
  return (await transfer.query.rows(admin, `select count(*) from ${path}`))[0]?.["count"];
}

async function transfers(): Promise<number> {
  return Number(await count("/matrix/system/transfer"));
}

/** Runs maintenance as it recurs: imports that had to rest continue the next time. */
async function maintained(controller: TestTransfer): Promise<void> {
  const { kv } = await engine.tenant("matrix");
  for (let time = 0; time < MAINTENANCES_MAX; time += 1) {
    await controller.imports.maintain("matrix");
    await controller.imports.settled();
    if ((await kv.list("transfer/open/")).entries.length === 0) return;
  }
  throw new Error("an import is still open");
}

/** Faults of an upload, one per line. */
async function faults(text: string, principal: Principal = admin): Promise<readonly string[]> {
  try {
    await transfer.take(principal, text);
    return [];
  } catch (error) {
    return (error as AppError).message.split("\n");
  }
}

test("all that is wrong is told together with its place, and nothing is written", async () => {
  const before = await transfers();
  const script = `create class /matrix/bad (host varchar, size int, keys(host));
insert into /matrix/bad host='a', size='x';
  insert into /matrix/bad host='b', colour='red'; insert into /matrix/bad size=1;
insert into
  /matrix/bad host= ;
insert into /matrix/none a=1; create class /matrix/bad (host varchar);
drop class /matrix/bad; insert into /matrix/bad host=?;
create class /matrix/worse (a sometype)`;
  expect(await faults(script)).toEqual([
    'line 2 column 1: [Format] column size: "x" is no int.',
    "line 3 column 3: Field colour Not Exist",
    "line 3 column 51: [Valid] class /matrix/bad: the key column host is not set.",
    "line 5 column 21: [Parser]: expected a value but found the end.",
    "line 6 column 1: [NotExist] class : /matrix/none not find !",
    "line 6 column 31: [Valid] class /matrix/bad exists already.",
    "line 7 column 1: [Valid] An import takes CREATE CLASS, CREATE EDGE TYPE, ALTER CLASS and INSERT, alone or in batches.",
    "line 7 column 25: [Valid] An import has no values for ?.",
    "line 8 column 1: [Valid] a: there is no column type sometype.",
    "Nothing was written.",
  ]);
  expect((await transfer.objects.catalog(admin)).get("/matrix/bad")).toBeUndefined();
  expect(await transfers()).toBe(before);
});

test("rows of objects that are too far ahead of the clock are refused with their lines and how many there are, those of records are taken", async () => {
  const classes =
    "create class /matrix/ahead (n int, keys(n)); create class /matrix/aheadline (n int) with kind='record'";
  await transfer.query.rows(admin, classes);
  const later = (n: number) => `insert into /matrix/ahead (n) values (${n}) at '2130-01-01'`;
  const records = "insert into /matrix/aheadline (n) values (1), (2) at '2130-01-01'";
  const script = `insert into /matrix/ahead n=0;
${records};
begin insert into /matrix/ahead n=1;
  insert into /matrix/ahead (n) values (2), (3)
    at '2130-01-01'; end;
${Array.from({ length: 300 }, (_, n) => later(10 + n)).join(";\n")};
insert into /matrix/ahead x=1`;
  const told = await faults(script);
  expect(told.slice(0, 3).map((line) => line.replace(/clock \(.*/, "clock"))).toEqual([
    "line 306 column 1: Field x Not Exist",
    "line 5 column 8: [Valid] AT 2130-01-01T00:00:00.000Z is more than 5 minutes ahead of the controller's clock",
    "line 6 column 46: [Valid] AT 2130-01-01T00:00:00.000Z is more than 5 minutes ahead of the controller's clock",
  ]);
  expect(told.slice(-2)).toEqual([
    "In all 302 rows are too far ahead of the clock; the first 20 places are listed.",
    "Nothing was written.",
  ]);
  expect(told).toHaveLength(1 + 20 + 2);
  expect([await count("/matrix/ahead"), await count("/matrix/aheadline")]).toEqual([0, 0]);

  // An object as stored by versions that accepted any time.
  await transfer.objects.unrestricted.insert(admin, "/matrix/ahead", [{ n: 7 }], { atMs: Date.UTC(2130, 0) });
  await transfer.query.rows(admin, "update /matrix/ahead tags = ['seen'] where n=7");
  await transfer.take(
    admin,
    `${records}; insert into /matrix/ahead (n) values (7), (8); insert into /matrix/ahead n=7, tags=['again'];
     insert into /matrix/ahead (n) values (9) at '2020-01-01'`,
  );
  const recent = "vtime > ago('1 hour') and vtime <= now()";
  expect(await transfer.query.rows(admin, `select n from /matrix/ahead where ${recent}`)).toEqual([{ n: 8 }]);
  expect(await transfer.query.rows(admin, "select tags from /matrix/ahead where n=7")).toEqual([{ tags: ["again"] }]);
  expect([await count("/matrix/ahead"), await count("/matrix/aheadline")]).toEqual([3, 2]);
});

test("targets of edges need a class, and too many faults end the check", async () => {
  await transfer.query.rows(admin, "create edge type leads; create class /matrix/lead (host varchar, keys(host))");
  expect((await faults("insert into /matrix/lead host='a', leads=['nothing:b']"))[0]).toBe(
    "line 1 column 1: [NotExist] Not Found Class For ID nothing:b",
  );
  await transfer.query.rows(admin, "create class /matrix/one/lead (host varchar, keys(host))");
  expect(
    await faults(
      "insert into /matrix/lead host='a', leads='lead:a'; insert into /matrix/lead host='b', leads=['lead:a', 'lead:c']",
    ),
  ).toEqual([
    "line 1 column 52: [NotExist] lead:c: several classes have such ids, and none has this one.",
    "Nothing was written.",
  ]);
  const many = await faults("insert into /matrix/lead x=1;\n".repeat(500));
  expect([many.length, many.at(-1)]).toEqual([21, "Nothing was written, and perhaps more than these 20."]);
  expect(await count("/matrix/lead")).toBe(0);
});

test("a target that rules hide is told as a missing one", async () => {
  await transfer.query.rows(
    admin,
    `create edge type trails; create class /matrix/wagon (host varchar, keys(host));
     create class /matrix/other/wagon (host varchar, keys(host)); insert into /matrix/wagon (host) values ('seen'), ('vault')`,
  );
  const few = { ...admin, data: [{ class: "/matrix", access: "write" as const, where: "host <> 'vault'" }] };
  const told = async (id: string) => {
    const text = `insert into /matrix/wagon host='a', trails=['wagon:${id}']`;
    const message = await transfer.take(few, text).then(
      () => "written",
      (error: Error) => error.message,
    );
    return message.replace(id, "…");
  };
  expect(await told("vault")).toBe(await told("none"));
  expect(await told("vault")).toContain("none has this one");
  expect(await told("seen")).toBe("written");
});

test("what is no script is refused", async () => {
  expect((await faults("insert into /matrix/lead host='a"))[0]).toContain(
    "line 1 column 31: [Parser]: expected a closing '",
  );
  expect((await faults(" ;\n -- nothing\n"))[0]).toBe("[Valid] The upload has no statement in it.");
  const bytes = Buffer.concat([Buffer.from("insert into /matrix/lead host='"), Buffer.from([0xff, 0xfe])]);
  await expect(transfer.takeBytes(admin, bytes)).rejects.toThrow("[Format] The script is no utf-8 text at byte");
});

test("rights hold as in MQL: definitions, classes, rows outside the condition", async () => {
  await transfer.query.rows(
    admin,
    "create class /matrix/own (host varchar, owner varchar, keys(host)); insert into /matrix/own host='eve', owner='eve'",
  );
  const bob: Principal = {
    ...admin,
    user: "bob",
    data: [
      { class: "/matrix/own", access: "write", where: "owner = 'bob'" },
      { class: "/matrix/lead", access: "read" },
    ],
  };
  const script =
    "insert into /matrix/own host='a', owner='bob'; insert into /matrix/own host='eve', owner='bob'; insert into /matrix/own host='c', owner='eve'; insert into /matrix/lead host='a'";
  expect(await faults(script, bob)).toEqual([
    "line 1 column 48: bob may not write this object of /matrix/own: it does not fulfil the row condition.",
    "line 1 column 97: bob may not write this object of /matrix/own: it does not fulfil the row condition.",
    "line 1 column 144: bob may not write objects of /matrix/lead.",
    "Nothing was written.",
  ]);
  expect(await count("/matrix/own")).toBe(1);
  await expect(transfer.take(testPrincipal("viewer"), script)).rejects.toMatchObject({ code: "denied" });
});

test("a batch, JSON, several rows and altered classes are taken in", async () => {
  await transfer.take(
    admin,
    `create class /matrix/mixed (host varchar, keys(host)); begin alter class /matrix/mixed add column size int; insert into /matrix/mixed (host, size) values ('a', 1), ('b', 2) end;
    insert json '{"class":"/matrix/mixed","host":"c","size":3}'`,
  );
  expect(await transfer.query.rows(admin, "select host, size from /matrix/mixed order by host")).toEqual([
    { host: "a", size: 1 },
    { host: "b", size: 2 },
    { host: "c", size: 3 },
  ]);
});

test("who does not wait is told by notifications and by the object of the import", async () => {
  const before = Date.now();
  const report = await transfer.take(admin, "create class /matrix/later (a int); insert into /matrix/later a=1", {
    wait: false,
  });
  expect(report).toMatchObject({ state: "running", total: 2, done: 0 });
  expect(await transfer.ended(report.id)).toMatchObject({ id: report.id, state: "done", total: 2, done: 2 });
  expect(transfer.told.at(-1)).toMatchObject({
    keyspace: "/matrix",
    source: "transfer",
    subject: "transfer",
    title: report.id,
  });
  const rows = await transfer.query.rows(
    admin,
    `select * from /matrix/system/transfer where id = 'transfer:${report.id}'`,
  );
  const [{ started, ended } = {}] = rows;
  const who = { transfer: report.id, user: "administrator", name: "test.mql" };
  expect(rows).toMatchObject([{ ...who, state: "done", total: 2, done: 2, message: "", vtime: ended }]);
  expect(Number(started)).toBeGreaterThanOrEqual(before);
  expect(Number(ended)).toBeGreaterThanOrEqual(Number(started));
});

test("what fails while it is written is an error with how far it went, and is on record", async () => {
  const failed = transfer.take(
    admin,
    "create class /matrix/half (a int); insert into /matrix/half a=1; insert into /matrix/guarded a=1",
  );
  await expect(failed).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringMatching(/does not like it\n\d of 3 statements were written/) as string,
  });
  const [row] = await transfer.query.rows(
    admin,
    "select state, message from /matrix/system/transfer where state = 'failed'",
  );
  expect(row).toEqual({ state: "failed", message: "its owner does not like it" });
  const { kv } = await engine.tenant("matrix");
  expect((await kv.list("transfer/")).entries).toEqual([]);
});

test("an import whose controller dies is gone on with by another one, once", async () => {
  const present = new Set(["first", "second"]);
  const stores = new StoppableStores(engine);
  const first = new TestTransfer(stores, { own: "first", present });
  const second = new TestTransfer(engine, { own: "second", present });
  // Slightly more than one chunk.
  const ROWS = 1_300;
  const lines = Array.from(
    { length: ROWS },
    (_, n) => `insert into /matrix/${n % 4 === 0 ? "seen" : "made"} n=${n};\n`,
  ).join("");
  const dying = first.take(
    admin,
    `create class /matrix/made (n int); create class /matrix/seen (n int) with kind='record';\n${lines}`,
  );
  dying.catch(() => undefined);
  // Writes so far: the object of the import, the first chunk, the object again. The next one is in the middle of the
  // second chunk, whose records are written.
  const arrived = () =>
    Promise.race([stores.hold("change"), dying.then(() => Promise.reject(new Error("the import has ended")))]);
  for (let passed = 0; passed < 3; passed += 1) (await arrived()).goOn();
  const held = await arrived();
  await second.imports.maintain("matrix");
  expect(second.told).toEqual([]);
  await stores.stop();
  present.delete("first");
  await maintained(second);
  expect(await second.ended()).toMatchObject({ state: "done", total: ROWS + 2, done: ROWS + 2 });
  held.goOn();
  stores.goOn();
  await expect(dying).rejects.toMatchObject({ code: "deadline" });
  const made = await second.query.rows(admin, "select n from /matrix/made limit -1");
  const seen = await second.query.rows(admin, "select n from /matrix/seen limit -1");
  expect([made.length, new Set(made.map(({ n }) => n)).size]).toEqual([ROWS * 0.75, ROWS * 0.75]);
  expect([seen.length, new Set(seen.map(({ n }) => n)).size]).toEqual([ROWS * 0.25, ROWS * 0.25]);
  const { kv } = await engine.tenant("matrix");
  expect((await kv.list("transfer/")).entries).toEqual([]);
  await first.close();
  await second.close();
});

test("maintenance of the same controller leaves an import alone whose script is being stored", async () => {
  await transfer.query.rows(admin, "create class if not exists /matrix/stored (n int, keys(n))");
  let isMaintained = false;
  const content = async function* () {
    const { kv } = await engine.tenant("matrix");
    if ((await kv.list("transfer/open/")).entries.length > 0) {
      await transfer.imports.maintain("matrix");
      isMaintained = true;
    }
    yield Buffer.from("insert into /matrix/stored n=1;\n");
  };
  const upload = { name: "a.mql", content, parts: () => scriptParts(content()) };
  expect(await transfer.imports.import(admin, upload)).toMatchObject({ state: "done" });
  expect(isMaintained).toBe(true);
});

/** Imports three rows on a controller that dies. Returns false if it survived. */
async function diesAt(mortality: Mortality, script: string): Promise<boolean> {
  const dying: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      return { ...store, kv: mortality.mortal(store.kv), blobs: mortality.mortal(store.blobs) };
    },
  };
  const objects = mortality.mortal(transfer.objects);
  const imports = new ImportService({
    stores: dying,
    objects,
    notifications: { publish: () => undefined },
    runtime: transfer.runtime,
    controllers: { own: "dead", has: () => true },
  });
  const content = async function* () {
    yield await Promise.resolve(Buffer.from(script));
  };
  const lived = imports
    .import(admin, { name: "a.mql", content, parts: () => scriptParts(content()) })
    .then(() => false);
  return Promise.race([lived, mortality.died.then(() => true)]);
}

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, an import is whole or was never begun (that write came to pass: %j)",
  async (isWritten) => {
    await transfer.query.rows(admin, "create class if not exists /matrix/whole (run int, n int, index(run))");
    const { kv } = await engine.tenant("matrix");
    const ends: unknown[] = [];
    for (let writes = 0; ; writes += 1) {
      const run = writes * 2 + Number(isWritten);
      const script = [1, 2, 3].map((n) => `insert into /matrix/whole run=${run}, n=${n};`).join("\n");
      if (!(await diesAt(new Mortality(writes, isWritten), script))) break;
      const begun = (await kv.list("transfer/open/")).entries
        .map(({ value }) => decodeStored<OpenImport>(value))
        .filter(({ staged }) => staged);
      await maintained(transfer);
      for (const { id } of begun) expect(await transfer.ended(id)).toMatchObject({ state: "done" });
      ends.push(
        (await transfer.query.rows(admin, `select count(*) from /matrix/whole where run = ${run}`))[0]?.["count"],
      );
      expect(ends.at(-1), `dead at write ${writes}`).toBe(begun.length > 0 || ends.includes(3) ? 3 : 0);
    }
    await maintained(transfer);
    expect([ends.filter((count) => count === 0).length, ends.filter((count) => count === 3).length]).toEqual([
      isWritten ? 2 : 3,
      expect.any(Number),
    ]);
    prove("imports-are-whole", { engine: engine.kind, cases: [`${ends.length} writes at which the controller died`] });
  },
);

test("others have the thread while one statement of many rows is parsed, checked and written", async () => {
  const rows = 640;
  const values = Array.from({ length: rows }, (_, at) => `('w${at}', ${at})`).join(", ");
  const script = `create class /matrix/many (host varchar, size int); insert into /matrix/many (host, size) values ${values};`;
  const content = (): AsyncIterable<Uint8Array> => Readable.from([Buffer.from(script)]);
  const pauses = new CountedPauses();
  await transfer.imports.plan(admin, { name: "a.mql", content, parts: () => scriptParts(content()) });
  const planned = pauses.count;
  await transfer.take(admin, script);
  pauses[Symbol.dispose]();
  // Pauses of the plan and of the import: 160 and 490 without those at each checked row, 200 and 560 without those at
  // each collected row, 120 and 330 if parsed at once.
  expect(planned).toBeGreaterThanOrEqual(200);
  expect(pauses.count).toBeGreaterThanOrEqual(570);
});

test("others have the thread while a script goes on without a statement, as it is checked and as it is written", async () => {
  // Marks in which no statement ends: a turn after each 256 of them.
  const [marks, turns] = [50_000, 195];
  using pauses = new CountedPauses();
  await transfer.take(admin, `${";".repeat(marks)}create class if not exists /matrix/blank (n int);`);
  expect(pauses.count).toBeGreaterThanOrEqual(2 * turns - 10);
});
