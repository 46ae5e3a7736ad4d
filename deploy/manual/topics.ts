/** Pages in the order and under the headings of the list of pages. */
export interface Topic {
  readonly title: string;
  /** Names of files. */
  readonly files: readonly string[];
}

/** Reads the topics from the list of pages, `README.md`: each heading of depth 2, with the links below it. */
export function topicsOf(list: string): readonly Topic[] {
  const listed = new Set<string>();
  const topics: Topic[] = [];
  for (const part of list.split(/^## /m).slice(1)) {
    const [title = "", ...lines] = part.split("\n");
    const linked = [...lines.join("\n").matchAll(/\]\(([a-z0-9-]+\.md)(?:#[^)]*)?\)/g)].map(([, file = ""]) => file);
    const files = [...new Set(linked)].filter((file) => !listed.has(file));
    for (const file of files) listed.add(file);
    if (files.length > 0) topics.push({ title: title.trim(), files });
  }
  return topics;
}
