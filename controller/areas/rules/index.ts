export { FileParser, type FileSource, type OpenFile } from "./parse-file.ts";
export { ruleRoutes } from "./routes.ts";
export { RuleService } from "./service.ts";
export type * from "./types.ts";
