import { expect, test } from "vitest";
import { AppError } from "../../common/errors.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import { testRuntime } from "../../test/helpers/time/runtime.ts";
import type { ObjectStore } from "./objects.ts";
import { Retry } from "./retry.ts";
import { retrying } from "./retrying.ts";

const RETRY = new Retry(testRuntime(realClock));
const METHODS = Object.keys(retrying({} as ObjectStore, RETRY)) as (keyof ObjectStore)[];

/** A store that refuses the first call with that error, and answers later calls with their arguments. */
function refusingOnce(error: AppError): ObjectStore {
  let calls = 0;
  const answer = (...given: readonly unknown[]) => (calls++ === 0 ? Promise.reject(error) : Promise.resolve(given));
  return Object.fromEntries(METHODS.map((name) => [name, answer])) as unknown as ObjectStore;
}

function call(store: ObjectStore, name: keyof ObjectStore): Promise<unknown> {
  return (store[name] as (...given: readonly unknown[]) => Promise<unknown>)("first", "second", "third");
}

test.each(METHODS)("%s is repeated, with what it was given, while the store is away", async (name) => {
  for (const code of ["unavailable", "unknown_outcome"] as const) {
    const answered = await call(retrying(refusingOnce(new AppError(code, "away")), RETRY), name);
    expect(["first", "second", "third"].slice(0, (answered as string[]).length)).toEqual(answered);
    expect((answered as string[]).length).toBeGreaterThan(0);
  }
});

test.each(METHODS)("%s is not repeated when the call is at fault", async (name) => {
  const refused = call(retrying(refusingOnce(new AppError("invalid", "too large")), RETRY), name);
  await expect(refused).rejects.toMatchObject({ code: "invalid" });
});
