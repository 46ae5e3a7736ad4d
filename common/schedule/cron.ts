import { Cron } from "croner";
import type { Zone } from "../calendar/zones.ts";
import { AppError } from "../errors.ts";
import { Kept } from "../kept.ts";
import { SCHEDULE_DAYS_KEPT, SCHEDULE_FIELDS_KEPT } from "../limits.ts";

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;
const DAY_HOURS = 24;
const HOUR_S = 3_600;
const MINUTE_S = 60;

/**
 * Patterns are many, but their fields are few. A `Cron` takes some 100 KB, so patterns with the same day fields share
 * one.
 */
const days = new Kept(SCHEDULE_DAYS_KEPT, (text: string) => cronOf(`0 0 0 ${text}`));
const hours = new Kept(SCHEDULE_FIELDS_KEPT, (text: string) => valuesOf(`0 0 ${text} * * *`, HOUR_S));
const minutes = new Kept(SCHEDULE_FIELDS_KEPT, (text: string) => valuesOf(`0 ${text} * * * *`, MINUTE_S));
const seconds = new Kept(SCHEDULE_FIELDS_KEPT, (text: string) => valuesOf(`${text} * * * * *`, 1));

/**
 * The times of a cron pattern of five or six fields (the first of six: seconds) in a zone. A pattern of certain hours
 * follows the local clocks, and each of its local times occurs once. If clocks are set back over a time, it occurs at
 * the first time they show it. If clocks are set forward over it, it occurs at the moment of the change, together with
 * all other skipped times. A pattern of every hour follows the elapsed time: it occurs whenever the clocks show one of
 * its times.
 */
export class CronTimes {
  readonly #zone: Zone;
  readonly #days: string;
  readonly #hours: readonly number[];
  readonly #minutes: readonly number[];
  readonly #seconds: readonly number[];

  /** `AppError("invalid")` for an invalid pattern. */
  constructor(pattern: string, zone: Zone) {
    const fields = pattern.split(/\s+/);
    if (fields.length !== 5 && fields.length !== 6)
      throw new AppError("invalid", `A cron schedule has five or six fields, ${JSON.stringify(pattern)} has not.`);
    const [second = "", minute = "", hour = "", ...day] = fields.length === 5 ? ["0", ...fields] : fields;
    this.#zone = zone;
    this.#days = day.join(" ");
    try {
      this.#seconds = seconds.of(second);
      this.#minutes = minutes.of(minute);
      this.#hours = hours.of(hour);
      days.of(this.#days);
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, "");
      throw new AppError("invalid", `The cron schedule ${JSON.stringify(pattern)} cannot be read: ${reason}`, {
        cause: error,
      });
    }
  }

  /** The first time after `afterMs`; `undefined` if there is none. */
  next(afterMs: number): number | undefined {
    return this.#hours.length === DAY_HOURS ? this.#nextPassing(afterMs) : this.#nextShown(afterMs);
  }

  #nextShown(afterMs: number): number | undefined {
    let localMs = afterMs + this.#zone.offsetMs(afterMs);
    for (;;) {
      const next = this.#nextLocal(localMs);
      if (next === undefined) return undefined;
      const moment = this.#zone.reachedMs(next);
      // After clocks are set back, they show times again that have already occurred.
      if (moment > afterMs) return moment;
      localMs = next;
    }
  }

  #nextPassing(afterMs: number): number | undefined {
    let [fromMs, offset] = [afterMs, this.#zone.offsetMs(afterMs)];
    for (;;) {
      const next = this.#nextLocal(fromMs + offset);
      if (next === undefined) return undefined;
      const moment = next - offset;
      const changeMs = this.#zone.changeMs(fromMs, moment);
      if (changeMs === undefined) return moment;
      // After the change the clocks show other times. The first of them may be the moment of the change itself.
      [fromMs, offset] = [changeMs - 1, this.#zone.offsetMs(changeMs)];
      const first = this.#nextLocal(fromMs + offset);
      if (first === changeMs + offset) return changeMs;
      fromMs = changeMs;
    }
  }

  #nextLocal(localMs: number): number | undefined {
    const cron = days.of(this.#days);
    const fromS = Math.floor(localMs / SECOND_MS) + 1;
    const dayMs = Math.floor((fromS * SECOND_MS) / DAY_MS) * DAY_MS;
    const time = cron.match(new Date(dayMs)) ? this.#timeFrom(fromS - dayMs / SECOND_MS) : undefined;
    if (time !== undefined) return dayMs + time * SECOND_MS;
    const next = cron.nextRun(new Date(dayMs));
    return next ? next.getTime() + (this.#timeFrom(0) ?? 0) * SECOND_MS : undefined;
  }

  /**
   * The first time of a day at or after `fromS`, both in seconds since midnight; `undefined` if there is none on that
   * day.
   */
  #timeFrom(fromS: number): number | undefined {
    const [hour, minute, second] = [Math.floor(fromS / HOUR_S), Math.floor(fromS / MINUTE_S) % 60, fromS % MINUTE_S];
    const [firstMinute = 0] = this.#minutes;
    const [firstSecond = 0] = this.#seconds;
    if (this.#hours.includes(hour)) {
      const sameMinute = this.#minutes.includes(minute) ? this.#seconds.find((value) => value >= second) : undefined;
      if (sameMinute !== undefined) return hour * HOUR_S + minute * MINUTE_S + sameMinute;
      const later = this.#minutes.find((value) => value > minute);
      if (later !== undefined) return hour * HOUR_S + later * MINUTE_S + firstSecond;
    }
    const later = this.#hours.find((value) => value > hour);
    return later === undefined ? undefined : later * HOUR_S + firstMinute * MINUTE_S + firstSecond;
  }
}

/** Works in UTC: the code above handles changes of the clocks. */
function cronOf(pattern: string): Cron {
  return new Cron(pattern, { paused: true, mode: "5-or-6-parts", sloppyRanges: true, utcOffset: 0 });
}

/** Values of the only field that the pattern restricts. Neighbouring values are `stepS` seconds apart. */
function valuesOf(pattern: string, stepS: number): readonly number[] {
  const cron = cronOf(pattern);
  const count = stepS === HOUR_S ? DAY_HOURS : 60;
  return Array.from({ length: count }, (_, value) => value).filter((value) =>
    cron.match(new Date(value * stepS * SECOND_MS)),
  );
}
