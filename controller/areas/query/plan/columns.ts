import {
  type Condition,
  type Field,
  type Operand,
  partsOf,
  partsOfCondition,
  type Select,
} from "../../../../common/mql/index.ts";
import { about } from "../expressions/placing.ts";
import { parseRowCondition, usable } from "./names/rowconditions.ts";
import { cellsOf, type Scope, unveiled } from "./names/scope.ts";
import type { VisibleTree } from "./names/tree.ts";

/**
 * Names of the columns that a SELECT over one class tree needs, including those of its principal's row conditions.
 * `undefined` if it may need all.
 */
export function columnsOf(select: Select, scope: Scope): readonly string[] | undefined {
  const items = select.items.flatMap((item) => (item.kind === "item" ? [item.value] : []));
  // Any value of a row may decide which of its values the principal sees.
  if (items.length < select.items.length || cellsOf(scope) !== undefined) return undefined;
  const ruledBy = ruledColumns(scope);
  if (ruledBy === undefined) return undefined;
  const operands = [...items, ...select.groupBy, ...select.orderBy.map(({ value }) => value)];
  const conditions = [select.where, select.having].filter((condition) => condition !== undefined);
  const own = [...operands.flatMap(fieldsOf), ...conditions.flatMap(fieldsOfCondition)];
  return [...new Set([...namesOf(own, scope), ...ruledBy])];
}

/**
 * Defined names of the fields. The name of an output adds none, because the fields of the output are in the list, too.
 */
function namesOf(fields: readonly Field[], scope: Scope): readonly string[] {
  return fields.flatMap(({ parts, span }) => {
    const [first = "", second = ""] = parts;
    const written = parts.length > 1 && first === scope.alias ? second : first;
    return about(span, () => scope.definedName(written)) ?? [];
  });
}

/** The fields of a SELECT, including those of HAVING but not those of WHERE. */
export function fieldsOfSelect({ items, groupBy, orderBy, having }: Select): readonly Field[] {
  const answered = items.flatMap((item) => {
    if (item.kind === "star") return [];
    if (item.kind === "item") return [item.value];
    return [...item.operands, ...item.partitionBy, ...item.orderBy.map(({ value }) => value)];
  });
  const operands = [...answered, ...groupBy, ...orderBy.map(({ value }) => value)];
  return [...operands.flatMap(fieldsOf), ...(having ? fieldsOfCondition(having) : [])];
}

export function fieldsOf(operand: Operand): readonly Field[] {
  return partsOf(operand).flatMap((part) => {
    if (part.kind === "field") return [part];
    return part.argument === undefined ? [] : fieldsOf(part.argument);
  });
}

function fieldsOfCondition(condition: Condition): readonly Field[] {
  return partsOfCondition(condition).flatMap(fieldsOf);
}

const ruled = new WeakMap<VisibleTree, readonly string[]>();

/**
 * Columns of the row conditions and of the owners' limits, even those hidden from the principal. `undefined` if a name
 * means different columns in different classes.
 */
function ruledColumns(scope: Scope): readonly string[] | undefined {
  let names = ruled.get(scope.tree);
  if (names === undefined) {
    const texts = new Set(scope.classes.map((view) => scope.rowCondition(view)).filter((text) => text !== undefined));
    if (texts.size > 0 && scope.tree.isMixed) return undefined;
    const inner = unveiled(scope);
    const limits = scope.tree.limited.flatMap((view) => view.guard?.limit?.columns ?? []);
    names = usable(() => [
      ...limits,
      ...[...texts].flatMap((text) => namesOf(fieldsOfCondition(parseRowCondition(text)), inner)),
    ]);
    ruled.set(scope.tree, names);
  }
  return names;
}
