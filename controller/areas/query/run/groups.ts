import { AppError, isAppError } from "../../../../common/errors.ts";
import { type Call, type Field, type Operand, printCall } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { aggregateKind, type AggregateSpec, type GroupRow, onlyKind } from "../expressions/aggregates/aggregate.ts";
import { bindOperand, defined, isOfGroup } from "../expressions/bind.ts";
import { ANY, type Kind } from "../expressions/kind.ts";
import type { MemoryShare } from "../expressions/aggregates/memory.ts";
import {
  compileOperand,
  compilePredicate,
  type Predicate,
  type PredicateContext,
  type Source,
} from "../expressions/predicate.ts";
import type { Expression, GroupPlan, Shape } from "../plan/outputs.ts";

/** The kinds of the values that the rows of the answer have under that name. */
export function answeredKinds<R>(shape: Shape<R>, name: string): readonly Kind[] {
  const { fields, grouping } = shape;
  const groups = grouping && groupsOf(shape, grouping).groups;
  return shape.outputs.flatMap((output) => {
    if (output.kind === "star") return fields.kindsNamed(name);
    if (output.name !== name) return [];
    if (groups) return sourceOfGroup(output.value, groups).kinds;
    return output.value.kind === "field" ? fields.kindsOf(output.value.field) : [];
  });
}

export function groupsOf<R>(shape: Shape<R>, group: GroupPlan) {
  const { fields } = shape;
  const keys = group.keys.map((field) => fields.source(field));
  const specs = group.aggregates.map(({ name, field, distinct, parameter }): AggregateSpec<R> => {
    return { name, distinct, parameter, source: field && fields.source(field), writtenMs: fields.writtenMs(field) };
  });
  const groups: Groups = { shape, group, keyKinds: keys.map(onlyKind), resultKinds: specs.map(aggregateKind) };
  return { keys, specs, groups };
}

export function answerOf<R>(shape: Shape<R>, groups: Groups, memory: MemoryShare): GroupAnswer {
  return { memory, ...sourcesOf(shape, groups) };
}

export function sourcesOf<R>(shape: Shape<R>, groups: Groups): Omit<GroupAnswer, "memory"> {
  return {
    passes: havingOf(groups),
    outputs: shape.outputs.flatMap((output) =>
      output.kind === "value" ? [{ name: output.name, source: sourceOfGroup(output.value, groups) }] : [],
    ),
    orders: shape.orderBy.map((item) => sourceOfGroup(item.value, groups)),
  };
}

export interface Groups {
  readonly shape: Shape<never>;
  readonly group: GroupPlan;
  readonly keyKinds: readonly Kind[];
  readonly resultKinds: readonly Kind[];
}

/** The answer that is made from each group. */
export interface GroupAnswer {
  readonly memory: MemoryShare;
  readonly passes: Predicate<GroupRow>;
  readonly outputs: readonly { readonly name: string; readonly source: Source<GroupRow> }[];
  readonly orders: readonly Source<GroupRow>[];
}

function sourceOfGroup(value: Expression, groups: Groups): Source<GroupRow> {
  switch (value.kind) {
    case "key":
      return columnOfGroup((row) => row.keys[value.index], groups.keyKinds[value.index]);
    case "aggregate":
      return columnOfGroup((row) => row.results[value.index], groups.resultKinds[value.index]);
    case "computed":
      // Expressions of the select list cannot use aliases, because an alias may have the name of a column that it is
      // made from.
      return compileOperand(value.node, contextOf(groups, NO_ALIASES));
    case "field":
      throw new RangeError("a grouped query has only keys and aggregates");
  }
}

function columnOfGroup(read: (row: GroupRow) => Value | undefined, kind: Kind = ANY): Source<GroupRow> {
  return { label: "", kinds: [kind], read, kind: () => kind };
}

function havingOf(groups: Groups): Predicate<GroupRow> {
  const { having } = groups.group;
  return having ? compilePredicate(having, contextOf(groups, groups.group.aliases)) : () => true;
}

type Aliases = GroupPlan["aliases"];
const NO_ALIASES: Aliases = new Map();

/** Meaning of names in expressions over a group. */
function contextOf(groups: Groups, aliases: Aliases): PredicateContext<GroupRow> {
  const { shape } = groups;
  return {
    values: shape.values,
    resolve(operand) {
      const label = operand.kind === "call" ? printCall(operand) : operand.parts.join(".");
      return { ...sourceOfGroup(expressionOfGroup(operand, groups, aliases), groups), label };
    },
    known(operand) {
      const index = isOfGroup(operand) ? undefined : keyOf(operand, groups);
      return index === undefined ? undefined : sourceOfGroup({ kind: "key", index }, groups);
    },
  };
}

/**
 * Index of the key that the operand is. Undefined for an operand made from an alias, which has a meaning in groups
 * only.
 */
function keyOf(operand: Exclude<Operand, Call>, { shape, group }: Groups): number | undefined {
  try {
    return group.places.keys.get(bindOperand(operand, shape.fields, shape.values).label);
  } catch (error) {
    if (isAppError(error, "not_found")) return undefined;
    throw error;
  }
}

function expressionOfGroup(operand: Field | Call, { shape, group }: Groups, aliases: Aliases): Expression {
  if (operand.kind === "call") {
    const label = printCall(defined(operand, shape.fields, shape.values));
    return { kind: "aggregate", index: group.places.aggregates.get(label) ?? -1 };
  }
  const alias = operand.parts.length === 1 ? aliases.get(operand.parts[0] ?? "") : undefined;
  if (alias) return alias;
  const { label } = shape.fields.bind(operand, shape.values);
  const index = group.places.keys.get(label);
  if (index === undefined)
    throw new AppError("invalid", `[Valid] ${label} in HAVING must stand in GROUP BY or inside an aggregate.`);
  return { kind: "key", index };
}
