export { columns, textColumns } from "./definitions/columns.ts";
export { makesClass, makesEdgeType, requireDefiner } from "./definitions/definers.ts";
export { hasWords } from "./definitions/definition.ts";
export { nameAmong } from "./definitions/naming.ts";
export type * from "./interface.ts";
export { ObjectService } from "./service.ts";
export type * from "./types.ts";
export { idFromColumns } from "./values/identity.ts";
export { canonicalText, canonicalValue } from "./values/values.ts";
