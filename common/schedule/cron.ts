import { Cron } from "croner";
import { AppError } from "../errors.ts";
import type { Zone } from "./zone.ts";

const DAY_HOURS = 24;
const DAY_MS = 86_400_000;
/** A day on which every pattern of hours has all its times. */
const SOME_DAY_MS = Date.UTC(2026, 0, 1);

/**
 * The times of a pattern of five or six fields (the first of six: seconds) in a zone. A pattern of certain hours goes by
 * the clocks on the walls, each of whose times comes once: where clocks are set back over it, at its first occurrence;
 * where they are set forward over it, at the moment they are, together with all others that were skipped. A pattern
 * of every hour goes by the time that passes, and comes whenever the clocks show one of its times.
 */
export class CronTimes {
  readonly #cron: Cron;
  readonly #zone: Zone;
  readonly #isEveryHour: boolean;

  /** `AppError("invalid")` for what is no such pattern. */
  constructor(pattern: string, zone: Zone) {
    const fields = pattern.split(/\s+/);
    if (fields.length !== 5 && fields.length !== 6)
      throw new AppError("invalid", `A cron schedule has five or six fields, ${JSON.stringify(pattern)} has not.`);
    this.#cron = cronOf(pattern);
    this.#zone = zone;
    this.#isEveryHour = isEveryHour(fields.at(-4) ?? "");
  }

  /** The first time after `afterMs`; `undefined`: none comes any more. */
  next(afterMs: number): number | undefined {
    return this.#isEveryHour ? this.#nextPassing(afterMs) : this.#nextShown(afterMs);
  }

  #nextShown(afterMs: number): number | undefined {
    let localMs = afterMs + this.#zone.offsetMs(afterMs);
    for (;;) {
      const next = this.#nextLocal(localMs);
      if (next === undefined) return undefined;
      const moment = this.#zone.momentMs(next);
      // Clocks that were set back show times again that have come.
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
      // From then on the clocks show other times, the first of them at the very moment.
      [fromMs, offset] = [changeMs - 1, this.#zone.offsetMs(changeMs)];
      const first = this.#nextLocal(fromMs + offset);
      if (first === changeMs + offset) return changeMs;
      fromMs = changeMs;
    }
  }

  #nextLocal(localMs: number): number | undefined {
    return this.#cron.nextRun(new Date(localMs))?.getTime();
  }
}

/** Not in the zone itself: where clocks are set forward or back is decided above. */
function cronOf(pattern: string): Cron {
  try {
    return new Cron(pattern, { paused: true, mode: "5-or-6-parts", sloppyRanges: true, utcOffset: 0 });
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, "");
    throw new AppError("invalid", `The cron schedule ${JSON.stringify(pattern)} cannot be read: ${reason}`, {
      cause: error,
    });
  }
}

function isEveryHour(field: string): boolean {
  if (field === "*" || field === "?") return true;
  const runs = cronOf(`0 ${field} * * *`).nextRuns(DAY_HOURS, new Date(SOME_DAY_MS - 1));
  return (runs.at(-1)?.getTime() ?? Number.POSITIVE_INFINITY) < SOME_DAY_MS + DAY_MS;
}
