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
/** The table has entries for parts of years, some 46 days long: most questions are about few days of a year. */
const YEAR_PARTS = 8;
const PART_MS = YEAR_MS / YEAR_PARTS;
const CYCLE_PARTS = CYCLE_YEARS * YEAR_PARTS;
/** 1800: no zone of the database changed its clocks before. */
const FIRST_PART = -170 * YEAR_PARTS;
/** 2100: from then on only rules are left that repeat with the calendar. */
const REPEATING_PART = 130 * YEAR_PARTS;
/** More than a table has. */
const PARTS = 2 ** 13;
/** An offset that a zone leaves and comes back to is left for longer: the shortest time is 6.96 days, as of America/Recife in 2000. */
const PROBE_MS = 6 * DAY_MS;
/** The entry of a part begins so long before it. */
const LEAD_MS = 4 * DAY_MS;
/** Greatest time that has a calendar date. */
export const TIME_MAX_MS = 8.64e15;
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
 * come from a table that is filled from `Intl` by parts of years, when a time of that part is asked for first.
 */
export class Zone {
  static #count = 0;
  readonly #source: (utcMs: number) => number;
  /** Tells the parts of this zone from those of others. */
  readonly #number = (Zone.#count += 1);
  #latest: ZoneSpan;
  /** From here on `#latest` is the span that its part has; before, it lacks a change that is too long ago for it. */
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
    this.#latestFromMs = Math.max(found.fromMs, Math.floor(utcMs / PART_MS) * PART_MS, -TIME_MAX_MS);
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

  /** The spans of a part of a year and of the days before it. */
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
        // There may be another change before `nextMs`, so that it is asked about again.
        atMs = this.#changeBetween(atMs, nextMs, offsetMs);
        spans.push({ fromMs, untilMs: atMs, offsetMs });
        [fromMs, offsetMs] = [atMs, this.#source(atMs)];
      }
    }
    if (fromMs < endMs) spans.push({ fromMs, untilMs: endMs, offsetMs });
    return spans;
  }

  /** The first second of the new offset: clocks change at whole seconds, and nearly always at a quarter of an hour. */
  #changeBetween(fromMs: number, toMs: number, offsetMs: number): number {
    const quarterMs = this.#firstBetween({ fromMs, toMs, unitMs: QUARTER_MS, offsetMs });
    if (this.#source(quarterMs - SECOND_MS) === offsetMs) return quarterMs;
    return this.#firstBetween({ fromMs: quarterMs - QUARTER_MS, toMs: quarterMs, unitMs: SECOND_MS, offsetMs });
  }

  /** The first multiple of the unit at which the offset is another one. */
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
  /** The one before the change. */
  readonly offsetMs: number;
}

/** Entries of the tables of all zones. */
const parts = new KeptBy<number, readonly ZoneSpan[]>(ZONE_PARTS_KEPT);
/** A format is made in the time of so many questions to it. */
const FORMAT_WORK = 50;
let work = 0;

/** How much work zones have made in this thread so far, in questions to `Intl`, each of which takes about 1 µs. */
export function zoneWork(): number {
  return work;
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
  // With one short member beside the offset a text is made a quarter sooner than with the date.
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset", minute: "numeric" });
  work += FORMAT_WORK;
  return (utcMs) => {
    work += 1;
    const [, sign, hours, minutes, seconds] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(utcMs)) ?? [];
    const ms = Number(hours ?? 0) * HOUR_MS + Number(minutes ?? 0) * MINUTE_MS + Number(seconds ?? 0) * SECOND_MS;
    return sign === "-" ? 0 - ms : ms;
  };
}
