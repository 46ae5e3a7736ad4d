import type { LogPolicySpec } from "../../../../common/api/policies.ts";

type Spec = Pick<LogPolicySpec, "differentiator" | "priority" | "translation">;
type Groups = Readonly<Record<string, string>>;

/**
 * The log that a file belongs to. Files of one log are read one after another, different logs in parallel. With a
 * differentiator, files with the same value of it are one log. Without one, all files are one log if the policy has
 * priorities; otherwise each file is a log.
 */
export function logOf(spec: Spec, path: string, groups: Groups): string {
  if (spec.differentiator) return `=${groups[spec.differentiator] ?? ""}`;
  return spec.priority && spec.priority.length > 0 ? "" : `/${path}`;
}

/**
 * Sort key of a file in its log, most significant part first. A part is the number to which its text is translated, the
 * text as a number, or the text.
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
