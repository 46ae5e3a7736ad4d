import type { CalendarSteps } from "../../../../common/calendar/steps.ts";
import { AppError } from "../../../../common/errors.ts";
import { type Condition, type Fill, type Operand, type Select, type ValueNode } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { bindOperand } from "../expressions/bind.ts";
import { constantSteps, steppingOf } from "../expressions/functions/calendar-steps.ts";
import type { Names } from "../expressions/fields.ts";
import { TIME, toComparable } from "../expressions/kind.ts";
import { type Arguments, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { conjuncts } from "./pushdown.ts";

/** The steps of time in a grouped answer, including steps without rows. */
export interface FillPlan {
  /** Index of the key that is the beginning of the step. */
  readonly key: number;
  readonly steps: CalendarSteps;
  /** Width of the steps as written, with their zone unless that is UTC. */
  readonly width: string;
  /** Beginnings of the first and the last step, if the condition gives them; otherwise the rows decide. */
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  /** True if the step is the only key. */
  readonly isAlone: boolean;
  /** Value of the aggregates of an empty step. */
  readonly value: number | "previous" | null;
}

interface Meaning {
  readonly names: Names;
  readonly values: Arguments;
}

/** `keys` are the keys of GROUP BY, with aliases replaced by their expressions. */
export function fillPlan(
  { fill, where }: Pick<Select, "where"> & { readonly fill: Fill },
  keys: readonly Operand[],
  meaning: Meaning,
): FillPlan {
  return about(fill.span, () => {
    const found = keys.flatMap((operand, key) => stepsOf(operand, key, meaning));
    const [step] = found;
    if (!step || found.length > 1)
      throw new AppError(
        "invalid",
        "[Valid] FILL needs one bucket(time, 'width') or date_trunc('unit', time) in GROUP BY, with the width as a text.",
      );
    const { key, steps, width } = step;
    return { key, steps, width, isAlone: keys.length === 1, ...rangeOf(where, step, meaning), value: valueOf(fill) };
  });
}

interface Steps {
  readonly key: number;
  readonly steps: CalendarSteps;
  readonly width: string;
  /** Label of the time that is put into steps. */
  readonly label: string | undefined;
}

function stepsOf(operand: Operand, key: number, { names, values }: Meaning): readonly Steps[] {
  const stepping = operand.kind === "computed" ? steppingOf(operand.name) : undefined;
  if (operand.kind !== "computed" || !stepping) return [];
  const time = operand.operands[stepping.time];
  const width = valueIn(operand.operands[stepping.width], values);
  const named = operand.operands[stepping.zone];
  const zone = named ? valueIn(named, values) : operand.zone;
  // If the zone is null, so is the beginning of every step.
  if (!time || width === undefined || (named && (zone === undefined || zone === null))) return [];
  const label = time.kind === "field" ? bindOperand(time, names, values).label : undefined;
  const words = `${String(width)}${zone === undefined ? "" : ` in ${String(zone)}`}`;
  return [{ key, steps: constantSteps(stepping, { width, zone }), width: words, label }];
}

/** Undefined for an operand that is neither a text nor a placeholder. */
function valueIn(operand: Operand | undefined, values: Arguments): Value | undefined {
  return operand?.kind === "text" || operand?.kind === "placeholder" ? literal(operand, values) : undefined;
}

function valueOf({ value }: Fill): FillPlan["value"] {
  if (value === "previous") return value;
  return value.kind === "number" ? Number(value.text) : null;
}

interface Bound {
  readonly side: "from" | "to";
  readonly timeMs: number;
}

function rangeOf(
  where: Condition | undefined,
  { label, steps }: Steps,
  meaning: Meaning,
): Pick<FillPlan, "fromMs" | "toMs"> {
  const bounds = conjuncts(where).flatMap((condition) => boundsOf(condition, label, meaning));
  const starts = (side: Bound["side"]): readonly number[] =>
    bounds.filter((bound) => bound.side === side).map(({ timeMs }) => startMs(steps, timeMs));
  const [from, to] = [starts("from"), starts("to")];
  return {
    fromMs: from.length > 0 ? Math.max(...from) : undefined,
    toMs: to.length > 0 ? Math.min(...to) : undefined,
  };
}

/** A bound beyond the calendar has no step. It is used itself, because it is far from all steps. */
function startMs(steps: CalendarSteps, timeMs: number): number {
  const start = steps.startMs(timeMs);
  return Number.isNaN(start) ? timeMs : start;
}

/** Bounds of the time in a condition that every row must fulfil. */
function boundsOf(condition: Condition, label: string | undefined, { names, values }: Meaning): readonly Bound[] {
  if (condition.kind !== "compare" && condition.kind !== "between") return [];
  const operand = condition.kind === "compare" ? condition.left : condition.operand;
  if (operand.kind !== "field" || bindOperand(operand, names, values).label !== label) return [];
  const at = (side: Bound["side"], node: ValueNode, beforeMs = 0): readonly Bound[] => {
    const timeMs = timeOf(literal(node, values));
    return timeMs === undefined ? [] : [{ side, timeMs: Math.ceil(timeMs) - beforeMs }];
  };
  if (condition.kind === "between")
    return condition.negated ? [] : [...at("from", condition.low), ...at("to", condition.high)];
  switch (condition.operator) {
    case ">":
    case ">=":
      return at("from", condition.right);
    case "<":
      return at("to", condition.right, 1);
    case "<=":
      return at("to", condition.right);
    default:
      return [];
  }
}

function timeOf(value: Value): number | undefined {
  const timeMs = value === null ? undefined : toComparable(TIME, value);
  return typeof timeMs === "number" ? timeMs : undefined;
}
