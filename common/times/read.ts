import { TIME_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { epochTime, type EpochUnit } from "./epoch.ts";
import { timeOf } from "./fields.ts";
import { recognised } from "./formats.ts";
import type { Layout } from "./layout.ts";
import type { ReadTime, TimeContext, TimeFault } from "./types.ts";

/** The notation of times. */
export interface TimeWriting {
  /**
   * A text is read with the first layout that fits. If none fits, it may still be a count if `unit` is set. Without
   * layouts it may be in any known format.
   */
  readonly layouts: readonly Layout[];
  /** Unit of numbers, and of texts that are numbers. Absent: their number of digits decides. */
  readonly unit?: EpochUnit | undefined;
}

/** Without a unit, a text with fewer digits is no count from 1970: it may be a year. */
const EPOCH_TEXT = /^[+-]?\d{5}/;

/** Reads the time of a text or number; returns the reason if it is none. */
export function readTime(value: string | number, writing: TimeWriting, context: TimeContext): ReadTime {
  const { layouts, unit } = writing;
  if (typeof value === "number") return numberTime(value, writing, context);
  const text = value.trim();
  if (text.length > TIME_TEXT_MAX_CHARACTERS) return TOO_LONG;
  if (layouts.length > 0) {
    const time = byLayouts(text, layouts, context);
    const isCount = typeof time !== "number" && time.isMisfit === true && unit !== undefined;
    return (isCount ? epochTime(text, unit) : undefined) ?? time;
  }
  const counted = unit !== undefined || EPOCH_TEXT.test(text) ? epochTime(text, unit) : undefined;
  return counted ?? recognised(text, context);
}

/**
 * A number in JSON may be a date such as 20261129. So without a unit, layouts are tried before it is read as a count.
 */
function numberTime(value: number, { layouts, unit }: TimeWriting, context: TimeContext): ReadTime {
  const time = unit === undefined && layouts.length > 0 ? byLayouts(String(value), layouts, context) : NO_LAYOUT;
  if (typeof time === "number" || time.isMisfit !== true) return time;
  return epochTime(value, unit) ?? { reason: "is no number" };
}

function byLayouts(text: string, layouts: readonly Layout[], context: TimeContext): ReadTime {
  let fault: TimeFault | undefined;
  for (const layout of layouts) {
    const fields = layout.read(text);
    const time = "reason" in fields ? fields : timeOf(fields, context);
    if (typeof time === "number") return time;
    if (fault === undefined || fault.isMisfit) fault = time;
  }
  return fault !== undefined && (layouts.length === 1 || !fault.isMisfit) ? fault : NO_LAYOUT;
}

const TOO_LONG: TimeFault = { reason: `has more than ${TIME_TEXT_MAX_CHARACTERS} characters` };
const NO_LAYOUT: TimeFault = { reason: "is no time of any layout of the rule", isMisfit: true };
