import { TIME_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { epochTime, type EpochUnit } from "./epoch.ts";
import { timeOf } from "./fields.ts";
import { recognised } from "./formats.ts";
import type { Layout } from "./layout.ts";
import type { ReadTime, TimeContext, TimeFault } from "./types.ts";

/** How times are written. */
export interface TimeWriting {
  /** Texts are of the first one that fits, or counts where a unit is given; none: they are in a format that is known. */
  readonly layouts: readonly Layout[];
  /** The unit of numbers and of texts that are numbers; absent: the unit that their number of digits tells. */
  readonly unit?: EpochUnit | undefined;
}

/** Fewer digits are no count from 1970 where no unit is given: they may be a year. */
const EPOCH_TEXT = /^[+-]?\d{5}/;

/** The time of a text or number, or why it is none. */
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

/** JSON may have a date such as 20261129 as a number: one that fits a layout is no count unless a unit is given. */
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
