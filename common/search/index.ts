export type * from "./ast.ts";
export { parseSearch } from "./parse.ts";
export { type TimeQuestion, timeQuestion } from "./period.ts";
export { printAlternative, printSearch, printSegment } from "./print.ts";
