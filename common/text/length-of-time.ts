const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a length such as `90`, `90s`, `5m`, `2h` or `1d`; `undefined` for another text. */
export function lengthMs(text: string): number | undefined {
  const [, digits, unit = "s"] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits) * (UNITS_MS[unit] ?? 0);
}
