import { expect, test } from "vitest";
import { REPAIRED_RANGES_MAX } from "../../../../common/limits.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { seedOfRun } from "../../contract/harness.ts";
import { Repaired, type Repair } from "./repaired.ts";

type Ends = readonly [after: bigint, to: bigint];

const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;
const THIRD = -3074457345618258603n;
const SECOND_THIRD = 3074457345618258602n;

function repair(startedMs: number, ...ranges: readonly Ends[]): Repair {
  return { tables: ["present"], startedMs, ranges: ranges.map(([after, to]) => `(${after},${to}]`) };
}

function wholeSince(repairs: readonly Repair[]): number | undefined {
  const repaired = new Repaired();
  for (const one of repairs) repaired.add(one);
  return repaired.wholeSince(["present"]).get("present");
}

test("a ring is repaired since the oldest of the newest repairs that cover it together", () => {
  const parts = [
    repair(10, [LEAST, THIRD]),
    repair(30, [THIRD, SECOND_THIRD]),
    repair(20, [SECOND_THIRD, LEAST]),
    repair(5, [LEAST, THIRD], [SECOND_THIRD, LEAST]),
  ];
  expect(wholeSince(parts)).toBe(10);
  expect(wholeSince([...parts, repair(40, [LEAST, THIRD])])).toBe(20);
});

test("what no repair covered leaves the ring unrepaired", () => {
  expect(wholeSince([])).toBeUndefined();
  expect(wholeSince([repair(10, [LEAST, THIRD]), repair(20, [SECOND_THIRD, LEAST])])).toBeUndefined();
  expect(wholeSince([repair(10, [LEAST, THIRD]), repair(20, [THIRD + 1n, LEAST])])).toBeUndefined();
  expect(wholeSince([{ ...repair(10), ranges: ["everything"] }])).toBeUndefined();
});

test("ranges may go over the end of the ring, cover it whole, overlap and be in pieces", () => {
  expect(wholeSince([repair(1, [SECOND_THIRD, THIRD]), repair(2, [THIRD, SECOND_THIRD])])).toBe(1);
  expect(wholeSince([repair(7, [0n, 0n])])).toBe(7);
  expect(wholeSince([repair(7, [LEAST, LEAST])])).toBe(7);
  expect(wholeSince([repair(1, [LEAST, 5n]), repair(2, [0n, 100n]), repair(3, [99n, LEAST])])).toBe(1);
});

test("tables count by themselves, whether they were repaired alone or with others", () => {
  const repaired = new Repaired();
  repaired.add({ ...repair(5, [0n, 0n]), tables: ["words", "present"] });
  repaired.add({ ...repair(9, [LEAST, 0n]), tables: ["present"] });
  expect([...repaired.wholeSince(["present", "words", "edges_in"])]).toEqual([
    ["present", 5],
    ["words", 5],
    ["edges_in", undefined],
  ]);
  repaired.add({ ...repair(7, [0n, LEAST]), tables: ["present"] });
  expect(repaired.wholeSince(["present"]).get("present")).toBe(7);
});

test("the time is that of the token that waits longest, however ranges lie", () => {
  const random = seededRandom(seedOfRun("repairs"));
  const tokens: readonly bigint[] = [LEAST, -70n, -1n, 0n, 1n, 70n, MOST];
  const any = (): bigint => tokens[Math.floor(random.next() * tokens.length)] ?? 0n;
  /** Tokens between which no range begins or ends; no data has the least token. */
  const probes = tokens.slice(1);
  const covers = ([after, to]: Ends, token: bigint): boolean =>
    after < to ? after < token && token <= to : after < token || token <= to;
  let wholes = 0;
  for (let round = 0; round < 2_000; round += 1) {
    const given = Array.from({ length: Math.floor(random.next() * 12) }, () => {
      const ranges = Array.from({ length: 1 + Math.floor(random.next() * 3) }, (): Ends => [any(), any()]);
      return { startedMs: Math.floor(random.next() * 20), ranges };
    });
    const newest = probes.map((token) =>
      Math.max(
        -1,
        ...given.filter(({ ranges }) => ranges.some((one) => covers(one, token))).map((one) => one.startedMs),
      ),
    );
    const since = Math.min(...newest);
    wholes += since < 0 ? 0 : 1;
    expect(wholeSince(given.map(({ startedMs, ranges }) => repair(startedMs, ...ranges))), `round ${round}`).toBe(
      since < 0 ? undefined : since,
    );
  }
  expect(wholes).toBeGreaterThan(100);
});

test("a month of repairs in pieces is told as one of a few, and a ring in ever new pieces as too large", () => {
  const width = 2n ** 64n / BigInt(REPAIRED_RANGES_MAX);
  const piece = (at: number): Ends => {
    const after = LEAST + BigInt(at) * width;
    return [after, at === REPAIRED_RANGES_MAX - 1 ? LEAST : after + width];
  };
  const repaired = new Repaired();
  for (const day of [1, 2, 3])
    for (let at = 0; at < REPAIRED_RANGES_MAX; at += 1) repaired.add(repair(day * 1_000_000 + at, piece(at)));
  expect(repaired.wholeSince(["present"]).get("present")).toBe(3_000_000);
  expect(() => repaired.add(repair(1, [3n, 4n]))).toThrow(expect.objectContaining({ code: "too_large" }));
});
