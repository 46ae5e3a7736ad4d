import { AppError } from "../errors.ts";
import { UTC_ZONE, Zone, zoneNamed } from "../calendar/zones.ts";
import { TIME_ZONE_NAMES_KEPT } from "../limits.ts";
import { Kept } from "../kept.ts";
import { beginningOf } from "../text/cut.ts";
import { DAY_MS } from "./calendar.ts";
import { SHOWN_CHARACTERS } from "./names.ts";
import type { TimeFault, TimeZone } from "./types.ts";

/** A zone for times in log files. If a local time occurs twice, the moment nearer to a given time is meant. */
class WrittenZone implements TimeZone {
  readonly #zone: Zone;

  constructor(zone: Zone) {
    this.#zone = zone;
  }

  offsetMs(atMs: number): number {
    return this.#zone.offsetMs(atMs);
  }

  momentMs(localMs: number, nearMs: number): number {
    const one = this.#zone.utcOf(localMs);
    const offsetMs = this.#zone.offsetMs(localMs + DAY_MS);
    const other = localMs - offsetMs;
    const isTwice =
      other !== one && this.#zone.offsetMs(one) + one === localMs && this.#zone.offsetMs(other) === offsetMs;
    return isTwice && Math.abs(other - nearMs) < Math.abs(one - nearMs) ? other : one;
  }
}

export const UTC: TimeZone = new WrittenZone(UTC_ZONE);
const OFFSET = /^[+-](\d{2})(?::?(\d{2}))?$/;
const OFFSET_HOURS_MAX = 18;
/**
 * Short names that are allowed in settings: zones of the IANA database without a slash. `Intl` accepts further short
 * names, which are ambiguous.
 */
const SHORT_NAMES = new Set([
  "UTC",
  "GMT",
  "UCT",
  "CET",
  "EET",
  "MET",
  "WET",
  "EST",
  "MST",
  "HST",
  "PRC",
  "ROC",
  "ROK",
]);

const fixed = new Kept(TIME_ZONE_NAMES_KEPT, (offsetMs: number): TimeZone => new WrittenZone(new Zone(offsetMs)));
const named = new Kept(TIME_ZONE_NAMES_KEPT, namedZone);

/**
 * An offset such as `Z`, `+01`, `+0100` or `+01:00`. `undefined` for other texts and for more than `OFFSET_HOURS_MAX`
 * hours.
 */
export function offsetZone(text: string): TimeZone | undefined {
  if (text === "Z" || text === "z") return UTC;
  const match = OFFSET.exec(text);
  if (match === null) return undefined;
  const [hours, minutes] = [Number(match[1]), Number(match[2] ?? 0)];
  if (hours > OFFSET_HOURS_MAX || minutes > 59) return undefined;
  return fixed.of((text.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000);
}

/**
 * A zone as written in a time: an offset, UTC, GMT, or an IANA name with a slash. `undefined` for others: in a time,
 * names such as `CET` are ambiguous.
 */
export function zoneInText(text: string): TimeZone | undefined {
  if (/^(?:UTC|GMT)$/i.test(text)) return UTC;
  return text.includes("/") ? named.of(text) : offsetZone(text);
}

/** A zone as written in settings: an IANA name such as `Europe/Berlin`, or an offset. `undefined` for others. */
export function findTimeZone(name: string): TimeZone | undefined {
  const isShort = /^[A-Z]{3,4}$/.test(name) && !SHORT_NAMES.has(name);
  return offsetZone(name) ?? (isShort ? undefined : named.of(name));
}

/** As `findTimeZone`; `AppError("invalid")` for an unknown zone. */
export function timeZoneOf(name: string): TimeZone {
  const zone = findTimeZone(name);
  if (zone !== undefined) return zone;
  throw new AppError(
    "invalid",
    `There is no time zone ${JSON.stringify(beginningOf(name, SHOWN_CHARACTERS))}: give a name such as Europe/Berlin, UTC, or an offset such as +01:00.`,
  );
}

function namedZone(name: string): TimeZone | undefined {
  if (/^(?:UTC|GMT)$/i.test(name)) return UTC;
  const zone = /^[a-z]/i.test(name) ? zoneNamed(name) : undefined;
  return zone && new WrittenZone(zone);
}

/** The fault of a text with a zone that `zoneInText` does not know. */
export function unknownZone(name: string): TimeFault {
  const shown = JSON.stringify(beginningOf(name, SHOWN_CHARACTERS));
  if (name.includes("/") || /^[+-]/.test(name)) return { reason: `names the zone ${shown}, which is not known` };
  return { reason: `names the zone ${shown}, which means several: only UTC, GMT, offsets and names with a / are read` };
}
