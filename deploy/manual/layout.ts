import type { Heading } from "./markdown.ts";
import { escapeHtml } from "../../common/text/html.ts";

/** A link in the list of pages. */
export interface Entry {
  readonly path: string;
  readonly title: string;
}

export interface EntryGroup {
  readonly title: string;
  readonly entries: readonly Entry[];
}

export interface Frame {
  readonly title: string;
  readonly path: string;
  readonly html: string;
  readonly headings?: readonly Heading[];
  /** The list of pages, the same on every page. */
  readonly groups: readonly EntryGroup[];
  /** Value of the field for a search. Already escaped. */
  readonly query?: string;
}

/** Pages with at least this many headings of depth 2 begin with a list of them. */
const CONTENTS_MIN_HEADINGS = 3;
const SITE = "odp manual";

/** A whole page. It loads a style and a script of the same origin, and nothing else. */
export function framed({ title, path, html, headings = [], groups, query = "" }: Frame): string {
  const full = path === "/docs" ? SITE : `${title} – ${SITE}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(full)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/style.css">
<script src="/docs/search.js" type="module"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="site" href="/docs">odp <span>manual</span></a>
<form role="search" action="/docs/find" method="get">
<label for="q">Search the manual</label>
<input id="q" name="q" type="search" value="${query}" placeholder="Search the manual" autocomplete="off" maxlength="200">
<button type="submit">Search</button>
<div id="hits" hidden></div>
</form>
<a class="menu" href="#pages">All pages</a>
</header>
<div class="columns">
<main id="content" tabindex="-1">
${withContents(html, headings)}
</main>
<nav id="pages" aria-label="Pages of the manual">
${groups.map((group) => groupOf(group, path)).join("\n")}
</nav>
</div>
</body>
</html>
`;
}

/** Puts the list of headings behind the title. */
function withContents(html: string, headings: readonly Heading[]): string {
  const main = headings.filter(({ depth }) => depth === 2);
  const end = html.indexOf("</h1>") + "</h1>".length;
  if (main.length < CONTENTS_MIN_HEADINGS || end < "</h1>".length) return html;
  const items = main.map(({ anchor, text }) => `<li><a href="#${escapeHtml(anchor)}">${escapeHtml(text)}</a></li>`);
  const list = `<details class="contents"><summary>On this page</summary><ul>${items.join("")}</ul></details>`;
  return `${html.slice(0, end)}\n${list}${html.slice(end)}`;
}

function groupOf({ title, entries }: EntryGroup, current: string): string {
  const items = entries.map(({ path, title: text }) => {
    const mark = path === current ? ` aria-current="page"` : "";
    return `<li><a href="${path}"${mark}>${escapeHtml(text)}</a></li>`;
  });
  return `<h2>${escapeHtml(title)}</h2>\n<ul>${items.join("")}</ul>`;
}
