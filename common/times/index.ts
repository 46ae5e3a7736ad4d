export { EPOCH_UNITS, unitNamed, type EpochUnit } from "./epoch.ts";
export { LAYOUT_LETTERS, layoutOf } from "./layout.ts";
export { readTime, type TimeWriting } from "./read.ts";
export type { ReadTime, TimeContext, TimeZone } from "./types.ts";
export { findTimeZone, timeZoneOf, UTC } from "./zones.ts";
