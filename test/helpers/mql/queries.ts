import {
  type ClassRef,
  type Condition,
  type OrderItem,
  type Select,
  type Union,
  type WindowItem,
  printOperand,
} from "../../../common/mql/index.ts";
import { CallGenerator } from "./calls.ts";
import { ExpressionGenerator } from "./expressions.ts";
import { COLUMN_NAMES, type Dice, type PlainRights, type World } from "./world.ts";
import {
  OPEN,
  span,
  type Source,
  isScalar,
  isSingle,
  aliasedAs,
  output,
  star,
  item,
  field,
  number,
} from "./queries/nodes.ts";
import { ConditionGenerator } from "./queries/conditions.ts";
import { SourceGenerator } from "./queries/sources.ts";
import { ItemGenerator } from "./queries/items.ts";
import { AnswerGenerator } from "./queries/answers.ts";
import { GroupGenerator } from "./queries/groups.ts";
import { JoinGenerator } from "./queries/joins.ts";

/** Random SELECTs that are valid for the caller: they use only names that it may use. */
export class QueryGenerator {
  readonly #dice: Dice;
  readonly #calls: CallGenerator;
  readonly #conditions: ConditionGenerator;
  readonly #sources: SourceGenerator;
  readonly #items: ItemGenerator;
  readonly #answers: AnswerGenerator;
  readonly #groups: GroupGenerator;
  readonly #joins: JoinGenerator;

  constructor(world: World, rights: PlainRights, dice: Dice) {
    const base = { world, rights, dice, expressions: new ExpressionGenerator(dice), calls: new CallGenerator(dice) };
    const conditions = new ConditionGenerator(base);
    const sources = new SourceGenerator({ ...base, conditions });
    const items = new ItemGenerator(base);
    const answers = new AnswerGenerator({ ...base, sources });
    const parts = { ...base, conditions, sources, items, answers };
    this.#dice = dice;
    this.#calls = base.calls;
    this.#conditions = conditions;
    this.#sources = sources;
    this.#items = items;
    this.#answers = answers;
    this.#groups = new GroupGenerator(parts);
    this.#joins = new JoinGenerator(parts);
  }

  /** `undefined` if nothing may be read. */
  statement(): Select | Union | undefined {
    const sources = this.#sources.all();
    if (sources.length === 0) return undefined;
    const roll = this.#dice.below(10);
    if (roll === 0) return this.#union(sources);
    if (roll === 1) return this.#joins.select(sources);
    const source = this.#answers.pick(sources);
    return this.#placed(roll < 4 ? this.#groups.select(source) : this.#listed(source));
  }

  /** Replaces some ORDER BY expressions by column positions. */
  #placed(select: Select): Select {
    const first = select.items.findIndex(({ kind }) => kind === "star");
    const texts = select.items
      .slice(0, first < 0 ? undefined : first)
      .map((one) => (one.kind === "item" ? printOperand(one.value) : ""));
    const orderBy = select.orderBy.map((order): OrderItem => {
      const at = texts.indexOf(printOperand(order.value));
      return at >= 0 && this.#dice.chance(0.3) ? { ...order, value: number(at + 1) } : order;
    });
    return { ...select, orderBy };
  }

  #listed(source: Source): Select {
    const distinct = this.#dice.chance(0.2);
    // Rows that differ only in unordered values, or in the existence of a column, would come in any order.
    const names = distinct ? source.shared.filter(isScalar) : source.names;
    const items =
      !distinct && !source.isAnswer && this.#dice.chance(0.15)
        ? [star()]
        : this.#items.of([
            ...["class", "id", ...names].map((name) => ({ field: field([name]) })),
            ...(distinct ? [] : this.#sources.followed(source).map((one) => ({ field: one }))),
          ]);
    const windows =
      !distinct && this.#dice.chance(0.15) ? [this.#windowOf(source), this.#windowOf(source)].map(aliasedAs("w")) : [];
    const outputs = items.flatMap((item) => (item.kind === "item" ? [item] : []));
    const keys = distinct
      ? outputs.map(output)
      : [...this.#dice.some(names, 0.3).map((name) => field([name])), field(["id"])];
    return {
      ...this.#sources.plain(source),
      distinct,
      items: [...items, ...windows],
      ...this.#sources.tail(keys.filter(isSingle)),
    };
  }

  #windowOf({ names, isAnswer }: Source): WindowItem {
    const keys = ["class", ...names.filter(isScalar)].map((name) => field([name]));
    const times = isAnswer ? {} : { time: field(["vtime"]), rest: [] };
    return this.#calls.window(keys, { ids: [field(["id"])], ...times });
  }

  #union(sources: readonly Source[]): Union {
    const parts = Array.from({ length: 2 + this.#dice.below(2) }, () => this.#dice.pick(sources));
    const shared = ["id", "class", ...COLUMN_NAMES.filter((name) => parts.every((part) => part.names.includes(name)))];
    const names = [...new Set(["id", ...this.#dice.some(shared, 0.5)])];
    const selects = parts.map(
      (part): Select => ({
        ...this.#sources.plain(part),
        asOf: undefined,
        items: names.map((name) => item(field([name]))),
        ...OPEN,
      }),
    );
    const order = names.filter((name) => isSingle(field([name]))).map((name) => field([name]));
    return {
      kind: "union",
      all: this.#dice.chance(0.5),
      selects,
      ...this.#sources.tail(order),
      asOf: this.#sources.asOf(),
      span,
    };
  }

  /** Selects the ids of objects of a class or a tree by a condition, which may follow relations. */
  choice(): (Select & { readonly from: ClassRef; readonly where: Condition }) | undefined {
    const source = this.#sources.all().at(this.#dice.below(8));
    if (source?.ref.kind !== "class") return undefined;
    const { ref: from, names } = source;
    const fields = [...["id", "class", ...names].map((name) => field([name])), ...this.#sources.followed(source)];
    const where = this.#conditions.of(fields, 2);
    return { ...this.#sources.plain(source), from, where, items: [item(field(["id"]))], asOf: undefined };
  }

  /** A condition over all columns of the world, including those that the caller may not see. */
  rule(): Condition {
    return this.#conditions.rule();
  }
}
