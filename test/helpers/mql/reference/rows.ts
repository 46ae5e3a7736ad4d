import type { Condition } from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { type PlainClass, type PlainRights, type PlainRow, RELATIONS, type World } from "../world.ts";
import type { Evaluator } from "./evaluator.ts";

/** The object of each joined class, by its name there; null if a LEFT JOIN finds none. */
export type Env = Readonly<Record<string, PlainRow | null>>;

/** The class of a SELECT result, which has columns only. */
export const ANSWER: PlainClass = { path: "", label: "", columns: new Set() };

/** The rows and columns that one principal may read, now and at the earlier time of the world. */
export class VisibleRows {
  readonly #world: World;
  readonly #rights: PlainRights;
  readonly #rule: Condition | undefined;
  readonly #evaluator: Evaluator;
  readonly #columns = new Map<PlainClass, ReadonlySet<string>>();
  readonly #visible = new Map<boolean, ReadonlyMap<string, PlainRow>>();
  readonly #earlier: ReadonlySet<PlainRow>;

  constructor(
    world: World,
    {
      rights,
      rule,
      evaluator,
    }: { readonly rights: PlainRights; readonly rule: Condition | undefined; readonly evaluator: Evaluator },
  ) {
    this.#world = world;
    this.#rights = rights;
    this.#rule = rule;
    this.#evaluator = evaluator;
    this.#earlier = new Set(world.earlier?.rows);
  }

  /** Rows of a class, with those of its subclasses if wanted. */
  of(from: { readonly path: string; readonly subtree: boolean }, isEarlier: boolean): readonly PlainRow[] {
    return [...this.#seenRows(isEarlier).values()].filter(
      (row) => row.class.path === from.path || (from.subtree && row.class.path.startsWith(`${from.path}/`)),
    );
  }

  /** Rows by id, in the order of their creation. */
  #seenRows(isEarlier: boolean): ReadonlyMap<string, PlainRow> {
    const known = this.#visible.get(isEarlier);
    if (known) return known;
    const state = isEarlier ? (this.#world.earlier?.rows ?? []) : this.#world.now;
    const rule = this.#rule;
    const rows = state.filter((row) => {
      if (!this.#rights.isReadable(row.class.path)) return false;
      return (
        !rule ||
        this.#evaluator.truth(rule, (operand) =>
          operand.kind === "field" ? valueOf(row, operand.parts, row.class.columns) : undefined,
        ) === true
      );
    });
    const seen = new Map(rows.map((row) => [row.id, row]));
    this.#visible.set(isEarlier, seen);
    return seen;
  }

  /** The ids at the other ends of an edge, or the values of these objects: one, or all in the order of the ids. */
  followed(row: PlainRow, parts: readonly string[]): Value {
    const rows = this.#seenRows(this.#earlier.has(row));
    let ends: readonly PlainRow[] = [row];
    let rest = parts;
    for (let type = relationOf(rest); type !== undefined; type = relationOf(rest)) {
      const ids = new Set(ends.flatMap((end) => (type ? end.edges[type] : [])));
      ends = [...ids].sort().flatMap((id) => rows.get(id) ?? []);
      rest = rest.slice(1);
    }
    if (rest.length === 0) return ends.length === 0 ? null : ends.map(({ id }) => id);
    const values = ends
      .map((end) => valueOf(end, rest, this.columnsOf(end.class)) ?? null)
      .filter((one) => one !== null);
    return values.length > 1 ? values.flat() : (values[0] ?? null);
  }

  columnsOf(view: PlainClass): ReadonlySet<string> {
    if (view.path === ANSWER.path) return view.columns;
    const known = this.#columns.get(view);
    if (known) return known;
    const columns = new Set([...view.columns].filter((name) => !this.#rights.hidden.has(name)));
    this.#columns.set(view, columns);
    return columns;
  }
}

export function relationOf([name]: readonly string[]): (typeof RELATIONS)[number] | undefined {
  return RELATIONS.find((type) => type === name);
}

export function valueOf(
  row: PlainRow,
  [name = "", member]: readonly string[],
  columns: ReadonlySet<string>,
): Value | undefined {
  const isAnswer = row.class.path === ANSWER.path;
  if (name === "id" && !isAnswer) return row.id;
  if (name === "class" && !isAnswer) return row.class.path;
  if (name === "vtime" && !isAnswer) return row.writtenMs;
  if (!isAnswer && !columns.has(name)) return undefined;
  const value = row.values[name] ?? null;
  if (member === undefined) return value;
  return value === null ? null : ((value as Row)[member] ?? null);
}
