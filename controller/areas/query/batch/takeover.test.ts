import { withReplaced } from "../../../../test/helpers/objects/replaced.ts";
import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { QUERY_BATCH_KEEP_MS } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import { Mortality, mortalStores } from "../../../../test/helpers/engines/mortal.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import type { KvStore } from "../../../store/kv.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../service.ts";
import {
  admin,
  runtime,
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
import { visibleObjects } from "../index.ts";

useBatches();

/** Journal, boxes, event, line, journal, mark of the edge, update, journal, grave, removal, event, journal. */
const WRITES = 12;

const HISTORY = {
  versions: [
    [10, 1],
    ["removed", 2],
  ],
  edges: 1,
};

async function historyOf(run: number): Promise<typeof HISTORY> {
  const versions = await Promise.all(
    ["a", "b"].map(async (name) => {
      const sizes: unknown[] = [];
      for await (const page of objects.unrestricted.history(admin, { id: `box:${run}-${name}` }))
        sizes.push(...page.map(({ values }) => (values ? values["size"] : "removed")));
      return sizes;
    }),
  );
  let edges = 0;
  for await (const page of objects.unrestricted.edges(admin, [{ id: `box:${run}-a` }], { direction: "out" }))
    edges += page.length;
  return { versions, edges } as typeof HISTORY;
}

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

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, a batch is made whole by another one or was never begun (that write came to pass: %j)",
  async (isWritten) => {
    let mortality = new Mortality(Infinity, isWritten);
    const { keys: journal, data } = mortalStores(engine, () => mortality);
    const mortal = new ObjectService({ visible: visibleObjects, stores: data, runtime });
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
  const mortal = new ObjectService({ visible: visibleObjects, stores: data, runtime });
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

test("a batch whose controller pauses is taken over; it changes nothing when it wakes, also where others wrote meanwhile", async () => {
  const present = new Set(["paused", "second"]);
  const stores = new StoppableStores(engine);
  const pausing = new ObjectService({ visible: visibleObjects, stores, runtime });
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

test("a batch that nobody went on with for too long is given up, and that is on record", async () => {
  const late = {
    ...runtime,
    clock: {
      ...realClock,
      nowMs: () => realClock.nowMs() - QUERY_BATCH_KEEP_MS - 1,
      monotonicMs: () => realClock.monotonicMs(),
    },
  };
  const failing = withReplaced(objects, { ingest: () => Promise.reject(new AppError("unavailable", "away")) });
  const batches = { stores: engine, controllers: { own: "first", has: () => true }, objects: failing, runtime: late };
  await expect(
    new QueryService({ objects: failing, runtime: late, batches }).run(admin, script(7)),
  ).rejects.toMatchObject({
    code: "unknown_outcome",
  });
  entries.length = 0;
  await queryOf("first").maintain("matrix");
  expect(await openBatches()).toEqual([]);
  expect(await stateOf(7)).toEqual(NOTHING);
  expect(entries).toMatchObject([{ outcome: "failed", code: "conflict" }]);
});

test("a batch of a later version, whose rows have other ids, is left to a controller that knows how it makes them", async () => {
  const failing = withReplaced(objects, { ingest: () => Promise.reject(new AppError("unavailable", "away")) });
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
  entries.length = 0;
  await renamed('"orderedRows"', '"laterRows"');
  await queryOf("second").maintain("matrix");
  expect([(await openBatches()).length, await stateOf(9), entries]).toEqual([1, NOTHING, []]);
  await renamed('"laterRows"', '"orderedRows"');
  await queryOf("third").maintain("matrix");
  expect(await openBatches()).toEqual([]);
  expect((await stateOf(9)).line).toEqual([1, 2]);
});
