import { expect, test } from "vitest";
import { expiringRegister, isLinearizable, type Operation, type RegisterCall } from "./linearizable.ts";

type Line = readonly [what: RegisterCall, invokedMs: number, returnedMs?: number];

const set = (value: string, ttlMs?: number): RegisterCall => ({
  kind: "set",
  value,
  ...(ttlMs !== undefined && { ttlMs }),
});
const get = (value?: string): RegisterCall => ({ kind: "get", value });
const gone: RegisterCall = { kind: "delete", found: true };
const none: RegisterCall = { kind: "delete", found: false };

function holds(lines: readonly Line[], skewMs = 0): boolean {
  const history = lines.map(
    ([what, invokedMs, returnedMs]): Operation<RegisterCall> => ({
      what,
      invokedMs,
      ...(returnedMs !== undefined && { returnedMs }),
    }),
  );
  return isLinearizable(history, expiringRegister(skewMs));
}

test.each<[string, readonly Line[]]>([
  [
    "one after the other",
    [
      [set("a"), 0, 1],
      [get("a"), 2, 3],
      [gone, 4, 5],
      [get(), 6, 7],
      [none, 8, 9],
    ],
  ],
  [
    "a read beside a write may be before or behind it",
    [
      [set("a"), 0, 9],
      [get(), 1, 2],
      [get("a"), 3, 4],
    ],
  ],
  [
    "a write without an answer may come late",
    [
      [set("a"), 0],
      [get(), 1, 2],
      [get("a"), 8, 9],
    ],
  ],
  [
    "or never",
    [
      [set("a"), 0],
      [get(), 1, 2],
      [get(), 8, 9],
    ],
  ],
  [
    "two writes at once in either order",
    [
      [set("a"), 0, 5],
      [set("b"), 0, 5],
      [get("a"), 6, 7],
    ],
  ],
  [
    "what expires is there until then, and gone from then on",
    [
      [set("a", 10), 0, 1],
      [get("a"), 2, 9],
      [get(), 10, 12],
    ],
  ],
])("%s: can have been", (_name, lines) => {
  expect(holds(lines)).toBe(true);
});

test.each<[string, readonly Line[]]>([
  [
    "a stale read",
    [
      [set("a"), 0, 1],
      [set("b"), 2, 3],
      [get("a"), 4, 5],
    ],
  ],
  [
    "a lost write",
    [
      [set("a"), 0, 1],
      [get(), 2, 3],
    ],
  ],
  [
    "two readers who saw two orders",
    [
      [set("a"), 0, 9],
      [set("b"), 0, 9],
      [get("a"), 10, 11],
      [get("b"), 12, 13],
    ],
  ],
  [
    "a write that came back",
    [
      [set("a"), 0],
      [get("a"), 1, 2],
      [set("b"), 3, 4],
      [get("b"), 5, 6],
      [get("a"), 7, 8],
    ],
  ],
  [
    "a delete that left it there",
    [
      [set("a"), 0, 1],
      [gone, 2, 3],
      [get("a"), 4, 5],
    ],
  ],
  [
    "nothing to delete where something was",
    [
      [set("a"), 0, 1],
      [none, 2, 3],
    ],
  ],
  [
    "gone before its time",
    [
      [set("a", 10), 0, 1],
      [get(), 2, 3],
    ],
  ],
  [
    "there after its time",
    [
      [set("a", 10), 0, 1],
      [get("a"), 12, 13],
    ],
  ],
  [
    "back after it was seen expired",
    [
      [set("a", 10), 0, 5],
      [get(), 11, 12],
      [get("a"), 13, 14],
    ],
  ],
])("%s: cannot have been", (_name, lines) => {
  expect(holds(lines)).toBe(false);
});

test("clocks that differ by so much explain so much", () => {
  const lines: readonly Line[] = [
    [set("a", 10), 0, 1],
    [get("a"), 12, 13],
  ];
  expect([holds(lines, 1), holds(lines, 0)]).toEqual([true, false]);
});
