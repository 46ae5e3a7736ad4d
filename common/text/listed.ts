/** Names of a list shown in a sentence. */
const SHOWN_MAX = 10;

/** `a, b, c and 4 more`. */
export function listed(names: readonly string[], separator = ", "): string {
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : "";
  return `${names.slice(0, SHOWN_MAX).join(separator)}${more}`;
}
