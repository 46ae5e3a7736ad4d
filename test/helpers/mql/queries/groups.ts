import type { Call, Condition, Expression, Field, Fill, Item, Operand, Select } from "../../../../common/mql/index.ts";
import type { CallGenerator } from "../calls.ts";
import { isExact } from "../calls.ts";
import type { ExpressionGenerator } from "../expressions.ts";
import { typeOf } from "../types.ts";
import type { Dice } from "../world.ts";
import { span, type Source, isScalar, isOne, unlike, field, text, numberNode } from "./nodes.ts";
import type { ConditionGenerator } from "./conditions.ts";
import type { SourceGenerator } from "./sources.ts";

interface Parts {
  readonly dice: Dice;
  readonly expressions: ExpressionGenerator;
  readonly calls: CallGenerator;
  readonly conditions: ConditionGenerator;
  readonly sources: SourceGenerator;
}

/** Random SELECTs with GROUP BY, with or without FILL. */
export class GroupGenerator {
  readonly #dice: Dice;
  readonly #expressions: ExpressionGenerator;
  readonly #calls: CallGenerator;
  readonly #conditions: ConditionGenerator;
  readonly #sources: SourceGenerator;

  constructor({ dice, expressions, calls, conditions, sources }: Parts) {
    this.#dice = dice;
    this.#expressions = expressions;
    this.#calls = calls;
    this.#conditions = conditions;
    this.#sources = sources;
  }

  select(source: Source): Select {
    if (source.names.includes("t1") && this.#dice.chance(0.25)) return this.#filled(source);
    const fields = ["class", ...source.names.filter(isScalar)].map((name) => field([name]));
    const made = this.#dice.chance(0.3) ? [this.#expressions.scalar(fields, 1)] : [];
    const groupBy = [...this.#dice.some([...fields, ...this.#sources.followed(source).filter(isOne)], 0.3), ...made];
    const calls = Array.from({ length: 1 + this.#dice.below(3) }, () => this.#call(source));
    const items = [...this.#dice.some(groupBy, 0.8), ...calls, ...this.#ofGroups(groupBy, calls)].map(
      (value, at): Item => ({ kind: "item", value, alias: this.#dice.chance(0.5) ? `a${at}` : undefined, span }),
    );
    const having = this.#dice.chance(0.3) ? this.#calls.having(calls) : undefined;
    const orders = [...this.#dice.some(calls.filter(isExact), 0.5), ...groupBy];
    return { ...this.#sources.plain(source), items: unlike(items), groupBy, having, ...this.#sources.tail(orders) };
  }

  /** Expressions over the keys, or over aggregates of the group. */
  #ofGroups(groupBy: readonly Operand[], calls: readonly Call[]): readonly Expression[] {
    const numbers = calls.filter((one) => isExact(one) && typeOf(one) === "number");
    const keys = groupBy.filter((key): key is Field => key.kind === "field" && isOne(key));
    return [
      ...(numbers.length > 0 && this.#dice.chance(0.4) ? [this.#expressions.ofCalls(numbers)] : []),
      ...(keys.length > 0 && this.#dice.chance(0.2) ? [this.#expressions.scalar(keys, 1)] : []),
    ];
  }

  /** Groups by days or months, including those without rows; the end of the time is given or not. */
  #filled(source: Source): Select {
    const steps: Expression = {
      kind: "computed",
      name: "bucket",
      operands: [field(["t1"]), text(this.#dice.pick(["1 day", "2 days", "1 week", "1 month", "3 months"]))],
      span,
    };
    const others = this.#dice.some(
      source.names.filter((name) => isScalar(name) && name !== "t1"),
      0.2,
    );
    const fields = others.slice(0, 1).map((name) => field([name]));
    const made = fields.map((one) => {
      const key = this.#dice.chance(0.3) ? this.#expressions.scalar([one], 1) : one;
      // With FILL, only one key may be a time step.
      return key.kind === "computed" && ["bucket", "date_trunc"].includes(key.name) ? one : key;
    });
    const groupBy: readonly Operand[] = [steps, ...made];
    const calls = Array.from({ length: 1 + this.#dice.below(2) }, () => this.#call(source));
    const keys = groupBy.map((value, at): Item => ({ kind: "item", value, alias: `a${at}`, span }));
    const values = [...calls, ...this.#ofGroups([], calls)];
    const items = unlike([...keys, ...values.map((value): Item => ({ kind: "item", value, alias: undefined, span }))]);
    const plain = this.#sources.plain(source);
    const operators = this.#dice.some([">", ">=", "<", "<="] as const, 0.3);
    const bounds = operators.map((operator): Condition => {
      return { kind: "compare", operator, left: field(["t1"]), right: this.#conditions.valueFor("t1"), span };
    });
    const all = [...bounds, ...(plain.where ? [plain.where] : [])];
    const where: Condition | undefined = all.length > 1 ? { kind: "and", items: all, span } : all[0];
    const value = this.#dice.pick<Fill["value"]>(["previous", { kind: "constant", value: null, span }, numberNode(0)]);
    const having = this.#dice.chance(0.2) ? this.#calls.having(calls) : undefined;
    return {
      ...plain,
      where,
      items,
      groupBy,
      fill: { kind: "fill", value, span },
      having,
      ...this.#sources.tail(groupBy),
    };
  }

  #call({ names, isAnswer }: Source): Call {
    return this.#calls.call(
      names.map((name) => field([name])),
      { hasTimes: !isAnswer },
    );
  }
}
