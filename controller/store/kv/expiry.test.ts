import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { encodeJson, encodePacked } from "../format.ts";
import { checkExpiry, expiryBounds, hasExpired, openValue, removal, sealValue } from "./expiry.ts";

const VALUES = [[], [0], [1, 2], [4], [4, 4, 4, 4, 4, 4, 4, 4, 4, 4], [5], [255]].map((each) => Uint8Array.from(each));
const MOMENTS = [0, 1, 255, 256, 1_900_000_000_000, Number.MAX_SAFE_INTEGER];

describe("stored values", () => {
  test("a value without an expiry is stored as it is: what earlier versions stored is read unchanged", () => {
    for (const value of [encodeJson({ a: 1 }), encodePacked([1, "b"]), ...VALUES.filter((each) => each[0] !== 4)]) {
      expect(sealValue(value)).toEqual(value);
      expect(openValue(value)).toEqual({ value: new Uint8Array(value) });
    }
  });

  test("value and moment come back, in bytes of their own", () => {
    for (const value of VALUES) {
      expect(openValue(sealValue(value))).toEqual({ value });
      for (const expiresAtMs of MOMENTS) {
        const stored = sealValue(value, expiresAtMs);
        const opened = openValue(stored);
        stored.fill(9);
        expect(opened).toEqual({ value, expiresAtMs });
      }
    }
  });

  test("they open where they lie inside other bytes", () => {
    const around = new Uint8Array(40);
    const stored = sealValue(Uint8Array.of(7, 8), 1_234_567);
    around.set(stored, 3);
    const opened = openValue(around.subarray(3, 3 + stored.length));
    expect(opened).toEqual({ value: Uint8Array.of(7, 8), expiresAtMs: 1_234_567 });
  });

  test("one that was cut short is refused", () => {
    const stored = sealValue(Uint8Array.of(), 1);
    expect(openValue(stored)).toEqual({ value: Uint8Array.of(), expiresAtMs: 1 });
    expect(() => openValue(stored.subarray(0, -1))).toThrow(expect.objectContaining({ code: "unavailable" }));
  });

  test("the bounds hold exactly those that have expired", () => {
    for (const nowMs of [...MOMENTS.slice(0, -1), 1.5]) {
      const { above, below } = expiryBounds(nowMs);
      const isBetween = (stored: Uint8Array) => Buffer.compare(stored, above) > 0 && Buffer.compare(stored, below) < 0;
      for (const value of VALUES) {
        expect(isBetween(sealValue(value))).toBe(false);
        for (const expiresAtMs of MOMENTS) expect(isBetween(sealValue(value, expiresAtMs))).toBe(expiresAtMs <= nowMs);
      }
    }
  });
});

test("an entry has expired from its moment on, one without a moment never", () => {
  expect([999, 1_000, 1_001].map((nowMs) => hasExpired({ expiresAtMs: 1_000 }, nowMs))).toEqual([false, true, true]);
  expect(hasExpired({}, Number.MAX_SAFE_INTEGER)).toBe(false);
});

test("a moment is a whole number from 0", () => {
  for (const moment of [undefined, ...MOMENTS]) expect(() => checkExpiry(moment)).not.toThrow();
  for (const moment of [-1, 0.5, NaN, Infinity, Number.MAX_SAFE_INTEGER + 1]) {
    expect(() => checkExpiry(moment)).toThrow(expect.objectContaining({ code: "invalid" }));
  }
});

test("a removal with an unknown outcome leaves the caller's call undone; other faults stay what they are", async () => {
  const failed = (error: Error) => removal(Promise.reject(error));
  await expect(failed(new AppError("unknown_outcome", "lost"))).rejects.toMatchObject({ code: "unavailable" });
  await expect(failed(new AppError("too_large", "big"))).rejects.toMatchObject({ code: "too_large" });
  expect(await removal(Promise.resolve("done"))).toBe("done");
});
