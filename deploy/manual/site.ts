import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { QUERY_MARK, RESULTS_MARK } from "../../common/manual/marks.ts";
import { indexOf, type IndexedSection } from "./index-words.ts";
import { framed, type EntryGroup } from "./layout.ts";
import { convert, pathOf, type Page } from "./markdown.ts";
import { referencePages, type ReferencePage } from "./reference/pages.ts";
import { topicsOf, type Topic } from "./topics.ts";

/** The list of pages, which is also the first page. */
const LIST = "README.md";

export interface SiteSources {
  /** Folder of the pages. Folders in it are no part of the manual. */
  readonly docs: string;
}

/** The files of the manual by name. The last part of the path of a page is its name without `.html`. */
export type Site = ReadonlyMap<string, string>;

/**
 * Makes the manual: pages, reference of the HTTP interface, index, style and script. Throws if a link leads nowhere, a
 * page is in no topic, or two pages have the same path.
 */
export async function makeSite({ docs }: SiteSources): Promise<Site> {
  const names = (await readdir(docs)).sort();
  const texts = new Map<string, string>();
  for (const name of names.filter((one) => /\.(md|svg|json)$/.test(one)))
    texts.set(name, await readFile(join(docs, name), "utf8"));
  const pages = [...texts].filter(([name]) => name.endsWith(".md")).map(([name, text]) => convert(name, text));
  const pictures = [...texts.keys()].filter((name) => name.endsWith(".svg"));
  const topics = topicsOf(texts.get(LIST) ?? "");
  const faults = [...brokenLinks(pages, pictures), ...misplaced(pages, topics)];
  if (faults.length > 0) throw new Error(`The manual has faults:\n${faults.join("\n")}`);
  const reference = referencePages(JSON.parse(texts.get("openapi.json") ?? "{}"));
  const groups = groupsOf(pages, topics, reference);
  const files = new Map<string, string>();
  const add = (name: string, text: string): void => {
    if (files.has(name)) throw new Error(`Two parts of the manual have the name ${name}.`);
    files.set(name, text);
  };
  for (const page of [...pages.map(framable), ...reference])
    add(`${page.path === "/docs" ? "index" : page.path.slice("/docs/".length)}.html`, framed({ ...page, groups }));
  add("find.html", searchPage(groups));
  for (const name of pictures) add(name, texts.get(name) ?? "");
  const sections = [...pages.flatMap(sectionsOf), ...reference.flatMap((page) => page.sections)];
  add("index.json", JSON.stringify(indexOf(sections)));
  add("style.css", await readFile(new URL("style.css", import.meta.url), "utf8"));
  add("search.js", await script());
  return files;
}

function framable({ name, title, html, headings }: Page) {
  return { path: pathOf(`${name}.md`), title, html, headings };
}

/** Frame of the answers of the controller to a search. */
function searchPage(groups: readonly EntryGroup[]): string {
  const html = `<h1>Search</h1>\n${RESULTS_MARK}`;
  return framed({ title: "Search", path: "/docs/find", html, groups, query: QUERY_MARK });
}

function sectionsOf({ name, title, sections }: Page): readonly IndexedSection[] {
  // The list of pages has the titles of all others.
  if (`${name}.md` === LIST) return [];
  const path = pathOf(`${name}.md`);
  return sections.map(({ heading, anchor, text }) => ({
    url: anchor === "" ? path : `${path}#${anchor}`,
    page: title,
    heading,
    text,
  }));
}

function groupsOf(
  pages: readonly Page[],
  topics: readonly Topic[],
  reference: readonly Pick<ReferencePage, "path" | "entry">[],
): readonly EntryGroup[] {
  const titles = new Map(pages.map(({ name, title }) => [`${name}.md`, title]));
  return [
    ...topics.map(({ title, files }) => ({
      title,
      entries: files.map((file) => ({ path: pathOf(file), title: titles.get(file) ?? file })),
    })),
    { title: "HTTP reference", entries: reference.map(({ path, entry }) => ({ path, title: entry })) },
  ];
}

/** Links to pages, headings and pictures that are not there. */
function brokenLinks(pages: readonly Page[], pictures: readonly string[]): readonly string[] {
  const anchors = new Map<string, ReadonlySet<string>>([
    ...pages.map(({ name, headings }) => [`${name}.md`, new Set(["", ...headings.map((one) => one.anchor)])] as const),
    ...pictures.map((name) => [name, new Set([""])] as const),
  ]);
  return pages.flatMap(({ name, links }) =>
    links
      .filter(({ file, anchor }) => anchors.get(file)?.has(anchor) !== true)
      .map(({ file, anchor }) => `${name}.md links to ${file}#${anchor}, which is not there.`),
  );
}

function misplaced(pages: readonly Page[], topics: readonly Topic[]): readonly string[] {
  const listed = new Set(topics.flatMap(({ files }) => files));
  const names = pages.map(({ name }) => `${name}.md`).filter((name) => name !== LIST && !listed.has(name));
  return names.map((name) => `${name} is not in the list of pages (${LIST}).`);
}

async function script(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [new URL("browser.ts", import.meta.url).pathname],
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
  });
  return outputFiles[0]?.text ?? "";
}
