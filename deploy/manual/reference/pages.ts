import type { IndexedSection } from "../index-words.ts";
import type { Heading } from "../markdown.ts";
import { escapeHtml } from "../../../common/text/html.ts";
import { operationsOf, socketsOf, type Document, type Operation, type Parameter } from "./document.ts";
import { marked, membersOf } from "./members.ts";
import { operationHtml, socketHtml } from "./operation.ts";

/** A page of the reference, without the frame that all pages have. */
export interface ReferencePage {
  readonly path: string;
  readonly title: string;
  /** Its title in the list of pages. */
  readonly entry: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly IndexedSection[];
}

const START = "/docs/api";

/** The reference of the HTTP interface: a first page, one page for each tag, and one for the WebSockets. */
export function referencePages(document: Document): readonly ReferencePage[] {
  const operations = operationsOf(document);
  const pages = document.tags.map(({ name, description }) =>
    tagPage(document, { name, description, operations: operations.filter((one) => one.described.tags?.[0] === name) }),
  );
  const lost = operations.filter(({ described }) => !document.tags.some(({ name }) => name === described.tags?.[0]));
  if (lost.length > 0) throw new Error(`These operations have no tag: ${lost.map(({ path }) => path).join(", ")}`);
  const sockets = socketsPage(document);
  return [startPage(document, [...pages, sockets]), ...pages, sockets];
}

interface Tag {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly Operation[];
}

function tagPage(document: Document, { name, description, operations }: Tag): ReferencePage {
  const path = `${START}-${name}`;
  const title = `HTTP: ${name}`;
  const html = [
    `<h1 id="top">${escapeHtml(title)}</h1>`,
    `<p>${marked(description)}.</p>`,
    overview(operations),
    ...operations.map((operation) => operationHtml(document, operation)),
  ];
  const sections = operations.map(({ method, path: called, described }) => ({
    url: `${path}#${described.operationId}`,
    page: title,
    heading: `${method} ${called}`,
    text: `${described.summary}. ${namesOf(described.parameters, described.requestBody?.content)}`,
  }));
  return { path, title, entry: name, html: html.join("\n"), headings: [], sections };
}

/** Names and meanings of what a call takes, for the search. */
function namesOf(
  parameters: readonly Parameter[] = [],
  content: NonNullable<Operation["described"]["requestBody"]>["content"] = {},
): string {
  const [body] = Object.values(content);
  const members = membersOf(body?.schema ?? {}).map(({ name, meaning }) => `${name} ${meaning}`);
  return [...parameters.map(({ name, description = "" }) => `${name} ${description}`), ...members].join(" ");
}

function overview(operations: readonly Operation[]): string {
  const rows = operations.map(
    ({ method, path, described: { operationId, summary } }) =>
      `<tr><td><a href="#${escapeHtml(operationId)}"><code>${escapeHtml(`${method} ${path}`)}</code></a></td><td>${marked(summary)}</td></tr>`,
  );
  return `<div class="table" tabindex="0"><table><thead><tr><th>Call</th><th>Meaning</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></div>`;
}

function socketsPage(document: Document): ReferencePage {
  const path = `${START}-websockets`;
  const title = "HTTP: WebSockets";
  const sockets = socketsOf(document).map((one) => ({ ...one, anchor: one.path.replace(/[^a-z]+/gi, "-").slice(1) }));
  const html = [
    `<h1 id="top">${title}</h1>`,
    "<p>A WebSocket is opened like a call: by the same credentials, with its parameters in the address.</p>",
    ...sockets.map(socketHtml),
  ];
  const sections = sockets.map(({ path: called, socket, anchor }) => ({
    url: `${path}#${anchor}`,
    page: title,
    heading: `WS ${called}`,
    text: `${socket.summary}. ${namesOf(socket.parameters)}`,
  }));
  return { path, title, entry: "WebSockets", html: html.join("\n"), headings: [], sections };
}

function startPage({ info, tags }: Document, pages: readonly ReferencePage[]): ReferencePage {
  const meanings = new Map(tags.map(({ name, description }) => [`${START}-${name}`, description]));
  const rows = pages.map(
    ({ path, entry, sections }) =>
      `<tr><td><a href="${path}">${escapeHtml(entry)}</a></td><td>${marked(meanings.get(path) ?? "Frames and ends of every WebSocket")}</td><td>${String(sections.length)}</td></tr>`,
  );
  const sentences = info.description.split(/(?<=\.) (?=[A-Z])/).map((text) => `<li>${marked(text)}</li>`);
  const html = `<h1 id="top">HTTP reference</h1>
<p>Every call of the HTTP interface, from the <a href="/openapi.json">OpenAPI document</a> of this version. The <a href="/docs/client">typed client</a> and <a href="/docs/command-line">the command line</a> make these calls for you.</p>
<div class="table" tabindex="0"><table><thead><tr><th>Part</th><th>Meaning</th><th>Calls</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></div>
<h2 id="all-calls">What all calls have in common</h2>
<ul>${sentences.join("\n")}</ul>`;
  return { path: START, title: "HTTP reference", entry: "All calls", html, headings: [], sections: [] };
}
