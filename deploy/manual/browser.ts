import { searchManual, type ManualIndex, type Section } from "../../common/manual/search.ts";
import { counted } from "../../common/text/counted.ts";

/**
 * The script of the pages: shows what a search finds while its words are typed. Without it the form asks the
 * controller, which finds the same.
 */

/** The parts of the document that are used here. The checks of types know Node and no browser. */
interface Element {
  hidden: boolean;
  textContent: string;
  href: string;
  value: string;
  addEventListener(type: string, listener: (event: { readonly key: string; preventDefault(): void }) => void): void;
  append(...children: readonly Element[]): void;
  replaceChildren(...children: readonly Element[]): void;
  setAttribute(name: string, value: string): void;
  contains(other: Element | null): boolean;
  focus(): void;
  readonly tagName: string;
  scrollTop: number;
  readonly clientHeight: number;
  readonly offsetTop: number;
  querySelector(selector: string): Element | null;
}

declare const document: Element & {
  readonly activeElement: Element | null;
  getElementById(id: string): Element | null;
  createElement(name: string): Element;
};

const field = document.getElementById("q");
const hits = document.getElementById("hits");
const list = document.getElementById("pages");
const current = list?.querySelector("[aria-current]");
// Scrolls the list only: on a narrow screen, where it follows the page, this has no effect.
if (list !== null && current) list.scrollTop = current.offsetTop - list.clientHeight / 2;

let index: Promise<ManualIndex> | undefined;

if (field !== null && hits !== null) listen(field, hits);

function listen(input: Element, results: Element): void {
  // A failure is repeated, and dealt with, when words are typed.
  input.addEventListener("focus", () => void loaded().catch(() => undefined));
  input.addEventListener("input", () => void show(input, results));
  document.addEventListener("keydown", (event) => {
    const { activeElement } = document;
    const isTyping = /^(INPUT|TEXTAREA)$/.test(activeElement?.tagName ?? "");
    if (event.key === "Escape") results.hidden = true;
    if (event.key !== "/" || isTyping) return;
    event.preventDefault();
    input.focus();
  });
  document.addEventListener("focusin", () => {
    const { activeElement } = document;
    if (activeElement !== input && !results.contains(activeElement)) results.hidden = true;
  });
}

/** The index, which is loaded once; after a failure, at the next try. */
function loaded(): Promise<ManualIndex> {
  index ??= fetch("/docs/index.json")
    .then((response) => response.json() as Promise<ManualIndex>)
    .catch((error: unknown) => {
      index = undefined;
      throw error;
    });
  return index;
}

async function show(input: Element, results: Element): Promise<void> {
  const query = input.value;
  // The form still asks the controller when the index cannot be loaded.
  const manual = await loaded().catch(() => undefined);
  if (manual === undefined || query !== input.value) return;
  const found = searchManual(manual, query);
  results.hidden = query.trim() === "";
  // Only the number is read aloud while words are typed, not the whole list.
  const count = element("p", found.length === 0 ? "Nothing found." : counted(found.length, "section"));
  count.setAttribute("role", "status");
  results.replaceChildren(count, listOf(found));
}

function listOf(sections: readonly Section[]): Element {
  const made = document.createElement("ul");
  for (const { url, page, heading, excerpt } of sections) {
    const link = element("a", heading);
    link.href = url;
    const item = document.createElement("li");
    item.append(link, element("span", page === heading ? "" : page), element("p", excerpt));
    made.append(item);
  }
  return made;
}

function element(name: string, text: string): Element {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
