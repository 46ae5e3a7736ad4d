import { AppError } from "../../../../common/errors.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import {
  type Call,
  type Condition,
  insideOf,
  type Operand,
  type OrderItem,
  partsOfCondition,
  printCall,
  printOperand,
  type Select,
  type SelectItem,
  type WindowItem,
} from "../../../../common/mql/index.ts";
import {
  AGGREGATES,
  type AggregateName,
  isAggregate,
  needsNumbers,
  parameterOf,
} from "../expressions/aggregates/aggregate.ts";
import { bindOperand, defined, isOfGroup, isSteps } from "../expressions/bind.ts";
import type { BoundField, Fields, Names } from "../expressions/fields.ts";
import { type Arguments, literal, withValues } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import type { SortKey } from "../expressions/sort.ts";
import { stepsOf } from "../expressions/aggregates/timeseries.ts";
import { windowField, type WindowPlan, windowPlan } from "./windows.ts";
import { type FillPlan, fillPlan } from "./fill.ts";

/** Steps that make the answer from the rows that fulfil the condition. `R`: any kind of rows. */
export interface Shape<R> {
  readonly fields: Fields<R>;
  readonly values: Arguments;
  readonly outputs: readonly Output[];
  /** Absent when rows are not grouped. */
  readonly grouping: GroupPlan | undefined;
  readonly distinct: boolean;
  readonly orderBy: readonly OrderPlan[];
  /** `stored`: the rows already come in the order asked for. `top`: only the first rows of the order are kept. */
  readonly sort: "none" | "stored" | "top" | "all";
  readonly offset: number;
  /** Absent: all rows. */
  readonly limit: number | undefined;
  /** True if the limit is the default one. The answer then says if there are more rows. */
  readonly isCut: boolean;
  /** Values that are computed from several rows. */
  readonly windows: readonly WindowPlan[];
  /** Present when the answer is a page of all rows. */
  readonly paging?: Paging | undefined;
}

/** Start of a page. Pages have one order, which ends with class and id, so no two rows are equal in it. */
export interface Paging {
  /** Sort keys of the last row of the page before; absent on the first page. */
  readonly after: readonly SortKey[] | undefined;
  /** True if rows come in the order of the first part, newest first. Rows behind the page need not be read then. */
  readonly stored: boolean;
  /** Hash of the statement without its cursor and page size. */
  readonly statement: string;
}

export interface GroupPlan {
  readonly keys: readonly BoundField[];
  readonly aggregates: readonly AggregatePlan[];
  /** Indexes of the keys and aggregates, by label. */
  readonly places: GroupPlaces;
  readonly fill: FillPlan | undefined;
  readonly having: Condition | undefined;
  /** Aliases of outputs, which HAVING may use. */
  readonly aliases: ReadonlyMap<string, Expression>;
}

export interface GroupPlaces {
  readonly keys: ReadonlyMap<string, number>;
  readonly aggregates: ReadonlyMap<string, number>;
}

export interface AggregatePlan {
  /** As printed: `max(size)`. */
  readonly label: string;
  readonly name: AggregateName;
  readonly field: BoundField | undefined;
  readonly distinct: boolean;
  readonly parameter: number;
}

/** Source of a value: the row, a key or an aggregate of the group, or a computation with these. */
export type Expression =
  | { readonly kind: "field"; readonly field: BoundField }
  | { readonly kind: "key"; readonly index: number }
  | { readonly kind: "aggregate"; readonly index: number }
  | { readonly kind: "computed"; readonly node: Operand };

export interface ValueOutput {
  readonly kind: "value";
  readonly name: string;
  readonly value: Expression;
}

export type Output = { readonly kind: "star" } | ValueOutput;

export interface OrderPlan {
  readonly label: string;
  readonly value: Expression;
  readonly descending: boolean;
  /** Set if the statement does not name this order. */
  readonly isHidden?: true;
}

/** An output whose name in the row is not fixed yet, because it depends on the other outputs. */
type Draft =
  | { readonly kind: "star" }
  | { readonly kind: "value"; readonly value: Expression; readonly name: string }
  | { readonly kind: "value"; readonly value: Expression; readonly field: BoundField };

/**
 * The output that a number in ORDER BY means, counted from 1; undefined for other operands. `AppError("invalid")` when
 * there is no output with that number.
 */
export function outputAt(operand: Operand, outputs: readonly Output[]): ValueOutput | undefined {
  if (operand.kind !== "number") return undefined;
  const place = Number(operand.text);
  const star = outputs.findIndex((output) => output.kind === "star");
  const output = outputs[place - 1];
  if (output?.kind === "value" && (star < 0 || place <= star)) return output;
  const complaint = star < 0 ? `the SELECT answers columns 1 to ${outputs.length}` : "of * the columns have no places";
  throw new AppError("invalid", `[Valid] ORDER BY ${operand.text}: ${complaint}.`);
}

/** Binds the names in the select list, ORDER BY and HAVING to expressions over rows or over groups. */
export class OutputBinder {
  readonly #names: Names;
  readonly #select: Select;
  readonly #values: Arguments;
  readonly #isGrouped: boolean;
  readonly #keys: readonly BoundField[];
  readonly #keyPlaces: ReadonlyMap<string, number>;
  readonly #aggregates: AggregatePlan[] = [];
  readonly #aggregatePlaces = new Map<string, number>();
  readonly #aliases = new Map<string, Expression>();
  readonly #windows: WindowPlan[] = [];
  #outputs: readonly Output[] = [];

  constructor(select: Select, names: Names, values: Arguments) {
    this.#names = names;
    this.#select = select;
    this.#values = values;
    this.#isGrouped =
      select.groupBy.length > 0 || select.items.some((item) => item.kind === "item" && isOfGroup(item.value));
    const aliased = aliasedFields(select);
    this.#keys = select.groupBy.map((key) => about(key.span, () => this.#key(unaliased(key, aliased))));
    this.#keyPlaces = firstPlaces(this.#keys.map((key) => key.label));
    if (select.having && !this.#isGrouped)
      throw new AppError("invalid", "[Valid] HAVING needs GROUP BY or an aggregate.");
  }

  #key(operand: Operand): BoundField {
    if (operand.kind !== "call" && !isOfGroup(operand)) return bindOperand(operand, this.#names, this.#values);
    throw new AppError("invalid", `[Valid] ${printOperand(operand)} is about a group: it cannot make one.`);
  }

  grouping(): GroupPlan | undefined {
    if (!this.#isGrouped) return undefined;
    if (this.#select.having) this.#collect(this.#select.having);
    const places = { keys: this.#keyPlaces, aggregates: this.#aggregatePlaces };
    return {
      keys: this.#keys,
      aggregates: this.#aggregates,
      places,
      fill: this.#fill(),
      having: this.#select.having,
      aliases: this.#aliases,
    };
  }

  #fill(): FillPlan | undefined {
    const { fill, where, groupBy } = this.#select;
    if (!fill) return undefined;
    const aliased = aliasedFields(this.#select);
    const keys = groupBy.map((key) => unaliased(key, aliased));
    return fillPlan({ fill, where }, keys, { names: this.#names, values: this.#values });
  }

  outputs(): readonly Output[] {
    const drafts = this.#select.items.flatMap((item) => about(item.span, () => this.#drafts(item)));
    const shorts = drafts.flatMap((draft) =>
      draft.kind === "star" ? [] : "field" in draft ? [draft.field.short] : [draft.name],
    );
    const repeated = repeatedTexts(shorts);
    this.#outputs = drafts.map((draft) => {
      if (draft.kind === "star" || "name" in draft) return draft;
      const { field, value } = draft;
      return { kind: "value", value, name: repeated.has(field.short) ? field.label : field.short };
    });
    return this.#outputs;
  }

  /** Call after `outputs`. A whole number means the output with that number. */
  order(item: OrderItem): OrderPlan {
    return about(item.span, () => this.#order(item));
  }

  #order(item: OrderItem): OrderPlan {
    const placed = outputAt(item.value, this.#outputs);
    if (placed) {
      const { name, value } = placed;
      return { label: name, value, descending: item.descending };
    }
    const alias =
      item.value.kind === "field" && item.value.parts.length === 1
        ? this.#aliases.get(item.value.parts[0] ?? "")
        : undefined;
    const label = item.value.kind === "field" ? item.value.parts.join(".") : printOperand(item.value);
    return { label, value: alias ?? this.#expression(item.value), descending: item.descending };
  }

  /** Windows of the outputs that were bound so far. */
  get windows(): readonly WindowPlan[] {
    return this.#windows;
  }

  #window(item: WindowItem): Draft {
    if (this.#isGrouped)
      throw new AppError(
        "invalid",
        "[Valid] OVER stands in no SELECT with groups or aggregates: ask its answer by FROM (SELECT …).",
      );
    const plan = windowPlan(item, { names: this.#names, values: this.#values });
    const index = this.#windows.push(plan) - 1;
    const field = windowField(item, { index, plan }, this.#names);
    const value: Expression = { kind: "field", field };
    if (item.alias !== undefined) this.#aliases.set(item.alias, value);
    return { kind: "value", value, name: item.alias ?? field.short };
  }

  #drafts(item: SelectItem): readonly Draft[] {
    if (item.kind === "window") return [this.#window(item)];
    if (item.kind === "star") return this.#star(item.alias);
    const value = this.#expression(item.value);
    if (item.alias !== undefined) {
      this.#aliases.set(item.alias, value);
      return [{ kind: "value", name: item.alias, value }];
    }
    if (item.value.kind === "call")
      return [{ kind: "value", value, name: callName(defined(item.value, this.#names, this.#values)) }];
    if (isOfGroup(item.value))
      return [{ kind: "value", value, name: printOperand(withValues(item.value, this.#values)) }];
    return [{ kind: "value", value, field: bindOperand(item.value, this.#names, this.#values) }];
  }

  #star(alias: string | undefined): readonly Draft[] {
    if (this.#isGrouped) throw new AppError("invalid", "[Valid] * cannot stand beside an aggregate or GROUP BY.");
    const fields = this.#names.star(alias);
    return fields
      ? fields.map((field) => ({ kind: "value", value: { kind: "field", field }, field }))
      : [{ kind: "star" }];
  }

  /** Makes sure that every aggregate in the condition is computed. */
  #collect(condition: Condition): void {
    for (const part of partsOfCondition(condition)) if (part.kind === "call") this.#aggregate(part);
  }

  #expression(value: Operand): Expression {
    if (value.kind === "call" && !isSteps(value)) return this.#aggregate(value);
    if (isOfGroup(value)) return this.#ofGroup(value);
    const field = value.kind === "call" ? this.#steps(value) : bindOperand(value, this.#names, this.#values);
    if (!this.#isGrouped) return { kind: "field", field };
    const index = this.#keyPlaces.get(field.label);
    if (index !== undefined) return { kind: "key", index };
    if (!field.computed) throw ungrouped(field.label);
    return this.#ofGroup(value);
  }

  /** An expression over the keys and aggregates of a group. They are known when the group is complete. */
  #ofGroup(node: Operand): Expression {
    this.#requireGrouped(node);
    return { kind: "computed", node };
  }

  #requireGrouped(node: Operand): void {
    if (node.kind === "call") {
      this.#aggregate(node);
      return;
    }
    const label = isOfGroup(node) ? undefined : bindOperand(node, this.#names, this.#values).label;
    if (label !== undefined && this.#keyPlaces.has(label)) return;
    if (node.kind === "field") throw ungrouped(label ?? "");
    insideOf(node).forEach((operand) => this.#requireGrouped(operand));
  }

  /** The values of a time series of one object, combined in steps. */
  #steps(call: Call): BoundField {
    const field = call.argument && bindOperand(call.argument, this.#names, this.#values);
    if (!field?.series)
      throw new AppError("invalid", `[Valid] ${printCall(call)} needs a time series, a column of the type bucket.`);
    const written = defined(call, this.#names, this.#values);
    return {
      ...field,
      label: printCall(written),
      short: callName(written),
      series: { ...field.series, steps: stepsOf(call, this.#values) },
    };
  }

  #aggregate(call: Call): Expression {
    if (isSteps(call))
      throw new AppError(
        "invalid",
        `[Valid] ${printCall(call)} is about one object: it stands in a select list without aggregates.`,
      );
    if (!this.#isGrouped)
      throw new AppError("invalid", `[Valid] ${printCall(call)} needs GROUP BY or an aggregate in the select list.`);
    const name = aggregateName(call);
    const label = printCall(defined(call, this.#names, this.#values));
    const known = this.#aggregatePlaces.get(label);
    if (known !== undefined) return { kind: "aggregate", index: known };
    const parameter = parameterOf(name, call.step && literal(call.step, this.#values));
    const field = this.#argument(call, name);
    const index = this.#aggregates.push({ label, name, field, distinct: call.distinct, parameter }) - 1;
    this.#aggregatePlaces.set(label, index);
    return { kind: "aggregate", index };
  }

  #argument(call: Call, name: AggregateName): BoundField | undefined {
    if (!call.argument) {
      if (call.name !== "count")
        throw new AppError("invalid", `[Valid] ${call.name}(*) means nothing: it needs a field.`);
      return undefined;
    }
    if (isOfGroup(call.argument))
      throw new AppError("invalid", `[Valid] ${printCall(call)}: an aggregate stands in no other one.`);
    const field = bindOperand(call.argument, this.#names, this.#values);
    if (name === "rate") this.#requireTimes(call, field);
    if (
      needsNumbers(name) &&
      !this.#names.kindsOf(field).some((kind) => kind.type === "number" || kind.type === "any")
    ) {
      throw new AppError("invalid", `[Valid] ${call.name}(${field.label}) needs numbers.`);
    }
    return field;
  }

  /**
   * Refuses `rate` over the rows of a SELECT, which have no time of their own, and `rate(DISTINCT …)`, because equal
   * values are not repetitions.
   */
  #requireTimes(call: Call, { table }: BoundField): void {
    const { from, joins } = this.#select;
    if (call.distinct)
      throw new AppError("invalid", "[Valid] rate(DISTINCT …) means nothing: it goes from value to value.");
    if ((table === 0 ? from : joins[table - 1]?.class)?.kind === "selected")
      throw new AppError(
        "invalid",
        `[Valid] ${printCall(call)} goes by the last write of objects, which the rows of FROM (SELECT …) are not: rate(x) OVER (ORDER BY time) goes by a column.`,
      );
  }
}

/** GROUP BY may name an alias of the select list; the first of several equal aliases wins. */
function aliasedFields({ items }: Select): ReadonlyMap<string, Operand> {
  const aliased = new Map<string, Operand>();
  for (const item of items.toReversed()) {
    if (item.kind === "item" && item.alias !== undefined && item.value.kind !== "call" && !isOfGroup(item.value))
      aliased.set(item.alias, item.value);
  }
  return aliased;
}

function unaliased(key: Operand, aliased: ReadonlyMap<string, Operand>): Operand {
  return key.kind === "field" && key.parts.length === 1 ? (aliased.get(key.parts[0] ?? "") ?? key) : key;
}

function ungrouped(label: string): AppError {
  return new AppError("invalid", `[Valid] ${label} must stand in GROUP BY or inside an aggregate.`);
}

function firstPlaces(labels: readonly string[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, label] of labels.entries()) if (!places.has(label)) places.set(label, index);
  return places;
}

function repeatedTexts(texts: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  return new Set(texts.filter((text) => seen.size === seen.add(text).size));
}

function aggregateName(call: Call): AggregateName {
  if (isAggregate(call.name)) return call.name;
  const text = `[Valid] There is no function ${call.name}: ${AGGREGATES.join(", ")}.`;
  throw unknownName(text, { name: call.name, among: AGGREGATES, code: "invalid" });
}

/** Clients read `count` for `count(*)` and `system.max(size)` for the others. */
export function callName(call: Call): string {
  return call.name === "count" && !call.argument ? "count" : `system.${printCall(call)}`;
}
