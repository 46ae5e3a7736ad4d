import { AppError } from "../../../../common/errors.ts";
import {
  type Condition,
  type Field,
  type GraphNode,
  type Match,
  partsOfCondition,
  printCondition,
} from "../../../../common/mql/index.ts";

/**
 * The conditions that the WHERE after the chains has on each node. Each part joined by AND belongs to the node whose
 * name its fields have; without a name it belongs to the start nodes. `AppError("invalid")` for a part about several
 * nodes.
 */
export function conditionsOf({ where, chains }: Match): (node: GraphNode, at: number) => readonly Condition[] {
  const names = new Set(
    chains
      .flatMap((chain) => [chain.start, ...chain.steps.map((step) => step.node)])
      .flatMap((node) => node.name ?? []),
  );
  const parts = conjuncts(where).map((condition) => ({ condition, name: nameOf(condition, names) }));
  return (node, at) =>
    parts.filter(({ name }) => (name === undefined ? at === 0 : name === node.name)).map(({ condition }) => condition);
}

function conjuncts(condition: Condition | undefined): readonly Condition[] {
  if (condition === undefined) return [];
  return condition.kind === "and" ? condition.items.flatMap(conjuncts) : [condition];
}

function nameOf(condition: Condition, names: ReadonlySet<string>): string | undefined {
  const found = new Set(
    fieldsOf(condition).map(({ parts: [name = "", ...rest] }) =>
      rest.length > 0 && names.has(name) ? name : undefined,
    ),
  );
  if (found.size > 1)
    throw new AppError(
      "invalid",
      `[Valid] ${printCondition(condition)} is about several nodes: each part of WHERE is about one.`,
    );
  const [only] = found;
  return only;
}

function fieldsOf(condition: Condition): readonly Field[] {
  return partsOfCondition(condition).filter((part) => part.kind === "field");
}
