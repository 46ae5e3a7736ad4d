export { FileParser, type FileSource, type OpenFile } from "./parse-file.ts";
export { ruleRoutes } from "./routes.ts";
export { RuleService, type NewRule } from "./service.ts";
export type * from "./types.ts";
