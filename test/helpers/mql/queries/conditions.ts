import type { Condition, Field, ValueNode } from "../../../../common/mql/index.ts";
import type { ExpressionGenerator } from "../expressions.ts";
import { COLUMN_NAMES, type ColumnName, type Dice, drawnValue, type World } from "../world.ts";
import { span, SEVERAL, isText, isRelation, isOne, field, text, valueNode } from "./nodes.ts";

interface Parts {
  readonly world: World;
  readonly dice: Dice;
  readonly expressions: ExpressionGenerator;
}

/** Random conditions over fields. */
export class ConditionGenerator {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #expressions: ExpressionGenerator;

  constructor({ world, dice, expressions }: Parts) {
    this.#world = world;
    this.#dice = dice;
    this.#expressions = expressions;
  }

  /** A condition over all columns of the world, including those that the caller may not see. */
  rule(): Condition {
    const names = COLUMN_NAMES.filter((name) => this.#world.classes.some((view) => view.columns.has(name)));
    return this.of(
      ["id", ...names].map((name) => field([name])),
      1,
    );
  }

  of(fields: readonly Field[], depth: number): Condition {
    const roll = this.#dice.below(10);
    if (this.#dice.chance(0.1)) return this.#expressions.condition(fields.filter(isOne), this.#dice.below(3));
    if (depth === 0 || roll < 3) return this.#leaf(this.#dice.pick(fields));
    if (roll === 3) return { kind: "not", operand: this.of(fields, depth - 1), span };
    return {
      kind: roll < 8 ? "and" : "or",
      items: Array.from({ length: 2 + this.#dice.below(2) }, () => this.of(fields, depth - 1)),
      span,
    };
  }

  #leaf(operand: Field): Condition {
    const name = operand.parts.at(-1) ?? "";
    const negated = this.#dice.chance(0.3);
    const value = () => this.valueFor(name);
    if (this.#dice.chance(0.12)) return { kind: "isNull", operand, negated, span };
    if (this.#dice.chance(0.2)) return { kind: "in", operand, values: [value(), value(), value()], negated, span };
    if (!isOne(operand) && !SEVERAL.includes(name as ColumnName))
      return { kind: "compare", operator: this.#dice.pick(["=", "!="]), left: operand, right: value(), span };
    if (SEVERAL.includes(name as ColumnName)) return this.#ofSeveral(operand, name, negated);
    if (name === "x1" || (name === "s1" && this.#dice.chance(0.2))) return this.#textLeaf(operand, negated);
    if (isText(name) && this.#dice.chance(0.25))
      return { kind: "like", operand, pattern: text(this.#dice.pick(["a*", "*1", "a*2", "*b*", "k*"])), negated, span };
    if (!isText(name) && this.#dice.chance(0.25))
      return { kind: "between", operand, low: value(), high: value(), negated, span };
    return {
      kind: "compare",
      operator: this.#dice.pick(["=", "=", "!=", "<", "<=", ">", ">="]),
      left: operand,
      right: value(),
      span,
    };
  }

  #ofSeveral(operand: Field, name: string, negated: boolean): Condition {
    const value = this.valueFor(name);
    if (isOne(operand) && this.#dice.chance(0.25)) return this.#expressions.ofMembers(operand);
    if (name === "m1" && this.#dice.chance(0.4)) {
      const member = { ...operand, parts: [...operand.parts, this.#dice.pick(["x", "y"])] };
      return {
        kind: "compare",
        operator: this.#dice.pick(["=", "!="]),
        left: member,
        right: text(this.#dice.pick(["1", "2"])),
        span,
      };
    }
    if (this.#dice.chance(0.4)) return { kind: "contains", operand, value, negated, span };
    return { kind: "compare", operator: this.#dice.pick(["=", "!="]), left: operand, right: value, span };
  }

  #textLeaf(operand: Field, negated: boolean): Condition {
    const wanted = this.#dice.pick(["disk", "full disk", "fa* web", "dis", "web no", "dsik", "red", "node warn"]);
    const operator = this.#dice.pick(["MATCH", "MATCH", "PHRASE", "PREFIX", "FUZZY"] as const);
    return {
      kind: "textMatch",
      operator,
      operand,
      value: text(operator === "MATCH" ? wanted : wanted.replaceAll("*", "")),
      negated,
      span,
    };
  }

  valueFor(name: string): ValueNode {
    if (name === "id" || isRelation(name))
      return text(this.#dice.pick(this.#world.now.map((row) => row.id).concat("none:1")));
    if (name === "class") return text(this.#dice.pick(this.#world.classes).path);
    const value = drawnValue(name as ColumnName, this.#dice);
    if (SEVERAL.includes(name as ColumnName)) return text(this.#dice.pick(["x", "y", "z", "none"]));
    return valueNode(name, value);
  }

  both(left: Condition | undefined, right: Condition | undefined): Condition | undefined {
    if (!left || !right) return left ?? right;
    return { kind: this.#dice.pick(["and", "or"] as const), items: [left, right], span };
  }
}
