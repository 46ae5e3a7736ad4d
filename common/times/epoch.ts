import type { ReadTime } from "./types.ts";

/** Units of a number that counts time from 1970. */
export const EPOCH_UNITS = ["s", "ms", "us", "ns"] as const;
export type EpochUnit = (typeof EPOCH_UNITS)[number];

/** Latest time that has a calendar date. */
const TIME_MAX_MS = 8.64e15;
const NUMBER = /^([+-]?)(\d{1,20})(?:[.,](\d{1,9}))?$/;
/** Number of digits in addition to those of a count of seconds. */
const DIGITS_BELOW_SECONDS: Readonly<Record<EpochUnit, number>> = { s: 0, ms: 3, us: 6, ns: 9 };
/** Maximum digits of a number that is read in this unit. Nanoseconds have no maximum. */
const MAGNITUDES: readonly (readonly [EpochUnit, number])[] = [
  ["s", 11],
  ["ms", 14],
  ["us", 17],
  ["ns", Infinity],
];

export function unitNamed(text: string): EpochUnit | undefined {
  const name = text.toLowerCase().replace(/^[µμ]s$/, "us");
  return EPOCH_UNITS.find((unit) => unit === name);
}

/**
 * Converts a count from 1970 to milliseconds, rounded down. Without `unit`, the number of digits decides the unit.
 * `undefined` for a text that is no number.
 */
export function epochTime(value: string | number, unit?: EpochUnit): ReadTime | undefined {
  const [, sign, digits, fraction = ""] = NUMBER.exec(typeof value === "number" ? plain(value) : value) ?? [];
  if (digits === undefined) return typeof value === "number" ? OUT_OF_RANGE : undefined;
  const whole = digits.replace(/^0+(?=\d)/, "");
  const of = unit ?? MAGNITUDES.find(([, most]) => whole.length <= most)?.[0] ?? "ns";
  // Works on the digits, because doubles cannot hold nanoseconds.
  const below = DIGITS_BELOW_SECONDS[of] - 3;
  const scaled = below > 0 ? whole.slice(0, -below) : whole + fraction.padEnd(-below, "0").slice(0, -below);
  const cut = below > 0 ? whole.slice(-below) + fraction : fraction.slice(-below);
  const ms = Number(scaled === "" ? "0" : scaled);
  const signed = sign === "-" ? -ms - (/[1-9]/.test(cut) ? 1 : 0) : ms;
  return Math.abs(signed) <= TIME_MAX_MS ? signed + 0 : OUT_OF_RANGE;
}

const OUT_OF_RANGE = { reason: "is beyond all times" };

function plain(value: number): string {
  return Number.isSafeInteger(value)
    ? String(value)
    : Number.isInteger(value)
      ? BigInt(value).toString()
      : String(value);
}
