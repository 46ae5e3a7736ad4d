import { arrivalText } from "../../../../common/ids.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectRow } from "../../objects/index.ts";
import type { JoinPlan } from "../plan/join.ts";
import type { Output } from "../plan/outputs.ts";
import { isTimeOfRow } from "../plan/paging.ts";
import type { SelectPlan } from "../plan/plan.ts";
import { isPseudo } from "../plan/names/pseudo.ts";

/** Keys of the order of arrival for rows of a UNION, made from the ids of their objects. */
export class Arrivals {
  readonly #texts = new WeakMap<Row, string>();
  /** Absent: rows that are equal in the order of the UNION keep the order of its parts. */
  descending: boolean | undefined;

  readonly note = (answered: Row, { id, class: { label } }: ObjectRow): void => {
    if (this.descending !== undefined) this.#texts.set(answered, arrivalText(id.slice(label.length + 1)));
  };

  of(row: Row): string {
    return this.#texts.get(row) ?? "";
  }
}

/**
 * Direction of the first time in ORDER BY that is a time of the objects in every part of a UNION. Absent if there is
 * none, or if a part does not answer single objects.
 */
export function arrivalOf(
  { orderBy }: { readonly orderBy: readonly { readonly name: string; readonly descending: boolean }[] },
  parts: readonly (SelectPlan | JoinPlan)[],
): boolean | undefined {
  return orderBy.find(({ name }) => parts.every((part) => isOfObjects(part) && answersTime(part, name)))?.descending;
}

function isOfObjects(part: SelectPlan | JoinPlan): part is SelectPlan {
  return part.kind === "select" && !part.grouping && !part.distinct && part.windows.length === 0;
}

function answersTime({ outputs, scope }: SelectPlan, name: string): boolean {
  return outputs.some((output) => (output.kind === "star" ? isTimeOfStar(scope, name) : isTimeOutput(output, name)));
}

function isTimeOfStar({ tree }: SelectPlan["scope"], name: string): boolean {
  return isPseudo(name) && isTimeOfRow(name) && tree.pseudoFields.includes(name);
}

function isTimeOutput(output: Extract<Output, { readonly kind: "value" }>, name: string): boolean {
  return output.name === name && output.value.kind === "field" && isTimeOfRow(output.value.field.pseudo);
}
