/** Zones with whole, half, quarter and odd offsets, and with days that were skipped or repeated. */
export const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/Sao_Paulo",
  "America/St_Johns",
  "America/Juneau",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Africa/Monrovia",
  "Africa/Casablanca",
  "Pacific/Apia",
] as const;

/** The local time of a zone according to ICU, as if it were UTC, in milliseconds; also for years before 1. */
export function clockOf(timeZone: string): (utcMs: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    era: "short",
    ...({ year: "numeric", month: "numeric", day: "numeric" } as const),
    ...({ hour: "numeric", minute: "numeric", second: "numeric" } as const),
  });
  return (utcMs) => {
    const text = format.format(utcMs);
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = (text.match(/\d+/g) ?? []).map(Number);
    const date = new Date(0);
    date.setUTCFullYear(/B/.test(text) ? 1 - year : year, month - 1, day);
    date.setUTCHours(hour, minute, second, utcMs - Math.floor(utcMs / 1_000) * 1_000);
    return date.getTime();
  };
}
