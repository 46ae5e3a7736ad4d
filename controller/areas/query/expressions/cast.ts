import { unknownName } from "../../../../common/text/nearest.ts";
import type { Value } from "../../../../common/value.ts";
import { numberValue } from "./arithmetic.ts";
import { dateAt, dateText } from "./functions/calendar.ts";
import { BOOLEAN, DATE, type Kind, NUMBER, numberOf, TEXT, TIME, toComparable, toValue } from "./kind.ts";
import type { Source } from "./source.ts";
import { THREAD_TEXT_WORK } from "./functions/textwork.ts";

interface Cast {
  readonly kind: Kind;
  /** Converts a value; null if that is impossible. */
  readonly make: (value: Value, from: Kind) => Value;
}

const WHOLE: Cast = { kind: NUMBER, make: (value) => wholeOf(value) };
const DOUBLE: Cast = { kind: NUMBER, make: (value) => doubleOf(value) };
const TEXTS: Cast = { kind: TEXT, make: textOf };
const CASTS: Readonly<Record<string, Cast>> = {
  int: WHOLE,
  bigint: WHOLE,
  long: WHOLE,
  double: DOUBLE,
  float: DOUBLE,
  text: TEXTS,
  varchar: TEXTS,
  boolean: scalar(BOOLEAN),
  timestamp: scalar(TIME),
  date: scalar(DATE),
};

/** Names of the types that CAST knows. */
export const CAST_TYPES: readonly string[] = Object.keys(CASTS);

/** `cast(source AS type)`; null if the value cannot be converted. */
export function castTo<R>(type: Value | undefined, source: Source<R>): Source<R> {
  const cast = typeof type === "string" ? CASTS[type] : undefined;
  if (!cast)
    throw unknownName(`[Valid] There is no cast to ${String(type)}: ${CAST_TYPES.join(", ")}.`, {
      name: String(type),
      among: CAST_TYPES,
      code: "invalid",
    });
  return {
    label: `cast(${source.label} AS ${String(type)})`,
    kinds: [cast.kind],
    kind: () => cast.kind,
    read(row) {
      const value = source.read(row);
      if (value === undefined || value === null) return null;
      THREAD_TEXT_WORK.charge(row, value);
      return cast.make(value, source.kind(row));
    },
  };
}

/** A time as `YYYY-MM-DD HH:mm:ss.SSS`, in UTC; lists and maps as JSON. */
function textOf(value: Value, from: Kind): Value {
  const timeMs = from === TIME ? toComparable(TIME, value) : undefined;
  const date = typeof timeMs === "number" ? dateAt(timeMs) : undefined;
  if (date) return dateText(date);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function wholeOf(value: Value): Value {
  const number = numeric(value);
  return typeof number === "number" ? numberValue(Math.trunc(number)) : numberValue(number);
}

function doubleOf(value: Value): Value {
  const number = numeric(value);
  return number === undefined ? null : numberValue(Number(number));
}

function numeric(value: Value): number | bigint | undefined {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" ? value : typeof value === "string" ? numberOf(value) : undefined;
}

function scalar(kind: Kind): Cast {
  return {
    kind,
    make(value) {
      const comparable = toComparable(kind, value);
      return comparable === undefined ? null : toValue(comparable);
    },
  };
}
