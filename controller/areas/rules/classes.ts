import type { ClassCatalog } from "../objects/index.ts";
import { classOrEmpty, pathsNamed } from "./named.ts";
import { checkPinned, type SupplementedRule } from "./store.ts";
import { digestOf, type PinnedClass } from "./supplements.ts";

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
