import { expect, test } from "vitest";
import { bytes, uniqueName } from "../harness.ts";
import { AGE, type AgeSubject, TIMEOUT_MS } from "./subject.ts";

const REWRITES = 12 * AGE;
const WORDS_PER_REWRITE = 900;

/** Words that are new with every change. */
export function agedWordsContract({ baseUs, write, find, fresh, holds }: AgeSubject): void {
  test(
    "an object whose words are new with every change is read, found by its words and its value, and not by former ones",
    async () => {
      const aged = await fresh();
      const mark = uniqueName("w");
      const words = (n: number): string[] => Array.from({ length: WORDS_PER_REWRITE }, (_, at) => `${mark}-${n}-${at}`);
      for (let n = 0; n < REWRITES; n += 1)
        await write({
          key: aged.key,
          timeUs: baseUs() + 10 + n,
          cells: new Map([["1", bytes(`text ${n}`)]]),
          addTerms: words(n),
          ...(n === 0 ? {} : { dropTerms: words(n - 1) }),
        });
      await holds(aged);
      const last = words(REWRITES - 1);
      expect(await find(last.slice(0, 3))).toEqual([aged.key.id]);
      expect(await find([...last.slice(-2), aged.kind])).toEqual([aged.key.id]);
      expect(await find([words(REWRITES - 2)[0]!])).toEqual([]);
    },
    TIMEOUT_MS,
  );
}
