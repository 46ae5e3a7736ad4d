export type * from "./ast.ts";
export { parseConditionText, parseScript } from "./parse.ts";
export { printCall, printCondition, printStatement } from "./print.ts";
