import type { TimeZone } from "../../../common/times/index.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Times without a date of the calendar of four digits are shown as numbers. */
const FIRST_MS = -62_135_596_800_000;
const LAST_MS = 253_402_300_799_999;
const UNITS = [
  [DAY_MS, "d"],
  [60 * MINUTE_MS, "h"],
  [MINUTE_MS, "min"],
  [1_000, "s"],
] as const;
/** A date says more than a longer time. */
const NEAR_MS = 100 * DAY_MS;

/** The offsets of a time zone. */
export type Offsets = Pick<TimeZone, "offsetMs">;

/** Date and time of a zone with its offset, as RFC 3339 writes them, without milliseconds that are 0. */
export function timeText(timeMs: number, zone: Offsets): string {
  if (!(timeMs >= FIRST_MS + DAY_MS && timeMs <= LAST_MS - DAY_MS)) return String(timeMs);
  const offsetMs = zone.offsetMs(timeMs);
  // Offsets of the 19th century have seconds, which RFC 3339 cannot write.
  if (offsetMs === 0 || offsetMs % MINUTE_MS !== 0) return isoText(timeMs, "Z");
  const minutes = Math.abs(offsetMs) / MINUTE_MS;
  const offset = `${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
  return isoText(timeMs + offsetMs, `${offsetMs < 0 ? "-" : "+"}${offset}`);
}

/** `3 min ago`, `in 2 h`; the date and time if it is further away than `NEAR_MS`. */
export function distanceText(timeMs: number, zone: Offsets, nowMs: number): string {
  const distanceMs = Math.abs(nowMs - timeMs);
  if (!(distanceMs < NEAR_MS)) return timeText(timeMs, zone);
  const unit = UNITS.find(([lengthMs]) => distanceMs >= lengthMs);
  if (unit === undefined) return "now";
  const text = `${Math.floor(distanceMs / unit[0])} ${unit[1]}`;
  return timeMs <= nowMs ? `${text} ago` : `in ${text}`;
}

function isoText(localMs: number, offset: string): string {
  return new Date(localMs).toISOString().replace(/(?:\.000)?Z$/, offset);
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
