export { hasWords } from "./definition.ts";
export { idFromColumns } from "./identity.ts";
export { Patience } from "./patience.ts";
export { ObjectService } from "./service.ts";
export type * from "./types.ts";
export { canonicalText, canonicalValue } from "./values.ts";
