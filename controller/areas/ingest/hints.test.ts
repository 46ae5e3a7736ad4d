import { expect, test } from "vitest";
import { INGEST_HINTS_MS, INGEST_HINTS_STREAMS_MAX } from "../../../common/limits.ts";
import { MemoryStores } from "../../../test/helpers/memory-stores.ts";
import { testRuntime, TestClock } from "../../../test/helpers/runtime.ts";
import { decodeStored } from "../../store/format.ts";
import { Hints } from "./hints.ts";

test("a stream that is read from the store again is no later one than those that came meanwhile", async () => {
  const clock = new TestClock();
  const stores = new MemoryStores();
  const hints = new Hints({ stores, runtime: testRuntime(clock) });
  const { kv } = await stores.tenant("matrix");
  const stream = (at: number) => ({ tenant: "matrix", host: "web-1", streamId: `stream-${at}` });
  const stored = async () => {
    const entry = await kv.get("ingest/web-1");
    return entry ? decodeStored<[string, number][]>(entry.value) : [];
  };

  for (let at = 0; at < INGEST_HINTS_STREAMS_MAX; at++) hints.note(stream(at), 1);
  clock.advance(INGEST_HINTS_MS);
  await expect.poll(stored, { timeout: 30_000 }).toHaveLength(INGEST_HINTS_STREAMS_MAX);
  // More than are kept: the first ones are known by the store alone.
  for (let at = 0; at < 3; at++) hints.note(stream(INGEST_HINTS_STREAMS_MAX + at), 1);
  expect(await hints.acknowledged(stream(0))).toBe(1);
  expect(await hints.acknowledged(stream(INGEST_HINTS_STREAMS_MAX + 2))).toBe(1);
  await hints.close();
  expect(await stored()).toEqual(Array.from({ length: INGEST_HINTS_STREAMS_MAX }, (_, at) => [`stream-${at + 3}`, 1]));
});
