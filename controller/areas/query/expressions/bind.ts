import { AppError } from "../../../../common/errors.ts";
import {
  type Call,
  type Field,
  mapOperand,
  type Operand,
  partsOf,
  printOperand,
} from "../../../../common/mql/index.ts";
import { STEPPED_AGGREGATES } from "./aggregates/aggregate.ts";
import type { BoundField, Fields, Names } from "./fields.ts";
import type { Value } from "../../../../common/value.ts";
import { ANY, type Kind } from "./kind.ts";
import { type Arguments, withValues } from "./literal.ts";
import { compileOperand, type Source } from "./predicate.ts";

/**
 * Binds an operand to a field, or to a value that is computed from fields. The label of a computed value is its text;
 * equal texts mean the same, and the case of names does not matter. Throws the errors of `Names.bind`.
 */
export function bindOperand(operand: Exclude<Operand, Call>, names: Names, values: Arguments): BoundField {
  if (operand.kind === "field") return names.bind(operand, values);
  const label = printOperand(defined(operand, names, values));
  return {
    label,
    short: label,
    name: label,
    table: 0,
    pseudo: undefined,
    members: [],
    computed: { node: operand, values },
  };
}

/** The operand with defined names of fields, and with values instead of placeholders. */
export function defined<Node extends Operand>(operand: Node, names: Names, values: Arguments): Node;
export function defined(operand: Operand, names: Names, values: Arguments): Operand {
  return mapOperand(withValues(operand, values), {
    operand: (inner) => (inner.kind === "field" ? definedField(inner, names, values) : inner),
  });
}

export function definedField(field: Field, names: Names, values: Arguments): Field {
  const { name, members, relation } = names.bind(field, values);
  if (relation) return { ...field, parts: [...field.parts.slice(0, -relation.parts.length), ...relation.parts] };
  return { ...field, parts: field.parts.with(-1 - members.length, name) };
}

/** The source of a field that may be computed from other fields. */
export function sourceOfField<R>(
  field: BoundField,
  fields: Fields<R>,
  plain: (field: BoundField) => Source<R>,
): Source<R> {
  if (field.window) return windowSource(field.label, field.window.kinds, () => null);
  if (!field.computed) return plain(field);
  const { node, values } = field.computed;
  const source = compileOperand(node, { values, resolve: (operand) => plain(fields.bind(onlyField(operand), values)) });
  return { ...source, label: field.label, read: (row) => source.read(row), kind: (row) => source.kind(row) };
}

/** Source of the values of a window. They are known after all rows have been read. */
export function windowSource<R>(label: string, kinds: readonly Kind[], read: (row: R) => Value): Source<R> {
  const [only] = kinds;
  return { label, kinds, read, kind: () => (kinds.length === 1 && only ? only : ANY) };
}

function onlyField(operand: Field | Call): Field {
  if (operand.kind === "field") return operand;
  throw new AppError("invalid", `[Valid] ${printOperand(operand)} is no part of what is computed for each object.`);
}

const STEPPED: ReadonlySet<string> = new Set(STEPPED_AGGREGATES);

/** True for a call such as `avg(load, '5 minute')`, which is about one object and not about a group. */
export function isSteps(call: Call): boolean {
  return call.step !== undefined && STEPPED.has(call.name);
}

/** True if the operand is computed from several objects. */
export function isOfGroup(operand: Operand): boolean {
  return partsOf(operand).some((part) => part.kind === "call" && !isSteps(part));
}
