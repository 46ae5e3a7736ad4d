import { allows, type DataRule, decidingRules } from "../../permissions/index.ts";
import type { Scope } from "./scope.ts";

/**
 * Tells for EXPLAIN that rules hide something in a read. A principal with `perms:read` is told each rule that hides something; others
 * learn only that rules hide rows or columns.
 */
export function describeRules(scope: Scope): readonly string[] {
  const lines: string[] = [];
  if (scope.classes.some((view) => scope.isRuled(view))) lines.push("filter by the row condition of the principal");
  if (scope.classes.some((view) => hidesColumns(scope, view))) lines.push("without the columns that rules hide");
  if (lines.length === 0 || !allows(scope.principal, "perms:read")) return lines;
  const rules = new Set(scope.classes.flatMap(({ path }) => decidingRules(scope.principal, path)));
  return [...lines, ...[...rules].filter(hidesAnything).map(describeRule)];
}

function hidesColumns(scope: Scope, view: Scope["classes"][number]): boolean {
  const { hidden, parts } = scope.access(view);
  return hidden.size > 0 || parts.some((part) => part.hidden.size > 0);
}

function hidesAnything({ where, hidden = [], shown, anywhere = [] }: DataRule): boolean {
  return where !== undefined || hidden.length > 0 || shown !== undefined || anywhere.length > 0;
}

function describeRule({ class: path, group, where, anywhere = [], hidden = [], shown }: DataRule): string {
  const conditions = [...(where === undefined ? [] : [where]), ...anywhere.map((one) => one.where)];
  const parts = [
    ...(conditions.length > 0 ? [`rows where ${conditions.join(" or ")}`] : []),
    ...(hidden.length > 0 ? [`without ${hidden.join(", ")}`] : []),
    ...(shown === undefined ? [] : [`only ${shown.join(", ") || "no column"}`]),
  ];
  return `rule ${group === undefined ? "of the user" : `of the group ${group}`} for ${path}: ${parts.join(", ")}`;
}
