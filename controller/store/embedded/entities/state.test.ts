import { expect, test } from "vitest";
import { REMOVED_TERMS_KEPT_MAX } from "../../../../common/limits.ts";
import { encodeEntity } from "./form.ts";
import type { EntityChange } from "../../objects.ts";
import { EntityState } from "./state.ts";

const KEY = { cid: 1, id: "aged" };
const WORDS = 900;
const REWRITES = 200;
const NOW_MS = 1_000;

const words = (n: number): string[] => Array.from({ length: WORDS }, (_, at) => `w-${n}-${at}`);

function aged(): EntityState {
  const state = new EntityState();
  state.apply({ key: KEY, timeUs: 1, birth: true, addTerms: words(0) }, NOW_MS);
  for (let n = 1; n < REWRITES; n += 1)
    state.apply({ key: KEY, timeUs: n + 1, addTerms: words(n), dropTerms: words(n - 1) }, NOW_MS);
  return state;
}

test("an object whose words are new with every change takes no more room with each", () => {
  const state = aged();
  expect(state.terms.size).toBeLessThanOrEqual(REMOVED_TERMS_KEPT_MAX + WORDS);
  expect(encodeEntity(state).length).toBeLessThan(20 * REMOVED_TERMS_KEPT_MAX);
  expect([...state.indexed().terms].sort()).toEqual(words(REWRITES - 1).sort());
});

test("of the terms that were taken away the latest are remembered, so that a write that is repeated brings none back", () => {
  const state = aged();
  for (const n of [REWRITES - 3, REWRITES - 2])
    state.apply({ key: KEY, timeUs: n + 1, addTerms: words(n), dropTerms: words(n - 1) }, NOW_MS);
  expect([...state.indexed().terms].sort()).toEqual(words(REWRITES - 1).sort());
});

test("of parts that end by themselves the last write's own counts, and none where the whole has an end", () => {
  const state = new EntityState();
  const write = (timeUs: number, more: Partial<EntityChange>): number | undefined => {
    state.apply({ key: { cid: 1, id: "a" }, timeUs, ...more }, 0);
    return state.lastPartEndsAtMs();
  };
  const cell = (name: string): Pick<EntityChange, "cells"> => ({ cells: new Map([[name, new Uint8Array(1)]]) });
  expect(write(1, { birth: true })).toBeUndefined();
  expect(write(2, { ...cell("1"), expiresAtMs: 9_000 })).toBe(9_000);
  expect(write(3, { ...cell("2"), expiresAtMs: 5_000 })).toBe(5_000);
  expect(write(4, cell("3"))).toBe(Infinity);
  expect(write(5, { endsAtMs: 7_000 })).toBeUndefined();
});
