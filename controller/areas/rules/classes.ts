import type { ClassCatalog, ClassView } from "../objects/index.ts";
import { classOrEmpty, pathsNamed } from "./named.ts";
import { checkPinned, type SupplementedRule } from "./store.ts";
import { digestOf, type PinnedClass, type Supplements } from "./supplements.ts";
import type { RuleTarget } from "./types.ts";

/** The rule with what its rows follow from in the classes that they go to, its own and those that bodies name. */
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

/** A body names classes itself. */
export const NO_TARGET: RuleTarget = { path: "", columns: [] };

/** The part of a class that a rule is compiled for. */
export function targetOf({ path, columns, kind }: ClassView): RuleTarget {
  return { path, columns, kind };
}

/** With the columns of the class that the text was pinned with. */
export function targetThen(view: ClassView, { classes = {} }: Supplements): RuleTarget {
  const { path, columns, kind } = view;
  const basis = Object.hasOwn(classes, path) ? classes[path] : undefined;
  const then = basis?.columns.map(([name]) => ({ name, type: view.column(name)?.type }));
  return { path, columns: then ?? columns, kind };
}
