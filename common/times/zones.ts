import { AppError } from "../errors.ts";
import { TIME_ZONE_NAMES_KEPT, TIME_ZONE_SPANS_KEPT } from "../limits.ts";
import { Kept } from "../schedule/kept.ts";
import { Zone } from "../schedule/zone.ts";
import { DAY_MS } from "./calendar.ts";
import type { TimeFault, TimeZone } from "./types.ts";

/** Clocks that are always the same time ahead of UTC. */
class FixedZone implements TimeZone {
  readonly #offsetMs: number;

  constructor(offsetMs: number) {
    this.#offsetMs = offsetMs;
  }

  offsetMs(): number {
    return this.#offsetMs;
  }

  momentMs(localMs: number): number {
    return localMs - this.#offsetMs;
  }
}

/** An offset and the moment from which it holds, in a span of time. */
interface Change {
  readonly fromMs: number;
  readonly offsetMs: number;
}

const SPAN_MS = 32 * DAY_MS;

/** A zone by its IANA name. What `Intl` says of it is kept for spans of 32 days. */
class NamedZone implements TimeZone {
  readonly #zone: Zone;
  readonly #spans = new Kept(TIME_ZONE_SPANS_KEPT, (span: number) => this.#changesIn(span));

  constructor(name: string) {
    this.#zone = Zone.of(name);
  }

  offsetMs(atMs: number): number {
    const changes = this.#spans.of(Math.floor(atMs / SPAN_MS));
    let at = changes.length - 1;
    while (at > 0 && atMs < (changes[at]?.fromMs ?? 0)) at -= 1;
    return changes[at]?.offsetMs ?? 0;
  }

  momentMs(localMs: number, nearMs: number): number {
    const before = this.offsetMs(localMs - DAY_MS);
    const after = this.offsetMs(localMs + DAY_MS);
    const [one, other] = [localMs - before, localMs - after];
    if (one === other) return one;
    const isOne = one + this.offsetMs(one) === localMs;
    const isOther = other + this.offsetMs(other) === localMs;
    if (isOne && isOther) return Math.abs(other - nearMs) < Math.abs(one - nearMs) ? other : one;
    return isOther ? other : one;
  }

  #changesIn(span: number): readonly Change[] {
    const [fromMs, untilMs] = [span * SPAN_MS, (span + 1) * SPAN_MS];
    const changes: Change[] = [{ fromMs, offsetMs: this.#zone.offsetMs(fromMs) }];
    for (let atMs = this.#zone.changeMs(fromMs, untilMs); atMs !== undefined; atMs = this.#zone.changeMs(atMs, untilMs))
      changes.push({ fromMs: atMs, offsetMs: this.#zone.offsetMs(atMs) });
    return changes;
  }
}

export const UTC: TimeZone = new FixedZone(0);
const OFFSET = /^[+-](\d{2})(?::?(\d{2}))?$/;
const OFFSET_HOURS_MAX = 18;
/** Short names that are of one zone alone. `Intl` takes more of them, of which each means several zones. */
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

const fixed = new Kept(TIME_ZONE_NAMES_KEPT, (offsetMs: number): TimeZone => new FixedZone(offsetMs));
const named = new Kept(TIME_ZONE_NAMES_KEPT, namedZone);

/** `Z`, `+01`, `+0100`, `+01:00`; `undefined` for what is none of these, or more than 18 hours. */
export function offsetZone(text: string): TimeZone | undefined {
  if (text === "Z" || text === "z") return UTC;
  const match = OFFSET.exec(text);
  if (match === null) return undefined;
  const [hours, minutes] = [Number(match[1]), Number(match[2] ?? 0)];
  if (hours > OFFSET_HOURS_MAX || minutes > 59) return undefined;
  return fixed.of((text.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000);
}

/**
 * A zone as a time names it: an offset, UTC, GMT, or an IANA name with a slash. `undefined` for others: `CET` and the
 * like mean several zones.
 */
export function zoneInText(text: string): TimeZone | undefined {
  if (/^(?:UTC|GMT)$/i.test(text)) return UTC;
  return text.includes("/") ? named.of(text) : offsetZone(text);
}

/** A zone as people set it: an IANA name such as `Europe/Berlin`, or an offset; `undefined` for others. */
export function findTimeZone(name: string): TimeZone | undefined {
  const isShort = /^[A-Z]{3,4}$/.test(name) && !SHORT_NAMES.has(name);
  return offsetZone(name) ?? (isShort ? undefined : named.of(name));
}

/** As `findTimeZone`; `AppError("invalid")` in place of nothing. */
export function timeZoneOf(name: string): TimeZone {
  const zone = findTimeZone(name);
  if (zone !== undefined) return zone;
  throw new AppError(
    "invalid",
    `There is no time zone ${JSON.stringify(name.slice(0, 60))}: give a name such as Europe/Berlin, UTC, or an offset such as +01:00.`,
  );
}

function namedZone(name: string): TimeZone | undefined {
  if (/^(?:UTC|GMT)$/i.test(name)) return UTC;
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return undefined;
  try {
    return new NamedZone(name);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The fault of a text that names a zone which `zoneInText` does not know. */
export function unknownZone(name: string): TimeFault {
  const shown = JSON.stringify(name.slice(0, 60));
  if (name.includes("/") || /^[+-]/.test(name)) return { reason: `names the zone ${shown}, which is not known` };
  return { reason: `names the zone ${shown}, which means several: only UTC, GMT, offsets and names with a / are read` };
}
