import { type Condition, type Field, NOWHERE, type ValueNode } from "../../../../common/mql/index.ts";
import type { Alternative, Match, Search, SearchField, Test, TimeQuestion } from "../../../../common/search/index.ts";
import type { WantedText } from "../../../../common/text/words.ts";
import { ANY, numberOf } from "../expressions/kind.ts";
import { about } from "../expressions/placing.ts";
import type { Scope } from "../plan/names/scope.ts";
import { wantedText } from "./words.ts";

/** Conditions of a search; a row must fulfil all three members. */
export interface Wanted {
  /** Conditions on columns. */
  readonly where: Condition | undefined;
  readonly words: readonly WantedText[];
  /** From each list, one alternative must hold. */
  readonly choices: readonly (readonly Choice[])[];
}

export interface Choice {
  readonly words: readonly WantedText[];
  readonly where: Condition | undefined;
}

const BOOLEAN = /^(?:true|false)$/i;

export function wantedOf(search: Search, scope: Scope, time: TimeQuestion | undefined): Wanted {
  const conditions: Condition[] = time?.kind === "range" ? [timeCondition(time)] : [];
  const words: WantedText[] = [];
  const choices: (readonly Choice[])[] = [];
  for (const segment of search.segments) {
    if (segment.kind !== "match") continue;
    const [first, ...others] = segment.alternatives.map((alternative) => choiceOf(alternative, scope));
    const all = first ? [first, ...others] : [];
    if (all.length === 1 && first) {
      words.push(...first.words);
      if (first.where) conditions.push(first.where);
    } else if (all.every((choice) => choice.words.length === 0)) conditions.push(anyOf(all, segment));
    else choices.push(all);
  }
  return { where: allOf(conditions), words, choices };
}

export function allOf(conditions: readonly (Condition | undefined)[]): Condition | undefined {
  const items = conditions.filter((condition) => condition !== undefined);
  const [first] = items;
  return items.length > 1 && first ? { kind: "and", items, span: first.span } : first;
}

export function fieldNode({ parts, span }: SearchField): Field {
  return { kind: "field", parts, span };
}

function choiceOf({ words, test }: Alternative, scope: Scope): Choice {
  return { words: words.map(wantedText), where: test && testCondition(test, scope) };
}

function anyOf(choices: readonly Choice[], { span }: Match): Condition {
  return { kind: "or", items: choices.flatMap(({ where }) => (where ? [where] : [])), span };
}

function timeCondition(time: TimeQuestion & { readonly kind: "range" }): Condition {
  const operand = fieldNode(time.field ?? { parts: ["vtime"], span: NOWHERE });
  const { span } = operand;
  const at = (timeMs: number): ValueNode => ({ kind: "number", text: String(timeMs), span });
  return { kind: "between", operand, low: at(time.fromMs), high: at(time.toMs), negated: false, span };
}

/** A test as a condition. A `*` outside quotes stands for any text. */
function testCondition({ field, operator, value, span }: Test, scope: Scope): Condition {
  const operand = fieldNode(field);
  const text: ValueNode = { kind: "text", value: value.text, span: value.span };
  const isEquality = operator === "=" || operator === "!=";
  if (isEquality && !value.quoted && value.text.includes("*"))
    return { kind: "like", operand, pattern: text, negated: operator === "!=", span };
  const compared = (right: ValueNode): Condition => ({ kind: "compare", operator, left: operand, right, span });
  const typed = value.quoted ? undefined : typedValue(value.text, value.span);
  if (!typed || !about(field.span, () => scope.kindsOf(scope.bind(operand))).includes(ANY)) return compared(text);
  // Without a declared type, the stored value can be the text itself or the value that the text looks like.
  return isEquality
    ? { kind: operator === "=" ? "or" : "and", items: [compared(text), compared(typed)], span }
    : compared(typed);
}

function typedValue(text: string, span: ValueNode["span"]): ValueNode | undefined {
  if (BOOLEAN.test(text)) return { kind: "constant", value: text.toLowerCase() === "true", span };
  return numberOf(text) === undefined ? undefined : { kind: "number", text, span };
}
