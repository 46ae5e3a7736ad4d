import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { QUERY_BATCH_KEEP_MS } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import { Mortality, mortalStores } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import type { AuditEntry } from "../../audit/index.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../service.ts";
import type { OpenBatch } from "./run.ts";

const admin = testPrincipal();
const CLASSES = `create edge type leads; create class /matrix/box (host varchar, run int, size int, notes list<varchar>, keys(host)) with version=true;
  create class /matrix/event (run int, n int);
  create class /matrix/line (run int, n int) with kind='record'`;

let engine: TestEngine;
let objects: ObjectService;
let entries: AuditEntry[];
const runtime = testRuntime(realClock);

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime });
  objects.registerSystemClass({
    path: "/owned",
    columns: [{ name: "a", type: "int", title: "A" }],
    guard: {
      reading: { permission: "objects:read" },
      permission: "objects:write",
      insert: () => Promise.resolve(["owned:1"]),
    },
  });
  entries = [];
  await queryOf("first").rows(admin, `${CLASSES}; insert into /matrix/box host='old'`);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

interface Parts {
  readonly objects?: ObjectService;
  readonly stores?: Stores;
  /** The controllers that are there. */
  readonly present?: ReadonlySet<string>;
}

function queryOf(own: string, parts: Parts = {}): QueryService {
  const of = { objects, stores: engine, present: new Set([own]), ...parts };
  const audit = {
    ready: () => Promise.resolve(),
    record: (entry: AuditEntry) => Promise.resolve(void entries.push(entry)),
  };
  const controllers = { own, has: (id: string) => of.present.has(id) };
  return new QueryService({
    objects: of.objects,
    runtime,
    audit,
    batches: { stores: of.stores, controllers, objects: of.objects, runtime },
  });
}

async function openBatches(): Promise<readonly OpenBatch[]> {
  const { kv } = await engine.tenant("matrix");
  return (await kv.list("batches/")).entries.map(({ value }) => decodeStored<OpenBatch>(value));
}

test("a row of a batch with a time of its own keeps it, whatever its object is since", async () => {
  const query = queryOf("dated");
  await query.rows(admin, "insert into /matrix/box (host, size) values ('dated', 2)");
  await query.rows(admin, "begin insert into /matrix/box (host, size) values ('dated', 1) at '2024-01-01'; end");
  const sizes = async (at: string) =>
    (await query.rows(admin, `select size from /matrix/box where host='dated' ${at}`)).map(({ size }) => size);
  expect([await sizes(""), await sizes("as of '2024-02-01'")]).toEqual([[2], [1]]);
});

/** Everything a batch can do: rows with keys and without, records, changes of what it made itself. */
function script(run: number): string {
  return `begin
    insert into /matrix/box (host, run, size, notes) values ('${run}-a', ${run}, 1, ['n']), ('${run}-b', ${run}, 2, ['n']);
    insert into /matrix/event run=${run}, n=1; insert into /matrix/line run=${run}, n=1;
    update /matrix/box set size=10, notes = notes + ['x'], tags = tags + 't', leads = leads + 'box:old' where run=${run} and size < 2;
    delete from /matrix/box where run=${run} and size = 2;
    insert into /matrix/event run=${run}, n=2;
  end`;
}

/** Journal, boxes, event, line, journal, mark of the edge, update, journal, grave, removal, event, journal. */
const WRITES = 12;

const WHOLE = { box: [{ host: "a", size: 10, notes: ["n", "x"], tags: ["t"] }], event: [1, 2], line: [1] };
const NOTHING = { box: [], event: [], line: [] };
const HISTORY = {
  versions: [
    [10, 1],
    ["removed", 2],
  ],
  edges: 1,
};

async function stateOf(run: number): Promise<typeof WHOLE | typeof NOTHING> {
  const query = queryOf("reader");
  const box = await query.rows(admin, `select host, size, notes, tags from /matrix/box where run=${run} order by host`);
  const [event, line] = await Promise.all(
    ["event", "line"].map(async (path) =>
      (await query.rows(admin, `select n from /matrix/${path} where run=${run} order by n`)).map(({ n }) => n),
    ),
  );
  return { box: box.map((row) => ({ ...row, host: String(row["host"]).slice(-1) })), event, line } as typeof WHOLE;
}

async function historyOf(run: number): Promise<typeof HISTORY> {
  const versions = await Promise.all(
    ["a", "b"].map(async (name) => {
      const sizes: unknown[] = [];
      for await (const page of objects.history(admin, { id: `box:${run}-${name}` }))
        sizes.push(...page.map(({ values }) => (values ? values["size"] : "removed")));
      return sizes;
    }),
  );
  let edges = 0;
  for await (const page of objects.edges(admin, [{ id: `box:${run}-a` }], { direction: "out" })) edges += page.length;
  return { versions, edges } as typeof HISTORY;
}

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, a batch is made whole by another one or was never begun (that write came to pass: %j)",
  async (isWritten) => {
    let mortality = new Mortality(Infinity, isWritten);
    const { keys: journal, data } = mortalStores(engine, () => mortality);
    const mortal = new ObjectService({ stores: data, runtime });
    await mortal.catalog(admin);
    const dying = queryOf("dying", { objects: mortal, stores: journal });
    const survivor = queryOf("survivor");
    let writes = 0;
    for (; ; writes += 1) {
      const run = 1_000 + writes * 2 + Number(isWritten);
      mortality = new Mortality(writes, isWritten);
      const lived = dying.run(admin, script(run)).then(() => false);
      if (!(await Promise.race([lived, mortality.died.then(() => true)]))) break;
      await survivor.maintain("matrix");
      // The first write is that of the journal.
      expect(await stateOf(run), `dead at write ${writes}`).toEqual(writes > 0 || isWritten ? WHOLE : NOTHING);
      if (writes > 0) expect(await historyOf(run)).toEqual(HISTORY);
      expect(await openBatches()).toEqual([]);
    }
    expect(writes).toBe(WRITES);
    await mortal.close();
    prove("batches-are-whole", { engine: engine.kind, cases: [`${writes} writes at which the controller died`] });
  },
);

test("a batch is made by what its SELECTs answered when they were asked, at whatever write its controller dies, also once they answer something else", async () => {
  let mortality = new Mortality(Infinity, true);
  const { keys: journal, data } = mortalStores(engine, () => mortality);
  const mortal = new ObjectService({ stores: data, runtime });
  await queryOf("first").rows(admin, "create class /matrix/mark (run int, host varchar, keys(run, host))");
  await mortal.catalog(admin);
  const dying = queryOf("dying", { objects: mortal, stores: journal });
  const survivor = queryOf("survivor");
  let writes = 0;
  for (; ; writes += 1) {
    const run = 3_000 + writes;
    mortality = new Mortality(Infinity, true);
    await survivor.rows(
      admin,
      `insert into /matrix/box (host, run, size) values ('${run}-a', ${run}, 1), ('${run}-b', ${run}, 2);
      insert into /matrix/mark (run, host) values (${run}, '${run}-a')`,
    );
    mortality = new Mortality(writes, true);
    const lived = dying.run(admin, markedScript(run)).then(() => false);
    if (!(await Promise.race([lived, mortality.died.then(() => true)]))) break;
    await endTurns();
    await survivor.maintain("matrix");
    const { box } = await stateOf(run);
    expect(box, `dead at write ${writes}`).toEqual([
      { host: "a", size: 11, notes: ["unmarked"], tags: null },
      { host: "b", size: 2, notes: ["unmarked"], tags: null },
    ]);
    expect(await openBatches()).toEqual([]);
  }
  expect(writes).toBeGreaterThan(5);
  await mortal.close();
});

/** As when the lease of a dead controller ends. */
async function endTurns(): Promise<void> {
  const { kv } = await engine.tenant("matrix");
  for (const { key } of (await kv.list("objectturns/")).entries) await kv.delete(key);
}

/** The first statement asks what the second one removes, and the third one what is left of it then. */
function markedScript(run: number): string {
  const marked = `(select host from /matrix/mark where run=${run})`;
  return `begin
    update /matrix/box set size = case when host in ${marked} then size + 10 else 0 end where run=${run} and host in ${marked};
    delete from /matrix/mark where run=${run};
    update /matrix/box set notes = notes + ['unmarked'] where run=${run} and host not in ${marked};
  end`;
}

test("a batch whose controller pauses is taken over; it changes nothing when it wakes, also where others wrote meanwhile", async () => {
  const present = new Set(["paused", "second"]);
  const stores = new StoppableStores(engine);
  const pausing = new ObjectService({ stores, runtime });
  await pausing.catalog(admin);
  const held = stores.hold("change");
  const paused = queryOf("paused", { objects: pausing, present }).run(admin, script(1));
  const call = await held;
  const second = queryOf("second", { present });
  await second.maintain("matrix");
  expect(await stateOf(1)).toEqual(NOTHING);
  present.delete("paused");
  await second.maintain("matrix");
  expect(await stateOf(1)).toEqual(WHOLE);
  await second.rows(
    admin,
    "update /matrix/box set size = 99 where host = '1-a'; insert into /matrix/box host='1-b', run=1, size=7",
  );
  call.goOn();
  await expect(paused).rejects.toMatchObject({
    code: "unknown_outcome",
    message: expect.stringContaining("need not be repeated") as string,
  });
  expect(await stateOf(1)).toEqual({
    ...WHOLE,
    box: [
      { host: "a", size: 99, notes: ["n", "x"], tags: ["t"] },
      { host: "b", size: 7, notes: null, tags: null },
    ],
  });
  expect(await openBatches()).toEqual([]);
  await pausing.close();
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

function added(name: string): string {
  return `update /matrix/box notes = notes + ['${name}'] where id = 'box:8-a'`;
}

test("where the stores fail in the middle, whoever asked is told that the rest will come, and it comes once", async () => {
  const failing = new Proxy(objects, {
    get(target, name) {
      if (name === "update") return () => Promise.reject(new AppError("unavailable", "away"));
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
  entries = [];
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
  ["a name", "insert into /matrix/box nothing=1", "not_found"],
  ["a key", "insert into /matrix/box run=3", "invalid"],
  ["rights", "delete from /matrix/line", "denied"],
  ["a row condition", "update /matrix/box set run=4 where host='3-own'", "denied"],
])("%s that is wrong is told before anything is written, with its place", async (_, wrong, code) => {
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
  await expect(failed).rejects.toMatchObject({ code, details: { line: 2, column: 2 } });
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

test("a batch whose beginning was answered too late, and that another controller made meanwhile, is made once", async () => {
  let isFirst = true;
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const txn: KvStore["txn"] = async (request) => {
        const answer = await store.kv.txn(request);
        if (!isFirst) return answer;
        isFirst = false;
        await queryOf("second").maintain("matrix");
        await queryOf("third").rows(admin, "update /matrix/box set notes = notes + ['later'] where id='box:8-a'");
        throw new AppError("unknown_outcome", "done, not told");
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  await queryOf("reader").rows(admin, "insert into /matrix/box (host, run, notes) values ('8-a', 8, ['n'])");
  const changes =
    "update /matrix/box set notes = notes + ['x'] where id='box:8-a'; insert into /matrix/event run=8, n=1";
  await queryOf("first", { stores }).run(admin, `begin ${changes} end`);
  expect(await openBatches()).toEqual([]);
  expect(await stateOf(8)).toMatchObject({ box: [{ host: "a", notes: ["n", "x", "later"] }], event: [1] });
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

test("a batch that nobody went on with for too long is given up, and that is on record", async () => {
  const late = {
    ...runtime,
    clock: {
      ...realClock,
      nowMs: () => realClock.nowMs() - QUERY_BATCH_KEEP_MS - 1,
      monotonicMs: () => realClock.monotonicMs(),
    },
  };
  const failing = new Proxy(objects, {
    get: (target, name) =>
      name === "ingest"
        ? () => Promise.reject(new AppError("unavailable", "away"))
        : (Reflect.get(target, name) as () => unknown).bind(target),
  });
  const batches = { stores: engine, controllers: { own: "first", has: () => true }, objects: failing, runtime: late };
  await expect(
    new QueryService({ objects: failing, runtime: late, batches }).run(admin, script(7)),
  ).rejects.toMatchObject({
    code: "unknown_outcome",
  });
  entries = [];
  await queryOf("first").maintain("matrix");
  expect(await openBatches()).toEqual([]);
  expect(await stateOf(7)).toEqual(NOTHING);
  expect(entries).toMatchObject([{ outcome: "failed", code: "conflict" }]);
});

test("a batch of a later version, whose rows have other ids, is left to a controller that knows how it makes them", async () => {
  const failing = new Proxy(objects, {
    get: (target, name) =>
      name === "ingest"
        ? () => Promise.reject(new AppError("unavailable", "away"))
        : (Reflect.get(target, name) as () => unknown).bind(target),
  });
  const change = "begin insert into /matrix/line run=9, n=1; insert into /matrix/line run=9, n=2; end";
  await expect(queryOf("first", { objects: failing }).run(admin, change)).rejects.toMatchObject({
    code: "unknown_outcome",
  });
  const { kv } = await engine.tenant("matrix");
  const renamed = async (from: string, to: string): Promise<void> => {
    for (const { key, value } of (await kv.list("batches/")).entries) {
      const text = Buffer.from(value).toString("latin1");
      expect(text).toContain(from);
      await kv.put(key, Buffer.from(text.replaceAll(from, to), "latin1"));
    }
  };
  entries = [];
  await renamed('"orderedRows"', '"laterRows"');
  await queryOf("second").maintain("matrix");
  expect([(await openBatches()).length, await stateOf(9), entries]).toEqual([1, NOTHING, []]);
  await renamed('"laterRows"', '"orderedRows"');
  await queryOf("third").maintain("matrix");
  expect(await openBatches()).toEqual([]);
  expect((await stateOf(9)).line).toEqual([1, 2]);
});
