/** Kinds of changes, in the order of the changelog. */
export const KINDS = ["breaking", "security", "added", "changed", "fixed"] as const;

/** One file of `changes/`. */
export interface Fragment {
  readonly file: string;
  readonly text: string;
}

const NAME = new RegExp(`^(${KINDS.join("|")})-[a-z0-9]+(-[a-z0-9]+)*\\.md$`);
const TO_DO = "What to do:";
const TEXT_MAX_CHARACTERS = 1_200;

/** Returns what is wrong with the fragments, by file; empty if nothing is. */
export function faults(fragments: readonly Fragment[]): readonly string[] {
  return fragments.flatMap(({ file, text }) => {
    const paragraphs = paragraphsOf(text);
    const wrong: string[] = [];
    if (!NAME.test(file)) wrong.push(`the name is not <kind>-<few-words>.md with a kind of ${KINDS.join(", ")}`);
    if (paragraphs.length === 0) wrong.push("it is empty");
    if (text.length > TEXT_MAX_CHARACTERS) wrong.push(`it has more than ${TEXT_MAX_CHARACTERS} characters`);
    if (paragraphs.some((one) => /^(#|[-*] )/.test(one))) wrong.push("it has a heading or a list");
    if (file.startsWith("breaking-") && !paragraphs.slice(1).some((one) => one.startsWith(TO_DO)))
      wrong.push(`no second paragraph begins with "${TO_DO}"`);
    return wrong.map((what) => `changes/${file}: ${what}`);
  });
}

/** Returns the section of a release as the changelog has it: one list for each kind, ordered by file name. */
export function section(title: string, fragments: readonly Fragment[]): string {
  const parts = KINDS.flatMap((kind) => {
    const items = fragments
      .filter(({ file }) => file.startsWith(`${kind}-`))
      .toSorted((a, b) => (a.file < b.file ? -1 : 1))
      .map(({ text }) => `- ${paragraphsOf(text).join("\n\n  ")}`);
    return items.length === 0 ? [] : [`### ${kind[0]?.toUpperCase()}${kind.slice(1)}`, items.join("\n")];
  });
  return [`## ${title}`, ...parts].join("\n\n");
}

/** Returns the changelog with the section before that of the last release. */
export function withSection(changelog: string, added: string): string {
  const at = changelog.search(/^## /m);
  if (at < 0) throw new Error("The changelog has no release yet.");
  return `${changelog.slice(0, at)}${added}\n\n${changelog.slice(at)}`;
}

/** Lines of a paragraph are joined, as the changelog has one line for each. */
function paragraphsOf(text: string): readonly string[] {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replaceAll(/\s*\n\s*/g, " "))
    .filter((paragraph) => paragraph !== "");
}
