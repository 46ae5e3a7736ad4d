import { test } from "vitest";
import { prove } from "../helpers/runs/evidence.ts";
import { TIMES } from "../helpers/time/times.ts";
import type { PromiseId } from "../promises.ts";

export interface Histories {
  readonly promise: PromiseId;
  /** The tested part, as named in the title of the test. */
  readonly part: string;
  /** Number of histories in every run; `npm run soak` makes more. */
  readonly count: number;
  /** Seeds that once failed, each with the fault that it showed. */
  readonly found: readonly (readonly [what: string, seed: number])[];
  readonly history: (seed: number) => Promise<void>;
}

const HISTORY_MAX_MS = 1_000;

export function histories({ promise, part, count, found, history }: Histories): void {
  const total = count * TIMES;

  test(`${part}: ${total} histories of power cuts and kills`, { timeout: total * HISTORY_MAX_MS }, async () => {
    const first = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
    console.log(`${part}: seeds from ${first}`);
    for (let seed = first; seed < first + total; seed++) await named(seed, history);
    prove(promise, { part, histories: total, "first seed": first, "seeds kept": found.length });
  });

  for (const [what, seed] of found) test(`${part}: seed ${seed}: ${what}`, () => named(seed, history));
}

async function named(seed: number, history: (seed: number) => Promise<void>): Promise<void> {
  try {
    await history(seed);
  } catch (error) {
    throw new Error(`Seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
