import { beginningOf } from "../text/cut.ts";
import type { TimeFault } from "./types.ts";

/** Characters of a name that a message shows. */
export const SHOWN_CHARACTERS = 60;

const MONTHS = "january february march april may june july august september october november december".split(" ");
const WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split(" ");

const monthOf = new Map([
  ...MONTHS.flatMap((name, at) => spelled(name, 3).map((text) => [text, at + 1] as const)),
  ["sept", 9] as const,
]);
const weekdayOf = new Map(WEEKDAYS.flatMap((name, at) => spelled(name, 3).map((text) => [text, at + 1] as const)));

/** A month from 1 to 12, by its English name or the first three letters, in any case. */
export function monthNamed(text: string): number | TimeFault {
  return monthOf.get(text) ?? monthOf.get(text.toLowerCase()) ?? { reason: notEnglish(text, "month") };
}

/** A weekday from 1 (Monday) to 7, by its English name or the first three letters, in any case. */
export function weekdayNamed(text: string): number | TimeFault {
  return weekdayOf.get(text) ?? weekdayOf.get(text.toLowerCase()) ?? { reason: notEnglish(text, "weekday") };
}

/** Spellings of a name: whole and short, capitalised and in lower case. */
function spelled(name: string, letters: number): readonly string[] {
  const short = name.slice(0, letters);
  return [name, short].flatMap((text) => [text, text.slice(0, 1).toUpperCase() + text.slice(1)]);
}

function notEnglish(text: string, what: string): string {
  return `names the ${what} ${JSON.stringify(beginningOf(text, SHOWN_CHARACTERS))}, which is none in English`;
}
