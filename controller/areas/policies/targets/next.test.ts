import { expect, test } from "vitest";
import { TARGET_TAKEN_WINDOW_MS } from "../../../../common/limits.ts";
import { confirmedTargets, type EvaluatedTargets, nextTargets } from "./next.ts";

const HOSTS = Array.from({ length: 20 }, (_, at) => `h${at}`);
const targets = (hosts: readonly string[] = HOSTS): EvaluatedTargets => ({
  hosts,
  deployed: true,
  tags: [],
  entries: { list: ["tag:a"], by: "u" },
});

let ids = 0;
const after = (
  now: EvaluatedTargets,
  wanted: readonly string[],
  { nowMs = 0, gone = [], named = [] }: { nowMs?: number; gone?: readonly string[]; named?: readonly string[] } = {},
) =>
  nextTargets(
    now,
    { wanted, gone: new Set(gone), named },
    { limit: { percent: 20, hosts: 5 }, nowMs, newId: () => `id${++ids}` },
  );
const without = (count: number) => HOSTS.slice(count);

test("an evaluation that finds the same hosts changes nothing", () => {
  expect(after(targets(), HOSTS)).toBeUndefined();
});

test("hosts join at once; few hosts leave at once", () => {
  expect(after(targets(), [...HOSTS, "new"])?.hosts).toEqual([...HOSTS, "new"]);
  expect(after(targets(), without(4))?.hosts).toEqual(without(4));
  expect(after(targets(HOSTS.slice(0, 4)), [])?.hosts).toEqual([]);
});

test("a removal is held if it is over both bounds", () => {
  const held = after(targets(), [...without(5), "new"]);
  expect(held?.hosts).toEqual([...HOSTS, "new"]);
  expect(held?.entries.held).toMatchObject({ sinceMs: 0, hosts: HOSTS.slice(0, 5) });
  const many = targets(Array.from({ length: 25 }, (_, at) => `h${at}`));
  expect(after(many, many.hosts.slice(5))?.entries.held).toBeUndefined();
});

test("removals in parts are counted together, and no longer when the window is over", () => {
  const first = after(targets(), without(4))!;
  const second = after(first, without(5), { nowMs: TARGET_TAKEN_WINDOW_MS - 1 });
  expect(second?.entries.held?.hosts).toEqual(["h4"]);
  expect(after(first, without(5), { nowMs: TARGET_TAKEN_WINDOW_MS })?.hosts).toEqual(without(5));
});

test("a held removal does not end by itself, ends when the hosts match again, and gets another id when it grows", () => {
  const held = after(targets(), without(5))!;
  expect(after(held, without(5), { nowMs: 10 * TARGET_TAKEN_WINDOW_MS })).toBeUndefined();
  const grown = after(held, without(6), { nowMs: 9 })!;
  expect(grown.entries.held).toMatchObject({ sinceMs: 0, hosts: HOSTS.slice(0, 6) });
  expect(grown.entries.held?.id).not.toBe(held.entries.held?.id);
  const less = after(grown, without(1))!;
  expect(less.entries.held).toEqual({ ...grown.entries.held, hosts: ["h0"] });
  expect(less.hosts).toEqual(HOSTS);
  expect(after(less, HOSTS)?.entries).toEqual({ list: ["tag:a"], by: "u" });
});

test("hosts without a record leave and are not counted; named hosts are not part of the matched ones", () => {
  const gone = HOSTS.slice(0, 10);
  expect(after(targets(), without(10), { gone })?.hosts).toEqual(without(10));
  const named = HOSTS.slice(0, 15);
  const now = targets();
  expect(after(now, named, { named })?.entries.held?.hosts).toEqual(HOSTS.slice(15));
});

test("a confirmation takes off the held hosts, and the counting begins anew", () => {
  const held = after(targets(), [...without(5), "new"])!;
  const confirmed = confirmedTargets(held, held.entries.held!);
  expect(confirmed).toEqual({ ...targets(), hosts: [...without(5), "new"] });
});
