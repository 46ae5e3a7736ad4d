import { pino } from "pino";
import { afterEach, beforeEach, expect } from "vitest";
import { realClock, seededRandom } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import {
  ObjectService,
  type ClassSpec,
  type ObjectRow,
  type Pushdown,
  type ReadRequest,
} from "../../../controller/areas/objects/index.ts";

/** Controllers over one store that make, fill and drop indexes. */

export const admin = testPrincipal();
export const BOX: ClassSpec = {
  path: "/matrix/box",
  columns: [
    { name: "size", type: "int" },
    { name: "color", type: "varchar" },
    { name: "parts", type: "set", elements: ["int"] },
    { name: "config", type: "map" },
    { name: "note", type: "text" },
  ],
  options: { keyMode: "manu" },
};

/** Stores of the running test. */
export let engine: TestEngine;
let opened: ObjectService[];
/** Lets go of what a test holds, also when it failed. */
export let letGo: (() => void)[];
/** Log entries of the controllers about their work. */
export let told: { readonly msg: string; readonly done?: number; readonly total?: number }[];

/** Opens the stores for each test of the calling file, and closes its controllers. */
export function useIndexes(): void {
  beforeEach(async () => {
    engine = await openTestEngine();
    opened = [];
    letGo = [];
    told = [];
  });
  afterEach(async () => {
    for (const goOn of letGo) goOn();
    await Promise.all(opened.map((service) => service.close()));
    await engine[Symbol.asyncDispose]();
  });
}

/** Opens a controller, which is closed after the test. */
export function controller(of: Stores = engine): ObjectService {
  const log = pino(
    { base: null },
    { write: (line: string) => void told.push(JSON.parse(line) as (typeof told)[number]) },
  );
  const service = new ObjectService({
    stores: of,
    runtime: { ...testRuntime(realClock), random: seededRandom(opened.length + 1), log },
  });
  opened.push(service);
  return service;
}

/** Returns the rows of all pages, of BOX and its subclasses if the request names no class. */
export async function readAll(request: Partial<ReadRequest>, by: ObjectService): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of by.unrestricted.read(admin, { class: BOX.path, subtree: true, ...request }))
    rows.push(...page);
  return rows;
}

/** Ids that the index answers; fails when it is not used. */
export async function answered(where: Pushdown, by: ObjectService, path = BOX.path): Promise<string[]> {
  const request = { class: path, subtree: true, where: [where] };
  expect((await by.unrestricted.explain(admin, request)).used).toEqual([where]);
  return (await readAll(request, by)).map((row) => row.id).sort();
}

/** Names the indexes that are not ready, each with its state. */
export async function unready(by: ObjectService): Promise<string[]> {
  return (await by.indexStates(admin))
    .filter(({ state }) => state !== "ready")
    .map((index) => `${index.class} ${index.column ?? "words"} ${index.state}`);
}

/** Waits until every index is ready. */
export async function becomesReady(by: ObjectService): Promise<void> {
  await expect.poll(() => unready(by), { timeout: 30_000 }).toEqual([]);
}

export const equals = (column: string, value: number | string): Pushdown => ({
  kind: "equals",
  column,
  values: [value],
});
export const addIndex = (by: ObjectService, name: string, path = BOX.path) =>
  by.alterClass(admin, path, { kind: "add index", name });
