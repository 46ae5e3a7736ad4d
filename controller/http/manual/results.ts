import { MANUAL_HITS_MAX, MANUAL_QUERY_MAX_CHARACTERS } from "../../../common/limits.ts";
import { searchManual, type Section } from "../../../common/manual/search.ts";
import { QUERY_MARK, RESULTS_MARK } from "../../../common/manual/marks.ts";
import { counted } from "../../../common/text/counted.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import { escapeHtml } from "../../../common/text/html.ts";
import type { Manual } from "./files.ts";

/** The page that answers a search. At most `MANUAL_QUERY_MAX_CHARACTERS` of the query are read. */
export function resultsPage({ index, searchPage }: Manual, query: string): string {
  const read = beginningOf(query, MANUAL_QUERY_MAX_CHARACTERS);
  const found = searchManual(index, read);
  // A function, because `$` in a text would be a pattern of `replace`.
  return searchPage.replace(RESULTS_MARK, () => resultsOf(read, found)).replace(QUERY_MARK, () => escapeHtml(read));
}

function resultsOf(query: string, found: readonly Section[]): string {
  if (query.trim() === "") return "<p>Type words into the field at the top.</p>";
  if (found.length === 0) return `<p role="status">Nothing found for <b>${escapeHtml(query)}</b>.</p>`;
  const many =
    found.length === MANUAL_HITS_MAX
      ? `The best ${String(MANUAL_HITS_MAX)} sections`
      : counted(found.length, "section");
  return `<p role="status">${many} for <b>${escapeHtml(query)}</b>:</p>\n<ol class="hits">${found.map(itemOf).join("\n")}</ol>`;
}

function itemOf({ url, page, heading, excerpt }: Section): string {
  const place = page === heading ? "" : `<span>${escapeHtml(page)}</span>`;
  return `<li><a href="${escapeHtml(url)}">${escapeHtml(heading)}</a>${place}<p>${escapeHtml(excerpt)}</p></li>`;
}
