import type { Field, Operand, SelectItem } from "../../../../common/mql/index.ts";
import type { ExpressionGenerator } from "../expressions.ts";
import { columnType } from "../types.ts";
import type { Dice } from "../world.ts";
import { isOne, item } from "./nodes.ts";

interface Parts {
  readonly dice: Dice;
  readonly expressions: ExpressionGenerator;
}

/** Random select items. */
export class ItemGenerator {
  readonly #dice: Dice;
  readonly #expressions: ExpressionGenerator;

  constructor({ dice, expressions }: Parts) {
    this.#dice = dice;
    this.#expressions = expressions;
  }

  of(choices: readonly { readonly field: Field }[]): readonly SelectItem[] {
    const chosen = this.#dice.some(choices, 0.4);
    return (chosen.length > 0 ? chosen : choices.slice(0, 1)).map((one, at) =>
      item(
        this.#perhapsComputed(
          one.field,
          choices.map((other) => other.field),
        ),
        this.#dice.chance(0.2) ? `a${at}` : undefined,
      ),
    );
  }

  #perhapsComputed(of: Field, fields: readonly Field[]): Operand {
    if (!isOne(of) || !this.#dice.chance(0.25)) return of;
    return this.#expressions.of(columnType(of), this.#dice.chance(0.5) ? [of] : fields, this.#dice.below(3));
  }
}
