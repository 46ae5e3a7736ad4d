import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { CELL_MAX_BYTES } from "../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { BASE_MS, recordsEntry } from "../../../test/helpers/areas/ingest.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import type { Rule, Rules } from "../rules/index.ts";
import { RETRY_PATH, retryClass, RuleRetries } from "./retries.ts";
import type { PreparedBatch, Waiting } from "./types.ts";
import { visibleObjects } from "../query/index.ts";

const PLATFORM = systemPrincipal("matrix", "/matrix", "");
const KEY = "/matrix/rules/line";
const RULE = { key: KEY, digest: "d1" } as Rule;
const MINUTE_MS = 60_000;

let engine: TestEngine;
let objects: ObjectService;
let retries: RuleRetries;
let nowMs: number;
/** Batches that were tried, in order. */
let tried: PreparedBatch[];
/** How many records of a batch are to be tried once more. */
let outcome: () => Promise<number>;
let pinned: Rules["pinned"];

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(retryClass(objects));
});

beforeEach(async () => {
  const left = (await rows()).map(({ id }) => ({ id, class: `/matrix${RETRY_PATH}` }));
  if (left.length > 0) await objects.unrestricted.remove(PLATFORM, left);
  nowMs = BASE_MS;
  retries = new RuleRetries({ objects, clock: { ...realClock, nowMs: () => nowMs } });
  tried = [];
  outcome = () => Promise.resolve(0);
  pinned = () => Promise.resolve(RULE);
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function waiting(over: Partial<Waiting> = {}): Waiting {
  const entry = recordsEntry(7, ["a,1"], KEY);
  const stream = { host: "web-1", streamId: "stream-0001" };
  return { entry, ...stream, digest: "d1", ordinal: 2, writeUs: 5_000, error: "not there", attempts: 0, ...over };
}

function round(): Promise<void> {
  const write = (batch: PreparedBatch): Promise<number> => {
    tried.push(batch);
    return outcome();
  };
  const rules = { pinned: (...call: Parameters<Rules["pinned"]>) => pinned(...call) } as Rules;
  return retries.run(PLATFORM, { rules, write });
}

async function rows(): Promise<readonly { readonly id: string; readonly values: Record<string, unknown> }[]> {
  const all: { id: string; values: Record<string, unknown> }[] = [];
  for await (const page of objects.unrestricted.read(PLATFORM, { class: `/matrix${RETRY_PATH}`, subtree: false }))
    all.push(...page);
  return all;
}

test("a record is tried when it is due, as it would have been the first time, and is no more when it is done", async () => {
  expect(await retries.keep(PLATFORM, waiting(), MINUTE_MS)).toBe(true);
  const [kept] = await rows();
  const source = "/var/log/a";
  expect(kept?.values).toMatchObject({ rule: KEY, source, host: "web-1", error: "not there", attempts: 0 });
  nowMs += MINUTE_MS - 1;
  await round();
  expect(tried).toEqual([]);
  nowMs += 1;
  await round();
  expect(tried).toMatchObject([
    {
      source: { tenant: "matrix", host: "web-1", streamId: "stream-0001" },
      entries: [waiting().entry],
      rules: new Map([[KEY, RULE]]),
      writeUs: new Map([[7, 5_000]]),
      missing: 0,
      again: { ordinal: 2, attempts: 1, dueMs: BASE_MS + MINUTE_MS },
    },
  ]);
  expect(await rows()).toEqual([]);
});

test("one whose writes have no time of their own gets none", async () => {
  await retries.keep(PLATFORM, waiting({ writeUs: undefined }), 0);
  await round();
  expect(tried[0]).not.toHaveProperty("writeUs");
});

test("one that is to be tried once more stays, and is the same object whoever keeps it again", async () => {
  outcome = async () => {
    await retries.keep(PLATFORM, waiting({ attempts: 1, error: "still not there" }), MINUTE_MS);
    return 1;
  };
  await retries.keep(PLATFORM, waiting(), 0);
  await retries.keep(PLATFORM, waiting({ ordinal: 3 }), 2 * MINUTE_MS);
  await round();
  const left = (await rows()).map(({ values }) => [values["attempts"], values["error"]]).sort();
  expect(left).toEqual([
    [0, "not there"],
    [1, "still not there"],
  ]);
});

test.each(["unavailable", "deadline", "unknown_outcome", "limited"] as const)(
  "a platform that is %s costs no record its turn, and keeps none of the others waiting",
  async (code) => {
    for (const ordinal of [0, 1]) await retries.keep(PLATFORM, waiting({ ordinal }), 0);
    outcome = () => (tried.length === 1 ? Promise.reject(new AppError(code, "away")) : Promise.resolve(0));
    await round();
    expect([tried.length, (await rows()).length]).toEqual([2, 1]);
    await round();
    expect(await rows()).toEqual([]);
  },
);

test("a rule that is gone is an answer, a fault of the program is none", async () => {
  await retries.keep(PLATFORM, waiting(), 0);
  pinned = () => Promise.reject(new AppError("unavailable", "away"));
  await round();
  expect([tried.length, (await rows()).length]).toEqual([0, 1]);
  pinned = () => Promise.reject(new TypeError("a fault"));
  await expect(round()).rejects.toThrow("a fault");
  const gone = new AppError("not_found", "There is no such rule.");
  pinned = () => Promise.reject(gone);
  await round();
  expect(tried[0]?.rules).toEqual(new Map([[KEY, gone]]));
});

test("one too large for a cell is not kept", async () => {
  const entry = recordsEntry(7, ["x".repeat(CELL_MAX_BYTES)], KEY);
  expect(await retries.keep(PLATFORM, waiting({ entry }), 0)).toBe(false);
  expect(await rows()).toEqual([]);
});

test("one that is only too large with its raw bytes is kept without them, as malformed", async () => {
  const entry = recordsEntry(7, ["x".repeat(CELL_MAX_BYTES / 2)], KEY);
  if (entry.body?.$case !== "records") throw new Error("records");
  const raw = Buffer.alloc(CELL_MAX_BYTES / 2);
  Object.assign(entry.body.value, { malformed: [0], raw, rawLengths: [raw.length] });
  expect(await retries.keep(PLATFORM, waiting({ entry }), 0)).toBe(true);
  await round();
  const kept = tried[0]?.entries[0]?.body;
  if (kept?.$case !== "records") throw new Error("records");
  const { records, malformed, raw: left } = kept.value;
  expect([records[0]?.length, malformed, left.length]).toEqual([CELL_MAX_BYTES / 2, [0], 0]);
});

test("who may write rules can take one out by MQL, which is not tried again", async () => {
  await retries.keep(PLATFORM, waiting(), 0);
  const { guard } = retryClass(objects);
  expect(guard?.permission).toBe("rules:write");
  const ids = (await rows()).map(({ id }) => id);
  await guard?.remove?.(testPrincipal(), ids);
  await round();
  expect([tried, await rows()]).toEqual([[], []]);
});
