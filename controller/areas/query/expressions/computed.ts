import { AppError } from "../../../../common/errors.ts";
import type { Case, Computed, Condition, Expression, Operand } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { arithmetic, negative, type Sign } from "./arithmetic.ts";
import { castTo } from "./cast.ts";
import { callFunction } from "./functions/functions.ts";
import { boundedText } from "./functions/texts.ts";
import { ANY, BOOLEAN, TEXT, toComparable } from "./kind.ts";
import { about } from "./placing.ts";
import type { Predicate, Source } from "./source.ts";
import { THREAD_TEXT_WORK } from "./functions/textwork.ts";

/** How the operands and conditions inside an expression are compiled. */
export interface Within<R> {
  readonly operand: (operand: Operand) => Source<R>;
  readonly condition: (condition: Condition) => Predicate<R>;
}

/** The value of an expression. Errors of names and types are thrown now, not when a row comes. */
export function computedSource<R>(node: Expression, within: Within<R>): Source<R> {
  switch (node.kind) {
    case "computed":
      return about(node.span, () => computed(node, within));
    case "case":
      return caseSource(node, within);
    case "truth":
      return truthSource(within.condition(node.condition));
  }
}

export function constantSource<R>(value: Value): Source<R> {
  return { label: JSON.stringify(value), kinds: [ANY], constant: value, read: () => value, kind: () => ANY };
}

function computed<R>(node: Computed, within: Within<R>): Source<R> {
  const operands = node.operands.map(within.operand);
  const [first, second] = operands;
  switch (node.name) {
    case "+":
    case "-":
    case "*":
    case "/":
      if (first && second) return arithmetic(node.name satisfies Sign, first, second);
      return negative(first ?? constantSource(null));
    case "||":
      return joined(operands);
    case "coalesce":
      return firstSet(operands);
    case "cast":
      return castTo(second?.constant, first ?? constantSource(null));
    case "any":
      throw new AppError(
        "invalid",
        "[Valid] any() is no value: it stands on a side of a comparison, as in any(x) > 3 or 'a' = any(x).",
      );
    default:
      return callFunction(node.name, operands, node.zone);
  }
}

/** Joins texts; null if one of them is null. */
function joined<R>(operands: readonly Source<R>[]): Source<R> {
  return {
    label: operands.map(({ label }) => label).join(" || "),
    kinds: [TEXT],
    kind: () => TEXT,
    read(row) {
      const texts: string[] = [];
      for (const operand of operands) {
        const value = operand.read(row);
        const part = value === undefined || value === null ? undefined : toComparable(TEXT, value);
        if (part === undefined) return null;
        const text = String(part);
        THREAD_TEXT_WORK.charge(row, text);
        texts.push(text);
      }
      return boundedText(texts);
    },
  };
}

function firstSet<R>(operands: readonly Source<R>[]): Source<R> {
  if (operands.length === 0) throw new AppError("invalid", "[Valid] coalesce() needs at least one value.");
  return chosen("coalesce", operands, (row) => {
    for (const source of operands) {
      const value = source.read(row) ?? null;
      if (value !== null) return { source, value };
    }
    return undefined;
  });
}

function caseSource<R>(node: Case, within: Within<R>): Source<R> {
  const branches = node.branches.map(({ when, then }) => {
    return { holds: within.condition(when), then: within.operand(then) };
  });
  const otherwise = node.otherwise && within.operand(node.otherwise);
  const choices = [...branches.map(({ then }) => then), ...(otherwise ? [otherwise] : [])];
  return chosen("CASE", choices, (row) => {
    const source = branches.find(({ holds }) => holds(row) === true)?.then ?? otherwise;
    return source && { source, value: source.read(row) ?? null };
  });
}

interface Choice<R> {
  readonly source: Source<R>;
  readonly value: Value;
}

/**
 * A source that chooses one of several sources for each row. The choice is kept for the row, because its value and its
 * kind are asked for one after the other. Otherwise nested choices would double the work at each level.
 */
function chosen<R>(label: string, choices: readonly Source<R>[], choose: (row: R) => Choice<R> | undefined): Source<R> {
  const kinds = [...new Set(choices.filter(({ constant }) => constant !== null).flatMap((choice) => choice.kinds))];
  const [only] = kinds;
  let latest: { readonly row: R; readonly choice: Choice<R> | undefined } | undefined;
  const choiceFor = (row: R): Choice<R> | undefined => {
    if (latest?.row !== row) latest = { row, choice: choose(row) };
    return latest.choice;
  };
  return {
    label,
    kinds: kinds.length === 0 ? [ANY] : kinds,
    read: (row) => choiceFor(row)?.value ?? null,
    kind: kinds.length === 1 && only ? () => only : (row) => choiceFor(row)?.source.kind(row) ?? ANY,
  };
}

function truthSource<R>(holds: Predicate<R>): Source<R> {
  return { label: "condition", kinds: [BOOLEAN], kind: () => BOOLEAN, read: (row) => holds(row) ?? null };
}
