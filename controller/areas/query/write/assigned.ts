import { AppError } from "../../../../common/errors.ts";
import {
  type Call,
  type Field,
  isValueNode,
  mapOperand,
  type Operand,
  partsOf,
  printCall,
  printOperand,
} from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { canonicalValue, type Column, type ObjectRow } from "../../objects/index.ts";
import { castTo } from "../expressions/cast.ts";
import { DATE, type Kind, kindOf, TEXT, TIME } from "../expressions/kind.ts";
import { type Arguments, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { compileOperand, type Source } from "../expressions/predicate.ts";
import type { Scope } from "../plan/names/scope.ts";

/** Value that a column is set to. It may be computed from the object before the write. */
export interface Assigned {
  /** The value; present only if it needs no object. */
  readonly constantFor?: (column: Column) => Value | undefined;
  /** The value in the form that the column takes; absent: the column is cleared. */
  valueFor(column: Column, row: ObjectRow): Value | undefined;
}

/**
 * Binds `column = operand`. Throws the errors of the names, and `AppError("invalid")` if a column of that name cannot
 * take the result. This check does not depend on the stored objects. A value that is computed from an object may still
 * be refused by the run, if the column takes only certain numbers or texts (an enum, an id).
 */
export function bindAssigned(
  operand: Operand,
  to: { readonly name: string; readonly scope: Scope; readonly values: Arguments },
): Assigned {
  const { name, scope, values } = to;
  const compile = (node: Operand): Source<ObjectRow> =>
    compileOperand(node, { values, resolve: (part) => sourceOf(part, scope, values) });
  return about(operand.span, () => {
    const source = compile(operand);
    for (const column of scope.columnsNamed(name)) checkTaken(operand, column, { compile, values });
    return {
      ...(partsOf(operand).length === 0 ? { constantFor: constantOf(operand, values) } : {}),
      valueFor: (column, row) => valueOf(source, column, row),
    };
  });
}

function sourceOf(part: Field | Call, scope: Scope, values: Arguments): Source<ObjectRow> {
  if (part.kind === "field") return scope.source(scope.bind(part, values));
  throw new AppError("invalid", `[Valid] ${printCall(part)} is about many objects: SET sees one at a time.`);
}

function constantOf(operand: Operand, values: Arguments): NonNullable<Assigned["constantFor"]> {
  const source = compileOperand<Operand>(operand, {
    values,
    resolve: (part) => {
      throw new RangeError(`${printOperand(part)} needs an object`);
    },
  });
  return (column) => valueOf(source, column, operand);
}

function valueOf<R>(source: Source<R>, column: Column, row: R): Value | undefined {
  const value = source.read(row);
  return value === undefined || value === null ? undefined : taken(column, value, source.kind(row));
}

interface Checking {
  readonly compile: (operand: Operand) => Source<ObjectRow>;
  readonly values: Arguments;
}

/** Checks each outcome of a choice separately. Checks a value that needs no object like INSERT does. */
function checkTaken(operand: Operand, column: Column, of: Checking): void {
  if (isValueNode(operand)) {
    about(operand.span, () => canonicalValue(column, literal(operand, of.values)));
    return;
  }
  if (operand.kind === "case" || (operand.kind === "computed" && operand.name === "coalesce")) {
    const outcomes =
      operand.kind === "case"
        ? [...operand.branches.map(({ then }) => then), ...(operand.otherwise ? [operand.otherwise] : [])]
        : operand.operands;
    for (const outcome of outcomes) checkTaken(outcome, column, of);
    return;
  }
  about(operand.span, () => {
    const unfit = of.compile(operand).kinds.find((kind) => !takes(column, kind));
    if (unfit) throw cannotBeSet(column, operand, unfit);
    if (partsOf(operand).length === 0 && !asksSelects(operand)) constantOf(operand, of.values)(column);
  });
}

/** True if the operand depends on the answer of a SELECT, which is unknown during the check. */
function asksSelects(operand: Operand): boolean {
  let asks = false;
  mapOperand(operand, {
    comparison(condition) {
      asks ||= condition.kind === "in" && condition.foundBy !== undefined;
      return condition;
    },
  });
  return asks;
}

function cannotBeSet(column: Column, operand: Operand, unfit: Kind): AppError {
  const hint = unfit.type === "any" ? "what it is is known only of each object: cast(… as …) says it" : article(unfit);
  return new AppError(
    "invalid",
    `[Valid] ${column.name} (${column.type}) cannot be set to ${printOperand(operand)}: ${hint}.`,
    { details: { column: column.name } },
  );
}

function article({ type }: Kind): string {
  return `that is a ${type === "code" ? "text" : type}`;
}

/** Kinds that a column accepts besides its own kind. */
const ALSO_TAKEN: Readonly<Partial<Record<Kind["type"], readonly Kind["type"][]>>> = {
  text: ["code", "number", "boolean", "time", "date"],
  code: ["text"],
  time: ["date"],
  date: ["time"],
};

function takes(column: Column, kind: Kind): boolean {
  const own = kindOf(column);
  if (own.type === "any") return false;
  if (own === kind || ALSO_TAKEN[own.type]?.includes(kind.type)) return true;
  return own.type === kind.type && own.element?.type === "text" && kind.element?.type === "code";
}

const WHOLE: ReadonlySet<string> = new Set(["int", "bigint", "smallint", "long", "varint"]);

/** Numbers for columns of integers lose their decimals. Times become texts and days as by CAST. */
function taken(column: Column, value: Value, kind: Kind): Value | undefined {
  if (WHOLE.has(column.type) && typeof value === "number") return canonicalValue(column, Math.trunc(value));
  const own = kindOf(column);
  const cast = own === TEXT && kind === TIME ? "text" : own === DATE && kind === TIME ? "date" : undefined;
  if (cast === undefined) return canonicalValue(column, value);
  const only: Source<null> = { label: "", kinds: [kind], kind: () => kind, read: () => value };
  return canonicalValue(column, castTo(cast, only).read(null) ?? null);
}
