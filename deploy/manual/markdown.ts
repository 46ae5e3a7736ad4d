import { Marked, type RendererObject, type Token, type Tokens } from "marked";
import { escapeHtml } from "../../common/text/html.ts";
import { Anchors } from "./anchors.ts";

/** One page of the manual, converted. */
export interface Page {
  /** Name of the file without `.md`, which is the last part of its path. */
  readonly name: string;
  /** Text of its first heading. */
  readonly title: string;
  /** HTML without the frame that all pages have. */
  readonly html: string;
  /** Its headings below the title, in their order. */
  readonly headings: readonly Heading[];
  /** Its text by headings; the first one is the text below the title. */
  readonly sections: readonly SectionText[];
  /** Targets of its links inside the manual. */
  readonly links: readonly Target[];
}

export interface Heading {
  readonly depth: number;
  readonly text: string;
  readonly anchor: string;
}

export interface SectionText {
  readonly heading: string;
  /** Empty for the beginning of the page. */
  readonly anchor: string;
  readonly text: string;
}

/** A page or picture of the manual, and a heading of it unless the anchor is empty. */
export interface Target {
  readonly file: string;
  readonly anchor: string;
}

/** Path of a file of the manual. `README.md` is the beginning of the manual. */
export function pathOf(file: string): string {
  if (file === "README.md") return "/docs";
  return `/docs/${file.replace(/\.md$/, "")}`;
}

/** Converts one page. Throws if it has no title, or HTML in it: the policy of the pages would refuse its styles. */
export function convert(file: string, source: string): Page {
  const marked = new Marked();
  const tokens = marked.lexer(source);
  const anchors = new Anchors();
  const headings: Heading[] = [];
  const links: Target[] = [];
  const sections: SectionText[] = [];
  for (const token of tokens) {
    if (token.type === "heading") {
      const { depth, tokens: inner = [] } = token as Tokens.Heading;
      const text = plain(inner);
      headings.push({ depth, text, anchor: anchors.of(text) });
      sections.push({ heading: text, anchor: depth === 1 ? "" : (headings.at(-1)?.anchor ?? ""), text: "" });
    } else {
      const last = sections.pop();
      if (last !== undefined) sections.push({ ...last, text: `${last.text} ${plain([token])}`.trim() });
    }
  }
  const [title] = headings;
  if (title?.depth !== 1) throw new Error(`${file} does not begin with a title.`);
  marked.use({ renderer: rendererOf({ file, headings, links }) });
  const html = marked.parser(tokens);
  return { name: file.replace(/\.md$/, ""), title: title.text, html, headings: headings.slice(1), sections, links };
}

/** The text of tokens without marks. Cells, items and lines are separated by spaces. */
function plain(tokens: readonly Token[]): string {
  return tokens.map(plainOf).join("").replaceAll(/\s+/g, " ").trimEnd();
}

function plainOf(token: Token): string {
  if (token.type === "table") {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].map((row) => row.map((cell) => plain(cell.tokens)).join(" ")).join(" ");
  }
  if (token.type === "list") return (token as Tokens.List).items.map((item) => plain(item.tokens)).join(" ");
  const { tokens, text = "" } = token as { readonly tokens?: readonly Token[]; readonly text?: string };
  if (token.type === "br" || token.type === "space") return " ";
  return tokens === undefined ? text : tokens.map(plainOf).join("");
}

interface Rendering {
  readonly file: string;
  readonly headings: readonly Heading[];
  readonly links: Target[];
}

function rendererOf({ file, headings, links }: Rendering): RendererObject {
  let passed = 0;
  return {
    heading({ tokens, depth }) {
      const { anchor = "" } = headings[passed++] ?? {};
      const text = this.parser.parseInline(tokens);
      if (depth === 1) return `<h1 id="${escapeHtml(anchor)}">${text}</h1>\n`;
      const mark = `<a class="anchor" href="#${escapeHtml(anchor)}" aria-label="Link to this section">#</a>`;
      return `<h${String(depth)} id="${escapeHtml(anchor)}">${text} ${mark}</h${String(depth)}>\n`;
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      const target = targetOf(file, href, links);
      return target === undefined ? text : `<a href="${escapeHtml(target)}">${text}</a>`;
    },
    image({ href, text }) {
      links.push({ file: href, anchor: "" });
      return `<img src="${escapeHtml(pathOf(href))}" alt="${escapeHtml(text)}">`;
    },
    code({ text, lang = "" }) {
      const language = lang === "" ? "" : ` class="language-${escapeHtml(lang)}"`;
      return `<pre tabindex="0"><code${language}>${escapeHtml(text)}\n</code></pre>\n`;
    },
    table({ header, rows }) {
      const row = (cells: readonly Tokens.TableCell[], tag: string): string =>
        `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("")}</tr>`;
      const body = rows.map((cells) => row(cells, "td")).join("\n");
      return `<div class="table" tabindex="0"><table>\n<thead>${row(header, "th")}</thead>\n<tbody>${body}</tbody>\n</table></div>\n`;
    },
    html({ raw }) {
      throw new Error(`${file} has HTML in it: ${raw.trim()}`);
    },
  };
}

/**
 * Address of a link of a page. `undefined` for files of the repository that are no part of the manual: readers of a
 * running controller do not have them, so the text stays without a link.
 */
function targetOf(from: string, href: string, links: Target[]): string | undefined {
  if (/^https?:/.test(href)) return href;
  const [file = "", anchor = ""] = href.split("#");
  if (file === "openapi.json") return "/openapi.json";
  if (file.includes("/") || !/^$|\.(md|svg)$/.test(file)) return undefined;
  links.push({ file: file === "" ? from : file, anchor });
  const fragment = anchor === "" ? "" : `#${anchor}`;
  return file === "" ? fragment : pathOf(file) + fragment;
}
