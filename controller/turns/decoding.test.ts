import { describe, expect, test } from "vitest";
import { HTTP_TURN_TEXT_MAX_CHARACTERS } from "../../common/limits.ts";
import type { Value } from "../../common/value.ts";
import { slicesOfOneStep } from "../../test/helpers/time/slices.ts";
import { decodeJson, encodeJson } from "./decoding.ts";

const rows = Array.from({ length: 10_000 }, (_, at) => ({ id: at, name: `row ${at}`, tags: ["a", null] }));

describe("a large text", () => {
  test("is decoded with pauses between its pieces, and what it takes is held as it goes on", async () => {
    const { seen, slices } = slicesOfOneStep();
    const held: number[] = [];
    const text = JSON.stringify(rows);
    expect(await decodeJson(text, { slices, hold: (bytes) => held.push(bytes) })).toEqual(rows);
    expect(seen.pauses).toBeGreaterThan(20);
    expect(held.filter((bytes) => bytes > 0).length).toBeGreaterThan(20);
  });

  test("is no further decoded once there is no memory for its values", async () => {
    const { seen, slices } = slicesOfOneStep();
    const full = new Error("full");
    const hold = (): void => {
      throw full;
    };
    await expect(decodeJson(JSON.stringify(rows), { slices, hold })).rejects.toBe(full);
    expect(seen.pauses).toBe(0);
  });

  test("is decoded without a pause when it is small", async () => {
    const { seen, slices } = slicesOfOneStep();
    const text = `["${"x".repeat(HTTP_TURN_TEXT_MAX_CHARACTERS - 4)}"]`;
    expect(await decodeJson(text, { slices })).toHaveLength(1);
    expect(seen.pauses).toBe(0);
  });
});

describe("the text of a value", () => {
  const values: readonly Value[] = [
    rows,
    { data: rows, meta: { total: 2 } },
    [],
    {},
    "text",
    `x${"\u{1f600}".repeat(HTTP_TURN_TEXT_MAX_CHARACTERS)}`,
    [`\ud83d"\n${"x".repeat(2 * HTTP_TURN_TEXT_MAX_CHARACTERS)}`],
    1,
    null,
    [[1], { a: [] }],
  ];

  test.each(values.map((value) => [JSON.stringify(value).slice(0, 40), value] as const))(
    "is that of JSON.stringify: %s",
    async (_text, value) => {
      const { slices } = slicesOfOneStep();
      expect(await encodeJson(value, slices)).toBe(JSON.stringify(value));
    },
  );

  test("is written with pauses between the items of long lists", async () => {
    const { seen, slices } = slicesOfOneStep();
    await encodeJson(rows, slices);
    await encodeJson({ data: rows }, slices);
    expect(seen.pauses).toBeGreaterThan(400);
  });

  test("is written with pauses between the parts of long texts, in lists and objects, too", async () => {
    const { seen, slices } = slicesOfOneStep();
    const text = "x".repeat(8 * HTTP_TURN_TEXT_MAX_CHARACTERS);
    for (const value of [text, [text], { text }]) await encodeJson(value, slices);
    expect(seen.pauses).toBeGreaterThanOrEqual(24);
  });
});
