import { describe, expect, it } from "vitest";
import { dueAfter, dueBetween } from "./due.ts";

const at = (text: string) => Date.parse(text);

describe("due times", () => {
  it("are multiples of the interval from the epoch of time", () => {
    expect(dueAfter({ interval: 5, unit: "second" }, 12_345)).toBe(15_000);
    expect(dueAfter({ interval: 5, unit: "second" }, 15_000)).toBe(20_000);
    expect(dueAfter({ interval: 15, unit: "minute" }, at("2026-03-01T10:07:00Z"))).toBe(at("2026-03-01T10:15:00Z"));
    expect(dueAfter({ interval: 1, unit: "day" }, at("2026-03-01T10:07:00Z"))).toBe(at("2026-03-02T00:00:00Z"));
  });

  it("follow the calendar for months and years", () => {
    expect(dueAfter({ interval: 1, unit: "month" }, at("2026-01-31T10:00:00Z"))).toBe(at("2026-02-01T00:00:00Z"));
    expect(dueAfter({ interval: 3, unit: "month" }, at("2026-02-01T00:00:00Z"))).toBe(at("2026-04-01T00:00:00Z"));
    expect(dueAfter({ interval: 2, unit: "year" }, at("2026-01-01T00:00:00Z"))).toBe(at("2028-01-01T00:00:00Z"));
    expect(dueAfter({ interval: 1_000_000, unit: "year" }, at("2026-01-01T00:00:00Z"))).toBe(Infinity);
  });

  it("are counted between two times: after the first, up to and with the second", () => {
    expect(dueBetween({ interval: 1, unit: "second" }, 1_000, 4_000)).toEqual({
      count: 3,
      firstMs: 2_000,
      lastMs: 4_000,
    });
    expect(dueBetween({ interval: 1, unit: "second" }, 1_000, 1_999)).toBeUndefined();
    const months = dueBetween({ interval: 1, unit: "month" }, at("2026-01-15T00:00:00Z"), at("2026-04-01T00:00:00Z"));
    expect(months).toEqual({ count: 3, firstMs: at("2026-02-01T00:00:00Z"), lastMs: at("2026-04-01T00:00:00Z") });
  });
});
