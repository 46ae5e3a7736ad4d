const SECONDS: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

export const DURATION_UNITS: readonly string[] = Object.keys(SECONDS);

/** A whole number of units, without a unit of seconds; absent for anything else. A unit may have an s at its end. */
export function durationSeconds(amount: unknown, unit: string | undefined): number | undefined {
  const factor = unit === undefined ? 1 : SECONDS[unit.toLowerCase().replace(/s$/, "")];
  const whole = amount === "" ? NaN : Number(amount);
  return factor !== undefined && Number.isSafeInteger(whole) ? whole * factor : undefined;
}
