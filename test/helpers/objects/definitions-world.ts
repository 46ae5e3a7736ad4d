import { afterAll, afterEach, beforeEach } from "vitest";
import type { Clock } from "../../../common/time.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { prove } from "../runs/evidence.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { StoppableStores } from "../engines/stoppable-stores.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import {
  ObjectService,
  type ClassSpec,
  type ObjectRow,
  type ReadRequest,
} from "../../../controller/areas/objects/index.ts";

/** Two controllers over one store. The first changes definitions while a write of the second stands still. */

export const admin = testPrincipal();
export const THING: ClassSpec = {
  path: "/matrix/thing",
  columns: [
    { name: "size", type: "int" },
    { name: "color", type: "varchar" },
  ],
  indexes: ["color"],
  options: { keyMode: "manu" },
};
export const LINE: ClassSpec = {
  path: "/matrix/line",
  kind: "record",
  columns: [
    { name: "size", type: "int" },
    { name: "color", type: "varchar" },
  ],
};

/** Stores of the running test. */
export let engine: TestEngine;
/** Stores of B. */
export let stores: StoppableStores;
/** Changes definitions. */
export let a: ObjectService;
/** Is stopped in the middle of writes. */
export let b: ObjectService;
/** Number of cases that the calling file has proved. */
let proved = 0;

/** Opens both controllers for each test of the calling file, and proves the promise after its tests. */
export function useDefinitions(): void {
  // Files share a process, and each counts its own cases.
  proved = 0;
  beforeEach(async () => {
    engine = await openTestEngine();
    stores = new StoppableStores(engine);
    a = controller(engine);
    b = controller(stores);
    await a.createClass(admin, THING);
    await a.createClass(admin, LINE);
    await a.unrestricted.insert(admin, THING.path, [{ id: "old", size: 1, color: "red" }]);
    await b.catalog(admin);
  });
  afterEach(async () => {
    stores.goOn();
    await Promise.all([a.close(), b.close()]);
    await engine[Symbol.asyncDispose]();
  });
  afterAll(() => {
    if (proved > 0) prove("definitions-across-a-pause", { engine: engine.kind, cases: proved });
  });
}

/** Opens a controller over these stores. The caller closes it. */
export function controller(of: Stores, clock: Clock = realClock): ObjectService {
  return new ObjectService({ stores: of, runtime: { ...testRuntime(clock), random: seededRandom(proved + 1) } });
}

/** Counts a case of the promise, when nothing can fail any more. */
export function kept(): void {
  proved += 1;
}

/** Returns the rows of all pages, of THING if the request names no class. */
export async function readAll(request: Partial<ReadRequest>, by: ObjectService): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of by.unrestricted.read(admin, { class: THING.path, subtree: false, ...request }))
    rows.push(...page);
  return rows;
}

/** Number of a column in the store; 0 if there is none. */
export async function columnNumber(path: string, name: string): Promise<number> {
  return (await a.catalog(admin)).get(path)?.column(name)?.number ?? 0;
}

/** Ids that the store itself finds, also when queries may not use the index. */
export async function borneBy(term: string): Promise<string[]> {
  const { items } = await (await engine.tenant("matrix")).objects.find({ terms: [term] }, { limit: 100 });
  return items.map((entity) => entity.key.id);
}
