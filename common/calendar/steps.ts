import { TIME_MAX_MS, type Zone } from "./zones.ts";

const DAY_MS = 86_400_000;
/** 1970-01-05. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
/** Clocks change by at most a day, so a step of this width or more is wider than any change. */
const WIDE_MS = 2 * DAY_MS;

/** Units by their kind. `size` is in milliseconds for clock units, otherwise in days or months. */
const UNITS = {
  second: { kind: "clock", size: 1_000 },
  minute: { kind: "clock", size: 60_000 },
  hour: { kind: "clock", size: 3_600_000 },
  day: { kind: "day", size: 1 },
  week: { kind: "week", size: 7 },
  month: { kind: "month", size: 1 },
  quarter: { kind: "month", size: 3 },
  year: { kind: "month", size: 12 },
} as const;

export type CalendarUnit = keyof typeof UNITS;
export const CALENDAR_UNITS = Object.keys(UNITS) as readonly CalendarUnit[];

/** A number of units, such as 3 months. */
export interface CalendarWidth {
  /** A whole number above 0. */
  readonly count: number;
  readonly unit: CalendarUnit;
}

/** The unit with that name, in any case, with or without an s at the end. */
export function unitNamed(text: string): CalendarUnit | undefined {
  const name = text.toLowerCase().replace(/s$/, "");
  return CALENDAR_UNITS.find((unit) => unit === name);
}

/** Parses a width such as `5 minutes`; `undefined` if the text is not a whole number above 0 and a unit. */
export function widthOf(text: string): CalendarWidth | undefined {
  const [amount = "", name = "", ...more] = text.trim().split(/\s+/);
  const unit = more.length === 0 ? unitNamed(name) : undefined;
  const count = Number(amount);
  return unit !== undefined && Number.isSafeInteger(count) && count > 0 ? { count, unit } : undefined;
}

/**
 * Divides time into steps of equal width, by the clocks of a zone. A step is identified by its first moment.
 *
 * Days, weeks (from Monday), months, quarters and years follow the calendar. A step contains the times whose local date
 * is in it. It begins when the clocks first show the midnight before it, or skip it. Steps of several units are counted
 * from 1970-01-01, those of weeks from 1970-01-05.
 *
 * Steps of hours and less begin whenever the clocks reach a multiple of the width, counted from midnight of 1970-01-01,
 * or are set forward over one. If the clocks are set back by a multiple of the width, the same steps occur again as
 * separate steps. If they are set back by less than the width, the current step lasts longer. If they are set back by
 * more, a step begins at that moment.
 */
export class CalendarSteps {
  readonly #zone: Zone;
  readonly #kind: "clock" | "day" | "week" | "month";
  /** Width of a step: months for the kind `month`, otherwise milliseconds. */
  readonly #size: number;
  /** The last result: times from `fromMs` to before `untilMs` are in the step that begins at `startMs`. */
  #latest = { fromMs: Infinity, untilMs: -Infinity, startMs: Number.NaN };

  constructor({ count, unit }: CalendarWidth, zone: Zone) {
    const { kind, size } = UNITS[unit];
    this.#zone = zone;
    this.#kind = kind;
    this.#size = kind === "day" || kind === "week" ? count * size * DAY_MS : count * size;
  }

  /** First moment of the step that contains the time; `NaN` if one of the two has no calendar date. */
  startMs(utcMs: number): number {
    const latest = this.#latest;
    if (utcMs >= latest.fromMs && utcMs < latest.untilMs) return latest.startMs;
    const span = this.#zone.spanAt(utcMs);
    if (!(span.fromMs < span.untilMs)) return Number.NaN;
    const localMs = this.#localStartMs(utcMs + span.offsetMs);
    const firstMs = this.#kind === "clock" ? this.#clockStartMs(utcMs) : this.#zone.reachedMs(localMs);
    const startMs = Math.abs(firstMs) <= TIME_MAX_MS ? firstMs : Number.NaN;
    const nextMs = this.#localNextMs(localMs);
    // In this part of the span the clocks always show the same step.
    const fromMs = Math.max(span.fromMs, localMs - span.offsetMs);
    this.#latest = { fromMs, untilMs: Math.min(span.untilMs, nextMs - span.offsetMs), startMs };
    return startMs;
  }

  /** First moment of the step after the one that begins at `startMs`; `NaN` if it has no calendar date. */
  nextMs(startMs: number): number {
    if (this.#kind === "clock" && this.#size < WIDE_MS) return this.#clockNextMs(startMs);
    // A day that the clocks skip has no step: at the change they already show the next day.
    const localMs = this.#localStartMs(startMs + this.#zone.offsetMs(startMs));
    return this.#zone.reachedMs(this.#localNextMs(localMs));
  }

  #localStartMs(localMs: number): number {
    switch (this.#kind) {
      case "clock":
      case "day":
        return Math.floor(localMs / this.#size) * this.#size;
      case "week":
        return Math.floor((localMs - FIRST_MONDAY_MS) / this.#size) * this.#size + FIRST_MONDAY_MS;
      case "month":
        return monthMs(Math.floor(monthOf(localMs) / this.#size) * this.#size);
    }
  }

  #localNextMs(localMs: number): number {
    return this.#kind === "month" ? monthMs(monthOf(localMs) + this.#size) : localMs + this.#size;
  }

  #clockStartMs(utcMs: number): number {
    const { fromMs, offsetMs } = this.#zone.spanAt(utcMs);
    const width = this.#size;
    const localMs = Math.floor((utcMs + offsetMs) / width) * width;
    if (fromMs === -Infinity) return localMs - offsetMs;
    if (width >= WIDE_MS) return this.#zone.reachedMs(localMs);
    const startMs = localMs - offsetMs;
    // A change that is at least a day before this step does not affect it.
    if (startMs - fromMs >= DAY_MS) return startMs;
    const beforeMs = this.#zone.offsetMs(fromMs - 1);
    const changeMs = offsetMs - beforeMs;
    if (changeMs % width === 0) return startMs >= fromMs ? startMs : this.#clockStartMs(fromMs - 1);
    const isBegun = changeMs < -width ? startMs >= fromMs : localMs >= fromMs + beforeMs;
    if (isBegun) return Math.max(startMs, fromMs);
    return changeMs < -width ? fromMs : this.#clockStartMs(fromMs - 1);
  }

  #clockNextMs(startMs: number): number {
    let atMs = startMs + this.#size;
    while (this.startMs(atMs) <= startMs) atMs += this.#size;
    // A change may have inserted a shorter step.
    let nextMs = this.startMs(atMs);
    for (;;) {
      const beforeMs = this.startMs(nextMs - 1);
      if (!(beforeMs > startMs)) return nextMs;
      nextMs = beforeMs;
    }
  }
}

/** Months since January 1970. */
function monthOf(localMs: number): number {
  const date = new Date(localMs);
  return (date.getUTCFullYear() - 1_970) * 12 + date.getUTCMonth();
}

function monthMs(month: number): number {
  return new Date(0).setUTCFullYear(1_970, month, 1);
}
