import type { ClassCatalog, ClassView } from "../../objects/index.ts";
import { classOrEmpty, pathsNamed } from "./named.ts";
import { bodyOf, type RuleText, single } from "./options.ts";
import { checkPinned, type SupplementedRule } from "../store.ts";
import { digestOf, type PinnedClass, type Supplements } from "./supplements.ts";
import { requireRecords, timesOf } from "./times.ts";
import type { RuleTarget } from "../types.ts";

/**
 * Pins the current definitions of all classes that rows may be stored in: the class of the rule, and paths in quotes in
 * its body. The same applies to rules that get its records. `AppError("too_large")` beyond `RULE_PINNED_MAX_BYTES`.
 */
export function withClasses(rule: SupplementedRule, catalog: ClassCatalog): SupplementedRule {
  const texts = [rule.text, ...Object.values(rule.supplements.forwards ?? {}).map(({ text }) => text)];
  const classes: Record<string, PinnedClass> = {};
  for (const path of new Set(texts.flatMap((text) => [classOrEmpty(text), ...pathsNamed(text)]))) {
    const basis = catalog.basis(path);
    if (basis !== undefined) classes[path] = basis;
  }
  if (Object.keys(classes).length === 0) return rule;
  const supplements = { ...rule.supplements, classes };
  checkPinned({ ...rule, supplements });
  return { ...rule, supplements, digest: digestOf(rule.text, supplements) };
}

const SENT = /\bsetClass\s*\(/g;
const SENT_TO = /\bsetClass\s*\(\s*(["'])([^"'\\\n]{1,500})\1\s*\)/g;

/**
 * Throws `AppError("invalid")` if `--time` has no effect, because the body sends records to classes of objects only.
 * Does nothing if the rule has `--class`, or if some call of `setClass` has no constant path.
 */
export function requireTimedRecords(rule: RuleText, catalog: Pick<ClassCatalog, "get">): void {
  const times = timesOf(rule);
  const script = bodyOf(rule)?.script ?? "";
  if (times.field === undefined || script === "" || single(rule, "class") !== undefined) return;
  const paths = Array.from(script.matchAll(SENT_TO), ([, , path = ""]) => path.replace(/\/+$/, ""));
  if (paths.length < Array.from(script.matchAll(SENT)).length) return;
  const views = paths.map((path) => catalog.get(path));
  const [first] = views;
  if (first && views.every((view) => view?.kind === "entity")) requireRecords(times, first);
}

/** Target of a rule without a class: its body names the classes. */
export const NO_TARGET: RuleTarget = { path: "", columns: [] };

/** The part of a class that a rule is compiled for. */
export function targetOf({ path, columns, kind }: ClassView): RuleTarget {
  return { path, columns, kind };
}

/** The target with the columns that are pinned for the class, or else with its current columns. */
export function targetThen(view: ClassView, { classes = {} }: Supplements): RuleTarget {
  const { path, columns, kind } = view;
  const basis = Object.hasOwn(classes, path) ? classes[path] : undefined;
  const then = basis?.columns.map(([name]) => ({ name, type: view.column(name)?.type }));
  return { path, columns: then ?? columns, kind };
}
