import { expect, test } from "vitest";
import { AppError } from "../../common/errors.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import { testRuntime } from "../../test/helpers/time/runtime.ts";
import type { ObjectStore, RecordsInCommit, StoredRecord } from "./objects.ts";
import { Retry } from "./retry.ts";
import { retrying } from "./retrying.ts";

const RETRY = new Retry(testRuntime(realClock));
const WRITES = ["change", "append"] as const satisfies readonly (keyof ObjectStore)[];
const RECORD: StoredRecord = { cid: 1, id: "r", value: new Uint8Array(), terms: [] };
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

test.each(WRITES)("%s is repeated without the records that a failed commit made", async (name) => {
  const seen: string[] = [];
  const written = (given: unknown, inCommit?: RecordsInCommit): Promise<void> => {
    seen.push(`${String(given)} ${inCommit === undefined ? "alone" : `with ${inCommit.records().length}`}`);
    return seen.length === 1 ? Promise.reject(new AppError("unknown_outcome", "away")) : Promise.resolve();
  };
  const store = { change: written, append: written } as unknown as ObjectStore;
  const inCommit = { records: () => [], ended: (error: unknown) => seen.push(String(error)) };
  await retrying(store, RETRY)[name](["given" as never], inCommit);
  expect(seen).toEqual(["given with 0", "AppError: away", "given alone"]);
});

test.each(WRITES)("%s is repeated with the records that no commit made", async (name) => {
  const seen: number[] = [];
  const written = (_given: unknown, inCommit?: RecordsInCommit): Promise<void> =>
    seen.push(inCommit === undefined ? 0 : 1) === 1
      ? Promise.reject(new AppError("unavailable", "away"))
      : Promise.resolve();
  const store = { change: written, append: written } as unknown as ObjectStore;
  await retrying(store, RETRY)[name]([], { records: () => [], ended: () => expect.unreachable() });
  expect(seen).toEqual([1, 1]);
});

test.each(WRITES)("%s: an attempt that was given up makes no records when it is done after all", async (name) => {
  const attempts: (RecordsInCommit | undefined)[] = [];
  const written = (_given: unknown, inCommit?: RecordsInCommit): Promise<void> => {
    if (attempts.push(inCommit) === 1) return Promise.reject(new AppError("unknown_outcome", "late"));
    // The commit of the first attempt runs now, before that of the second one.
    expect(attempts[0]?.records()).toEqual([]);
    expect(inCommit?.records()).toEqual([RECORD]);
    return Promise.resolve();
  };
  const store = { change: written, append: written } as unknown as ObjectStore;
  await retrying(store, RETRY)[name]([], { records: () => [RECORD], ended: () => expect.unreachable() });
  expect(attempts).toHaveLength(2);
  expect(attempts[1]?.records()).toEqual([]);
});

test.each(METHODS.filter((name) => !WRITES.some((write) => write === name)))(
  "%s is repeated, with what it was given, while the store is away",
  async (name) => {
    for (const code of ["unavailable", "unknown_outcome"] as const) {
      const answered = await call(retrying(refusingOnce(new AppError(code, "away")), RETRY), name);
      expect(["first", "second", "third"].slice(0, (answered as string[]).length)).toEqual(answered);
      expect((answered as string[]).length).toBeGreaterThan(0);
    }
  },
);

test.each(METHODS)("%s is not repeated when the call is at fault", async (name) => {
  const refused = call(retrying(refusingOnce(new AppError("invalid", "too large")), RETRY), name);
  await expect(refused).rejects.toMatchObject({ code: "invalid" });
});
