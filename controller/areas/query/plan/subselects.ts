import {
  type Chain,
  type Condition,
  type Delete,
  type GraphNode,
  type InSelect,
  mapCondition,
  mapOperand,
  type Match,
  type Operand,
  type OrderItem,
  type Select,
  type SelectItem,
  type Union,
  type Update,
  type ValueNode,
} from "../../../../common/mql/index.ts";

/** A statement whose conditions may contain `IN (SELECT …)`. */
export type Asking = Select | Union | Match | Update | Delete;

/** Answers of the SELECTs in a condition. */
export type Answered = ReadonlyMap<Select, readonly ValueNode[]>;

/**
 * The SELECTs in the conditions of a statement, including those inside computed values, in a fixed order. SELECTs
 * inside a SELECT behind FROM or JOIN are left out.
 */
export function subSelectsOf(statement: Asking): readonly InSelect[] {
  const found: InSelect[] = [];
  withConditions(statement, (condition) => {
    if (condition.kind === "inSelect") found.push(condition);
    return condition;
  });
  return found;
}

/** The statement with the answers in place of these SELECTs, as if they were written. */
export function withAnswers<S extends Asking>(statement: S, answered: Answered): S;
export function withAnswers(statement: Asking, answered: Answered): Asking {
  return withConditions(statement, (condition) => {
    if (condition.kind !== "inSelect") return condition;
    const { operand, select, negated, span } = condition;
    return { kind: "in", operand, values: answered.get(select) ?? [], foundBy: select, negated, span };
  });
}

/** True if a value in SET depends on such a SELECT. */
export function setsByAnswers(statement: Update | Delete): boolean {
  return statement.kind === "update" && subSelectsOf({ ...statement, where: undefined }).length > 0;
}

type Comparison = NonNullable<Parameters<typeof mapCondition>[1]["comparison"]>;

function withConditions(statement: Asking, comparison: Comparison): Asking {
  const map = mapping(comparison);
  switch (statement.kind) {
    case "select":
      return selectWith(statement, map);
    case "union":
      return {
        ...statement,
        selects: statement.selects.map((select) => selectWith(select, map)),
        orderBy: statement.orderBy.map(map.order),
      };
    case "match":
      return { ...statement, where: map.optional(statement.where), chains: statement.chains.map(map.chain) };
    case "update":
      return {
        ...statement,
        assignments: statement.assignments.map((one) => ({ ...one, value: map.operand(one.value) })),
        where: map.optional(statement.where),
      };
    case "delete":
      return { ...statement, where: map.optional(statement.where) };
  }
}

type Mapping = ReturnType<typeof mapping>;

function mapping(comparison: Comparison) {
  const operand = (node: Operand): Operand => mapOperand(node, { comparison });
  const optional = (node: Condition | undefined): Condition | undefined => node && mapCondition(node, { comparison });
  const order = (item: OrderItem): OrderItem => ({ ...item, value: operand(item.value) });
  const node = (one: GraphNode): GraphNode => ({ ...one, where: optional(one.where) });
  const chain = (one: Chain): Chain => {
    return { ...one, start: node(one.start), steps: one.steps.map((step) => ({ ...step, node: node(step.node) })) };
  };
  return { operand, optional, order, chain };
}

function selectWith(select: Select, map: Mapping): Select {
  return {
    ...select,
    items: select.items.map((item) => itemWith(item, map)),
    where: map.optional(select.where),
    groupBy: select.groupBy.map(map.operand),
    having: map.optional(select.having),
    orderBy: select.orderBy.map(map.order),
  };
}

function itemWith(item: SelectItem, map: Mapping): SelectItem {
  if (item.kind === "star") return item;
  if (item.kind === "item") return { ...item, value: map.operand(item.value) };
  return {
    ...item,
    operands: item.operands.map(map.operand),
    partitionBy: item.partitionBy.map(map.operand),
    orderBy: item.orderBy.map(map.order),
  };
}
