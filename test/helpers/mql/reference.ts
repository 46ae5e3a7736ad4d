import {
  type InSelect,
  type NumberNode,
  type Operand,
  partsOf,
  printWindow,
  type Condition,
  type Select,
  type Source,
  type Union,
  type ValueNode,
} from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import {
  aliased,
  arranged,
  distinct,
  type Expected,
  inOrder,
  type Made,
  nameOf,
  set,
  windowOf,
} from "./reference/answers.ts";
import { Evaluator } from "./reference/evaluator.ts";
import { Groups } from "./reference/groups.ts";
import { ANSWER, type Env, relationOf, valueOf, VisibleRows } from "./reference/rows.ts";
import type { Truth } from "./reference/truth.ts";
import { over, type ReadRow } from "./reference/windows.ts";
import type { PlainRights, PlainRow, World } from "./world.ts";

export { inOrder, rowText } from "./reference/answers.ts";
export type { Expected } from "./reference/answers.ts";

/**
 * SELECT over a few plain objects: all rows of all classes, conditions by their definition, groups as lists of rows. It
 * uses no index, no pages and no plan, and supports only what the generator produces.
 */
export class Reference {
  readonly #rows: VisibleRows;
  readonly #evaluator: Evaluator;
  readonly #groups: Groups;
  readonly #found = new Map<InSelect, readonly (Value | undefined)[]>();

  constructor(world: World, rights: PlainRights, rule: Condition | undefined) {
    const evaluator = new Evaluator((condition, own) => this.#amongFound(condition, own));
    this.#evaluator = evaluator;
    this.#rows = new VisibleRows(world, { rights, rule, evaluator });
    this.#groups = new Groups(evaluator, (operand, env) => this.#read(operand, env));
  }

  select(select: Select): Expected {
    const envs = this.#envs(select).filter(
      (env) => !select.where || this.#evaluator.truth(select.where, (operand) => this.#read(operand, env)) === true,
    );
    const isGrouped =
      select.groupBy.length > 0 ||
      select.items.some((item) => item.kind === "item" && partsOf(item.value).some((part) => part.kind === "call"));
    const made = isGrouped ? this.#groups.made(select, envs) : envs.map((env) => this.#made(select, env, envs));
    return { ...arranged(select.distinct ? distinct(made) : made, select.orderBy), ...windowOf(select, isGrouped) };
  }

  union(union: Union): Expected {
    const rows = union.selects.flatMap((select) => this.select({ ...select, asOf: union.asOf }).rows);
    const made = rows.map((row) => ({ row, keys: union.orderBy.map((order) => row[nameOf(order.value)] ?? null) }));
    return { ...arranged(union.all ? made : distinct(made), union.orderBy), ...windowOf(union, false) };
  }

  #envs(select: Select): readonly Env[] {
    let envs: readonly Env[] = this.#source(select.from, select.asOf).map((row) => ({
      [select.from.alias ?? ""]: row,
    }));
    for (const join of select.joins) {
      const rows = this.#source(join.class, select.asOf);
      const name = join.class.alias ?? "";
      envs = envs.flatMap((env): readonly Env[] => {
        const pairs = rows.map((row) => ({ ...env, [name]: row }));
        const found = pairs.filter((pair) => isSame(this.#read(join.left, pair), this.#read(join.right, pair)));
        return found.length === 0 && join.outer ? [{ ...env, [name]: null }] : found;
      });
    }
    return envs;
  }

  #source(source: Source, asOf: ValueNode | undefined): readonly PlainRow[] {
    return source.kind === "class" ? this.#rows.of(source, asOf !== undefined) : this.#answered(source.select, asOf);
  }

  /** Rows of a SELECT in its order and window. The state is that of the enclosing SELECT, unless it names its own. */
  #answered(select: Select | Union, asOf: ValueNode | undefined): readonly PlainRow[] {
    const own = { ...select, asOf: select.asOf ?? asOf, limit: select.limit ?? ALL };
    const expected = own.kind === "union" ? this.union(own) : this.select(own);
    const rows = inOrder(expected).slice(expected.offset, expected.offset + expected.limit);
    const columns = new Set(rows.flatMap(({ row }) => Object.keys(row)));
    return rows.map(({ row }) => ({
      id: "",
      class: { ...ANSWER, columns },
      values: row,
      writtenMs: 0,
      edges: { up: [], near: [] },
    }));
  }

  /** `undefined` if the class has no such column. */
  #read(operand: Operand, env: Env): Value | undefined {
    if (operand.kind === "call") return undefined;
    if (operand.kind !== "field") return this.#evaluator.computed(operand, (inner) => this.#read(inner, env));
    const field = operand;
    const [first = "", ...rest] = field.parts;
    const named = rest.length > 0 ? env[first] : undefined;
    if (named === null) return null;
    const row = named ?? Object.values(env)[0];
    const parts = named ? rest : field.parts;
    if (row && relationOf(parts)) return this.#rows.followed(row, parts);
    return row && valueOf(row, parts, this.#rows.columnsOf(row.class));
  }

  #amongFound(condition: InSelect, own: Value | undefined): Truth {
    if (own === undefined || own === null) return undefined;
    const found = this.#found.get(condition) ?? this.select(condition.select).rows.map((row) => Object.values(row)[0]);
    this.#found.set(condition, found);
    return found.includes(own) !== condition.negated;
  }

  #made(select: Select, env: Env, all: readonly Env[]): Made {
    const row: Row = {};
    const read: ReadRow = (operand, one) => this.#read(operand, one);
    for (const item of select.items) {
      if (item.kind === "star") Object.assign(row, this.#whole(env));
      else if (item.kind === "window") row[item.alias ?? printWindow(item)] = over(item, { env, all, read });
      else set(row, item.alias ?? nameOf(item.value), this.#read(item.value, env));
    }
    return { row, keys: select.orderBy.map(({ value }) => this.#read(aliased(value, select), env) ?? null) };
  }

  #whole(env: Env): Row {
    const [row] = Object.values(env);
    if (!row) return {};
    if (row.class.path === ANSWER.path)
      return Object.fromEntries([...row.class.columns].map((name) => [name, row.values[name] ?? null]));
    return {
      id: row.id,
      class: row.class.path,
      ...Object.fromEntries([...this.#rows.columnsOf(row.class)].map((name) => [name, row.values[name] ?? null])),
    };
  }
}

const ALL: NumberNode = { kind: "number", text: "-1", span: { start: 0, end: 0 } };

function isSame(left: Value | undefined, right: Value | undefined): boolean {
  return left !== undefined && left !== null && left === right;
}
