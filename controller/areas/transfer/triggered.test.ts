import { afterAll, beforeAll, expect, test } from "vitest";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { Mortality, mortalStores } from "../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../store/engine.ts";
import { ObjectService, type ObjectTriggers } from "../objects/index.ts";
import { ImportService } from "./import.ts";
import { TRANSFER_CLASS } from "./records.ts";
import { scriptParts } from "./source.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();

/** Increments a counter in the object before each write. */
const COUNTING: ObjectTriggers = {
  before: (_principal, _triggers, { object, old }) =>
    Promise.resolve({ object: { ...object, writes: Number(old?.["writes"] ?? 0) + 1 }, announced: false }),
  after: () => Promise.resolve(),
};

const CLASSES = `create class /matrix/box (name varchar, run int, n int, writes int, keys(name), index(run));
  create class /matrix/item (run int, n int, writes int, index(run))`;

let engine: TestEngine;
let survivor: TestTransfer;

beforeAll(async () => {
  engine = await openTestEngine();
  survivor = new TestTransfer(engine, { own: "survivor", triggers: COUNTING });
  await survivor.query.rows(admin, CLASSES);
  for (const path of ["/matrix/box", "/matrix/item"])
    await survivor.objects.putTrigger(admin, {
      class: path,
      name: "count",
      text: "",
      language: "lua",
      before: true,
      level: 0,
      disabled: false,
    });
});
afterAll(async () => {
  await survivor.close();
  await engine[Symbol.asyncDispose]();
});

async function counted(run: number): Promise<unknown> {
  const boxes = `select name, n, writes from /matrix/box where run=${run} order by name`;
  const items = `select n, writes from /matrix/item where run=${run} order by n`;
  return [await survivor.query.rows(admin, boxes), await survivor.query.rows(admin, items)];
}

/** Imports on a controller with other stores. */
function importsOf(own: string, stores: Stores, objects: ObjectService): (script: string) => Promise<unknown> {
  const { runtime } = survivor;
  const controllers = { own, has: (id: string) => id === own };
  const imports = new ImportService({
    stores,
    objects,
    runtime,
    controllers,
    notifications: { publish: () => undefined },
  });
  return (script) => {
    const content = async function* () {
      yield await Promise.resolve(Buffer.from(script));
    };
    return imports.import(admin, { name: "a.mql", content, parts: () => scriptParts(content()) });
  };
}

/** Objects that are written twice, rows with own ids, and definitions between rows of one statement. */
function script(run: number): string {
  return `insert into /matrix/box (name, run, n) values ('${run}a', ${run}, 1), ('${run}b', ${run}, 1), ('${run}a', ${run}, 2);
    begin insert into /matrix/item run=${run}, n=1; create class if not exists /matrix/item (n int);
      insert into /matrix/box name='${run}b', run=${run}, n=2 end;
    insert into /matrix/item run=${run}, n=2`;
}

const WHOLE = (run: number) => [
  [
    { name: `${run}a`, n: 2, writes: 2 },
    { name: `${run}b`, n: 2, writes: 2 },
  ],
  [
    { n: 1, writes: 1 },
    { n: 2, writes: 1 },
  ],
];

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, a trigger counts each row of an import once (that write came to pass: %j)",
  async (isWritten) => {
    let mortality = new Mortality(Infinity, isWritten);
    const { keys, data } = mortalStores(engine, () => mortality);
    const objects = new ObjectService({
      visible: visibleObjects,
      stores: data,
      runtime: survivor.runtime,
      triggers: COUNTING,
    });
    objects.registerSystemClass(TRANSFER_CLASS);
    await objects.catalog(admin);
    let deaths = 0;
    for (; ; deaths += 1) {
      const run = 1_000 + deaths * 2 + Number(isWritten);
      mortality = new Mortality(deaths, isWritten);
      const lived = importsOf("dying", keys, objects)(script(run)).then(() => false);
      const { died } = mortality;
      if (!(await Promise.race([lived, died.then(() => true)]))) break;
      await survivor.imports.maintain("matrix");
      await survivor.imports.settled();
      const isBegun = deaths > 1 || (deaths === 1 && isWritten);
      expect(await counted(run), `dead at write ${deaths}`).toEqual(isBegun ? WHOLE(run) : [[], []]);
    }
    // Each of three chunks has a note of its times and one of its end.
    expect(deaths).toBeGreaterThan(10);
    await objects.close();
    const cases = [`${deaths} writes at which the controller died, under a trigger that counts`];
    prove("imports-are-whole", { engine: engine.kind, cases });
  },
);

test("what others write of its objects when their times are on record is counted beside the rows of the import", async () => {
  const of = "where name='hot'";
  await survivor.query.rows(admin, "insert into /matrix/box name='hot', run=1, n=0");
  let notes = 0;
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const kv = wrappedKv(store.kv, {
        txn: async (request) => {
          const answer = await store.kv.txn(request);
          notes += 1;
          // The first two notes are the start and the confirmation that the script is stored.
          if (notes === 3) await survivor.query.rows(admin, `update /matrix/box set n=7 ${of}`);
          return answer;
        },
      });
      return { ...store, kv };
    },
  };
  await importsOf(
    "first",
    stores,
    survivor.objects,
  )("insert into /matrix/box (name, n) values ('hot', 1), ('cold', 1), ('hot', 2)");
  expect(await survivor.query.rows(admin, `select n, writes from /matrix/box ${of}`)).toEqual([{ n: 2, writes: 4 }]);
});
