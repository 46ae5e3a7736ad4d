export type * from "./ast.ts";
export { parseConditionText, parseScript } from "./parse.ts";
export { positionAt, type Position } from "./position.ts";
export { printCall, printCondition, printField, printStatement, printValue } from "./print.ts";
