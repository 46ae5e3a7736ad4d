import { AppError } from "../../../../common/errors.ts";
import { QUERY_SUB_SELECT_VALUES_MAX } from "../../../../common/limits.ts";
import {
  type Condition,
  type InSelect,
  NOWHERE,
  type Select,
  textNode,
  type Union,
  valueNode,
  type ValueNode,
} from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { bytesOf, freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/memory.ts";
import { about } from "../expressions/placing.ts";
import { canonical } from "../expressions/questions.ts";
import type { Reading, RowReading, RunContext } from "./run.ts";

interface Plan {
  readonly whole: (statement: Select | Union) => RowReading;
  readonly inner: (select: Select) => Reading;
}

interface Inner {
  readonly node: InSelect;
  readonly reading: Reading;
}

/** What each SELECT in a condition answered. */
type Found = ReadonlyMap<InSelect, readonly ValueNode[]>;

/**
 * A statement with `IN (SELECT …)` in its conditions; undefined for any other one. Each inner SELECT is planned for the
 * same principal and read first, once; what it answers then stands in the condition as written values do, so that it
 * narrows the read.
 */
export function readingWithSubSelects(statement: Select | Union, plan: Plan): RowReading | undefined {
  const nodes = conditionsOf(statement).flatMap(subSelectsOf);
  if (nodes.length === 0) return undefined;
  if (statement.cursor)
    throw new AppError(
      "invalid",
      "[Valid] CURSOR and IN (SELECT …) exclude each other: its values may be others on each page.",
    );
  const inners = nodes.map(
    (node): Inner => ({ node, reading: about(node.span, () => plan.inner(oneColumn(node.select))) }),
  );
  const checked = plan.whole(withValues(statement, new Map(nodes.map((node) => [node, SOME_VALUE]))));
  return {
    meta: checked.meta,
    kindsOf: (name) => checked.kindsOf(name),
    rows(context) {
      const memory = PROCESS_MEMORY.share(context.tenant);
      return freeing(memory, rowsBy(statement, { inners, plan, memory }, context));
    },
    async describe(stepsOf) {
      const lines: string[] = [];
      for (const { reading } of inners)
        lines.push(...(await reading.describe(stepsOf)).map((line) => `for IN: ${line}`));
      return [...lines, ...(await checked.describe(stepsOf))];
    },
  };
}

/** Stands for the values that are not there yet. */
const SOME_VALUE: readonly ValueNode[] = [textNode("…")];

interface Work {
  readonly inners: readonly Inner[];
  readonly plan: Plan;
  readonly memory: MemoryShare;
}

async function* rowsBy(
  statement: Select | Union,
  { inners, plan, memory }: Work,
  context: RunContext,
): AsyncIterable<readonly Row[]> {
  const found = new Map<InSelect, readonly ValueNode[]>();
  for (const { node, reading } of inners) found.set(node, await valuesOf(reading.rows(context), memory));
  yield* plan.whole(withValues(statement, found)).rows(context);
}

/** The different values of the only column, without those that are not set. */
async function valuesOf(pages: AsyncIterable<readonly Row[]>, memory: MemoryShare): Promise<readonly ValueNode[]> {
  const values = new Map<string, Value>();
  for await (const page of pages) {
    for (const row of page) {
      const [value = null] = Object.values(row);
      const name = canonical(value);
      if (value === null || values.has(name)) continue;
      if (values.size >= QUERY_SUB_SELECT_VALUES_MAX) throw tooMany();
      memory.take(bytesOf(name) + bytesOf(value));
      values.set(name, value);
    }
  }
  return [...values.values()].map(valueNode);
}

/** All its rows, where it names no limit of its own. */
function oneColumn(select: Select): Select {
  const [item] = select.items;
  if (select.items.length !== 1 || item?.kind !== "item")
    throw new AppError("invalid", "[Valid] The SELECT in IN (SELECT …) answers one column.");
  return { ...select, limit: select.limit ?? { kind: "number", text: "-1", span: NOWHERE } };
}

function conditionsOf(statement: Select | Union): readonly Condition[] {
  const selects = statement.kind === "union" ? statement.selects : [statement];
  return selects.flatMap(({ where, having }) => [where, having].filter((condition) => condition !== undefined));
}

function subSelectsOf(condition: Condition): readonly InSelect[] {
  if (condition.kind === "and" || condition.kind === "or") return condition.items.flatMap(subSelectsOf);
  if (condition.kind === "not") return subSelectsOf(condition.operand);
  return condition.kind === "inSelect" ? [condition] : [];
}

function withValues<S extends Select | Union>(statement: S, found: Found): S;
function withValues(statement: Select | Union, found: Found): Select | Union {
  if (statement.kind === "union")
    return { ...statement, selects: statement.selects.map((select) => withValues(select, found)) };
  const { where, having } = statement;
  return { ...statement, where: where && replaced(where, found), having: having && replaced(having, found) };
}

function replaced(condition: Condition, found: Found): Condition {
  switch (condition.kind) {
    case "and":
    case "or":
      return { ...condition, items: condition.items.map((item) => replaced(item, found)) };
    case "not":
      return { ...condition, operand: replaced(condition.operand, found) };
    case "inSelect": {
      const { operand, negated, span } = condition;
      return { kind: "in", operand, values: found.get(condition) ?? [], areFound: true, negated, span };
    }
    default:
      return condition;
  }
}

function tooMany(): AppError {
  return new AppError(
    "too_large",
    `[Exec] The SELECT in IN (SELECT …) answers more than ${QUERY_SUB_SELECT_VALUES_MAX} different values: narrow it by WHERE.`,
    { details: { limit: "QUERY_SUB_SELECT_VALUES_MAX" } },
  );
}
