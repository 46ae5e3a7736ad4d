import { memberOf, setMember } from "../../../../common/members.ts";
import type { ClassView, Column } from "../../objects/index.ts";
import { answersList } from "../expressions/aggregates/aggregate.ts";
import type { BoundField, Names, PseudoField } from "../expressions/fields.ts";
import type { Kind } from "../expressions/kind.ts";
import type { JoinPlan } from "../plan/join.ts";
import type { AggregatePlan, Expression, GroupPlan, Output } from "../plan/outputs.ts";
import type { SelectPlan, LeftOut } from "../plan/plan.ts";
import { pseudoType } from "../plan/names/pseudo.ts";
import type { Scope } from "../plan/names/scope.ts";
import type { ColumnMeta, QueryMeta, StatementType } from "../types.ts";
import { answeredKinds } from "./groups.ts";

const INTEGERS: ReadonlySet<string> = new Set(["int", "bigint", "smallint", "long", "varint"]);

/**
 * Columns and classes, from which clients build tables. Computed on first access, because a tree may have thousands of
 * classes.
 */
export function selectMeta(
  plan: SelectPlan,
  { leftOut, cursor }: { readonly leftOut: LeftOut; readonly cursor?: () => string | undefined },
): QueryMeta {
  return new LazyMeta({ rootclass: plan.scope.root, leftOut, cursor }, () => describe(plan));
}

/** Rows of a join have no class, so their columns are described under the class after FROM. */
export function joinMeta(plan: JoinPlan, leftOut: LeftOut): QueryMeta {
  const { scopes } = plan.fields;
  const root = scopes[0]?.root ?? "";
  return new LazyMeta({ rootclass: root, leftOut }, () => ({
    classes: Object.assign({}, ...scopes.map(classesOf)) as QueryMeta["classes"],
    columns: { [root]: plan.outputs.flatMap((output) => outputOf(output, plan, scopes)) },
  }));
}

/** The columns of all parts. Columns with equal names are listed once. */
export function unionMeta(parts: readonly QueryMeta[], leftOut: LeftOut): QueryMeta {
  const root = parts[0]?.rootclass ?? "";
  return new LazyMeta({ rootclass: root, leftOut }, () => {
    const columns: Record<string, readonly ColumnMeta[]> = {};
    for (const [path, own] of parts.flatMap((part) => Object.entries(part.columns)))
      setMember(columns, path, byName([...(memberOf(columns, path) ?? []), ...own]));
    setMember(columns, root, byName(parts.flatMap((part) => part.columns[part.rootclass] ?? [])));
    return { classes: Object.assign({}, ...parts.map((part) => part.classes)) as QueryMeta["classes"], columns };
  });
}

function byName(columns: readonly ColumnMeta[]): readonly ColumnMeta[] {
  const first = new Map<string, ColumnMeta>();
  for (const column of columns) if (!first.has(column.name)) first.set(column.name, column);
  return [...first.values()];
}

export function plainMeta(type: StatementType, rootclass = "", columns: readonly ColumnMeta[] = []): QueryMeta {
  return { type, classes: {}, columns: { [rootclass]: columns }, rootclass };
}

interface Description {
  readonly classes: QueryMeta["classes"];
  readonly columns: QueryMeta["columns"];
}

interface Late {
  readonly type?: StatementType;
  readonly rootclass: string;
  readonly plan?: readonly string[] | undefined;
  readonly leftOut: { readonly more?: boolean | undefined };
  readonly cursor?: (() => string | undefined) | undefined;
}

/** A class, because V8 keeps what accessors of an object literal refer to until a collection of the whole heap. */
class LazyMeta implements QueryMeta {
  readonly type: StatementType;
  readonly rootclass: string;
  declare readonly plan?: readonly string[];
  readonly #late: Late;
  readonly #make: () => Description;
  #made: Description | undefined;

  constructor(late: Late, make: () => Description) {
    this.type = late.type ?? "select";
    this.rootclass = late.rootclass;
    if (late.plan) this.plan = late.plan;
    this.#late = late;
    this.#make = make;
  }

  get cursor(): string | undefined {
    return this.#late.cursor?.();
  }

  get more(): true | undefined {
    return this.#late.leftOut.more || undefined;
  }

  get classes(): QueryMeta["classes"] {
    return this.#description().classes;
  }

  get columns(): QueryMeta["columns"] {
    return this.#description().columns;
  }

  toJSON(): QueryMeta {
    const { type, rootclass, plan, cursor, more, classes, columns } = this;
    return { ...(plan && { plan }), type, rootclass, cursor, more, classes, columns };
  }

  #description(): Description {
    return (this.#made ??= this.#make());
  }
}

/** The same description with a plan or other columns. What is known only after the rows are taken stays so. */
export function changedMeta(
  meta: QueryMeta,
  { plan = meta.plan, columns = () => meta.columns }: MetaChange,
): QueryMeta {
  const { type, rootclass } = meta;
  const late = { type, rootclass, plan, leftOut: meta, cursor: () => meta.cursor };
  return new LazyMeta(late, () => ({ classes: meta.classes, columns: columns() }));
}

interface MetaChange {
  readonly plan?: readonly string[] | undefined;
  readonly columns?: () => QueryMeta["columns"];
}

function describe(plan: SelectPlan): Description {
  const { scope } = plan;
  const columns: Record<string, readonly ColumnMeta[]> = {};
  if (!plan.grouping)
    for (const view of scope.classes)
      columns[view.path] = plan.outputs.flatMap((output) => outputMeta(output, [view], scope));
  setMember(
    columns,
    scope.root,
    plan.outputs.flatMap((output) => outputOf(output, plan, [scope])),
  );
  return { classes: classesOf(scope), columns };
}

function classesOf(scope: Scope): Record<string, unknown> {
  if (scope.tree.isAnswer) return {};
  return Object.fromEntries(
    scope.classes.map((view) => [
      view.path,
      { name: view.path, alias: view.options.alias ?? "", remedy: view.options.remedy ?? "" },
    ]),
  );
}

/** Describes an output that rows of any class may have. */
function outputOf(output: Output, plan: SelectPlan | JoinPlan, scopes: readonly Scope[]): readonly ColumnMeta[] {
  const own = answeredField(output);
  if (own && isComputed(own.field)) return [computedMeta(own.name, plan.fields.kindsOf(own.field))];
  if (output.kind === "value" && output.value.kind === "computed")
    return [computedMeta(output.name, [...new Set(answeredKinds<never>(plan, output.name))])];
  if (plan.grouping) return groupedMeta(output, plan.grouping, { scopes, names: plan.fields });
  const table = own?.field.table ?? 0;
  return scopes.slice(table, table + 1).flatMap((scope) => outputMeta(output, rootFirst(scope), scope));
}

/** The classes with the root first, because its columns belong to rows of any class. */
function rootFirst(scope: Scope): readonly ClassView[] {
  return [...scope.classes].sort((left, right) => Number(right.path === scope.root) - Number(left.path === scope.root));
}

function outputMeta(output: Output, views: readonly ClassView[], scope: Scope): readonly ColumnMeta[] {
  if (output.kind === "star")
    return [...scope.tree.pseudoFields.map((name) => pseudoMeta(name)), ...starMeta(views, scope)];
  const own = answeredField(output);
  return own ? fieldMeta(own.name, own.field, { views, scope }) : [];
}

function answeredField(output: Output): { readonly name: string; readonly field: BoundField } | undefined {
  if (output.kind === "star" || output.value.kind !== "field") return undefined;
  return { name: output.name, field: output.value.field };
}

function isComputed({ computed, window }: BoundField): boolean {
  return computed !== undefined || window !== undefined;
}

function starMeta(views: readonly ClassView[], scope: Scope): readonly ColumnMeta[] {
  const byName = new Map<string, Column>();
  for (const view of views) {
    for (const column of scope.columnsOf(view)) if (!byName.has(column.name)) byName.set(column.name, column);
  }
  return [...byName.values()].map((column) => columnMeta(column, column.name));
}

function fieldMeta(
  name: string,
  field: BoundField,
  where: { readonly views: readonly ClassView[]; readonly scope: Scope },
): readonly ColumnMeta[] {
  if (field.pseudo) return [pseudoMeta(field.pseudo, name)];
  if (isComputed(field)) return [computedMeta(name, where.scope.kindsOf(field))];
  if (field.relation) return [relationMeta(name, field.relation.end, where.scope.everything)];
  for (const view of where.views) {
    const column = where.scope.column(view, field.name);
    if (column) return [field.members.length === 0 ? columnMeta(column, name) : { name, title: name, type: "varchar" }];
  }
  return [];
}

/**
 * Description of a column of related objects: the column of that name if it has the same type in all classes that have
 * it, otherwise a text.
 */
function relationMeta(name: string, end: BoundField | undefined, everything: Scope): ColumnMeta {
  if (!end) return { name, title: name, type: "set" };
  if (end.pseudo) return pseudoMeta(end.pseudo, name);
  const columns = end.members.length === 0 ? everything.columnsNamed(end.name) : [];
  const [column] = columns;
  const isOne = column !== undefined && columns.every(({ type }) => type === column.type);
  return isOne ? columnMeta(column, name) : { name, title: name, type: "varchar" };
}

/** Names of types for computed values, by how the values are compared. */
const TYPES: Readonly<Record<Kind["type"], string>> = {
  number: "double",
  text: "varchar",
  code: "varchar",
  boolean: "boolean",
  time: "timestamp",
  date: "date",
  list: "list",
  map: "map",
  any: "varchar",
};

function computedMeta(name: string, kinds: readonly Kind[]): ColumnMeta {
  const [only] = kinds;
  return { name, title: name, type: kinds.length === 1 && only ? TYPES[only.type] : "varchar" };
}

function groupedMeta(
  output: Output,
  grouping: GroupPlan,
  { scopes, names }: { readonly scopes: readonly Scope[]; readonly names: Names },
): readonly ColumnMeta[] {
  if (output.kind === "star") return [];
  const { value, name } = output;
  const field = groupedField(value, grouping);
  if (field?.computed) return [computedMeta(name, names.kindsOf(field))];
  const scope = scopes[field?.table ?? 0];
  if (field && scope) return fieldMeta(name, field, { views: rootFirst(scope), scope });
  const aggregate = value.kind === "aggregate" ? grouping.aggregates[value.index] : undefined;
  if (aggregate && answersList(aggregate.name)) return [{ name, title: name, type: "list" }];
  const isInteger = aggregate?.name === "count" || (aggregate?.name === "sum" && addsIntegers(aggregate, scopes));
  return [{ name, title: name, type: isInteger ? "bigint" : "double" }];
}

function addsIntegers({ field }: AggregatePlan, scopes: readonly Scope[]): boolean {
  const columns = field ? (scopes[field.table]?.columnsNamed(field.name) ?? []) : [];
  return columns.length > 0 && columns.every((column) => INTEGERS.has(column.type));
}

/** The field of a key or of an aggregate that answers one of the values; these are described like their column. */
function groupedField(value: Expression, grouping: GroupPlan): BoundField | undefined {
  if (value.kind === "key") return grouping.keys[value.index];
  const aggregate: AggregatePlan | undefined =
    value.kind === "aggregate" ? grouping.aggregates[value.index] : undefined;
  const answersValue = aggregate && ["min", "max", "first", "last"].includes(aggregate.name);
  return answersValue ? aggregate.field : undefined;
}

function pseudoMeta(field: PseudoField, name: string = field): ColumnMeta {
  return { name, title: name, type: pseudoType(field) };
}

function columnMeta(column: Column, name: string): ColumnMeta {
  const title = column.title ?? name;
  return { name, title, type: column.type, ...(column.labels ? { enum: column.labels } : {}) };
}
