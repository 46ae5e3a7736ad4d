import type { Call, Condition, Expression, Field, Operand, OrderItem, WindowItem } from "../../../common/mql/index.ts";
import { ExpressionGenerator } from "./expressions.ts";
import { columnType, typeOf } from "./types.ts";
import type { Dice } from "./world.ts";

const span = { start: 0, end: 0 };
const OF_NUMBERS = ["rate", "sum", "avg", "stddev", "percentile", "histogram"];
const TIMED = ["first", "last", "rate"];

/** Fields that identify a row. `time` is unique among rows that are equal in `rest`. */
interface Told {
  readonly ids: readonly Field[];
  readonly time?: Field;
  readonly rest?: readonly Field[];
}

/** Random aggregates, and windows over rows. */
export class CallGenerator {
  readonly #dice: Dice;
  readonly #expressions: ExpressionGenerator;

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#expressions = new ExpressionGenerator(dice);
  }

  call(fields: readonly Field[], { hasTimes }: { readonly hasTimes: boolean }): Call {
    const scalars = fields.filter((one) => columnType(one) !== "list" && columnType(one) !== "map");
    const name = this.#dice.pick(["count", "count", "min", "max", "top", ...OF_NUMBERS, ...TIMED]);
    if (!hasTimes && TIMED.includes(name)) return this.call(fields, { hasTimes });
    const argument = name === "count" && this.#dice.chance(0.5) ? undefined : this.#argument(name, scalars);
    if (!argument) return { kind: "call", name: "count", distinct: false, argument, span };
    const distinct = !["min", "max", ...TIMED].includes(name) && this.#dice.chance(0.25);
    return { kind: "call", name, distinct, argument, ...this.#parameter(name), span };
  }

  #argument(name: string, scalars: readonly Field[]): Field | Expression | undefined {
    const isOfNumbers = OF_NUMBERS.includes(name);
    const own = scalars.filter((one) => !isOfNumbers || columnType(one) === "number");
    if (own.length > 0 && this.#dice.chance(0.65)) return this.#dice.pick(own);
    if (scalars.length === 0) return undefined;
    return isOfNumbers ? this.#expressions.of("number", scalars, 1) : this.#expressions.scalar(scalars, 1);
  }

  #parameter(name: string): Pick<Call, "step"> {
    if (name === "percentile") return { step: number(this.#dice.pick([0, 10, 50, 95, 99.9, 100])) };
    const isNamed = (name === "top" || name === "histogram") && this.#dice.chance(0.7);
    return isNamed ? { step: number(1 + this.#dice.below(4)) } : {};
  }

  having(calls: readonly Call[]): Condition {
    const counted = calls.filter((call) => isExact(call) && typeOf(call) === "number");
    const count: Call = { kind: "call", name: "count", distinct: false, argument: undefined, span };
    const left = counted.length > 0 ? this.#dice.pick(counted) : count;
    const operator = this.#dice.pick([">", "<=", "!="] as const);
    const right = number(this.#dice.below(6));
    if (this.#dice.chance(0.7)) return { kind: "compare", operator, left, right, span };
    const computed: Expression = { kind: "computed", name: "+", operands: [left, count], span };
    return this.#dice.chance(0.5)
      ? { kind: "compare", operator, left: computed, right, span }
      : { kind: "relate", operator, left, right: { ...computed, operands: [count, number(1)] }, span };
  }

  /** Ordered so that no two rows are equal, if the result depends on the order. */
  window(scalars: readonly Field[], told: Told): WindowItem {
    const name = this.#dice.pick(["row_number", "count", "lag", "lead", "sum", "avg", ...(told.time ? ["rate"] : [])]);
    const isMoved = name === "lag" || name === "lead";
    const argument = name === "row_number" ? undefined : this.#windowed(name, scalars, isMoved);
    const isBare = argument === undefined && name !== "count";
    const distance = isMoved && !isBare && this.#dice.chance(0.4) ? [number(this.#dice.below(4))] : [];
    const partitionBy = this.#dice.some(scalars, 0.15).map((key) => this.#perhaps(key));
    const operands = [...(argument ? [argument] : []), ...distance];
    if (name === "rate" && told.time && argument)
      return windowItem(name, operands, {
        partitionBy: [...partitionBy, ...(told.rest ?? [])],
        orderBy: [by(told.time)],
      });
    const keys = this.#dice.some(scalars, 0.3).map((key) => this.#perhaps(key));
    const isNumbered = isBare || isMoved;
    const orderBy = [...keys, ...(isNumbered || this.#dice.chance(0.3) ? told.ids : [])].map((value) =>
      by(value, this.#dice.chance(0.4)),
    );
    return windowItem(isBare ? "row_number" : name, operands, { partitionBy, orderBy });
  }

  #windowed(name: string, scalars: readonly Field[], isMoved: boolean): Operand | undefined {
    const numbers = scalars.filter((one) => columnType(one) === "number");
    if (name === "count" && this.#dice.chance(0.4)) return undefined;
    const own = isMoved || name === "count" ? scalars : numbers;
    if (own.length === 0) return undefined;
    if (this.#dice.chance(0.7)) return this.#dice.pick(own);
    return isMoved ? this.#expressions.scalar(scalars, 1) : this.#expressions.of("number", scalars, 1);
  }

  #perhaps(key: Field): Operand {
    return this.#dice.chance(0.8) ? key : this.#expressions.of(columnType(key), [key], 1);
  }
}

/** Returns true if the result does not depend on the order of additions and such results have an order. */
export function isExact({ name, argument }: Call): boolean {
  if (["count", "min", "max", "first", "last"].includes(name)) return true;
  return argument?.kind === "field" && ["sum", "avg", "percentile"].includes(name);
}

function windowItem(
  name: string,
  operands: readonly Operand[],
  over: Pick<WindowItem, "partitionBy" | "orderBy">,
): WindowItem {
  return { kind: "window", name, operands, ...over, alias: undefined, span };
}

function by(value: Operand, descending = false): OrderItem {
  return { kind: "order", value, descending, span };
}

function number(value: number): { readonly kind: "number"; readonly text: string; readonly span: typeof span } {
  return { kind: "number", text: String(value), span };
}
