import type { Call, Condition, Field, InSelect, Operand } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { computed } from "../definitions.ts";
import { typeOf } from "../types.ts";
import { leafTruth, opposite, plain, type Truth } from "./truth.ts";

/** Answers the value of a field, or of an aggregate over a group. `undefined` if there is no such column. */
export type Read = (operand: Field | Call) => Value | undefined;

/** Values of expressions and truth of conditions, by the definitions of the operators and functions. */
export class Evaluator {
  readonly #isFound: (condition: InSelect, own: Value | undefined) => Truth;

  /** `isFound` decides `IN (SELECT …)`. */
  constructor(isFound: (condition: InSelect, own: Value | undefined) => Truth) {
    this.#isFound = isFound;
  }

  /** Uses the definitions of the operators and functions that the generator produces. */
  computed(operand: Exclude<Operand, Field | Call>, read: Read): Value {
    const value = (inner: Operand): Value =>
      (inner.kind === "field" || inner.kind === "call" ? read(inner) : this.computed(inner, read)) ?? null;
    if (operand.kind === "truth") return this.truth(operand.condition, read) ?? null;
    if (operand.kind === "case") {
      const branch = operand.branches.find(({ when }) => this.truth(when, read) === true);
      const chosen = branch ? branch.then : operand.otherwise;
      return chosen ? value(chosen) : null;
    }
    if (operand.kind !== "computed") return plain(operand);
    const [first] = operand.operands;
    return computed(operand.name, operand.operands.map(value), first ? typeOf(first) : "text");
  }

  truth(condition: Condition, read: Read): Truth {
    switch (condition.kind) {
      case "and":
      case "or": {
        const decided = condition.kind === "or";
        const truths = condition.items.map((item) => this.truth(item, read));
        return truths.includes(decided) ? decided : truths.includes(undefined) ? undefined : !decided;
      }
      case "not":
        return opposite(this.truth(condition.operand, read));
      case "inSelect":
        return this.#isFound(condition, condition.operand.kind === "field" ? read(condition.operand) : undefined);
      default:
        return leafTruth(condition, (operand) =>
          operand.kind === "field" || operand.kind === "call" ? read(operand) : this.computed(operand, read),
        );
    }
  }
}
