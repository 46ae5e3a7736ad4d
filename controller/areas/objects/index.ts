export { ObjectService } from "./service.ts";
export { parseTimestamp } from "./times.ts";
export type * from "./types.ts";
export { canonicalText, canonicalValue } from "./values.ts";
