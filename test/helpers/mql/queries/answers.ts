import type { Select, SelectItem, Source as FromSource, Union } from "../../../../common/mql/index.ts";
import type { ExpressionGenerator } from "../expressions.ts";
import { columnType } from "../types.ts";
import { COLUMN_NAMES, type ColumnName, type Dice } from "../world.ts";
import { OPEN, span, type Source, isScalar, item, field } from "./nodes.ts";
import type { SourceGenerator } from "./sources.ts";

interface Parts {
  readonly dice: Dice;
  readonly expressions: ExpressionGenerator;
  readonly sources: SourceGenerator;
}

/** Classes, and SELECTs in FROM. */
export class AnswerGenerator {
  readonly #dice: Dice;
  readonly #expressions: ExpressionGenerator;
  readonly #sources: SourceGenerator;

  constructor({ dice, expressions, sources }: Parts) {
    this.#dice = dice;
    this.#expressions = expressions;
    this.#sources = sources;
  }

  /** A class, or a SELECT over a source. */
  pick(sources: readonly Source[], depth = 2): Source {
    if (depth === 0 || this.#dice.chance(0.8)) return this.#dice.pick(sources);
    const inner = this.pick(sources, depth - 1);
    const roll = this.#dice.below(4);
    const made =
      roll === 0 && !inner.isAnswer
        ? this.#answeredUnion(sources)
        : roll === 1
          ? this.#answeredGroups(inner)
          : this.#answeredRows(inner);
    const ref: FromSource = {
      kind: "selected",
      select: made.select,
      alias: this.#dice.chance(0.5) ? "q" : undefined,
      span,
    };
    return { ref, names: made.names, shared: made.names, isAnswer: true };
  }

  /** A SELECT whose rows have a unique id. */
  #answeredRows(inner: Source): { readonly select: Select; readonly names: readonly ColumnName[] } {
    const names = this.#dice.some(inner.names, 0.6);
    const items = names.map((name) => item(field([name])));
    const fields = inner.names.map((name) => field([name]));
    const changed = items.map((one, at): SelectItem => {
      const name = names[at] ?? "n1";
      const type = columnType(field([name]));
      if (type === "list" || type === "map" || !this.#dice.chance(0.25)) return one;
      return item(this.#expressions.of(type, fields, 1), name);
    });
    const select = { ...this.#sources.plain(inner), items: [item(field(["id"])), item(field(["class"])), ...changed] };
    return { select: { ...select, ...this.#sources.tail([field(["id"])]) }, names };
  }

  #answeredGroups(inner: Source): { readonly select: Select; readonly names: readonly ColumnName[] } {
    const keys = this.#dice.some(inner.names.filter(isScalar), 0.3).filter((name) => name !== "n1");
    const least = (name: string): SelectItem =>
      item({ kind: "call", name: "min", distinct: false, argument: field([name]), span }, name);
    const counted = item({ kind: "call", name: "count", distinct: false, argument: undefined, span }, "n1");
    const items = [least("id"), least("class"), counted, ...keys.map((name) => item(field([name])))];
    const select = { ...this.#sources.plain(inner), items, groupBy: keys.map((name) => field([name])) };
    return { select: { ...select, ...this.#sources.tail([]), limit: undefined }, names: ["n1", ...keys] };
  }

  #answeredUnion(sources: readonly Source[]): { readonly select: Union; readonly names: readonly ColumnName[] } {
    const parts = [this.#dice.pick(sources), this.#dice.pick(sources)];
    const names = this.#dice.some(
      COLUMN_NAMES.filter((name) => parts.every((part) => part.shared.includes(name))),
      0.6,
    );
    const selects = parts.map((part): Select => {
      const items = ["id", "class", ...names].map((name) => item(field([name])));
      return { ...this.#sources.plain(part), asOf: undefined, items, ...OPEN };
    });
    const select: Union = {
      kind: "union",
      all: false,
      selects,
      ...this.#sources.tail([field(["id"])]),
      asOf: this.#sources.asOf(),
      span,
    };
    return { select, names };
  }
}
