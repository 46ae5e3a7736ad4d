export { queryArea } from "./area.ts";
export { ClassChanges } from "./class-changes.ts";
export { classChange, classSpec } from "./write/define.ts";
export { definitionWarnings } from "./write/definition-warnings.ts";
export { literal } from "./expressions/literal.ts";
export { insertTimes } from "./batch/rows.ts";
export {
  aheadFault,
  bindInsert,
  bindInsertJson,
  checkRowCondition,
  rowGate,
  type InsertWork,
  type RowGate,
} from "./write/insert.ts";
export { type GatedRow, insertedId } from "./write/rows-after.ts";
export { type UnstoredNote, UnstoredRows } from "./write/unstored.ts";
export { queryRoutes, searchRoutes } from "./routes.ts";
export { SearchService } from "./search/index.ts";
export { canonicalRow } from "./write/write.ts";
export { isPseudo, PSEUDO_FIELDS, pseudoType } from "./plan/names/pseudo.ts";
export { QueryService } from "./service.ts";
export type * from "./types.ts";
export { inSlices, Slices } from "./run/slice.ts";
export { visibleObjects } from "./visible/objects.ts";
