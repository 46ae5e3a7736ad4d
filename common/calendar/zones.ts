import { ZONE_NAME_MAX_CHARACTERS, ZONES_KEPT } from "../limits.ts";
import { Kept } from "../kept.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A mean Gregorian year: 400 of them are whole days, after which the calendar repeats. */
const YEAR_MS = 31_556_952_000;
const CYCLE_YEARS = 400;
/** 1800: no zone of the database changed its clocks before. */
const FIRST_YEAR = -170;
/** 2100: from then on only rules are left that repeat with the calendar. */
const REPEATING_YEAR = 130;
/** Two changes of a zone are further apart: the closest are those of Africa/Freetown in 1939, 3.99 days. */
const PROBE_MS = 2 * DAY_MS;
/** The table of a year begins so long before it. */
const LEAD_MS = 4 * DAY_MS;
/** Greatest time that has a calendar date. */
const TIME_MAX_MS = 8.64e15;
const OFFSET = /^([+-])(\d\d)(?::?([0-5]\d))?$/;
const UTC = /^(?:utc|z)$/i;

/** A span of time in which the clocks of a zone stay at the same offset, the end excluded. */
export interface ZoneSpan {
  /** The last change, if it was less than four days before the time that was asked for. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly offsetMs: number;
}

/**
 * The clocks of a time zone. A local time is a number of milliseconds as well: the one at which UTC shows it. Offsets
 * come from a table that is filled from `Intl` by years, when a time of that year is asked for first.
 */
export class Zone {
  readonly #source: (utcMs: number) => number;
  /** At most one entry for each year from `FIRST_YEAR` to the last of the cycle that repeats. */
  readonly #years = new Map<number, readonly ZoneSpan[]>();
  #latest: ZoneSpan;
  /** From here on `#latest` is the span that its year has; before, it lacks a change that is too long ago for it. */
  #latestFromMs: number;

  /** `source` answers the offset at a time; without one the offset is always `offsetMs`. */
  constructor(offsetMs: number, source?: (utcMs: number) => number) {
    this.#source = source ?? (() => offsetMs);
    this.#latest = source
      ? { fromMs: Infinity, untilMs: -Infinity, offsetMs }
      : { fromMs: -Infinity, untilMs: TIME_MAX_MS + 1, offsetMs };
    this.#latestFromMs = source ? Infinity : -TIME_MAX_MS;
  }

  /** Milliseconds by which the local clocks are ahead of UTC; 0 for a time that has no calendar date. */
  offsetMs(utcMs: number): number {
    return this.spanAt(utcMs).offsetMs;
  }

  /** The span that the time is in. Times beyond the calendar are in one at offset 0. */
  spanAt(utcMs: number): ZoneSpan {
    const latest = this.#latest;
    if (utcMs >= this.#latestFromMs && utcMs < latest.untilMs) return latest;
    if (!(Math.abs(utcMs) <= TIME_MAX_MS)) return { fromMs: utcMs, untilMs: utcMs, offsetMs: 0 };
    const found = this.#found(utcMs);
    this.#latest = found;
    this.#latestFromMs = Math.max(found.fromMs, Math.floor(utcMs / YEAR_MS) * YEAR_MS, -TIME_MAX_MS);
    return found;
  }

  /**
   * The moment at which the clocks show this local time. If they show it twice, because they are set back over it, the
   * first of both. If they never show it, because they are set forward over it, the moment that it would be without the
   * change: the clocks then show a time that is later by as much as they were set forward.
   */
  utcOf(localMs: number): number {
    const offset = this.offsetMs(localMs - DAY_MS);
    const later = this.offsetMs(localMs + DAY_MS);
    const moment = localMs - offset;
    if (later === offset || this.offsetMs(moment) === offset) return moment;
    return this.offsetMs(localMs - later) === later ? localMs - later : moment;
  }

  /** The first moment at which the clocks show this local time or a later one: of a time they skip, that of the change. */
  reachedMs(localMs: number): number {
    const moment = this.utcOf(localMs);
    const { fromMs, offsetMs } = this.spanAt(moment);
    return moment + offsetMs === localMs ? moment : fromMs;
  }

  /** The first moment after `afterMs`, `untilMs` included, at which the offset is another one than just before. */
  changeMs(afterMs: number, untilMs: number): number | undefined {
    for (let span = this.spanAt(afterMs); span.untilMs <= untilMs; ) {
      const next = this.spanAt(span.untilMs);
      if (next.offsetMs !== span.offsetMs) return span.untilMs;
      if (next.untilMs <= span.untilMs) return undefined;
      span = next;
    }
    return undefined;
  }

  #found(utcMs: number): ZoneSpan {
    const year = Math.floor(utcMs / YEAR_MS);
    if (year < FIRST_YEAR) {
      const untilMs = FIRST_YEAR * YEAR_MS;
      return { fromMs: -Infinity, untilMs, offsetMs: this.#source(untilMs - 1) };
    }
    const cycles = Math.max(0, Math.floor((year - REPEATING_YEAR) / CYCLE_YEARS));
    const shiftMs = cycles * CYCLE_YEARS * YEAR_MS;
    const spans = this.#spansOf(year - cycles * CYCLE_YEARS);
    const span = spans.find(({ untilMs }) => utcMs - shiftMs < untilMs) ?? {
      fromMs: utcMs,
      untilMs: utcMs,
      offsetMs: 0,
    };
    return {
      fromMs: span.fromMs + shiftMs,
      untilMs: Math.min(span.untilMs + shiftMs, TIME_MAX_MS + 1),
      offsetMs: span.offsetMs,
    };
  }

  /** The spans of a year and of the days before it. */
  #spansOf(year: number): readonly ZoneSpan[] {
    const known = this.#years.get(year);
    if (known) return known;
    const spans: ZoneSpan[] = [];
    const endMs = (year + 1) * YEAR_MS;
    let fromMs = year * YEAR_MS - LEAD_MS;
    let offsetMs = this.#source(fromMs);
    for (let atMs = fromMs; atMs < endMs; atMs += PROBE_MS) {
      const nextMs = Math.min(atMs + PROBE_MS, endMs);
      const next = this.#source(nextMs);
      if (next === offsetMs) continue;
      const untilMs = this.#changeBetween(atMs, nextMs);
      spans.push({ fromMs, untilMs, offsetMs });
      [fromMs, offsetMs] = [untilMs, next];
    }
    if (fromMs < endMs) spans.push({ fromMs, untilMs: endMs, offsetMs });
    this.#years.set(year, spans);
    return spans;
  }

  /** The first second of the new offset: clocks change at whole seconds. */
  #changeBetween(fromMs: number, toMs: number): number {
    const before = this.#source(fromMs);
    let [low, high] = [Math.floor(fromMs / SECOND_MS), Math.ceil(toMs / SECOND_MS)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#source(middle * SECOND_MS) === before) low = middle;
      else high = middle;
    }
    return high * SECOND_MS;
  }
}

export const UTC_ZONE = new Zone(0);

const zones = new Kept(ZONES_KEPT, (name: string) => new Zone(0, offsetsOf(name)));

/**
 * The zone of an IANA name in any case, `UTC`, `Z`, or an offset `+01`, `+0100` or `+01:00` of less than a day; undefined
 * for anything else.
 */
export function zoneNamed(name: string): Zone | undefined {
  if (UTC.test(name)) return UTC_ZONE;
  const [, sign, hours = "", minutes = "0"] = OFFSET.exec(name) ?? [];
  if (sign !== undefined) {
    const offsetMs = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS;
    return offsetMs < DAY_MS ? new Zone(sign === "-" ? 0 - offsetMs : offsetMs) : undefined;
  }
  if (name.length > ZONE_NAME_MAX_CHARACTERS || !/^[a-z]/i.test(name)) return undefined;
  try {
    // Other spellings are the same zone.
    return zones.of(name.toLowerCase());
  } catch {
    return undefined;
  }
}

/** `RangeError` for a name that is no zone. */
function offsetsOf(timeZone: string): (utcMs: number) => number {
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  return (utcMs) => {
    const [, sign, hours, minutes, seconds] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(utcMs)) ?? [];
    const ms = Number(hours ?? 0) * HOUR_MS + Number(minutes ?? 0) * MINUTE_MS + Number(seconds ?? 0) * SECOND_MS;
    return sign === "-" ? 0 - ms : ms;
  };
}
