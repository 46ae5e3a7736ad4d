import { VITAL_FACTS } from "../agent/vitals.ts";
import { type AppError, isAppError } from "../errors.ts";
import {
  type Condition,
  type Field,
  mapCondition,
  type Operand,
  parseConditionText,
  parseScript,
  printCondition,
} from "../mql/index.ts";
import { conditionFault, targetFault } from "./faults.ts";

/** Columns of the class of hosts that change without a change of the host. */
export const VITAL_COLUMNS: ReadonlySet<string> = new Set([
  ...["status", "statustime", "seen", "policies", "policytimes", "confs", "usage", "vtime", "mtime"],
]);
const VITALS: ReadonlySet<string> = new Set(VITAL_FACTS);
/** Functions whose values change with time. */
const TIMES: ReadonlySet<string> = new Set(["now", "ago"]);
const CLASS_NAME = "hostinfo";
const CONFIG = "config";

/**
 * The condition after `where:` of the entry, which begins at `start`, in its printed form. `AppError("syntax")` for a
 * text that is no condition. `AppError("invalid")` for placeholders, aggregates, and for fields and functions whose
 * values change by themselves: hosts would come and go all the time.
 */
export function hostCondition(entry: string, start: number): string {
  const condition = parsed(entry, start);
  const placed = (offset: number, complaint: string): AppError => targetFault(entry, start + offset, complaint);
  mapCondition(condition, {
    operand: (operand) => {
      refuse(operand, placed);
      return operand;
    },
  });
  const text = printCondition(condition);
  if (parseScript(`SELECT host FROM /c WHERE ${text}`).placeholders > 0)
    throw targetFault(entry, start, "a target takes no values from outside, so it contains no ?");
  return text;
}

function parsed(entry: string, start: number): Condition {
  const text = entry.slice(start);
  try {
    return parseConditionText(text);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const { line, column } = error.details ?? {};
    if (typeof line !== "number" || typeof column !== "number") throw error;
    throw conditionFault(entry, start + offsetOf(text, { line, column }), error);
  }
}

function offsetOf(text: string, { line, column }: { readonly line: number; readonly column: number }): number {
  const before = text.split("\n").slice(0, line - 1);
  return before.reduce((offset, one) => offset + one.length + 1, 0) + column - 1;
}

function refuse(operand: Operand, placed: (offset: number, complaint: string) => AppError): void {
  if (operand.kind === "call") throw placed(operand.span.start, `${operand.name}(…) is computed from several rows`);
  if (operand.kind === "computed" && TIMES.has(operand.name))
    throw placed(operand.span.start, `${operand.name}() changes with time, so hosts would come and go`);
  if (operand.kind !== "field") return;
  const fault = faultOf(operand);
  if (fault !== undefined) throw placed(operand.span.start, fault);
}

/** Undefined if a target may depend on the field. */
function faultOf({ parts }: Field): string | undefined {
  const [column = "", member] = parts[0]?.toLowerCase() === CLASS_NAME ? parts.slice(1) : parts;
  const name = column.toLowerCase();
  if (VITAL_COLUMNS.has(name)) return `${column} changes all the time, so hosts would come and go`;
  if (name !== CONFIG) return undefined;
  if (member === undefined) return "config contains figures that change all the time: name a member, as in config.site";
  return VITALS.has(member) ? `${member} changes all the time, so hosts would come and go` : undefined;
}
