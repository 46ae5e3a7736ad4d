import type { Condition, Field, Operand, OrderItem, Select, Tail, ValueNode } from "../../../../common/mql/index.ts";
import {
  COLUMN_NAMES,
  COLUMN_TYPES,
  type ColumnName,
  type Dice,
  type PlainClass,
  type PlainRights,
  RELATIONS,
  type World,
} from "../world.ts";
import { OPEN, span, SEVERAL, type Source, isScalar, item, field, number } from "./nodes.ts";
import type { ConditionGenerator } from "./conditions.ts";

interface Parts {
  readonly world: World;
  readonly rights: PlainRights;
  readonly dice: Dice;
  readonly conditions: ConditionGenerator;
}

/** Classes that the caller may read, and the parts of a SELECT that every kind of SELECT has. */
export class SourceGenerator {
  readonly #world: World;
  readonly #rights: PlainRights;
  readonly #dice: Dice;
  readonly #conditions: ConditionGenerator;

  constructor({ world, rights, dice, conditions }: Parts) {
    this.#world = world;
    this.#rights = rights;
    this.#dice = dice;
    this.#conditions = conditions;
  }

  all(): readonly Source[] {
    const readable = this.#world.classes.filter((view) => this.#rights.isReadable(view.path));
    return readable.flatMap((view) => {
      const tree = readable.filter((other) => other.path === view.path || other.path.startsWith(`${view.path}/`));
      return [this.#classSource(view, [view], false), this.#classSource(view, tree, true)];
    });
  }

  #classSource(view: PlainClass, tree: readonly PlainClass[], subtree: boolean): Source {
    const names = COLUMN_NAMES.filter(
      (name) => !this.#rights.hidden.has(name) && tree.some((one) => one.columns.has(name)),
    );
    const shared = names.filter((name) => tree.every((one) => one.columns.has(name)));
    return { ref: { kind: "class", path: view.path, subtree, alias: undefined, span }, names, shared };
  }

  /** Some fields of the objects at the other ends of relations, over one step or two. */
  followed({ isAnswer }: Source): readonly Field[] {
    if (isAnswer || this.#dice.chance(0.6)) return [];
    const readable = this.#world.classes.filter((view) => this.#rights.isReadable(view.path));
    const names = COLUMN_NAMES.filter(
      (name) => name !== "m1" && !this.#rights.hidden.has(name) && readable.some((view) => view.columns.has(name)),
    );
    return Array.from({ length: 3 }, () => {
      const steps = [this.#dice.pick(RELATIONS), ...(this.#dice.chance(0.3) ? [this.#dice.pick(RELATIONS)] : [])];
      const end = this.#dice.pick(["", "id", "class", ...names]);
      return field(end === "" ? steps : [...steps, end]);
    });
  }

  plain(source: Source): Select {
    const { ref, names } = source;
    const plain = this.#dice.chance(0.75)
      ? this.#conditions.of([...["id", "class", ...names].map((name) => field([name])), ...this.followed(source)], 2)
      : undefined;
    const among = this.#dice.chance(0.1)
      ? this.amongFound(["id", ...names.filter(isScalar)].map((name) => field([name])))
      : undefined;
    const where = this.#conditions.both(plain, among);
    return {
      kind: "select",
      distinct: false,
      items: [],
      from: ref,
      joins: [],
      asOf: this.asOf(),
      where,
      groupBy: [],
      having: undefined,
      ...OPEN,
      span,
    };
  }

  /** A column or the id, IN a SELECT of a column of the same type. */
  amongFound(fields: readonly Field[]): Condition | undefined {
    const operand = this.#dice.pick(fields);
    const own = operand.parts.at(-1) as ColumnName | "id" | "class";
    if (own === "class" || SEVERAL.includes(own as ColumnName)) return undefined;
    const source = this.#dice.pick(this.all());
    const others = own === "id" ? [own] : source.names.filter((name) => COLUMN_TYPES[name] === COLUMN_TYPES[own]);
    if (others.length === 0) return undefined;
    const select = { ...this.plain(source), items: [item(field([this.#dice.pick(others)]))] };
    return { kind: "inSelect", operand, select, negated: this.#dice.chance(0.3), span };
  }

  asOf(): ValueNode | undefined {
    const { earlier } = this.#world;
    return earlier && this.#dice.chance(0.3) ? { kind: "number", text: String(earlier.atMs), span } : undefined;
  }

  /** Ordered by all of the keys or by none. LIMIT only with an order, so that the result is unique. */
  tail(keys: readonly Operand[]): Tail {
    if (keys.length === 0 || this.#dice.chance(0.4)) return { ...OPEN, limit: number(-1) };
    const orderBy = keys.map(
      (value): OrderItem => ({ kind: "order", value, descending: this.#dice.chance(0.4), span }),
    );
    const limit = this.#dice.chance(0.5) ? number(this.#dice.below(12)) : number(-1);
    return {
      orderBy,
      limit,
      offset: this.#dice.chance(0.3) ? number(this.#dice.below(6)) : undefined,
      cursor: undefined,
    };
  }
}
