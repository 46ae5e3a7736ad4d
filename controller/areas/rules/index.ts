export { rulesArea } from "./area.ts";
export { ruleOwner } from "./owner.ts";
export { FileParser, type FileSource, type OpenFile } from "./parse-file.ts";
export { PatternService } from "./patterns.ts";
export { ParseSlices } from "./slices.ts";
export { RuleService } from "./service.ts";
export type { RuleTasks } from "./tasks.ts";
export type * from "./types.ts";
