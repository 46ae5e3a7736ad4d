export { isExpression, parseTarget, type Target } from "./target.ts";
