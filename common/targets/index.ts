export { isExpression, parseTarget, type Target } from "./target.ts";
export { VITAL_COLUMNS } from "./condition.ts";
