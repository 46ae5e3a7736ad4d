export { anyOnLeft, isAny } from "./any.ts";
export type * from "./ast.ts";
export { mapNode, NOWHERE, textNode, valueNode } from "./nodes.ts";
export { parseConditionText, parseScript, parseScriptInSteps } from "./parse.ts";
export type { Steps } from "./reader.ts";
export { positionAt } from "./position.ts";
export { StatementSplitter, type StatementText } from "./split.ts";
export {
  printCall,
  printCondition,
  printField,
  printOperand,
  printStatement,
  printWindow,
} from "./print.ts";
export {
  insideOf,
  isValueNode,
  mapCondition,
  mapOperand,
  operandsOf,
  partsOf,
  partsOfCondition,
  stepsOf,
} from "./walk.ts";
