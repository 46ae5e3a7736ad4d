import { Kept, KeptBy } from "../kept.ts";
import { ZONE_NAME_MAX_CHARACTERS, ZONE_PARTS_KEPT, ZONES_KEPT } from "../limits.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const QUARTER_MS = 15 * MINUTE_MS;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A mean Gregorian year: 400 of them are whole days, after which the calendar repeats. */
const YEAR_MS = 31_556_952_000;
const CYCLE_YEARS = 400;
/** Table entries per year, each for some 46 days: most callers need only few days of a year. */
const YEAR_PARTS = 8;
const PART_MS = YEAR_MS / YEAR_PARTS;
const CYCLE_PARTS = CYCLE_YEARS * YEAR_PARTS;
/** 1800: before it, no zone of the database changed its clocks. */
const FIRST_PART = -170 * YEAR_PARTS;
/** 2100: from then on the rules of all zones repeat with the calendar. */
const REPEATING_PART = 130 * YEAR_PARTS;
/** More than the number of entries of one zone. */
const PARTS = 2 ** 13;
/**
 * Interval of the search for changes. A zone that leaves an offset and returns to it stays away for longer: for at
 * least 6.96 days, as America/Recife did in 2000.
 */
const PROBE_MS = 6 * DAY_MS;
/** The entry of a part of a year begins this long before the part. */
const LEAD_MS = 4 * DAY_MS;
/** Latest time that has a calendar date. */
export const TIME_MAX_MS = 8.64e15;
const OFFSET = /^([+-])(\d\d)(?::?([0-5]\d))?$/;
const UTC = /^(?:utc|z)$/i;

/** A span of time with one offset, the end excluded. */
export interface ZoneSpan {
  /** The last change, if it was less than four days before the requested time. Otherwise it or a later time. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly offsetMs: number;
}

/**
 * A time zone. A local time is in milliseconds, too: those of the moment at which UTC shows the same date and time.
 * Offsets come from a table. Its entry for a part of a year is read from `Intl` when it is first needed.
 */
export class Zone {
  static #count = 0;
  readonly #source: (utcMs: number) => number;
  /** Distinguishes the table entries of this zone from those of others. */
  readonly #number = (Zone.#count += 1);
  #latest: ZoneSpan;
  /**
   * From this time on `#latest` is what the table returns. An earlier time has another entry, which may know an earlier
   * change.
   */
  #latestFromMs: number;

  /** `source` returns the offset at a time. Without it the offset is always `offsetMs`. */
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

  /** The span that contains the time. A time without a calendar date has an empty span with offset 0. */
  spanAt(utcMs: number): ZoneSpan {
    const latest = this.#latest;
    if (utcMs >= this.#latestFromMs && utcMs < latest.untilMs) return latest;
    if (!(Math.abs(utcMs) <= TIME_MAX_MS)) return { fromMs: utcMs, untilMs: utcMs, offsetMs: 0 };
    const found = this.#found(utcMs);
    this.#latest = found;
    this.#latestFromMs = Math.max(found.fromMs, Math.floor(utcMs / PART_MS) * PART_MS, -TIME_MAX_MS);
    return found;
  }

  /**
   * The moment at which the clocks show this local time. If they show it twice, because they are set back, the first
   * moment. If they skip it, because they are set forward, the moment that it would be without the change; the clocks
   * then show a time that is later by the length of the change.
   */
  utcOf(localMs: number): number {
    const offset = this.offsetMs(localMs - DAY_MS);
    const later = this.offsetMs(localMs + DAY_MS);
    const moment = localMs - offset;
    if (later === offset || this.offsetMs(moment) === offset) return moment;
    return this.offsetMs(localMs - later) === later ? localMs - later : moment;
  }

  /**
   * The first moment at which the clocks show this local time or a later one. For a skipped time, the moment of the
   * change.
   */
  reachedMs(localMs: number): number {
    const moment = this.utcOf(localMs);
    const { fromMs, offsetMs } = this.spanAt(moment);
    return moment + offsetMs === localMs ? moment : fromMs;
  }

  /**
   * The first moment after `afterMs`, up to and including `untilMs`, at which the offset changes; `undefined` if there
   * is none.
   */
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
    const part = Math.floor(utcMs / PART_MS);
    if (part < FIRST_PART) {
      const untilMs = FIRST_PART * PART_MS;
      return { fromMs: -Infinity, untilMs, offsetMs: this.#source(untilMs - 1) };
    }
    const cycles = Math.max(0, Math.floor((part - REPEATING_PART) / CYCLE_PARTS));
    const shiftMs = cycles * CYCLE_PARTS * PART_MS;
    const spans = this.#spansOf(part - cycles * CYCLE_PARTS);
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

  /** The spans of a part of a year and of `LEAD_MS` before it. */
  #spansOf(part: number): readonly ZoneSpan[] {
    return parts.of(this.#number * PARTS + part - FIRST_PART, () => this.#filled(part));
  }

  #filled(part: number): readonly ZoneSpan[] {
    const spans: ZoneSpan[] = [];
    const endMs = (part + 1) * PART_MS;
    let fromMs = part * PART_MS - LEAD_MS;
    let offsetMs = this.#source(fromMs);
    for (let atMs = fromMs; atMs < endMs; ) {
      const nextMs = Math.min(atMs + PROBE_MS, endMs);
      if (this.#source(nextMs) === offsetMs) atMs = nextMs;
      else {
        // There may be further changes before `nextMs`, so the search continues at this one.
        atMs = this.#changeBetween(atMs, nextMs, offsetMs);
        spans.push({ fromMs, untilMs: atMs, offsetMs });
        [fromMs, offsetMs] = [atMs, this.#source(atMs)];
      }
    }
    if (fromMs < endMs) spans.push({ fromMs, untilMs: endMs, offsetMs });
    return spans;
  }

  /** The first second of the new offset. Clocks change at whole seconds, nearly always at a quarter of an hour. */
  #changeBetween(fromMs: number, toMs: number, offsetMs: number): number {
    const quarterMs = this.#firstBetween({ fromMs, toMs, unitMs: QUARTER_MS, offsetMs });
    if (this.#source(quarterMs - SECOND_MS) === offsetMs) return quarterMs;
    return this.#firstBetween({ fromMs: quarterMs - QUARTER_MS, toMs: quarterMs, unitMs: SECOND_MS, offsetMs });
  }

  /** The first multiple of the unit that has another offset. */
  #firstBetween({ fromMs, toMs, unitMs, offsetMs }: Search): number {
    let [low, high] = [Math.floor(fromMs / unitMs), Math.ceil(toMs / unitMs)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#source(middle * unitMs) === offsetMs) low = middle;
      else high = middle;
    }
    return high * unitMs;
  }
}

interface Search {
  readonly fromMs: number;
  readonly toMs: number;
  readonly unitMs: number;
  /** The offset before the change. */
  readonly offsetMs: number;
}

/** Table entries of all zones. */
const parts = new KeptBy<number, readonly ZoneSpan[]>(ZONE_PARTS_KEPT);
/** Making a format takes as long as this many calls of it. */
const FORMAT_WORK = 50;
let work = 0;

/** Work that zones have caused in this thread so far, in calls of `Intl`. Each takes about 1 µs. */
export function zoneWork(): number {
  return work;
}

export const UTC_ZONE = new Zone(0);

const zones = new Kept(ZONES_KEPT, (name: string) => new Zone(0, offsetsOf(name)));

/**
 * The zone of an IANA name in any case, `UTC`, `Z`, or an offset `+01`, `+0100` or `+01:00` of less than a day.
 * `undefined` for any other text.
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
    // All spellings of a name share one zone.
    return zones.of(name.toLowerCase());
  } catch {
    return undefined;
  }
}

/** Returns the function that looks up offsets of the zone. `RangeError` for an unknown name. */
function offsetsOf(timeZone: string): (utcMs: number) => number {
  // With only one short member besides the offset, formatting takes a quarter less time than with the date.
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset", minute: "numeric" });
  work += FORMAT_WORK;
  return (utcMs) => {
    work += 1;
    const [, sign, hours, minutes, seconds] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(utcMs)) ?? [];
    const ms = Number(hours ?? 0) * HOUR_MS + Number(minutes ?? 0) * MINUTE_MS + Number(seconds ?? 0) * SECOND_MS;
    return sign === "-" ? 0 - ms : ms;
  };
}
