import { describe } from "vitest";
import { agedContentContract } from "./age/content.ts";
import { agedHistoryContract } from "./age/history.ts";
import { agedLivesContract } from "./age/lives.ts";
import { passersByContract } from "./age/passers-by.ts";
import { type AgeOptions, ageSubject } from "./age/subject.ts";
import { severalTermsContract } from "./age/terms.ts";
import { agedNumbersContract, flippedValuesContract } from "./age/values.ts";
import { agedWordsContract } from "./age/words.ts";
import type { OpenSubject } from "./harness.ts";
import { opened } from "./opened.ts";

/** The promises for a fresh object also hold for an object that was changed for years. */
export function ageContract(name: string, open: OpenSubject, options: AgeOptions = {}): void {
  describe(`age: ${name}`, () => {
    const subject = opened(open);
    const store = ageSubject(subject, options);
    severalTermsContract(subject, options);
    agedContentContract(store);
    agedWordsContract(store);
    agedHistoryContract(store);
    agedNumbersContract(store);
    flippedValuesContract(store);
    agedLivesContract(store);
    passersByContract(store);
  });
}
