import type { Condition, Expression, Field, Operand, ValueNode } from "../../../../common/mql/index.ts";
import type { Chance } from "./chance.ts";
import { TEXTS, type ValueTrees } from "./values.ts";

const span = { start: 0, end: 0 };
const COMPARE = ["=", "!=", ">", "<", ">=", "<="] as const;

/** Random trees: fields, expressions and conditions that may stand alone. */
export class ExpressionTrees {
  readonly #chance: Chance;
  readonly #values: ValueTrees;

  constructor(chance: Chance, values: ValueTrees) {
    this.#chance = chance;
    this.#values = values;
  }

  condition(depth: number): Condition {
    if (depth > 0 && this.#chance.next() < 0.6) {
      const kind = this.#chance.pick(["and", "or", "not"] as const);
      if (kind === "not") return { kind, operand: this.condition(depth - 1), span };
      return { kind, items: this.#chance.some(2, 4, () => this.condition(depth - 1)), span };
    }
    return this.#leaf();
  }

  #leaf(): Condition {
    const negated = this.#chance.coin();
    const operand = this.operand();
    const makers: readonly (() => Condition)[] = [
      () => ({
        kind: "compare",
        operator: this.#chance.pick(COMPARE),
        left: operand,
        right: this.#values.value(2),
        span,
      }),
      () => ({ kind: "relate", operator: this.#chance.pick(COMPARE), left: operand, right: this.related(), span }),
      () => ({ kind: "in", operand, values: this.#chance.some(0, 3, () => this.#values.value(1)), negated, span }),
      () => ({ kind: "like", operand, pattern: this.#values.value(0), negated, span }),
      () => ({ kind: "between", operand, low: this.#values.value(0), high: this.#values.value(0), negated, span }),
      () => ({ kind: "isNull", operand, negated, span }),
      () => ({ kind: "contains", operand, value: this.#values.value(2), negated, span }),
      () => ({
        kind: "textMatch",
        operator: this.#chance.pick(["MATCH", "PHRASE", "PREFIX", "FUZZY"]),
        operand,
        value: this.#values.value(0),
        negated,
        span,
      }),
    ];
    return this.#chance.pick(makers)();
  }

  /** The right side of a comparison that is no literal. A field there is in brackets. */
  related(): Operand {
    return this.#chance.coin() ? this.field() : this.expression(2);
  }

  single(depth: number): Operand {
    return this.#chance.coin() ? this.field() : this.expression(depth);
  }

  operand(depth = 1): Operand {
    if (this.#chance.next() < 0.15) return this.#values.value(0);
    return depth > 0 && this.#chance.next() < 0.3 ? this.expression(depth) : this.call();
  }

  expression(depth: number): Expression {
    const operand = (): Operand => this.operand(depth - 1);
    const type: ValueNode = { kind: "text", value: this.#chance.pick(["int", "text", "a b"]), span };
    const makers: readonly (() => Expression)[] = [
      () => ({
        kind: "computed",
        name: this.#chance.pick(["+", "-", "*", "/", "||"]),
        operands: [operand(), operand()],
        span,
      }),
      () => ({ kind: "computed", name: "-", operands: [this.#chance.coin() ? this.field() : this.call()], span }),
      () => ({
        kind: "computed",
        name: this.#chance.pick(["lower", "now", "contains", "any"]),
        operands: this.#chance.some(0, 3, operand),
        span,
      }),
      () => ({ kind: "computed", name: "cast", operands: [operand(), type], span }),
      () => ({
        kind: "case",
        branches: this.#chance.some(1, 2, () => ({ when: this.condition(0), then: operand() })),
        otherwise: this.#chance.maybe(operand),
        span,
      }),
      () => ({ kind: "truth", condition: this.condition(Math.max(0, depth - 1)), span }),
    ];
    return this.#chance.pick(makers)();
  }

  field(): Field {
    const parts = this.#chance.some(1, 3, () => this.#values.name());
    if (this.#chance.next() < 0.8) return { kind: "field", parts, span };
    const window = {
      kind: "window" as const,
      from: this.#chance.maybe(() => this.#values.value(0)),
      to: this.#chance.maybe(() => this.#values.value(0)),
      span,
    };
    return { kind: "field", parts, window, span };
  }

  call(): Extract<Operand, { kind: "field" | "call" }> {
    if (this.#chance.next() < 0.7) return this.field();
    const argument = this.#chance.maybe(() => (this.#chance.coin() ? this.field() : this.expression(1)));
    const step =
      argument && this.#chance.coin() ? { step: { kind: "text" as const, value: this.#chance.pick(TEXTS), span } } : {};
    return {
      kind: "call",
      name: this.#chance.pick(["count", "max", "top"]),
      distinct: argument !== undefined && this.#chance.coin(),
      argument,
      ...step,
      span,
    };
  }
}
