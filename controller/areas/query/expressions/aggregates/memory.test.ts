import { expect, test } from "vitest";
import { bytesOf, freeing, QueryMemory } from "./memory.ts";

const limits = { maxBytes: 1_000, tenantMaxBytes: 600 };

test("a query that alone would hold too much is refused as such, one that finds the memory taken may come again", () => {
  const memory = new QueryMemory(limits);
  const share = memory.share("one");
  expect(() => memory.share("one").take(601)).toThrow(expect.objectContaining({ code: "too_large" }));
  share.take(400);
  expect(() => memory.share("one").take(300)).toThrow(
    expect.objectContaining({ code: "limited", details: { limit: "QUERY_TENANT_MEMORY_MAX_BYTES" } }),
  );
  memory.share("other").take(600);
  expect(() => memory.share("third").take(1)).toThrow(
    expect.objectContaining({ code: "limited", details: { limit: "QUERY_MEMORY_MAX_BYTES" } }),
  );
  share.close();
  memory.share("third").take(1);
});

test("what was held is free again when the rows are over, when nobody takes them any more and when they fail", async () => {
  const memory = new QueryMemory(limits);
  const pages = async function* (fails: boolean) {
    yield await Promise.resolve(1);
    if (fails) throw new Error("broken");
    yield 2;
  };
  for (const { takes, fails } of [
    { takes: 2, fails: false },
    { takes: 1, fails: false },
    { takes: 2, fails: true },
  ]) {
    const share = memory.share("one");
    share.take(500);
    const reading = freeing(share, pages(fails))[Symbol.asyncIterator]();
    const taken = (async () => {
      for (let n = 0; n < takes; n += 1) await reading.next();
      await reading.next();
    })();
    if (takes === 1) await reading.return?.();
    await Promise.allSettled([taken]);
    expect(memory.bytes).toBe(0);
  }
});

test("long texts, also inside of lists and maps, count with their length", () => {
  const text = "x".repeat(10_000);
  for (const value of [text, [text], { a: { b: [text] } }]) expect(bytesOf(value)).toBeGreaterThan(10_000);
  expect(bytesOf(null)).toBeLessThan(100);
});
