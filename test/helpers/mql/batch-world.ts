import { afterAll, beforeAll } from "vitest";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { decodeStored } from "../../../controller/store/format.ts";
import type { AuditEntry } from "../../../controller/areas/audit/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService } from "../../../controller/areas/query/service.ts";
import type { OpenBatch } from "../../../controller/areas/query/batch/run.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

/** Batches of MQL, by controllers that die, pause or fail in the middle. */

export const admin = testPrincipal();
const CLASSES = `create edge type leads; create class /matrix/box (host varchar, run int, size int, notes list<varchar>, keys(host)) with version=true;
  create class /matrix/event (run int, n int);
  create class /matrix/line (run int, n int) with kind='record'`;

export const runtime = testRuntime(realClock);

interface Parts {
  readonly objects?: ObjectService;
  readonly stores?: Stores;
  /** The controllers that are there. */
  readonly present?: ReadonlySet<string>;
}

export const WHOLE = { box: [{ host: "a", size: 10, notes: ["n", "x"], tags: ["t"] }], event: [1, 2], line: [1] };
export const NOTHING = { box: [], event: [], line: [] };

/** Stores of all tests of the calling file. */
export let engine: TestEngine;
export let objects: ObjectService;

/** Entries of the audit trail. A test that reads them empties the list first. */
export const entries: AuditEntry[] = [];

/** Opens the stores and their service, with the classes, for all tests of the calling file. */
export function useBatches(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    objects.registerSystemClass({
      path: "/owned",
      columns: [{ name: "a", type: "int", meaning: "A" }],
      guard: {
        reading: { permission: "objects:read" },
        permission: "objects:write",
        insert: () => Promise.resolve(["owned:1"]),
      },
    });
    entries.length = 0;
    await queryOf("first").rows(admin, `${CLASSES}; insert into /matrix/box host='old'`);
  });
  afterAll(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
}

/** Query service of the controller `own`, over the stores of the file unless others are given. */
export function queryOf(own: string, parts: Parts = {}): QueryService {
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

/** Batches of the tenant that are in the journal. */
export async function openBatches(): Promise<readonly OpenBatch[]> {
  const { kv } = await engine.tenant("matrix");
  return (await kv.list("batches/")).entries.map(({ value }) => decodeStored<OpenBatch>(value));
}

/** Everything a batch can do: rows with keys and without, records, changes of what it made itself. */
export function script(run: number): string {
  return `begin
    insert into /matrix/box (host, run, size, notes) values ('${run}-a', ${run}, 1, ['n']), ('${run}-b', ${run}, 2, ['n']);
    insert into /matrix/event run=${run}, n=1; insert into /matrix/line run=${run}, n=1;
    update /matrix/box set size=10, notes = notes + ['x'], tags = tags + 't', leads = leads + 'box:old' where run=${run} and size < 2;
    delete from /matrix/box where run=${run} and size = 2;
    insert into /matrix/event run=${run}, n=2;
  end`;
}

/** Objects and records that `script` has left under that number. */
export async function stateOf(run: number): Promise<typeof WHOLE | typeof NOTHING> {
  const query = queryOf("reader");
  const box = await query.rows(admin, `select host, size, notes, tags from /matrix/box where run=${run} order by host`);
  const [event, line] = await Promise.all(
    ["event", "line"].map(async (path) =>
      (await query.rows(admin, `select n from /matrix/${path} where run=${run} order by n`)).map(({ n }) => n),
    ),
  );
  return { box: box.map((row) => ({ ...row, host: String(row["host"]).slice(-1) })), event, line } as typeof WHOLE;
}
