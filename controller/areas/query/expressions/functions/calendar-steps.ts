import {
  CALENDAR_UNITS,
  CalendarSteps,
  type CalendarWidth,
  unitNamed,
  widthOf,
} from "../../../../../common/calendar/steps.ts";
import { UTC_ZONE, type Zone, zoneNamed, zoneWork } from "../../../../../common/calendar/zones.ts";
import { AppError } from "../../../../../common/errors.ts";
import { Kept } from "../../../../../common/kept.ts";
import { CALENDAR_STEPS_KEPT } from "../../../../../common/limits.ts";
import type { Value } from "../../../../../common/value.ts";
import { THREAD_TEXT_WORK } from "./textwork.ts";

/** Places of the operands in a function such as `bucket(time, '5 minutes')` or `date_trunc('hour', time)`. */
export interface Stepping {
  readonly width: number;
  readonly time: number;
  readonly zone: number;
  /** Undefined for a text that is not a width. */
  readonly read: (text: string) => CalendarWidth | undefined;
  readonly wanted: string;
}

/** Functions that return the beginning of a step, by name. */
export const STEPPINGS: Readonly<Record<"bucket" | "date_trunc", Stepping>> = {
  bucket: {
    time: 0,
    width: 1,
    zone: 2,
    read: widthOf,
    wanted: "no duration: a whole number and a unit, such as '5 minutes'",
  },
  date_trunc: {
    width: 0,
    time: 1,
    zone: 2,
    read(text) {
      const unit = unitNamed(text);
      return unit && { count: 1, unit };
    },
    wanted: `no unit: ${CALENDAR_UNITS.join(", ")}`,
  },
};

/** Undefined for a function that is not in `STEPPINGS`. */
export function steppingOf(name: string): Stepping | undefined {
  return name === "bucket" || name === "date_trunc" ? STEPPINGS[name] : undefined;
}

/**
 * Returns the function that computes the beginning of the step for a row. An unknown width or zone is an
 * `AppError("invalid")` if it is the same for all rows; if it comes from the row, the result is null.
 */
export function steppedBy(
  stepping: Stepping,
  constants: readonly (Value | undefined)[],
  zone: string | undefined,
): (values: readonly Value[]) => Value {
  const [width, named] = [constants[stepping.width], constants[stepping.zone]];
  if (width !== undefined && width !== null) requireWidth(stepping, width);
  if (named !== undefined && named !== null) requireZone(named);
  const isZoneOfRow = constants.length > stepping.zone && named === undefined;
  const same =
    width === undefined || width === null || isZoneOfRow
      ? undefined
      : constantSteps(stepping, { width, zone: named ?? zone });
  const made = new Kept(CALENDAR_STEPS_KEPT, (key: string) => {
    const [own = "", place = ""] = key.split("\n");
    const [found, at] = [stepping.read(own), place === "" ? UTC_ZONE : zoneNamed(place)];
    return { steps: found && at && new CalendarSteps(found, at) };
  });
  const ofRow = (values: readonly Value[]): CalendarSteps | undefined =>
    made.of(`${String(values[stepping.width])}\n${String(values[stepping.zone] ?? zone ?? "")}`).steps;
  return zoneCounted((values: readonly Value[]) => {
    const startMs = (same ?? ofRow(values))?.startMs(Number(values[stepping.time]));
    return startMs === undefined || Number.isNaN(startMs) ? null : startMs;
  });
}

/** `AppError("invalid")` for a width or a zone that does not exist. */
export function constantSteps(
  stepping: Stepping,
  { width, zone }: { readonly width: Value; readonly zone: Value | undefined },
): CalendarSteps {
  const own = requireWidth(stepping, width);
  return new CalendarSteps(own, zone === undefined || zone === null ? UTC_ZONE : requireZone(zone));
}

/**
 * Returns the zone for the values of each row; UTC if the function was given none. An unknown zone is an
 * `AppError("invalid")` if it is the same for all rows, otherwise undefined.
 */
export function zoneAt(
  constants: readonly (Value | undefined)[],
  at: number,
): (values: readonly Value[]) => Zone | undefined {
  const named = constants[at];
  if (constants.length <= at) return () => UTC_ZONE;
  if (named !== undefined && named !== null) {
    const zone = requireZone(named);
    return () => zone;
  }
  const made = new Kept(CALENDAR_STEPS_KEPT, (name: string) => ({ zone: zoneNamed(name) }));
  return (values) => made.of(String(values[at])).zone;
}

/** The same function. It counts the look-ups of time zones. */
export function zoneCounted<A extends readonly unknown[], T>(evaluate: (...given: A) => T): (...given: A) => T {
  return (...given) => {
    const before = zoneWork();
    const result = evaluate(...given);
    THREAD_TEXT_WORK.countOffsets(zoneWork() - before);
    return result;
  };
}

function requireWidth({ read, wanted }: Stepping, value: Value): CalendarWidth {
  const width = read(String(value));
  if (width) return width;
  throw new AppError("invalid", `[Valid] ${JSON.stringify(value)} is ${wanted}.`);
}

/** `AppError("invalid")` for a value that names no time zone. */
export function requireZone(value: Value): Zone {
  const zone = typeof value === "string" ? zoneNamed(value) : undefined;
  if (zone) return zone;
  throw new AppError(
    "invalid",
    `[Valid] ${JSON.stringify(value)} is no time zone: a name such as "Europe/Berlin", "UTC", or an offset such as "+01:00".`,
  );
}
