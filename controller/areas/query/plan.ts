import { AppError } from "../../../common/errors.ts";
import { QUERY_DEFAULT_LIMIT_ROWS, QUERY_TOP_MAX_ROWS } from "../../../common/limits.ts";
import {
  type Call, type Condition, type Field, type OrderItem, printCall, printCondition, type Select, type SelectItem,
} from "../../../common/mql/index.ts";
import type { ClassCatalog, ReadRequest } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { AGGREGATES, type AggregateName, isAggregate } from "./aggregate.ts";
import { type Arguments, rowCount } from "./literal.ts";
import { narrow } from "./pushdown.ts";
import { type BoundField, commonRowCondition, parseRowCondition, type Scope, scopeOf, unveiled } from "./scope.ts";

/** How a SELECT is going to be done, as data. */
export interface SelectPlan {
  readonly scope: Scope;
  readonly values: Arguments;
  /** One after the other; together all rows that may pass. */
  readonly reads: readonly ReadRequest[];
  readonly where: Condition | undefined;
  readonly outputs: readonly Output[];
  /** Absent when rows are answered one by one. */
  readonly grouping: GroupPlan | undefined;
  readonly distinct: boolean;
  readonly orderBy: readonly OrderPlan[];
  /** `stored`: the rows come in the order asked for. `top`: only the best are kept. */
  readonly sort: "none" | "stored" | "top" | "all";
  readonly offset: number;
  /** Absent: all rows. */
  readonly limit: number | undefined;
}

export interface GroupPlan {
  readonly keys: readonly BoundField[];
  readonly aggregates: readonly AggregatePlan[];
  readonly having: Condition | undefined;
  /** Aliases of outputs, which HAVING may use. */
  readonly aliases: ReadonlyMap<string, Expression>;
}

export interface AggregatePlan {
  /** As printed: `max(size)`. */
  readonly label: string;
  readonly name: AggregateName;
  readonly field: BoundField | undefined;
  readonly distinct: boolean;
}

/** Where a value comes from: the row, or a key or an aggregate of the group. */
export type Expression =
  | { readonly kind: "field"; readonly field: BoundField }
  | { readonly kind: "key"; readonly index: number }
  | { readonly kind: "aggregate"; readonly index: number };

export type Output = { readonly kind: "star" } | { readonly kind: "value"; readonly name: string; readonly value: Expression };

export interface OrderPlan {
  readonly label: string;
  readonly value: Expression;
  readonly descending: boolean;
}

export function planSelect(select: Select, principal: Principal, context: { readonly catalog: ClassCatalog; readonly values: Arguments }): SelectPlan {
  refuseUnsupported(select);
  const scope = scopeOf(principal, context.catalog, select.from);
  const binder = new OutputBinder(select, scope);
  const outputs = select.items.map((item) => binder.output(item));
  const orderBy = select.orderBy.map((item) => binder.order(item));
  if (select.having) binder.collect(select.having);
  const grouping = binder.grouping();
  const offset = select.offset ? (rowCount(select.offset, context.values) ?? 0) : 0;
  const limit = limitOf(select, grouping !== undefined, context.values);
  const stored = isStoredOrder(scope, orderBy, grouping !== undefined);
  const sort = sortOf(orderBy, stored, limit === undefined ? undefined : offset + limit);
  const expected = sort === "all" || sort === "top" || grouping || select.distinct || limit === undefined ? undefined : offset + limit;
  const reads = readsOf(scope, select.where, { values: context.values, newestFirst: stored, expected });
  return { scope, values: context.values, reads, where: select.where, outputs, grouping, distinct: select.distinct, orderBy, sort, offset, limit };
}

/** What has to be read so that no row is missed which both the condition and the principal's row condition let through. */
export function readsOf(
  scope: Scope,
  where: Condition | undefined,
  options: { readonly values: Arguments; readonly newestFirst?: boolean; readonly expected?: number | undefined; readonly veiled?: boolean },
): readonly ReadRequest[] {
  const asked = narrow(where, scope, options.values);
  const rule = options.veiled ? undefined : commonRowCondition(scope);
  const ruled = rule === undefined ? undefined : narrow(parseRowCondition(rule), unveiled(scope), []);
  const pushdowns = [...asked.where, ...(ruled?.where ?? [])];
  const ids = asked.ids ?? ruled?.ids;
  const rest = {
    ...(ids ? { ids } : {}),
    ...(pushdowns.length > 0 ? { where: pushdowns } : {}),
    ...(options.newestFirst ? { newestFirst: true } : {}),
    ...(options.expected === undefined ? {} : { expected: options.expected }),
  };
  const targets = scope.subtree && !scope.whole ? scope.classes.map((view) => view.path) : [scope.root];
  return targets.map((path) => ({ class: path, subtree: scope.subtree && scope.whole, ...rest }));
}

function refuseUnsupported(select: Select): void {
  if (select.joins.length > 0) throw notOffered("JOIN");
  if (select.asOf) throw notOffered("AS OF");
  if (select.cursor) throw notOffered("CURSOR");
}

export function notOffered(construct: string): AppError {
  return new AppError("unsupported", `[Exec] ${construct} is not offered yet.`, { details: { construct } });
}

function limitOf(select: Select, isGrouped: boolean, values: Arguments): number | undefined {
  if (select.limit) return rowCount(select.limit, values);
  return isGrouped ? undefined : QUERY_DEFAULT_LIMIT_ROWS;
}

/** Records come newest first by themselves. */
function isStoredOrder(scope: Scope, orderBy: readonly OrderPlan[], isGrouped: boolean): boolean {
  const isOneRead = !scope.subtree || scope.whole;
  if (isGrouped || !isOneRead || !scope.classes.every((view) => view.kind === "record")) return false;
  const [first] = orderBy;
  if (!first) return true;
  return orderBy.length === 1 && first.descending && first.value.kind === "field" && isTimeOfRow(first.value.field);
}

function isTimeOfRow(field: BoundField): boolean {
  return field.pseudo === "vtime" || field.pseudo === "mtime";
}

function sortOf(orderBy: readonly OrderPlan[], stored: boolean, keep: number | undefined): SelectPlan["sort"] {
  if (orderBy.length === 0) return "none";
  if (stored) return "stored";
  return keep !== undefined && keep <= QUERY_TOP_MAX_ROWS ? "top" : "all";
}

/** Turns names of the select list, ORDER BY and HAVING into expressions, over rows or over groups. */
class OutputBinder {
  readonly #scope: Scope;
  readonly #select: Select;
  readonly #isGrouped: boolean;
  readonly #keys: readonly BoundField[];
  readonly #aggregates: AggregatePlan[] = [];
  readonly #aliases = new Map<string, Expression>();

  constructor(select: Select, scope: Scope) {
    this.#scope = scope;
    this.#select = select;
    this.#isGrouped = select.groupBy.length > 0 || select.items.some((item) => item.kind === "item" && item.value.kind === "call");
    this.#keys = select.groupBy.map((field) => scope.bind(this.#unaliased(field)));
    if (select.having && !this.#isGrouped) throw new AppError("invalid", "[Valid] HAVING needs GROUP BY or an aggregate.");
  }

  grouping(): GroupPlan | undefined {
    if (!this.#isGrouped) return undefined;
    return { keys: this.#keys, aggregates: this.#aggregates, having: this.#select.having, aliases: this.#aliases };
  }

  output(item: SelectItem): Output {
    if (item.kind === "star") {
      if (this.#isGrouped) throw new AppError("invalid", "[Valid] * cannot stand beside an aggregate or GROUP BY.");
      return { kind: "star" };
    }
    const value = this.#expression(item.value);
    if (item.alias !== undefined) this.#aliases.set(item.alias, value);
    return { kind: "value", name: item.alias ?? outputName(item.value, this.#scope), value };
  }

  order(item: OrderItem): OrderPlan {
    const alias = item.value.kind === "field" && item.value.parts.length === 1 ? this.#aliases.get(item.value.parts[0] ?? "") : undefined;
    const label = item.value.kind === "call" ? printCall(item.value) : item.value.parts.join(".");
    return { label, value: alias ?? this.#expression(item.value), descending: item.descending };
  }

  /** Makes sure that every aggregate in the condition is computed. */
  collect(condition: Condition): void {
    if (condition.kind === "and" || condition.kind === "or") return condition.items.forEach((item) => this.collect(item));
    if (condition.kind === "not") return this.collect(condition.operand);
    const operand = condition.kind === "compare" ? condition.left : condition.operand;
    if (operand.kind === "call") this.#aggregate(operand);
  }

  #expression(value: Field | Call): Expression {
    if (value.kind === "call") return this.#aggregate(value);
    const field = this.#scope.bind(value);
    if (!this.#isGrouped) return { kind: "field", field };
    const index = this.#keys.findIndex((key) => key.label === field.label);
    if (index === -1) throw new AppError("invalid", `[Valid] ${field.label} must stand in GROUP BY or inside an aggregate.`);
    return { kind: "key", index };
  }

  #aggregate(call: Call): Expression {
    if (!this.#isGrouped) throw new AppError("invalid", `[Valid] ${printCall(call)} needs GROUP BY or an aggregate in the select list.`);
    const label = printCall(call);
    const known = this.#aggregates.findIndex((aggregate) => aggregate.label === label);
    if (known !== -1) return { kind: "aggregate", index: known };
    this.#aggregates.push({ label, name: aggregateName(call), field: this.#argument(call), distinct: call.distinct });
    return { kind: "aggregate", index: this.#aggregates.length - 1 };
  }

  #argument(call: Call): BoundField | undefined {
    if (!call.argument) {
      if (call.name !== "count") throw new AppError("invalid", `[Valid] ${call.name}(*) means nothing: it needs a field.`);
      return undefined;
    }
    const field = this.#scope.bind(call.argument);
    const kinds = this.#scope.source(field).kinds.map((kind) => kind.type);
    const adds = call.name === "sum" || call.name === "avg";
    if (adds && !kinds.some((kind) => kind === "number" || kind === "any")) {
      throw new AppError("invalid", `[Valid] ${call.name}(${field.label}) needs numbers.`);
    }
    return field;
  }

  /** GROUP BY may name an alias of the select list. */
  #unaliased(field: Field): Field {
    const item = this.#select.items.find((candidate) => candidate.kind === "item" && field.parts.length === 1 && candidate.alias === field.parts[0]);
    return item?.kind === "item" && item.value.kind === "field" ? item.value : field;
  }
}

function aggregateName(call: Call): AggregateName {
  if (isAggregate(call.name)) return call.name;
  throw new AppError("invalid", `[Valid] There is no function ${call.name}: ${AGGREGATES.join(", ")}.`);
}

/** Clients read `count` for `count(*)` and `system.max(size)` for the others. */
function outputName(value: Field | Call, scope: Scope): string {
  if (value.kind === "field") return scope.bind(value).label;
  return value.name === "count" && !value.argument ? "count" : `system.${printCall(value)}`;
}

/** One line per step, for EXPLAIN. */
export function describePlan(plan: SelectPlan, readSteps: readonly string[]): readonly string[] {
  const { grouping } = plan;
  const lines = [...readSteps];
  if (plan.where) lines.push(`filter ${printCondition(plan.where)}`);
  if (plan.scope.classes.some((view) => plan.scope.rowCondition(view) !== undefined)) lines.push("filter by the row condition of the principal");
  if (grouping) lines.push(`group by ${grouping.keys.map((key) => key.label).join(", ") || "nothing"}: ${grouping.aggregates.map((aggregate) => aggregate.label).join(", ")}`);
  if (grouping?.having) lines.push(`having ${printCondition(grouping.having)}`);
  if (plan.distinct) lines.push("distinct");
  const order = plan.orderBy.map((item) => `${item.label}${item.descending ? " desc" : ""}`).join(", ");
  if (plan.sort === "stored") lines.push(`order by ${order} as stored`);
  if (plan.sort === "top") lines.push(`keep the first ${plan.offset + (plan.limit ?? 0)} by ${order}`);
  if (plan.sort === "all") lines.push(`sort by ${order}`);
  if (plan.offset > 0) lines.push(`skip ${plan.offset}`);
  if (plan.limit !== undefined) lines.push(`limit ${plan.limit}`);
  return lines;
}
