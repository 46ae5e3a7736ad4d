import type { EntityChange } from "../../../controller/store/objects.ts";

/** Rows as the area `objects` makes them: 15 attributes, 13 terms, one number; about 250 bytes of values. */
export const BENCH_CID = 4_242;
const ATTRIBUTES = 15;
const WORDS = 8;

export function benchTerms(n: number): readonly string[] {
  const words = Array.from({ length: WORDS }, (_, index) => `w:word${(n * 31 + index * 977) % 5_000}`);
  return [`c${BENCH_CID}`, "c1", `a1=host-${n % 1_000}`, `a2=state-${n % 5}`, `t:tag${n % 20}`, ...words];
}

export function benchCells(n: number): ReadonlyMap<string, Uint8Array> {
  const cells = new Map<string, Uint8Array>();
  for (let attribute = 1; attribute <= ATTRIBUTES; attribute += 1)
    cells.set(String(attribute), Buffer.from(`\u0001value ${attribute} ${n}`));
  return cells;
}

export function benchChange(n: number, timeUs: number): EntityChange {
  return {
    key: { cid: BENCH_CID, id: `row-${n}` },
    timeUs,
    birth: true,
    cells: benchCells(n),
    addTerms: [...new Set(benchTerms(n))],
    numbers: new Map([[0, timeUs / 1_000]]),
  };
}
