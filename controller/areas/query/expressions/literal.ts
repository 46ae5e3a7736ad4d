import { AppError } from "../../../../common/errors.ts";
import { type Count, type In, type Placeholder, type ValueNode, valueNode } from "../../../../common/mql/index.ts";
import { numberOf } from "../../../../common/numbers.ts";
import type { Value } from "../../../../common/value.ts";

/** Values of the placeholders of the script, in their order. */
export type Arguments = readonly Value[];

/** The value of a node. Integers that a double does not hold stay text. */
export function literal(node: ValueNode, values: Arguments): Value {
  switch (node.kind) {
    case "text":
    case "constant":
      return node.value;
    case "number":
      return numberOf(node.text);
    case "placeholder":
      return argument(node.index, values);
    case "list":
      return node.items.map((item) => literal(item, values));
    case "map":
      return Object.fromEntries(node.entries.map((entry) => [entry.key, literal(entry.value, values)]));
  }
}

/**
 * The tree with values in place of all its placeholders, so that trees with different values are printed differently.
 * The answer of a SELECT is printed as that SELECT. Parts without placeholders are not copied.
 */
export function withValues<Tree>(tree: Tree, values: Arguments): Tree;
export function withValues(tree: unknown, values: Arguments): unknown {
  if (typeof tree !== "object" || tree === null) return tree;
  if (Array.isArray(tree)) return itemsWithValues(tree, values);
  if (isPlaceholder(tree)) return valueNode(literal(tree, values));
  const isAnswered = "foundBy" in tree;
  let changed: Record<string, unknown> | undefined;
  for (const [name, part] of Object.entries(tree) as [string, unknown][]) {
    if (typeof part !== "object" || name === "span" || (isAnswered && name === "values")) continue;
    const made = withValues(part, values);
    if (made !== part) (changed ??= { ...tree })[name] = made;
  }
  return changed ?? tree;
}

function itemsWithValues(items: readonly unknown[], values: Arguments): readonly unknown[] {
  const made = items.map((item) => withValues(item, values));
  return made.some((item, at) => item !== items[at]) ? made : items;
}

function isPlaceholder(tree: object): tree is Placeholder {
  return "kind" in tree && tree.kind === "placeholder";
}

/** The values of `IN`. If the text has a single list there, they are its elements. */
export function listed({ values: nodes, foundBy }: In, values: Arguments): readonly Value[] {
  const list = nodes.map((node) => literal(node, values));
  const [only] = list;
  return list.length === 1 && isList(only) && !foundBy ? only : list;
}

/** A row count of LIMIT or OFFSET; absent for -1, which means all. */
export function rowCount(node: Count, values: Arguments): number | undefined {
  const count = Number(literal(node, values));
  if (count === -1) return undefined;
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new AppError(
    "invalid",
    `[Valid] ${JSON.stringify(literal(node, values))} is no number of rows: a whole number from 0, or -1 for all.`,
  );
}

export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

export function isMap(value: Value | undefined): value is { readonly [key: string]: Value } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function argument(index: number, values: Arguments): Value {
  const value = values[index];
  if (value === undefined) throw new AppError("invalid", `[Valid] There is no value for placeholder ${index + 1}.`);
  return value;
}
