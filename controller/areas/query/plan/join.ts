import { AppError } from "../../../../common/errors.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import {
  type Condition,
  type Field,
  type Join,
  NOWHERE,
  partsOfCondition,
  type Select,
} from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectRow } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { sourceOfField } from "../expressions/bind.ts";
import type { Fields } from "../expressions/fields.ts";
import type { BoundField } from "../expressions/fields.ts";
import { ANY, type Kind, TEXT } from "../expressions/kind.ts";
import type { Arguments } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import type { Source } from "../expressions/predicate.ts";
import { fieldsOf, fieldsOfSelect } from "./columns.ts";
import { OutputBinder, type Shape } from "./outputs.ts";
import { pagingRefused } from "./paging.ts";
import { bindOutputs } from "./bound-outputs.ts";
import { type PlanContext, readsOf, sortOf, type TablePlan, timeOfState } from "./plan.ts";
import { allOf, conjuncts } from "./pushdown.ts";
import { isRelated, relationPlan, type RelationPlan } from "./relations.ts";
import type { Scope } from "./names/scope.ts";
import { sourceScope } from "./answered.ts";

/**
 * One object of each class, in the order in which the statement names the classes. Undefined where a LEFT JOIN found
 * none.
 */
export type Joined = readonly (ObjectRow | undefined)[];

/** Plan of a SELECT over joined classes, as data. */
export interface JoinPlan extends Shape<Joined> {
  readonly kind: "join";
  /** Tables with the conditions that are about one class only. */
  readonly tables: readonly JoinedTable[];
  /** `links[0]` joins `tables[1]` to the tables before it, and so on. */
  readonly links: readonly Link[];
  /**
   * The rest of the condition: parts about several classes or none, and parts about a class that a LEFT JOIN may not
   * find.
   */
  readonly where: Condition | undefined;
  readonly fields: JoinedFields;
}

export interface JoinedTable extends TablePlan {
  /** Relations that are read with the objects. */
  readonly relations: RelationPlan | undefined;
}

export interface Link {
  /** True if a row that finds no object is kept, without an object. */
  readonly isOuter: boolean;
  /** A field of one of the classes before. */
  readonly earlier: BoundField;
  readonly own: BoundField;
  /** The kind as which both fields are compared. */
  readonly kind: Kind;
}

export function planJoin(select: Select, principal: Principal, context: PlanContext): JoinPlan {
  const { values } = context;
  if (select.cursor) throw pagingRefused();
  const scopes = [select.from, ...select.joins.map((join) => join.class)].map((target) => {
    const named = target.kind === "class" ? target.path.slice(target.path.lastIndexOf("/") + 1) : "";
    return about(target.span, () => sourceScope(principal, context, target, target.alias ?? named).following());
  });
  const fields = new JoinedFields(scopes);
  const links = select.joins.map((join, index) => about(join.span, () => linkOf(join, index + 1, fields)));
  const asOfMs = timeOfState(select.asOf ?? context.asOf, values);
  const split = splitByTable(select.where, { fields, values, links });
  const named = [...fieldsOfSelect(select), ...(select.where ? partsOfCondition(select.where).flatMap(fieldsOf) : [])];
  const tables = scopes.map((scope, table): JoinedTable => {
    const where = together(split.filter((part) => part.table === table));
    const relations = relationPlan(named, scope, { values, asOfMs });
    return { scope, values, where, reads: readsOf(scope, where, { values, asOfMs }), relations };
  });
  const bound = bindOutputs(select, new OutputBinder(select, fields, values), values);
  const sort = sortOf(
    bound.orderBy.length,
    false,
    bound.limit === undefined ? undefined : bound.offset + bound.limit + (bound.isCut ? 1 : 0),
  );
  return {
    kind: "join",
    fields,
    tables,
    links,
    where: together(split.filter((part) => part.table === undefined)),
    ...bound,
    sort,
  };
}

/** Names over joined classes: `alias.field`, or the field alone if only one of the classes has it. */
export class JoinedFields implements Fields<Joined> {
  readonly scopes: readonly Scope[];

  constructor(scopes: readonly Scope[]) {
    this.scopes = scopes;
    const aliases = scopes.map((scope) => scope.alias);
    const twice = aliases.find((alias, index) => aliases.indexOf(alias) !== index);
    if (twice !== undefined)
      throw new AppError(
        "invalid",
        `[Valid] Two classes of the JOIN are called ${twice}: give them different aliases.`,
      );
  }

  bind(field: Field, values?: Arguments): BoundField {
    const table = this.#tableOf(field);
    const bound = this.#scope(table).bind(field, values);
    return { ...bound, table, label: `${this.#scope(table).alias ?? ""}.${bound.label}` };
  }

  kindsOf(field: BoundField): readonly Kind[] {
    return field.computed || field.window ? this.source(field).kinds : this.#scope(field.table).kindsOf(field);
  }

  definedName(): undefined {
    return undefined;
  }

  kindsNamed(): readonly Kind[] {
    return [];
  }

  star(alias: string | undefined): readonly BoundField[] {
    const scopes = alias === undefined ? this.scopes : this.scopes.filter((scope) => scope.alias === alias);
    if (scopes.length === 0)
      throw unknownName(`[NotExist] Nothing is called ${alias ?? ""} here.`, {
        name: alias ?? "",
        among: this.scopes.map((scope) => scope.alias ?? ""),
      });
    return scopes.flatMap((scope) => {
      const names = new Set<string>([
        ...scope.tree.pseudoFields,
        ...scope.classes.flatMap((view) => scope.columnsOf(view).map((column) => column.name)),
      ]);
      return [...names].map((name) => this.bind({ kind: "field", parts: [scope.alias ?? "", name], span: NOWHERE }));
    });
  }

  source(bound: BoundField): Source<Joined> {
    return sourceOfField(bound, this, (field) => this.#plainSource(field));
  }

  #plainSource(field: BoundField): Source<Joined> {
    const { table } = field;
    const inner = this.#scope(table).source(field);
    return {
      label: field.label,
      kinds: inner.kinds,
      read(row) {
        const own = row[table];
        return own ? inner.read(own) : null;
      },
      kind(row) {
        const own = row[table];
        return own ? inner.kind(own) : ANY;
      },
    };
  }

  writtenMs(field: BoundField | undefined): (row: Joined) => number {
    const table = field?.table ?? 0;
    return (row) => row[table]?.vtimeMs ?? 0;
  }

  /** Never called, because in a join a star means a list of fields. */
  wholeRow(): (row: Joined, result: Row) => void {
    throw new RangeError("a star over joined classes is a list of fields");
  }

  #scope(table: number): Scope {
    const scope = this.scopes[table];
    if (!scope) throw new RangeError("a bound field is of one of the classes");
    return scope;
  }

  #tableOf(field: Field): number {
    const [first = ""] = field.parts;
    const named = field.parts.length > 1 ? this.scopes.findIndex((scope) => scope.alias === first) : -1;
    if (named !== -1) return named;
    const having = this.#having(first);
    const [only] = having;
    if (only === undefined)
      throw unknownName(`Field ${field.parts.join(".")} Not Exist`, {
        name: first,
        among: this.scopes.flatMap((scope) => [scope.alias ?? "", ...scope.tree.names]),
      });
    if (having.length === 1) return only;
    const choices = having.map((table) => `${this.#scope(table).alias ?? ""}.${first}`);
    throw new AppError("invalid", `[Valid] Several classes of the JOIN have ${first}: write ${choices.join(" or ")}.`);
  }

  /**
   * Indexes of the classes that have the name. An exact case wins over another case, and a column of a class over one
   * of `recordColumns`.
   */
  #having(name: string): readonly number[] {
    const tables = (isOne: (scope: Scope) => boolean): readonly number[] =>
      this.scopes.flatMap((scope, table) => (isOne(scope) ? [table] : []));
    const exactly = tables((scope) => scope.has(name) && !scope.tree.isOfPlatform(name));
    if (exactly.length > 0) return exactly;
    const known = tables((scope) => scope.definedName(name) !== undefined);
    const own = known.filter((table) => !this.#scope(table).tree.isOfPlatform(name));
    return own.length > 0 ? own : known;
  }
}

function linkOf(join: Join, table: number, fields: JoinedFields): Link {
  const sides = [fields.bind(join.left), fields.bind(join.right)];
  const own = sides.find((side) => side.table === table);
  const earlier = sides.find((side) => side.table < table);
  if (!own || !earlier) {
    throw new AppError(
      "invalid",
      `[Valid] ON has to compare a field of ${join.class.alias ?? ""} with one of a class before it.`,
    );
  }
  return { isOuter: join.outer, own, earlier, kind: linkKind(own, earlier, fields) };
}

/** The kind as which both fields are compared. A number also equals its text, as in conditions. */
function linkKind(own: BoundField, earlier: BoundField, fields: JoinedFields): Kind {
  const kinds = [...new Set([...fields.kindsOf(own), ...fields.kindsOf(earlier)])];
  const several = [own, earlier].find((field) =>
    fields.kindsOf(field).some((kind) => kind.type === "list" || kind.type === "map"),
  );
  if (several) throw new AppError("invalid", `[Valid] ON compares single values; ${several.label} is a list or a map.`);
  const typed = kinds.filter((kind) => kind !== TEXT);
  const [only = TEXT] = typed;
  return typed.length <= 1 ? only : ANY;
}

interface Part {
  readonly condition: Condition;
  /** Index of the table that checks the part; absent: the joined rows are checked. */
  readonly table: number | undefined;
}

interface Splitting {
  readonly fields: JoinedFields;
  readonly values: Arguments;
  readonly links: readonly Link[];
}

function splitByTable(where: Condition | undefined, { fields, values, links }: Splitting): readonly Part[] {
  const outer = new Set(links.flatMap(({ isOuter, own }) => (isOuter ? [own.table] : [])));
  return conjuncts(where).map((condition) => {
    const tables = about(condition.span, () => tablesOf(condition, fields, values));
    const [only] = tables;
    const isOwn = !isRelated(condition, fields.scopes);
    const isOfOne = only !== undefined && tables.size === 1 && !outer.has(only) && isOwn;
    return { condition, table: isOfOne ? only : undefined };
  });
}

function tablesOf(condition: Condition, fields: JoinedFields, values: Arguments): ReadonlySet<number> {
  return new Set(
    partsOfCondition(condition).flatMap((part) => (part.kind === "field" ? [fields.bind(part, values).table] : [])),
  );
}

function together(parts: readonly Part[]): Condition | undefined {
  return allOf(parts.map(({ condition }) => condition));
}
