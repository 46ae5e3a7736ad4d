export { classChange, classSpec } from "./define.ts";
export { bindInsert, bindInsertJson, checkRowCondition, type InsertWork } from "./insert.ts";
export { queryRoutes, searchRoutes } from "./routes.ts";
export { SearchService } from "./search/index.ts";
export { isPseudo, PSEUDO_FIELDS, pseudoType } from "./pseudo.ts";
export { QueryService } from "./service.ts";
export type * from "./types.ts";
export { Slices } from "./slice.ts";
