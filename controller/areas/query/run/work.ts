import { type Condition, operandsOf, stepsOf } from "../../../../common/mql/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import type { Expression, GroupPlan, Shape } from "../plan/outputs.ts";

/**
 * Number of fields, values and functions that are compared or computed in the time of reading one ordinary row. Below
 * it: the number of conditions that look for words.
 */
const STEPS_PER_ROW = 8;
const TEXT_MATCHES_PER_ROW = 0.1;

/** Cost of a row to which this condition is applied, in ordinary rows. */
export function workOf(condition: Condition | undefined): number {
  if (!condition) return 1;
  if (condition.kind === "and" || condition.kind === "or")
    return condition.items.reduce((work, item) => work + workOf(item) - 1, 1);
  if (condition.kind === "not") return workOf(condition.operand);
  const steps = operandsOf(condition).reduce((sum, operand) => sum + stepsOf(operand), 0);
  return 1 + steps / STEPS_PER_ROW + (condition.kind === "textMatch" ? 1 / TEXT_MATCHES_PER_ROW : 0);
}

/** Cost of a row of the answer with these outputs, in ordinary rows. */
export function rowWorkOf({
  outputs,
  orderBy,
  grouping,
}: Pick<Shape<never>, "outputs" | "orderBy" | "grouping">): number {
  const stars = outputs.filter((output) => output.kind === "star").length;
  const values = [
    ...outputs.flatMap((output) => (output.kind === "star" ? [] : [output.value])),
    ...orderBy.map(({ value }) => value),
  ];
  const steps = [...values.map(stepsOfValue), ...(grouping ? stepsOfGroup(grouping) : [])];
  return 1 + stars + Math.floor(steps.reduce((sum, own) => sum + own, 0) / STEPS_PER_ROW);
}

function stepsOfGroup({ keys, aggregates, having }: GroupPlan): readonly number[] {
  return [
    ...[...keys, ...aggregates.map(({ field }) => field)].map(stepsOfField),
    ...(having ? operandsOf(having).map(stepsOf) : []),
  ];
}

function stepsOfValue(value: Expression): number {
  if (value.kind === "computed") return stepsOf(value.node);
  return stepsOfField(value.kind === "field" ? value.field : undefined);
}

function stepsOfField(field: BoundField | undefined): number {
  return field?.computed ? stepsOf(field.computed.node) : 1;
}
