/** Pages in the order and under the headings of the list of pages. */
export interface Topic {
  readonly title: string;
  /** Names of files. */
  readonly files: readonly string[];
}

/** Topic of the pages that are linked above the first heading of the list. */
const FIRST = "Begin here";

/**
 * Reads the topics from the list of pages, `README.md`: each heading of depth 2, with the links below it. A page belongs
 * to the first topic that links to it.
 */
export function topicsOf(list: string): readonly Topic[] {
  const listed = new Set<string>();
  const topics: Topic[] = [];
  for (const [at, part] of list.split(/^## /m).entries()) {
    const [heading = "", ...lines] = part.split("\n");
    const linked = [...lines.join("\n").matchAll(/\]\(([a-z0-9-]+\.md)(?:#[^)]*)?\)/g)].map(([, file = ""]) => file);
    const files = [...new Set(linked)].filter((file) => !listed.has(file));
    for (const file of files) listed.add(file);
    if (files.length > 0) topics.push({ title: at === 0 ? FIRST : heading.trim(), files });
  }
  return topics;
}
