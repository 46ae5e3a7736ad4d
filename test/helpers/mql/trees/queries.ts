import type {
  Condition,
  Select,
  SelectItem,
  Source,
  Tail,
  Union,
  ValueNode,
  WindowItem,
} from "../../../../common/mql/index.ts";
import type { Chance } from "./chance.ts";
import { TEXTS, type ValueTrees } from "./values.ts";
import type { ExpressionTrees } from "./expressions.ts";

const span = { start: 0, end: 0 };
const OPEN: Tail = { orderBy: [], limit: undefined, offset: undefined, cursor: undefined };

/** Random trees: SELECT and UNION, and conditions that may contain them. */
export class QueryTrees {
  readonly #chance: Chance;
  readonly #values: ValueTrees;
  readonly #expressions: ExpressionTrees;

  constructor(chance: Chance, values: ValueTrees, expressions: ExpressionTrees) {
    this.#chance = chance;
    this.#values = values;
    this.#expressions = expressions;
  }

  select(): Select {
    const joins = this.#chance.some(0, 1, () => ({
      kind: "join" as const,
      outer: this.#chance.coin(),
      class: { ...this.#source(), alias: this.#values.name() },
      left: this.#expressions.field(),
      right: this.#expressions.field(),
      span,
    }));
    const groupBy = this.#chance.some(0, 2, () => this.#expressions.single(1));
    const filling = this.#chance.pick([
      "previous",
      { kind: "constant", value: null, span },
      { kind: "number", text: "0", span },
    ] as const);
    const fill =
      groupBy.length > 0 && this.#chance.coin() ? { fill: { kind: "fill" as const, value: filling, span } } : {};
    return {
      kind: "select",
      distinct: this.#chance.coin(),
      items: this.#chance.some(1, 4, () => (this.#chance.next() < 0.1 ? this.#window() : this.#item())),
      from: { ...this.#source(), alias: this.#chance.maybe(() => this.#values.name()) },
      joins,
      asOf: this.asOf(),
      where: this.where(),
      groupBy,
      ...fill,
      having: this.where(),
      ...this.#tail(),
      span,
    };
  }

  union(): Union {
    const selects = this.#chance.some(2, 3, () => ({ ...this.select(), ...OPEN }));
    const tail = this.#tail();
    // Directly after the class of the last part it would belong to that part only.
    const asOf = tail.limit ? this.asOf() : undefined;
    return { kind: "union", all: this.#chance.coin(), selects, ...tail, asOf, span };
  }

  #source(): Source {
    if (this.#chance.next() < 0.95) return this.#values.class();
    const select = this.#chance.coin() ? this.select() : this.union();
    return { kind: "selected", select: { ...select, cursor: undefined }, alias: undefined, span };
  }

  #window(): WindowItem {
    const name = this.#chance.pick(["lag", "row_number", "count", "sum"] as const);
    const operands =
      name === "lag"
        ? this.#chance.some(1, 2, () => this.#expressions.single(1))
        : name === "sum"
          ? [this.#expressions.field()]
          : [];
    const orderBy = this.#chance.some(0, 2, () => ({
      kind: "order" as const,
      value: this.#expressions.single(1),
      descending: this.#chance.coin(),
      span,
    }));
    const partitionBy = this.#chance.some(0, 2, () => this.#expressions.single(1));
    return {
      kind: "window",
      name,
      operands,
      partitionBy,
      orderBy,
      alias: this.#chance.maybe(() => this.#values.name()),
      span,
    };
  }

  #tail(): Tail {
    return {
      orderBy: this.#chance.some(0, 2, () => ({
        kind: "order" as const,
        value: this.#expressions.single(1),
        descending: this.#chance.coin(),
        span,
      })),
      limit: this.#values.count(),
      offset: this.#values.count(),
      cursor: this.#chance.maybe(() =>
        this.#chance.coin()
          ? this.#values.placeholder()
          : { kind: "text" as const, value: this.#chance.pick(TEXTS), span },
      ),
    };
  }

  asOf(): ValueNode | undefined {
    return this.#chance.maybe((): ValueNode => ({ kind: "text", value: this.#chance.pick(TEXTS), span }));
  }

  #item(): SelectItem {
    if (this.#chance.next() < 0.2) return { kind: "star", alias: this.#chance.maybe(() => this.#values.name()), span };
    return {
      kind: "item",
      value: this.#chance.coin() ? this.#expressions.call() : this.#expressions.operand(2),
      alias: this.#chance.maybe(() => this.#values.name()),
      span,
    };
  }

  where(): Condition | undefined {
    return this.#chance.maybe(() => (this.#chance.next() < 0.2 ? this.#inSelect() : this.#expressions.condition(2)));
  }

  /** Allowed in conditions of statements, but not in separate conditions. */
  #inSelect(): Condition {
    const select = { ...this.select(), cursor: undefined };
    return { kind: "inSelect", operand: this.#expressions.field(), select, negated: this.#chance.coin(), span };
  }
}
