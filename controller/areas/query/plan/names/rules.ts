import { EXPLAINED_RULE_MAX_CHARACTERS, EXPLAINED_RULES_MAX } from "../../../../../common/limits.ts";
import { cutText } from "../../../../../common/text/cut.ts";
import { allows, conditionsOf, type DataRule, decidingRules } from "../../../permissions/index.ts";
import type { Scope } from "./scope.ts";

type View = Scope["classes"][number];

/**
 * Tells for EXPLAIN that rules hide something in a read. A principal with `perms:read` is told each rule that hides
 * something, up to `EXPLAINED_RULES_MAX`; others learn only that rules hide rows or columns.
 */
export function describeRules(scope: Scope): readonly string[] {
  const lines: string[] = [];
  if (scope.classes.some((view) => scope.isRuled(view))) lines.push("filter by the row condition of the principal");
  if (scope.classes.some((view) => hidesColumns(scope, view))) lines.push("without the columns that rules hide");
  if (lines.length === 0 || !allows(scope.principal, "perms:read")) return lines;
  return [...lines, ...namedRules(scope)];
}

function hidesColumns(scope: Scope, view: View): boolean {
  const { hidden, parts } = scope.access(view);
  return hidden.size > 0 || parts.some((part) => part.hidden.size > 0);
}

function namedRules({ principal, classes }: Scope): readonly string[] {
  const lines = new Set<string>();
  for (const view of classes) {
    for (const rule of decidingRules(principal, view.path)) {
      const line = describeRule(rule, view);
      if (line === undefined || lines.has(line)) continue;
      if (lines.size >= EXPLAINED_RULES_MAX)
        return [...lines, `more rules than EXPLAINED_RULES_MAX (${EXPLAINED_RULES_MAX}): the others are not named`];
      lines.add(line);
    }
  }
  return [...lines];
}

/** One line; `undefined` if the rule hides nothing of the class. */
function describeRule(rule: DataRule, view: View): string | undefined {
  const { class: path, group, hidden = [], shown } = rule;
  const conditions = conditionsOf(rule, view);
  const parts = [
    ...(conditions.length > 0 ? [`rows where ${conditions.join(" or ")}`] : []),
    ...(hidden.length > 0 ? [`without ${hidden.join(", ")}`] : []),
    ...(shown === undefined ? [] : [`only ${shown.join(", ") || "no column"}`]),
  ];
  if (parts.length === 0) return undefined;
  const text = `rule ${group === undefined ? "of the user" : `of the group ${group}`} for ${path}: ${parts.join(", ")}`;
  return cutText(text.replaceAll(/[\r\n]+/g, " "), EXPLAINED_RULE_MAX_CHARACTERS);
}
