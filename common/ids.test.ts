import { describe, expect, test } from "vitest";
import { decodeTime, isValid } from "ulid";
import { seededRandom } from "../test/helpers/time/clock.ts";
import {
  arrivalText,
  entropyPlus,
  formatObjectId,
  joinKeys,
  parseObjectId,
  ulidOf,
  ulidSeries,
  ULID_ORDINALS_MAX,
  ulidTimeMs,
  uuidOf,
} from "./ids.ts";

const bytes = (...values: number[]): Uint8Array => Uint8Array.from({ length: 10 }, (_, at) => values[at] ?? 0);

describe("object ids", () => {
  test("split at the first colon", () => {
    expect(parseObjectId("box:a:b")).toEqual({ label: "box", key: "a:b" });
    expect(formatObjectId("box", "a:b")).toBe("box:a:b");
    for (const none of ["box", ":x", "box:", ""]) expect(parseObjectId(none)).toBeUndefined();
  });

  test("joined keys differ when the keys do", () => {
    const lists = [
      ["a", "b"],
      ["a:b", ""],
      ["a\\", ":b"],
      ["a", ":b"],
      ["a\\:", "b"],
      ["", "a:b"],
    ];
    expect(new Set(lists.map(joinKeys)).size).toBe(lists.length);
    expect(joinKeys(["a:b"])).toBe("a:b");
  });
});

describe("ids made of a time", () => {
  test("a ULID carries its time and all ten bytes, and the same input gives the same id", () => {
    const id = ulidOf(1_700_000_000_123, bytes(255, 1, 2, 3, 4, 5, 6, 7, 8, 254));
    expect(isValid(id)).toBe(true);
    expect(decodeTime(id)).toBe(1_700_000_000_123);
    expect(ulidTimeMs(id)).toBe(1_700_000_000_123);
    expect(ulidOf(1_700_000_000_123, bytes(255, 1, 2, 3, 4, 5, 6, 7, 8, 254))).toBe(id);
    for (let at = 0; at < 10; at++) {
      const changed = bytes(255, 1, 2, 3, 4, 5, 6, 7, 8, 254);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(ulidOf(1_700_000_000_123, changed)).not.toBe(id);
    }
  });

  test("order of text is order of time", () => {
    const times = [0, 1, 31, 32, 1_023, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1];
    for (const make of [ulidOf, uuidOf]) {
      const ids = times.map((timeMs) => make(timeMs, bytes(200)));
      expect([...ids].sort()).toEqual(ids);
    }
  });

  test("a number is added to the ten bytes of its source, which stay as they are", () => {
    const source = Buffer.from(bytes(1, 2, 3, 4, 5, 6, 7, 8, 255, 254));
    expect([...entropyPlus(source, 1)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 255, 255]);
    expect([...entropyPlus(source, 2)]).toEqual([1, 2, 3, 4, 5, 6, 7, 9, 0, 0]);
    expect([...source]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 255, 254]);
    expect([
      ...entropyPlus(
        Uint8Array.from({ length: 10 }, () => 255),
        1,
      ),
    ]).toEqual([...bytes()]);
  });

  test("a series is in the order of its ordinals, and another source makes other ids", () => {
    const ordinals = [0, 1, 31, 32, 1_023, 1_024, 2 ** 20 - 1, 2 ** 20, ULID_ORDINALS_MAX - 1];
    const ids = ordinals.map(ulidSeries(1_700_000_000_123, bytes(255, 1, 2, 3, 4, 5, 6)));
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect([isValid(id), ulidTimeMs(id)]).toEqual([true, 1_700_000_000_123]);
    expect(ulidSeries(1_700_000_000_123, bytes(255, 1, 2, 3, 4, 5, 6))(31)).toBe(ids[2]);
    expect(ids).not.toContain(ulidSeries(1_700_000_000_123, bytes(255, 1, 2, 3, 4, 6, 6))(31));
    for (const ordinal of [-1, ULID_ORDINALS_MAX, Number.NaN])
      expect(() => ulidSeries(1, bytes())(ordinal)).toThrow(RangeError);
  });

  test("what is no ULID has no time", () => {
    for (const text of ["", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "01arz3ndektsv4rrffq69g5fav"])
      expect(ulidTimeMs(text)).toBeUndefined();
  });

  test("a UUID has version 7 and the variant of RFC 9562", () => {
    expect(uuidOf(1, bytes(255, 255, 255, 255))).toBe("00000000-0001-7fff-bfff-000000000000");
  });
});

test("keys of records and of objects that are made in turns follow each other in one order", () => {
  const random = seededRandom(5);
  for (let time = 0; time < 50; time += 1) {
    const first = random.bytes(10);
    const keys = Array.from({ length: 6 }, (_, at) =>
      at % 2 === 0 ? ulidOf(1_000, entropyPlus(first, at)) : uuidOf(1_000, entropyPlus(first, at)),
    );
    const texts = [...keys, uuidOf(1_001, first)].map(arrivalText);
    expect(texts.toSorted()).toEqual(texts);
    expect(new Set(texts).size).toBe(texts.length);
  }
  for (const key of ["web-1", "", "01KDVDNA00KAQCK5CM29FRFSK", "019b76da-a800-4aae-8995-94125f87e65c"])
    expect(arrivalText(key)).toBe(key);
});
