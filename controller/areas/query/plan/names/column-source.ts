import type { Value } from "../../../../../common/value.ts";
import type { ClassView, Column, ObjectRow } from "../../../objects/index.ts";
import { partOf, WHOLE_SERIES } from "../../expressions/aggregates/timeseries.ts";
import type { BoundField } from "../../expressions/fields.ts";
import { ANY, type Kind, kindOf } from "../../expressions/kind.ts";
import { isMap } from "../../expressions/literal.ts";
import type { Source } from "../../expressions/predicate.ts";
import type { Cells } from "./cells.ts";
import type { VisibleTree } from "./tree.ts";

/** Reads one column of rows of any class. Caches the class, because successive rows mostly have the same class. */
export class ColumnSource implements Source<ObjectRow> {
  readonly label: string;
  readonly kinds: readonly Kind[];
  readonly #tree: VisibleTree;
  readonly #field: BoundField;
  readonly #cells: Cells | undefined;
  #class: ClassView | undefined;
  #kind: Kind | undefined;

  constructor(tree: VisibleTree, field: BoundField, cells: Cells | undefined) {
    this.#tree = tree;
    this.#field = field;
    this.#cells = cells;
    this.label = field.label;
    this.kinds = [...new Set(tree.columnsNamed(field.name).map((column) => memberKind(column, field.members.length)))];
  }

  read(row: ObjectRow): Value | undefined {
    if (row.class !== this.#class) this.#turnTo(row.class);
    if (this.#kind === undefined) return undefined;
    if (this.#cells?.hiddenIn(row).has(this.#field.name)) return null;
    const value = row.values[this.#field.name] ?? null;
    const { members, series } = this.#field;
    if (series && series !== WHOLE_SERIES) return partOf(value, series);
    return members.length === 0 ? value : memberOf(value, members);
  }

  kind(row: ObjectRow): Kind {
    if (row.class !== this.#class) this.#turnTo(row.class);
    return this.#kind ?? ANY;
  }

  #turnTo(view: ClassView): void {
    const column = this.#tree.column(view, this.#field.name);
    this.#class = view;
    this.#kind = column && memberKind(column, this.#field.members.length);
  }
}

function memberKind(column: Column, depth: number): Kind {
  const kind = kindOf(column);
  return depth === 0 ? kind : depth === 1 ? (kind.element ?? ANY) : ANY;
}

function memberOf(value: Value, members: readonly string[]): Value {
  let current: Value = value;
  for (const member of members)
    current = isMap(current) && Object.hasOwn(current, member) ? (current[member] ?? null) : null;
  return current;
}
