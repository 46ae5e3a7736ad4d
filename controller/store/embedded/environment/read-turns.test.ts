import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { STORE_READ_TURN_MAX_MS } from "../../../../common/limits.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import { THREAD_TURNS } from "../../../turns/turns.ts";
import type { TenantStore } from "../../engine.ts";
import { openEmbeddedEngine, type EmbeddedEngine } from "../index.ts";
import { ReadTurns } from "./read-turns.ts";

const READS = 6;
const KEY = { cid: 1, id: "a" };
const PAGE = { limit: 10 };
const ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/** Each reading of this clock advances it by a third of the time for reads in one turn. */
class RunningClock extends TestClock {
  override monotonicMs(): number {
    this.advance(STORE_READ_TURN_MAX_MS / 3);
    return super.monotonicMs();
  }
}

let folder: string;
let engine: EmbeddedEngine;
let store: TenantStore;

beforeAll(async () => {
  folder = await storeFolder("odp-reads-");
  engine = await openEmbeddedEngine({ dir: folder, runtime: { clock: new RunningClock(), random: seededRandom(1) } });
  await engine.createTenant("matrix");
  store = await engine.tenant("matrix");
  await store.kv.put("a", new Uint8Array(1));
  await store.objects.change([{ key: KEY, timeUs: 1, birth: true, addTerms: ["t"] }]);
});

afterAll(async () => {
  await engine.close();
  await rm(folder, { recursive: true });
});

async function firstEvents(): Promise<void> {
  const stop = new AbortController();
  for await (const events of store.kv.watch("a", { sinceRevision: 0, signal: stop.signal }))
    if (events.length > 0) stop.abort();
}

const span = { cid: 1, fromMs: 0, toMs: 1 };
const reads: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["kv.get", () => store.kv.get("a")],
  ["kv.list", () => store.kv.list("a")],
  ["get", () => store.objects.get([KEY])],
  ["trace", () => store.objects.trace([KEY])],
  ["find", () => store.objects.find({ terms: ["t"] }, PAGE)],
  ["estimate", () => store.objects.estimate({ terms: ["t"] })],
  ["countClass", () => store.objects.countClass("t")],
  ["countRecords", () => store.objects.countRecords(span)],
  ["terms", () => store.objects.terms({ beginning: "t" }, PAGE)],
  ["scan", () => store.objects.scan(PAGE)],
  ["history", () => store.objects.history(KEY, { fromUs: 0, toUs: 1 }, PAGE)],
  ["edges", () => store.objects.edges(KEY, "out", PAGE)],
  ["timeline", () => store.objects.timeline(span, PAGE)],
  ["getRecords", () => store.objects.getRecords([{ cid: 1, id: ULID }])],
  ["watch", firstEvents],
];

test.each(reads)("a loop over %s gives the thread away again and again", async (_name, read) => {
  const turns = new Set<number>();
  for (let n = 0; n < READS; n += 1) {
    await read();
    turns.add(THREAD_TURNS.number);
  }
  expect(turns.size).toBeGreaterThan(1);
});

test("short reads share a turn; those beyond its time get turns of their own", async () => {
  const clock = new TestClock();
  const all = new ReadTurns(clock);
  const order: string[] = [];
  const read = (tenant: string, name: string, lastsMs: number) =>
    all.of(tenant)(() => {
      clock.advance(lastsMs);
      order.push(`${name} in ${THREAD_TURNS.number}`);
    });
  const turn = THREAD_TURNS.number;
  await Promise.all([
    read("one", "a", 1),
    read("one", "b", STORE_READ_TURN_MAX_MS),
    read("one", "c", STORE_READ_TURN_MAX_MS),
    read("one", "d", STORE_READ_TURN_MAX_MS),
    read("two", "e", STORE_READ_TURN_MAX_MS),
  ]);
  expect(order.slice(0, 2)).toEqual([`a in ${turn}`, `b in ${turn}`]);
  const places = order.map((one) => one.split(" ")[2]);
  expect(new Set(places).size).toBe(4);
});
