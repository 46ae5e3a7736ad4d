export { ObjectService, type ObjectServiceDependencies } from "./service.ts";
export type * from "./types.ts";
export { canonicalText, canonicalValue, elementColumn, isCollection, typeText } from "./values.ts";
