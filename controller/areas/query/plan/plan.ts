import { AppError } from "../../../../common/errors.ts";
import { QUERY_TOP_MAX_ROWS } from "../../../../common/limits.ts";
import { type Condition, printCondition, type Select, type ValueNode } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import type { ClassCatalog, ObjectRow, ReadRequest } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { TIME, toComparable } from "../expressions/kind.ts";
import { type Arguments, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { type Answers, sourceScope } from "./answered.ts";
import { type BoundOutputs, extentOf, isStoredOrder } from "./bound-outputs.ts";
import type { FillPlan } from "./fill.ts";
import { type Meaning, meaningOf, MEANINGS } from "./meaning.ts";
import type { OrderPlan, Shape } from "./outputs.ts";
import { pageCondition, pagedOrder, pagingOf, withArrival } from "./paging.ts";
import { narrow, type Narrowing } from "./pushdown.ts";
import { type FollowPlan, type Following, followPlan } from "./relations.ts";
import { parseRowCondition } from "./names/rowconditions.ts";
import { describeRules } from "./names/rules.ts";
import { commonRowCondition, type Scope, unveiled } from "./names/scope.ts";
import type { VisibleTree } from "./names/tree.ts";

/** The wanted rows of one class tree, and the reads that find them. */
export interface TablePlan {
  readonly scope: Scope;
  readonly values: Arguments;
  /** Reads to make one after the other. Together they return all rows that may pass. */
  readonly reads: readonly ReadRequest[];
  readonly where: Condition | undefined;
}

/** Plan of a SELECT over one class tree, as data. */
export interface SelectPlan extends TablePlan, Shape<ObjectRow> {
  readonly kind: "select";
  /** Absent: the statement follows no relation. */
  readonly follows?: FollowPlan | undefined;
}

export interface LeftOut {
  more: boolean;
}

export interface PlanContext {
  readonly catalog: ClassCatalog;
  readonly values: Arguments;
  /** `more` is set when the default limit left rows out. Shared by all executions of a statement. */
  readonly leftOut?: LeftOut | undefined;
  /** Time for classes of the statement that have no AS OF of their own. */
  readonly asOf?: ValueNode | undefined;
  /** True if the same tree of the statement may be planned again, so that its meaning is kept. */
  readonly isRepeated?: boolean | undefined;
  /** Answers of the SELECTs behind FROM and JOIN. */
  readonly answers?: Answers | undefined;
}

export function planSelect(select: Select, principal: Principal, context: PlanContext): SelectPlan {
  const { values, isRepeated = false } = context;
  const named = about(select.from.span, () => sourceScope(principal, context, select.from).following());
  const meaning = isRepeated ? MEANINGS.of(select, named, values) : meaningOf(select, named, values);
  const extent = extentOf(select, meaning.names, values);
  if (select.cursor) return planPage(select, { meaning, bound: { ...meaning.names, ...extent } }, context);
  const { split, scope } = meaning;
  const { outputs, windows, orderBy, grouping, distinct } = meaning.names;
  const { offset, limit, isCut } = extent;
  const asOfMs = timeOfState(select.asOf ?? context.asOf, values);
  const follows = followsOf(select, meaning, { values, asOfMs });
  const asked = narrow(split.own, scope, values);
  const stored = meaning.isStored && targetsOf(scope, asked.classes).length <= 1;
  const last = limit === undefined ? undefined : offset + limit + (isCut ? 1 : 0);
  const sort = sortOf(orderBy.length, stored, last);
  const isWhole =
    sort === "all" || sort === "top" || grouping !== undefined || distinct || limit === undefined || windows.length > 0;
  const reads = requests(scope, asked, {
    columns: meaning.columns,
    newestFirst: stored,
    expected: isWhole ? undefined : last,
    asOfMs,
  });
  // Written out, because copies of other objects would cost more than the rest of the plan.
  return {
    kind: "select",
    fields: scope,
    scope,
    reads,
    where: split.own,
    values,
    outputs,
    windows,
    grouping,
    distinct,
    orderBy: stored ? orderBy : withArrival(meaning.names, scope),
    offset,
    limit,
    isCut,
    sort,
    follows,
  };
}

function followsOf(select: Select, { split, scope, isCommon }: Meaning, following: Following): FollowPlan | undefined {
  return isCommon ? undefined : followPlan(select, split, { scope, following });
}

/** One page of all rows, in an order without equal rows. */
function planPage(
  select: Select,
  { meaning, bound }: { readonly meaning: Meaning; readonly bound: BoundOutputs },
  context: PlanContext,
): SelectPlan {
  const { values } = context;
  const { scope, split } = meaning;
  if (bound.limit === undefined) throw new AppError("invalid", "[Valid] CURSOR needs a LIMIT, the size of the page.");
  const orderBy = pagedOrder(bound.orderBy, scope);
  const stored =
    targetsOf(scope, narrow(split.own, scope, values).classes).length <= 1 &&
    isStoredOrder(scope, bound.orderBy, false);
  const paging = pagingOf(select, { by: orderBy, stored }, values);
  const narrowing = paging && pageCondition(paging, orderBy);
  const where = [split.own, narrowing].filter((condition) => condition !== undefined);
  const asOfMs = timeOfState(select.asOf ?? context.asOf, values);
  const reads = readsOf(
    scope,
    { kind: "and", items: where, span: select.span },
    { values, columns: meaning.columns, asOfMs, newestFirst: stored },
  );
  const follows = followsOf(select, meaning, { values, asOfMs });
  const sort = sortOf(orderBy.length, false, bound.limit);
  return {
    kind: "select",
    fields: scope,
    scope,
    reads,
    where: split.own,
    ...bound,
    orderBy,
    paging,
    sort,
    follows,
  };
}

export interface ReadOptions {
  /** Names of the columns that the answer needs; absent: perhaps all. */
  readonly columns?: readonly string[] | undefined;
  readonly newestFirst?: boolean;
  readonly expected?: number | undefined;
  /** Reads the state at that time instead of the current one. */
  readonly asOfMs?: number | undefined;
  /** Leaves out the row condition of the principal, which EXPLAIN must not show. */
  readonly veiled?: boolean;
}

/** The reads that together cover every row that fulfils the condition and the principal's row condition. */
export function readsOf(
  scope: Scope,
  where: Condition | undefined,
  options: ReadOptions & { readonly values: Arguments },
): readonly ReadRequest[] {
  return requests(scope, narrow(where, scope, options.values), options);
}

/**
 * A row condition removes some of the rows that are found. So the first page is larger than expected by this factor,
 * because a second page would cost nearly as much.
 */
const RULED_SHARE = 1.25;

function requests(scope: Scope, asked: Narrowing, options: ReadOptions): readonly ReadRequest[] {
  const ruled = options.veiled ? undefined : ruleOf(scope);
  const pushdowns = [...asked.where, ...(ruled?.where ?? [])];
  const ids = asked.ids ?? ruled?.ids;
  const rest: Omit<{ -readonly [Name in keyof ReadRequest]: ReadRequest[Name] }, "class" | "subtree"> = {};
  if (ids) rest.ids = ids;
  if (pushdowns.length > 0) rest.where = pushdowns;
  if (options.columns) rest.columns = options.columns;
  if (options.newestFirst) rest.newestFirst = true;
  if (options.expected !== undefined)
    rest.expected = ruled === undefined ? options.expected : Math.ceil(RULED_SHARE * options.expected);
  if (options.asOfMs !== undefined) rest.asOfMs = options.asOfMs;
  return targetsOf(scope, asked.classes).map((target) => Object.assign(target, rest));
}

/** Narrowing by the row condition, if all classes have the same one and it means the same in all of them. */
function ruleOf(scope: Scope): Narrowing | undefined {
  if (!rules.has(scope.tree)) {
    const rule = commonRowCondition(scope);
    const isUsed = rule !== undefined && !scope.tree.isMixed;
    rules.set(scope.tree, isUsed ? narrow(parseRowCondition(rule), unveiled(scope), []) : undefined);
  }
  return rules.get(scope.tree);
}

const rules = new WeakMap<VisibleTree, Narrowing | undefined>();

/** The whole class or tree, or only those of its classes that are readable and named by the condition. */
function targetsOf(scope: Scope, named: Narrowing["classes"]): readonly Pick<ReadRequest, "class" | "subtree">[] {
  const views = named ? scope.classes.filter((view) => named.has(view.path)) : scope.classes;
  const isAll = views.length === scope.classes.length;
  if (isAll && (!scope.subtree || scope.whole)) return [{ class: scope.root, subtree: scope.subtree }];
  return views.map((view) => ({ class: view.path, subtree: false }));
}

/** The time that AS OF names, in milliseconds. */
export function timeOfState(node: ValueNode | undefined, values: Arguments): number | undefined {
  if (!node) return undefined;
  return about(node.span, () => stateTime(literal(node, values)));
}

function stateTime(value: Value): number {
  const timeMs = value === null ? undefined : toComparable(TIME, value);
  if (typeof timeMs === "number") return timeMs;
  throw new AppError(
    "invalid",
    `[Format] AS OF ${JSON.stringify(value)} is no time: YYYY-MM-DD HH:mm:ss or milliseconds.`,
  );
}

export function sortOf(orders: number, stored: boolean, keep: number | undefined): Shape<never>["sort"] {
  if (orders === 0) return "none";
  if (stored) return "stored";
  return keep !== undefined && keep <= QUERY_TOP_MAX_ROWS ? "top" : "all";
}

type Described = Pick<Shape<never>, "grouping" | "distinct" | "sort" | "offset" | "limit"> & {
  readonly windows?: Shape<never>["windows"];
  readonly orderBy: readonly Pick<OrderPlan, "label" | "descending" | "isHidden">[];
};

/** One line per step, for EXPLAIN. */
export function describeTable<S>({ where, scope }: TablePlan, readSteps: readonly S[]): readonly (S | string)[] {
  const lines: (S | string)[] = [...readSteps];
  if (where) lines.push(`filter ${printCondition(where)}`);
  return [...lines, ...describeRules(scope)];
}

function describeFill({ width, fromMs, toMs, value }: FillPlan): string {
  const ends = [fromMs, toMs].map((timeMs) => (timeMs === undefined ? "the rows" : String(timeMs)));
  return `fill empty steps of ${width} from ${ends[0] ?? ""} to ${ends[1] ?? ""} with ${value ?? "null"}`;
}

export function describeShape(plan: Described): readonly string[] {
  const { grouping } = plan;
  const lines: string[] = [];
  if (grouping)
    lines.push(
      `group by ${grouping.keys.map((key) => key.label).join(", ") || "nothing"}: ${grouping.aggregates.map((aggregate) => aggregate.label).join(", ")}`,
    );
  if (grouping?.fill) lines.push(describeFill(grouping.fill));
  if (grouping?.having) lines.push(`having ${printCondition(grouping.having)}`);
  for (const { name, field, partitionBy, orderBy } of plan.windows ?? [])
    lines.push(
      `${name}(${field?.label ?? ""}) over ${partitionBy.map(({ label }) => label).join(", ") || "all rows"} by ${orderBy.map((order) => order.field.label).join(", ") || "nothing"}, rows held in memory`,
    );
  if (plan.distinct) lines.push("distinct");
  const shown = plan.orderBy.filter(({ isHidden }) => !isHidden);
  const order = shown.map((item) => `${item.label}${item.descending ? " desc" : ""}`).join(", ");
  if (plan.sort === "stored") lines.push(`order by ${order} as stored`);
  if (plan.sort === "top") lines.push(`keep the first ${plan.offset + (plan.limit ?? 0)} by ${order}`);
  if (plan.sort === "all") lines.push(`sort by ${order}`);
  if (plan.offset > 0) lines.push(`skip ${plan.offset}`);
  if (plan.limit !== undefined) lines.push(`limit ${plan.limit}`);
  return lines;
}
