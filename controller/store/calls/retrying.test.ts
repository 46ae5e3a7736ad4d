import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { ObjectStore, RecordsInCommit, StoredRecord } from "../objects.ts";
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

function call(store: ObjectStore, name: keyof ObjectStore, given: readonly unknown[]): Promise<unknown> {
  return (store[name] as (...given: readonly unknown[]) => Promise<unknown>)(...given);
}

/** A store whose first write fails after its records were made, or before. Later writes succeed. */
function failingOnce(seen: (RecordsInCommit | undefined)[], makes: boolean): ObjectStore {
  const written = (_given: unknown, inCommit?: RecordsInCommit): Promise<void> => {
    if (seen.push(inCommit) > 1 || makes) inCommit?.records();
    return seen.length === 1 ? Promise.reject(new AppError("unknown_outcome", "away")) : Promise.resolve();
  };
  return { change: written, append: written } as unknown as ObjectStore;
}

test.each(WRITES.flatMap((name) => [true, false].map((makes) => [name, makes] as const)))(
  "%s is repeated with records that are made anew; the first attempt made some: %s",
  async (name, makes) => {
    const told: string[] = [];
    const records = (): readonly StoredRecord[] => (told.push("made"), [RECORD]);
    await retrying(failingOnce([], makes), RETRY)[name]([], { records, failed: () => told.push("failed") });
    expect(told).toEqual([...(makes ? ["made"] : []), "failed", "made"]);
  },
);

test.each(WRITES)("%s: an attempt that was given up makes no records when it is done after all", async (name) => {
  const attempts: (RecordsInCommit | undefined)[] = [];
  const inCommit = { records: () => [RECORD], failed: () => undefined };
  await retrying(failingOnce(attempts, false), RETRY)[name]([], inCommit);
  expect(attempts.map((attempt) => attempt?.records())).toEqual([[], []]);
});

test.each(METHODS.filter((name) => !WRITES.some((write) => write === name)))(
  "%s is repeated, with what it was given, while the store is away",
  async (name) => {
    for (const code of ["unavailable", "unknown_outcome"] as const) {
      const given = ["first", "second", "third"];
      const answered = await call(retrying(refusingOnce(new AppError(code, "away")), RETRY), name, given);
      expect(given.slice(0, (answered as string[]).length)).toEqual(answered);
      expect((answered as string[]).length).toBeGreaterThan(0);
    }
  },
);

test.each(METHODS)("%s is not repeated when the call is at fault", async (name) => {
  const refused = call(retrying(refusingOnce(new AppError("invalid", "too large")), RETRY), name, ["first"]);
  await expect(refused).rejects.toMatchObject({ code: "invalid" });
});
