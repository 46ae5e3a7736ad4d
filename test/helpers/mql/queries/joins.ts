import type { Join, Select, SelectItem, WindowItem } from "../../../../common/mql/index.ts";
import type { CallGenerator } from "../calls.ts";
import { COLUMN_TYPES, type Dice } from "../world.ts";
import { span, type Source, isScalar, isOne, isSingle, aliasedAs, field } from "./nodes.ts";
import type { ConditionGenerator } from "./conditions.ts";
import type { SourceGenerator } from "./sources.ts";
import type { ItemGenerator } from "./items.ts";
import type { AnswerGenerator } from "./answers.ts";

interface Parts {
  readonly dice: Dice;
  readonly calls: CallGenerator;
  readonly conditions: ConditionGenerator;
  readonly sources: SourceGenerator;
  readonly items: ItemGenerator;
  readonly answers: AnswerGenerator;
}

/** Random SELECTs of two or three joined sources. */
export class JoinGenerator {
  readonly #dice: Dice;
  readonly #calls: CallGenerator;
  readonly #conditions: ConditionGenerator;
  readonly #sources: SourceGenerator;
  readonly #items: ItemGenerator;
  readonly #answers: AnswerGenerator;

  constructor({ dice, calls, conditions, sources, items, answers }: Parts) {
    this.#dice = dice;
    this.#calls = calls;
    this.#conditions = conditions;
    this.#sources = sources;
    this.#items = items;
    this.#answers = answers;
  }

  select(sources: readonly Source[]): Select {
    const tables = ["a", "b", "c"].slice(0, this.#dice.chance(0.25) ? 3 : 2).map((alias) => {
      const source = this.#answers.pick(sources, 1);
      return { ...source, alias, ref: { ...source.ref, alias } };
    });
    const [first, ...others] = tables;
    const joins = others.map((table, at) => this.#join(tables.slice(0, at + 1), table));
    const all = tables.flatMap((table) =>
      [...["id", ...table.names].map((name) => field([name])), ...this.#sources.followed(table)].map(({ parts }) => ({
        field: field([table.alias, ...parts]),
      })),
    );
    const fields = all.map((one) => one.field);
    const plain = this.#dice.chance(0.6) ? this.#conditions.of(fields, 1) : undefined;
    const among = this.#dice.chance(0.15) ? this.#sources.amongFound(fields.filter(isOne)) : undefined;
    const where = this.#conditions.both(plain, among);
    const ids = tables.map(({ alias }) => field([alias, "id"]));
    const items = this.#items
      .of(all)
      .map((one, at): SelectItem => (one.kind === "item" ? { ...one, alias: `j${at}` } : one));
    const windows = this.#dice.chance(0.2) ? [this.#windowOver(tables), this.#windowOver(tables)] : [];
    const from = first?.ref ?? { kind: "class" as const, path: "/", subtree: true, alias: undefined, span };
    return {
      ...this.#sources.plain({ ref: from, names: [], shared: [], isAnswer: true }),
      joins,
      where,
      items: [...items, ...windows.map(aliasedAs("w"))],
      ...this.#sources.tail([...this.#dice.some(fields, 0.1).filter((one) => isSingle(one) && isOne(one)), ...ids]),
    };
  }

  /** For each object of the other tables there is one row per time of the first table. */
  #windowOver(tables: readonly (Source & { readonly alias: string })[]): WindowItem {
    const scalars = tables.flatMap(({ alias, names }) => names.filter(isScalar).map((name) => field([alias, name])));
    const ids = tables.map(({ alias }) => field([alias, "id"]));
    const [first] = tables;
    const times = !first || first.isAnswer ? {} : { time: field([first.alias, "vtime"]), rest: ids.slice(1) };
    return this.#calls.window(scalars, { ids, ...times });
  }

  #join(earlier: readonly (Source & { readonly alias: string })[], own: Source & { readonly alias: string }): Join {
    const partner = this.#dice.pick(earlier);
    const scalars = own.names.filter(
      (name) => isScalar(name) && partner.names.some((other) => COLUMN_TYPES[other] === COLUMN_TYPES[name]),
    );
    const name = scalars.length > 0 ? this.#dice.pick(scalars) : undefined;
    const others = partner.names.filter((other) => name !== undefined && COLUMN_TYPES[other] === COLUMN_TYPES[name]);
    const left = field([partner.alias, name === undefined ? "id" : this.#dice.pick(others)]);
    const right = field([own.alias, name ?? "id"]);
    const sides = this.#dice.chance(0.5) ? { left, right } : { left: right, right: left };
    return { kind: "join", outer: this.#dice.chance(0.4), class: own.ref, ...sides, span };
  }
}
