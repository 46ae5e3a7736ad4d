import {
  type Call,
  type CompareOperator,
  type Condition,
  type Expression,
  type Field,
  type Operand,
  type ValueNode,
} from "../../../common/mql/index.ts";
import { columnType, type Type, typeOf } from "./types.ts";
import { type Dice, SINGLE, RELATIONS } from "./world.ts";

const span = { start: 0, end: 0 };
const OPERATORS: readonly CompareOperator[] = ["=", "=", "!=", "<", "<=", ">", ">="];
const NUMBERS = [-1, 0, 1, 2, 3, 5, 0.5, 2.5];
const TEXTS = ["", "a", "b", "1", "a1", "-", " Ab "];
const MEMBERS = ["x", "y", "z", "1", "2", "a", "none"];
const TIMES = ["2024-01-01 00:00:00", "2024-01-03 10:20:30", "2024-02-29 23:59:59"];
const WIDTHS = ["1 day", "2 days", "36 hours", "1 week", "2 weeks", "1 month", "3 months", "1 year"];
const UNITS = ["hour", "day", "week", "month", "quarter", "year"];
const ZONES = ["UTC", "+05:45", "-03:30"];
const SEPARATORS = ["b", "1", ",", ""];
const PATTERNS = ["a", "^b", "(a)(b)?", "[a-b](\\d)", "(\\d)$", "x|1"];
const SCALARS = ["number", "number", "text", "text", "time", "boolean"] as const;

type Makers = readonly (() => Expression)[];

/** Random expressions of a given type over the given fields, with every operator and function. */
export class ExpressionGenerator {
  readonly #dice: Dice;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** An expression of a type that has an order. */
  scalar(fields: readonly Field[], depth = 1): Expression {
    return this.of(this.#dice.pick(SCALARS), fields, depth);
  }

  of(type: Type, fields: readonly Field[], depth = 1): Expression {
    return this.#dice.pick([...this.#makers(type, fields, depth), ...this.#choices(type, fields, depth)])();
  }

  condition(fields: readonly Field[], depth = 1): Condition {
    const negated = this.#dice.chance(0.3);
    const type = this.#dice.pick(SCALARS);
    const operand = this.#sided(type, fields, depth);
    const makers: readonly (() => Condition)[] = [
      () => ({ kind: "isNull", operand, negated, span }),
      () => ({ kind: "in", operand, values: [this.#value(type), this.#value(type)], negated, span }),
      () => this.#compared(type, operand),
      () => this.#related(type, operand, this.#sided(type, fields, depth)),
      () => this.#related(type, operand, this.of(type, fields, depth)),
      () => this.#special(fields, depth, negated),
      () => this.#ofMembers(fields, depth),
    ];
    return this.#dice.pick(makers)();
  }

  #ofMembers(fields: readonly Field[], depth: number): Condition {
    const own = fields.filter((one) => isOneOf(one, "list") || isOneOf(one, "map"));
    const whole = own.length > 0 && this.#dice.chance(0.7) ? this.#dice.pick(own) : this.of("list", fields, depth);
    if (this.#dice.chance(0.6)) return this.ofMembers(whole);
    const [member, other] = [call("any", whole), this.#sided("text", fields, depth)];
    return this.#dice.chance(0.5) ? this.#related("text", member, other) : this.#related("text", other, member);
  }

  /** A condition on each member of these values. */
  ofMembers(whole: Operand): Condition {
    const operand = call("any", whole);
    const negated = this.#dice.chance(0.3);
    const value = (): ValueNode => text(this.#dice.pick(MEMBERS));
    const operator = this.#dice.pick(OPERATORS);
    return this.#dice.pick<() => Condition>([
      () => ({ kind: "compare", operator, left: operand, right: value(), span }),
      () => this.#related("text", value(), operand),
      () => ({ kind: "in", operand, values: [value(), value()], negated, span }),
      () => ({ kind: "like", operand, pattern: text(this.#dice.pick(["a*", "*1", "x", "*"])), negated, span }),
      () => ({ kind: "between", operand, low: value(), high: value(), negated, span }),
      () => ({ kind: "contains", operand, value: value(), negated, span }),
    ])();
  }

  /** A comparison of expressions over these calls, whose results are exact. */
  ofCalls(calls: readonly Call[]): Expression {
    const [left, right] = [this.#dice.pick(calls), this.#dice.pick(calls)];
    return this.#dice.pick<() => Expression>([
      () => call(this.#dice.pick(["+", "-", "*", "/"]), left, right),
      () => call("-", left, number(1)),
      () => call("round", call("/", left, number(3)), number(1)),
      () => call("coalesce", left, number(0)),
      () => call("abs", left),
      () => this.#case(this.#compared("number", left), left, number(-1)),
      () => ({ kind: "truth", condition: this.#related("number", left, call("+", right, number(1))), span }),
    ])();
  }

  #special(fields: readonly Field[], depth: number, negated: boolean): Condition {
    const operand = this.#sided("text", fields, depth);
    if (this.#dice.chance(0.5))
      return { kind: "like", operand, pattern: text(this.#dice.pick(["a*", "*1", "*b*", "-"])), negated, span };
    if (this.#dice.chance(0.5)) return { kind: "contains", operand, value: this.#value("text"), negated, span };
    const [low, high] = [this.#value("number"), this.#value("number")];
    return { kind: "between", operand: this.#sided("number", fields, depth), low, high, negated, span };
  }

  #compared(type: Type, left: Operand): Condition {
    return { kind: "compare", operator: this.#dice.pick(OPERATORS), left, right: this.#value(type), span };
  }

  #related(_: Type, left: Operand, right: Operand): Condition {
    return { kind: "relate", operator: this.#dice.pick(OPERATORS), left, right, span };
  }

  /** An operand that is not a literal value. */
  #sided(type: Type, fields: readonly Field[], depth: number): Operand {
    const own = fields.filter((one) => isOneOf(one, type));
    return own.length > 0 && this.#dice.chance(0.4) ? this.#dice.pick(own) : this.of(type, fields, depth);
  }

  #draw(type: Type, fields: readonly Field[], depth: number): Operand {
    const own = fields.filter((one) => isOneOf(one, type));
    if (depth > 0 && this.#dice.chance(0.5)) return this.of(type, fields, depth - 1);
    return own.length > 0 && this.#dice.chance(0.8) ? this.#dice.pick(own) : this.#constant(type);
  }

  #constant(type: Type): Operand {
    if (type === "time") return cast(this.#value("time"), "timestamp");
    return type === "list" ? call("split", text("a,b,1"), text(",")) : this.#value(type);
  }

  /** A literal; times as texts, which are equal to them. */
  #value(type: Type): ValueNode {
    if (type === "number") return number(this.#dice.pick(NUMBERS));
    if (type === "boolean") return { kind: "constant", value: this.#dice.chance(0.5), span };
    return text(this.#dice.pick(type === "time" ? TIMES : TEXTS));
  }

  /** Expressions that every type has. */
  #choices(type: Type, fields: readonly Field[], depth: number): Makers {
    const draw = () => this.#draw(type, fields, depth - 1);
    const condition = () => this.condition(fields, 0);
    if (type === "map" || type === "list") return [];
    return [
      () => call("coalesce", draw(), draw()),
      () => this.#case(condition(), draw(), this.#dice.chance(0.6) ? draw() : undefined),
    ];
  }

  #case(when: Condition, then: Operand, otherwise: Operand | undefined): Expression {
    return { kind: "case", branches: [{ when, then }], otherwise, span };
  }

  #makers(type: Type, fields: readonly Field[], depth: number): Makers {
    switch (type) {
      case "number":
        return this.#numbers(fields, depth);
      case "text":
        return this.#texts(fields, depth);
      case "boolean":
        return this.#truths(fields, depth);
      case "time":
        return this.#times(fields, depth);
      default:
        return [() => call("split", this.#draw("text", fields, depth - 1), text(this.#dice.pick(SEPARATORS)))];
    }
  }

  #numbers(fields: readonly Field[], depth: number): Makers {
    const own = () => this.#draw("number", fields, depth - 1);
    const time = () => this.#draw("time", fields, depth - 1);
    const part = this.#dice.pick(["year", "month", "day", "hour", "minute", "second", "weekday"]);
    return [
      () => call(this.#dice.pick(["+", "-", "*", "/"]), own(), own()),
      () => call("-", this.#dice.pick([...fields.filter((one) => isOneOf(one, "number")), call("abs", own())])),
      () => call(this.#dice.pick(["abs", "floor", "ceil", "round"]), own()),
      () => call("round", own(), number(this.#dice.below(4) - 1)),
      () => call("mod", own(), own()),
      () => call("length", this.#draw("text", fields, depth - 1)),
      () => call("size", this.#several(fields, depth)),
      () => call(part, time(), ...this.#zone()),
      () => call(part, time(), ...this.#zone()),
      () => call("/", call("-", time(), time()), number(86_400_000)),
      () => cast(this.#draw(this.#dice.pick(["number", "text", "boolean"]), fields, depth - 1), this.#numeric()),
    ];
  }

  #texts(fields: readonly Field[], depth: number): Makers {
    const own = () => this.#draw("text", fields, depth - 1);
    const any = () => this.#draw(this.#dice.pick(["text", "number", "boolean"]), fields, depth - 1);
    const place = () => number(this.#dice.below(6) - 1);
    const pattern = () => text(this.#dice.pick(PATTERNS));
    const maps = fields.filter((one) => isOneOf(one, "map"));
    return [
      () => call(this.#dice.pick(["lower", "upper", "trim"]), any()),
      () => call("substring", own(), place()),
      () => call("substring", own(), place(), number(this.#dice.below(4))),
      () => call("concat", ...Array.from({ length: 1 + this.#dice.below(3) }, any)),
      () => call("||", own(), any()),
      () => call("replace", own(), text(this.#dice.pick(TEXTS)), own()),
      () => call("regexp_extract", own(), pattern()),
      () => call("regexp_extract", own(), pattern(), number(this.#dice.below(4))),
      () => call("member", this.#draw("list", fields, depth - 1), this.#draw("number", fields, depth - 1)),
      ...maps.map((map) => () => call("member", map, text(this.#dice.pick(["x", "y", "none"])))),
      () => cast(any(), this.#dice.pick(["text", "varchar"])),
      () => cast(this.#draw("time", fields, depth - 1), "text"),
      () => call("time_text", this.#draw("time", fields, depth - 1), ...this.#zone()),
      () => call("concat", cast(this.#draw("time", fields, depth - 1), "date"), text("")),
    ];
  }

  #truths(fields: readonly Field[], depth: number): Makers {
    const own = () => this.#draw("text", fields, depth - 1);
    return [
      () => ({ kind: "truth", condition: this.condition(fields, Math.max(0, depth - 1)), span }),
      () => call("regexp_match", own(), text(this.#dice.pick(PATTERNS))),
      () => call("contains", this.#several(fields, depth), own()),
      () => cast(call("upper", this.#draw("boolean", fields, depth - 1)), "boolean"),
      () => cast(own(), "boolean"),
    ];
  }

  #times(fields: readonly Field[], depth: number): Makers {
    const own = () => this.#draw("time", fields, depth - 1);
    return [
      () => call("bucket", own(), text(this.#dice.pick(WIDTHS)), ...this.#zone()),
      () => call("date_trunc", text(this.#dice.pick(UNITS)), own(), ...this.#zone()),
      () => call(this.#dice.pick(["+", "-"]), own(), number(this.#dice.below(5) * 3_600_000)),
      () => cast(cast(own(), "text"), "timestamp"),
      () => cast(own(), "timestamp"),
    ];
  }

  #zone(): readonly Operand[] {
    return this.#dice.chance(0.3) ? [text(this.#dice.pick(ZONES))] : [];
  }

  #several(fields: readonly Field[], depth: number): Operand {
    const maps = fields.filter((one) => isOneOf(one, "map"));
    if (maps.length > 0 && this.#dice.chance(0.3)) return this.#dice.pick(maps);
    return this.#draw(this.#dice.pick(["list", "list", "text"]), fields, depth - 1);
  }

  #numeric(): string {
    return this.#dice.pick(["int", "bigint", "long", "double", "float"]);
  }
}

/** True if the field has a single value of that type. */
function isOneOf(one: Field, type: Type): boolean {
  const isOne = !RELATIONS.some((name) => name === one.parts.at(-1));
  const path = one.parts.filter((part) => RELATIONS.some((name) => name === part));
  return isOne && path.every((part) => part === SINGLE) && columnType(one) === type && typeOf(one) === type;
}

function call(name: string, ...operands: readonly Operand[]): Expression {
  return { kind: "computed", name, operands, span };
}

function cast(operand: Operand, type: string): Expression {
  return call("cast", operand, text(type));
}

function text(value: string): ValueNode {
  return { kind: "text", value, span };
}

function number(value: number): ValueNode {
  return { kind: "number", text: String(value), span };
}
