import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { SCRIPT_CALLS_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import { type EngineSubject, HOST } from "./subject.ts";

/** More steps than a script that ends needs, and few enough for one that never ends. */
const SERIES_STEPS_MAX = 400;

/** Runs of one script, one after the other, each with a global of its own. */
export function seriesContract({ texts, engine, callOf }: EngineSubject): void {
  const runEach = async (source: string, inputs: readonly Value[]): Promise<readonly unknown[]> => {
    const each = inputs.map((input) => ({ IN: input }));
    const series = { ...callOf(source), each, stepsMax: SERIES_STEPS_MAX, outputMaxCharacters: 1_000 };
    const made = await engine().runEach(series, HOST);
    return made.map((one) => (one instanceof AppError ? one.code : one.results["OUT"]));
  };

  test("a run of a series finds nothing that another left", async () => {
    expect(await runEach(texts.leak, [0, 1, 2, 3])).toEqual([false, false, false, false]);
  });

  test("a run of a series that fails takes no other along", async () => {
    const long = "x".repeat(2_000);
    const told = [1, "throw", 2, "endless", 3, "refused", "greedy", 4, long, { a: [5] }];
    const outcomes = [1, "invalid", 2, "too_large", 3, "denied", "too_large", 4, "too_large", { a: [5] }];
    expect(await runEach(texts.asTold, told)).toEqual(outcomes);
  });

  test("host calls are bounded for each run of a series", async () => {
    const outcomes = await runEach(texts.calls, [1, SCRIPT_CALLS_MAX + 1, 1]);
    expect(outcomes).toEqual([undefined, "too_large", undefined]);
  });

  test("a series that does not parse fails as a whole", async () => {
    await expect(runEach(texts.unparsable, [1, 2])).rejects.toMatchObject({ code: "syntax" });
  });
}
