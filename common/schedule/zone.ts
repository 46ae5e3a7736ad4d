import { SCHEDULE_ZONE_DAYS_KEPT, SCHEDULE_ZONES_KEPT } from "../limits.ts";
import { Kept } from "./kept.ts";

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;

/**
 * What the clocks on the walls of a zone show. A local time is a number of milliseconds as well: the one at which UTC
 * shows it. Changes of the offset are found when at least a day lies between two of them.
 */
export class Zone {
  static readonly #zones = new Kept(SCHEDULE_ZONES_KEPT, (name: string) => new Zone(name));
  readonly #format: Intl.DateTimeFormat;
  readonly #days = new Kept(SCHEDULE_ZONE_DAYS_KEPT, (day: number) => this.#offsetAt(day * DAY_MS));

  private constructor(name: string) {
    this.#format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
  }

  /** `RangeError` for a zone that is not known. */
  static of(name: string): Zone {
    return Zone.#zones.of(name);
  }

  /** By how much the zone's clocks are ahead of UTC at this moment. */
  offsetMs(atMs: number): number {
    const day = Math.floor(atMs / DAY_MS);
    const offset = this.#days.of(day);
    // At both ends of a day the same: it did not change between them.
    return offset === this.#days.of(day + 1) ? offset : this.#offsetAt(atMs);
  }

  #offsetAt(atMs: number): number {
    const [, sign, hours, minutes, seconds = 0] =
      /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(this.#format.format(atMs)) ?? [];
    const ms = 1_000 * (3_600 * Number(hours ?? 0) + 60 * Number(minutes ?? 0) + Number(seconds));
    return sign === "-" ? -ms : ms;
  }

  /** The first moment after `afterMs`, `untilMs` included, at which the offset is another one than just before. */
  changeMs(afterMs: number, untilMs: number): number | undefined {
    const offset = this.offsetMs(afterMs);
    for (let fromMs = afterMs; fromMs < untilMs; fromMs += DAY_MS) {
      const toMs = Math.min(untilMs, fromMs + DAY_MS);
      if (this.offsetMs(toMs) !== offset) return this.#changeBetween(fromMs, toMs);
    }
    return undefined;
  }

  /**
   * The moment at which the zone's clocks show this time: the first of two where they are set back over it, and where
   * they are set forward over it, so that it never comes, the moment of that.
   */
  momentMs(localMs: number): number {
    const offsets = [this.offsetMs(localMs - DAY_MS), this.offsetMs(localMs + DAY_MS)];
    const moments = offsets.map((offset) => localMs - offset).sort((one, other) => one - other);
    const shown = moments.find((moment) => moment + this.offsetMs(moment) === localMs);
    return shown ?? this.changeMs(localMs - DAY_MS, localMs + DAY_MS) ?? localMs;
  }

  #changeBetween(fromMs: number, toMs: number): number {
    const before = this.offsetMs(fromMs);
    // Offsets change with a whole second.
    let [low, high] = [Math.floor(fromMs / SECOND_MS), Math.ceil(toMs / SECOND_MS)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.offsetMs(middle * SECOND_MS) === before) low = middle;
      else high = middle;
    }
    return high * SECOND_MS;
  }
}
