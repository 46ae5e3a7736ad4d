import { escapeHtml } from "../../../common/text/html.ts";
import {
  answerOf,
  type Body,
  type Document,
  type Operation,
  type Parameter,
  type Schema,
  type Socket,
} from "./document.ts";
import { curlOf } from "./example.ts";
import { marked, meaningOf, membersOf, memberTable, typeOf } from "./members.ts";

/** The part of a page about one operation. */
export function operationHtml(document: Document, operation: Operation): string {
  const { method, path, described } = operation;
  const { operationId, summary, parameters = [], requestBody } = described;
  return [
    heading(operationId, `${method} ${path}`),
    `<p>${marked(summary)}.</p>`,
    `<p class="facts">${permissionOf(operation)} Name in clients: <code>${escapeHtml(operationId)}</code>.</p>`,
    parameterTable(parameters),
    requestBody === undefined ? "" : bodyHtml(requestBody),
    answersHtml(document, operation),
    `<h3>Example</h3>\n<pre tabindex="0"><code class="language-sh">${escapeHtml(curlOf(operation))}\n</code></pre>`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

export function socketHtml({
  path,
  socket,
  anchor,
}: {
  readonly path: string;
  readonly socket: Socket;
  readonly anchor: string;
}): string {
  const { summary, parameters = [], frames, closes } = socket;
  const rows = closes.map(({ code, reason }) => `<tr><td>${String(code)}</td><td>${escapeHtml(reason)}</td></tr>`);
  return [
    heading(anchor, `WS ${path}`),
    `<p>${marked(summary)}.</p>`,
    `<p class="facts">Permission: <code>${escapeHtml(socket["x-permission"] ?? "none")}</code>.</p>`,
    parameterTable(parameters),
    `<h3>Frames</h3>\n<p>${marked(frames.server.description)} ${marked(frames.client.description)}</p>`,
    frames.server.schema === undefined ? "" : valueHtml(frames.server.schema),
    `<h3>Ends</h3>\n<div class="table" tabindex="0"><table><thead><tr><th>Code</th><th>Reason</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></div>`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function heading(anchor: string, text: string): string {
  const mark = `<a class="anchor" href="#${escapeHtml(anchor)}" aria-label="Link to this section">#</a>`;
  return `<h2 id="${escapeHtml(anchor)}" class="call"><code>${escapeHtml(text)}</code> ${mark}</h2>`;
}

function permissionOf({ described }: Operation): string {
  const permission = described["x-permission"];
  if (permission !== undefined) return `Permission: <a href="/docs/rights"><code>${escapeHtml(permission)}</code></a>.`;
  return described.security?.length === 0 ? "Without sign-in." : "For every user who is signed in.";
}

function parameterTable(parameters: readonly Parameter[]): string {
  const members = parameters.map((parameter) => {
    const { name, required, description, content } = parameter;
    const schema = parameter.schema ?? Object.values(content ?? {})[0]?.schema ?? {};
    return {
      name,
      type: `${typeOf(schema)}, in the ${parameter.in}`,
      isRequired: required,
      meaning: meaningOf(schema, description),
    };
  });
  return members.length === 0 ? "" : `<h3>Parameters</h3>\n${memberTable(members, "request", "Parameter")}`;
}

function bodyHtml({ description, content, required }: Body): string {
  const types = Object.keys(content).map((type) => `<code>${escapeHtml(type)}</code>`);
  const [first] = Object.values(content);
  const text = description === undefined ? "" : ` ${marked(description)}.`;
  const optional = required ? "" : " It may be absent.";
  return `<h3>Body</h3>\n<p>As ${types.join(" or ")}.${text}${optional}</p>\n${memberTable(membersOf(first?.schema ?? {}), "request")}`;
}

function answersHtml(document: Document, { described }: Operation): string {
  const codes = new Set<string>();
  const successes: string[] = [];
  for (const [status, given] of Object.entries(described.responses)) {
    const answer = answerOf(document, given);
    const isFailure = Number(status) >= 400;
    // 500 is the status of every failure, for clients that do not ask for problems.
    if (isFailure && status !== "500") for (const code of answer["x-codes"] ?? []) codes.add(code);
    if (!isFailure) successes.push(successHtml(document, { status, answer }));
  }
  const links = [...codes].sort().map((code) => `<a href="/docs/errors"><code>${escapeHtml(code)}</code></a>`);
  const errors = links.length === 0 ? "" : `<h3>Errors</h3>\n<p class="codes">${links.join(", ")}</p>`;
  return `<h3>Answer</h3>\n${successes.join("\n")}\n${errors}`;
}

interface Success {
  readonly status: string;
  readonly answer: {
    readonly description?: string;
    readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
  };
}

function successHtml(document: Document, { status, answer }: Success): string {
  const contents = Object.entries(answer.content ?? {}).map(([type, { schema = {} }]) => {
    const message = messageOf(schema);
    const shown = message ?? schema["x-item-schema"] ?? ownForm(document, schema);
    const place =
      message === undefined
        ? `<code>${escapeHtml(type)}</code>`
        : `<code>${escapeHtml(type)}</code>, <code>message</code> of the envelope`;
    return shown === undefined ? "" : `<p>${place}:</p>\n${valueHtml(shown)}`;
  });
  return `<p><strong>${escapeHtml(status)}</strong> ${marked(answer.description ?? "")}</p>\n${contents.join("\n")}`;
}

/** Schema of the message, if the answer is an envelope; `undefined` otherwise. */
function messageOf(schema: Schema): Schema | undefined {
  const envelope = [schema, ...(schema.anyOf ?? [])].find(({ properties }) => properties?.["status"]?.const === "ok");
  return envelope?.properties?.["message"];
}

/** The form of an answer without an envelope; `undefined` for the sign-in envelope, which every operation has. */
function ownForm({ components }: Document, schema: Schema): Schema | undefined {
  const name = schema.$ref?.split("/").at(-1);
  if (name === "SignIn") return undefined;
  return name === undefined ? schema : components.schemas[name];
}

/** The type of a value, and its members. */
function valueHtml(schema: Schema): string {
  const meaning = meaningOf(schema);
  const text = `<p>${escapeHtml(typeOf(schema))}${meaning === "" ? "" : `: ${marked(meaning)}`}</p>`;
  return `${text}\n${memberTable(membersOf(schema), "answer")}`;
}
