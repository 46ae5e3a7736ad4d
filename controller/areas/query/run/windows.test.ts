import { expect, test } from "vitest";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import { isAppError } from "../../../../common/errors.ts";
import { QUERY_WINDOW_ROWS_MAX } from "../../../../common/limits.ts";
import type { Fields } from "../expressions/fields.ts";
import { PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { Slices } from "./slice.ts";
import { WindowValues } from "./windows.ts";

type Held = Readonly<Record<string, never>>;

async function* pagesOf(rows: number): AsyncIterable<readonly Held[]> {
  for (let left = rows; left > 0; left -= 1_000)
    yield await Promise.resolve(Array.from({ length: Math.min(left, 1_000) }, () => ({})));
}

async function takenBy(rows: number, bytes: number): Promise<number> {
  const memory = PROCESS_MEMORY.share("crowd");
  const slices = new Slices({ tenant: "crowd", clock: new TestClock(), signal: undefined });
  const values = new WindowValues<Held>({ fields: {} as Fields<Held>, windows: [] }, memory);
  let answered = 0;
  try {
    for await (const page of values.held(pagesOf(rows), slices, () => bytes)) answered += page.length;
    return answered;
  } finally {
    memory.close();
  }
}

test("rows that OVER (…) holds are bounded by their number and count against the memory of their tenant", async () => {
  expect(await takenBy(2_500, 100)).toBe(2_500);
  await expect(takenBy(QUERY_WINDOW_ROWS_MAX + 1, 1)).rejects.toSatisfy((error) => isAppError(error, "too_large"));
  await expect(takenBy(2_500, 1_000_000)).rejects.toSatisfy((error) => isAppError(error, "too_large"));
});
