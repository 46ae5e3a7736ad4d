import {
  type Condition,
  type Field,
  mapCondition,
  partsOf,
  type Select,
  type SelectItem,
  type SelectRef,
} from "../../../../common/mql/index.ts";
import { kindOf } from "../expressions/kind.ts";
import type { Answer } from "./answered.ts";
import { isPseudo } from "./names/pseudo.ts";
import { allOf, conjuncts } from "./pushdown.ts";

/** Kinds whose values compare the same way in the outer SELECT as in the class. */
const MOVED_KINDS: ReadonlySet<string> = new Set(["text", "number", "boolean", "time", "date"]);
const MOVED_PSEUDO: ReadonlySet<string> = new Set(["id", "vtime", "ctime"]);

/**
 * The SELECT behind FROM with those conditions of the outer SELECT that apply to its own columns, so that they narrow
 * its read. The outer SELECT checks them again. Undefined if there are no such conditions. Also undefined if fewer rows
 * would change the answer of the inner SELECT, as with GROUP BY, a window or a limit.
 */
export function narrowedInside(select: Select, source: SelectRef, answer: Answer): Select | undefined {
  const inner = source.select;
  if (inner.kind !== "select" || !keepsRows(inner)) return undefined;
  const moved = conjuncts(select.where).flatMap(
    (condition) => movedInside(condition, (field) => fieldInside(field, { select, source, inner, answer })) ?? [],
  );
  return moved.length === 0 ? undefined : { ...inner, where: allOf([...conjuncts(inner.where), ...moved]) };
}

/** True if each row of the SELECT is made from one object only. */
function keepsRows({ joins, groupBy, having, fill, limit, offset, cursor, items }: Select): boolean {
  const isWhole = limit === undefined && offset === undefined && cursor === undefined;
  const isPlain = joins.length === 0 && groupBy.length === 0 && having === undefined && fill === undefined;
  return isWhole && isPlain && items.every(isOfOne);
}

function isOfOne(item: SelectItem): boolean {
  return item.kind === "star" || (item.kind === "item" && partsOf(item.value).every(({ kind }) => kind === "field"));
}

function movedInside(condition: Condition, inside: (field: Field) => Field | undefined): Condition | undefined {
  const asked = askedOf(condition);
  const field = asked && inside(asked);
  return field && mapCondition(condition, { operand: (operand) => (operand === asked ? field : operand) });
}

/** The field that the condition compares with values. */
function askedOf(condition: Condition): Field | undefined {
  switch (condition.kind) {
    case "compare":
      return condition.left.kind === "field" ? condition.left : undefined;
    case "in":
    case "between":
    case "like":
    case "isNull":
      return condition.operand.kind === "field" ? condition.operand : undefined;
    default:
      return undefined;
  }
}

interface Inside {
  readonly select: Select;
  readonly source: SelectRef;
  readonly inner: Select;
  readonly answer: Answer;
}

function fieldInside({ parts, window, span }: Field, of: Inside): Field | undefined {
  const { select, source, inner, answer } = of;
  const name = window ? undefined : ownName(parts, source.alias, select.joins.length === 0);
  const column = name === undefined ? undefined : answer.view.column(name);
  if (name === undefined || column === undefined || !MOVED_KINDS.has(kindOf(column).type)) return undefined;
  const item = inner.items.filter((one) => one.kind === "item").find((one) => nameOf(one) === name);
  const hasStar = inner.items.some(({ kind }) => kind === "star");
  const value = item?.value ?? (hasStar ? { kind: "field" as const, parts: [name], span } : undefined);
  if (value?.kind !== "field" || value.window) return undefined;
  const own = ownName(value.parts, inner.from.alias, true);
  const isMoved = own !== undefined && (!isPseudo(own) || MOVED_PSEUDO.has(own));
  return isMoved ? { ...value, span } : undefined;
}

/** Name of a column of the table; undefined for a member of a column. */
function ownName(parts: readonly string[], alias: string | undefined, isOnly: boolean): string | undefined {
  const [first, second] = parts;
  if (parts.length === 2 && first === alias) return second;
  return parts.length === 1 && isOnly ? first : undefined;
}

function nameOf({ alias, value }: Extract<SelectItem, { kind: "item" }>): string | undefined {
  return alias ?? (value.kind === "field" ? value.parts.at(-1) : undefined);
}
