import { afterEach, beforeEach } from "vitest";
import type { Row } from "../../../common/value.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import {
  ObjectService,
  type ClassSpec,
  type ObjectRow,
  type ReadRequest,
} from "../../../controller/areas/objects/index.ts";

export const admin = testPrincipal();
/** Reads only. */
export const viewer = testPrincipal("viewer");
/** Administrator of a second tenant. */
export const other = testPrincipal("administrator", "second");

/** A class with keys, indexes and columns of several types. */
export const BOX: ClassSpec = {
  path: "/matrix/ent/box",
  columns: [
    { name: "host", type: "varchar", title: "Host" },
    { name: "size", type: "bigint" },
    { name: "config", type: "map", elements: ["varchar", "varchar"] },
    { name: "ports", type: "set", elements: ["int"] },
    { name: "note", type: "text" },
  ],
  keys: ["host"],
  indexes: ["host", "size", "ports", "config"],
};

/** Stores of the running test. */
export let engine: TestEngine;
/** Service of the running test over these stores. */
export let objects: ObjectService;
let seed = 1;

/** Opens an engine and a service over it for each test of the calling file. */
export function openObjects(): void {
  // Files share a process. Each draws the same numbers, in any order of files.
  seed = 1;
  beforeEach(async () => {
    engine = await openTestEngine();
    objects = newService();
  });
  afterEach(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
}

/** Returns another service over the same stores, as of a second controller. The caller closes it. */
export function newService(): ObjectService {
  return new ObjectService({ stores: engine, runtime: { ...testRuntime(realClock), random: seededRandom(seed++) } });
}

/** Returns the rows of all pages; without subclasses if the request does not ask for them. */
export async function readAll(
  request: Partial<ReadRequest> & { readonly class: string },
  service = objects,
): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of service.unrestricted.read(admin, { subtree: false, ...request })) rows.push(...page);
  return rows;
}

/** Returns the ids of all pages, sorted. */
export async function idsOf(
  request: Partial<ReadRequest> & { readonly class: string },
  service = objects,
): Promise<string[]> {
  return (await readAll(request, service)).map((row) => row.id).sort();
}

/** Returns the values of one object, `undefined` if there is none. */
export async function valuesOf(id: string, service = objects): Promise<Row | undefined> {
  const [row] = await service.unrestricted.get(admin, [{ id }]);
  return row?.values;
}
