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

/** A class that keeps versions, and writes of it at times that the test chooses. */

export const admin = testPrincipal();

export const HOST: ClassSpec = {
  path: "/matrix/cmdb/host",
  columns: [
    { name: "name", type: "varchar" },
    { name: "size", type: "int" },
    { name: "tasks", type: "set", elements: ["varchar"] },
  ],
  keys: ["name"],
  indexes: ["size"],
  options: { version: true },
};

/** Stores of the running test. */
export let engine: TestEngine;
export let objects: ObjectService;
/** Time of the next write: they are a second apart, independent of the stores' own clocks. */
export let nowMs: number;

/** Opens the stores and their service, with the class, for each test of the calling file. */
export function useHistory(): void {
  beforeEach(async () => {
    engine = await openTestEngine();
    nowMs = realClock.nowMs() - 3_600_000;
    const runtime = { ...testRuntime({ ...realClock, nowMs: () => nowMs }), random: seededRandom(1) };
    objects = new ObjectService({ stores: engine, runtime });
    await objects.createClass(admin, HOST);
  });
  afterEach(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
}

/** Moves the time of the next write. */
export function setNow(timeMs: number): void {
  nowMs = timeMs;
}

/** A time after everything that was written, and before everything that will be. */
export function moment(): number {
  nowMs += 1_000;
  return nowMs - 500;
}

/** Returns the rows of all pages in the order of ids, of HOST if the request names no class. */
export async function readAll(request: Partial<ReadRequest>): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of objects.unrestricted.read(admin, { class: HOST.path, subtree: false, ...request }))
    rows.push(...page);
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Sizes by id, as they were at that time. */
export async function sizesAt(asOfMs: number, request: Partial<ReadRequest> = {}): Promise<Row> {
  return Object.fromEntries((await readAll({ asOfMs, ...request })).map((row) => [row.id, row.values.size ?? null]));
}

/** Edges of these objects as `source type target`, sorted; without a time those of now. */
export async function edgesAt(direction: "out" | "in", ids: readonly string[], asOfMs?: number): Promise<string[]> {
  const edges: string[] = [];
  const request = { direction, ...(asOfMs === undefined ? {} : { asOfMs }) };
  for await (const page of objects.unrestricted.edges(
    admin,
    ids.map((id) => ({ id })),
    request,
  ))
    edges.push(...page.map((edge) => `${edge.source} ${edge.type} ${edge.target}`));
  return edges.sort();
}
