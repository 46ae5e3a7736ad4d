import type { LogPolicySpec } from "../../../../common/api/policies.ts";

type Spec = Pick<LogPolicySpec, "differentiator" | "priority" | "translation">;
type Groups = Readonly<Record<string, string>>;

/**
 * Which log a file belongs to. Files of one log are read one after the other, different logs side by side: the
 * differentiator tells them apart; without one, files that have an order are one log, and files without an order are a
 * log each.
 */
export function logOf(spec: Spec, path: string, groups: Groups): string {
  if (spec.differentiator) return `=${groups[spec.differentiator] ?? ""}`;
  return spec.priority && spec.priority.length > 0 ? "" : `/${path}`;
}

/**
 * A file's place in its log, most significant first: the number its text is translated to, its own number, or the text.
 */
export function placeOf(spec: Spec, groups: Groups): (string | number)[] {
  return (spec.priority ?? []).map((group) => {
    const text = groups[group] ?? "";
    const number = spec.translation?.[group]?.[text];
    if (number !== undefined) return number;
    return /^\d+$/.test(text) ? Number(text) : text;
  });
}

/** Ascending; numbers before texts. */
export function comparePlaces(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const difference = comparePlace(a[index] ?? "", b[index] ?? "");
    if (difference !== 0) return difference;
  }
  return 0;
}

function comparePlace(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}
