import { expect, test } from "vitest";
import { CALLS_BEGUN_PER_TURN } from "../../../common/limits.ts";
import { testRuntime } from "../../../test/helpers/runtime.ts";
import { Slices } from "./slice.ts";

const { clock } = testRuntime();

test("a tenant with one query is not held up by all the queries of another", async () => {
  const order: string[] = [];
  const query = async (tenant: string, name: string) => {
    await new Slices({ tenant, clock, signal: undefined }).pause();
    order.push(name);
  };
  const queries = Array.from({ length: 50 }, (_, at) => query("crowd", `crowd ${at}`));
  queries.push(query("single", "single"));
  await Promise.all(queries);
  expect(order).toHaveLength(51);
  expect(order.indexOf("single")).toBeLessThan(2 * CALLS_BEGUN_PER_TURN);
});

test("between two slices the event loop turns", async () => {
  let turns = 0;
  let over = false;
  const count = (): void => {
    turns += 1;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const heard = await Promise.all(Array.from({ length: 10 }, async () => {
    await new Slices({ tenant: "crowd", clock, signal: undefined }).pause();
    return turns;
  }));
  over = true;
  expect(new Set(heard).size).toBeGreaterThanOrEqual(10 / CALLS_BEGUN_PER_TURN);
});

test("a query that nobody waits for any more ends at its next pause", async () => {
  const slices = new Slices({ tenant: "crowd", clock, signal: AbortSignal.abort() });
  await expect(slices.pause()).rejects.toMatchObject({ code: "cancelled" });
});
