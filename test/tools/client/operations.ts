import {
  deeper,
  keyOf,
  memberOf,
  objectText,
  typeOf,
  comment,
  docOf,
  type Form,
  type Member,
  type Schema,
} from "./schemas.ts";
import { exampleOf, type Request } from "./examples.ts";

/** The operations and sockets of the OpenAPI document as the typed client has them. */

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
}

type Content = Readonly<
  Record<string, { readonly schema: Schema & { readonly "x-item-schema"?: Schema }; readonly example?: unknown }>
>;

export interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly "x-permission"?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly description?: string; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content; readonly headers?: object }>>;
}

interface Socket {
  readonly summary: string;
  readonly "x-permission": string;
  readonly parameters: readonly Parameter[];
  readonly frames: { readonly server: { readonly schema: Schema } };
}

type PathItem = Readonly<Partial<Record<"get" | "put" | "post" | "delete", Described>>> & {
  readonly "x-websocket"?: Socket;
};

export interface Document {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, PathItem>>;
}

export interface Operation {
  readonly method: "get" | "put" | "post" | "delete";
  readonly path: string;
  readonly described: Described;
}

const METHODS = ["get", "put", "post", "delete"] as const;
const JSON_TYPE = "application/json";
const LINES = "application/x-ndjson";
const EVENTS = "text/event-stream";
const TEXT = "text/plain";
const MULTIPART = "multipart/form-data";

export function operationsIn({ paths }: Document): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method];
      return described === undefined ? [] : [{ method, path, described }];
    }),
  );
}

const SENT: Form = { indent: "    ", isSent: true };
const ANSWERED: Form = { indent: "    ", isSent: false };
const HEAD = "// Generated from deploy/docs/openapi.json by `npm run gen`. Do not edit.\n";

/** The file of types: each operation with its request and its answers, and each socket with its frames. */
export function typesFile(document: Document): string {
  const operations = operationsIn(document).map(operationText);
  const sockets = Object.entries(document.paths).flatMap(([path, { "x-websocket": socket }]) =>
    socket === undefined ? [] : [socketText(path, socket)],
  );
  return [
    HEAD,
    'import type { Content, Upload } from "../content.ts";\n',
    "/** Every operation of the HTTP interface by its `operationId`. */",
    `export interface Operations {\n${operations.join("\n")}\n}\n`,
    "/** Every WebSocket of the interface by its path. */",
    `export interface Sockets {\n${sockets.join("\n")}\n}\n`,
  ].join("\n");
}

function operationText({ method, path, described }: Operation): string {
  const { operationId, summary, "x-permission": permission = "none" } = described;
  const doc = [
    /[.!?]$/.test(summary) ? summary : `${summary}.`,
    "",
    `\`${method.toUpperCase()} ${path}\`, permission: ${permission}.`,
    "",
    "@example",
    ...callText(described).split("\n"),
  ];
  const members = [requestMember(described), ...answerMembers(described)];
  return [...comment(doc, "  "), `  ${operationId}: ${objectText(members, "  ")};`].join("\n");
}

function socketText(path: string, { summary, "x-permission": permission, parameters, frames }: Socket): string {
  const request = objectText(placesOf(parameters), "    ");
  const members = [
    { name: "request", type: request, isOptional: false, doc: [] },
    { name: "frame", type: typeOf(frames.server.schema, ANSWERED), isOptional: false, doc: [] },
  ];
  const doc = [`${summary}.`, "", `Permission: ${permission}.`];
  return [...comment(doc, "  "), `  ${JSON.stringify(path)}: ${objectText(members, "  ")};`].join("\n");
}

function requestMember(described: Described): Member {
  const members = [...placesOf(described.parameters ?? []), ...bodyOf(described)];
  const type = members.length === 0 ? "Record<string, never>" : objectText(members, "    ");
  return { name: "request", type, isOptional: false, doc: [] };
}

/** The members `path` and `query`. */
function placesOf(parameters: readonly Parameter[]): readonly Member[] {
  return (["path", "query"] as const).flatMap((place) => {
    const own = parameters.filter((parameter) => parameter.in === place);
    if (own.length === 0) return [];
    const form = deeper(deeper(SENT));
    const members = own.map(({ name, required, description, schema, content }) => {
      const described = {
        ...(schema ?? content?.[JSON_TYPE]?.schema),
        ...(description !== undefined && { description }),
      };
      return memberOf(name, described, { form, isOptional: !required });
    });
    const isOptional = own.every(({ required }) => !required);
    return [{ name: place, type: objectText(members, form.indent.slice(2)), isOptional, doc: [] }];
  });
}

function bodyOf({ requestBody }: Described): readonly Member[] {
  if (requestBody === undefined) return [];
  const { content, required, description } = requestBody;
  const form = deeper(SENT);
  const [type, { schema } = { schema: {} }] = Object.entries(content)[0] ?? ["", undefined];
  const members = content[JSON_TYPE]?.schema ?? content[MULTIPART]?.schema ?? schema;
  const texts = type === TEXT ? ["Content", ...(content[JSON_TYPE] ? [typeOf(members, form)] : [])] : [];
  const body = texts.length > 0 ? texts.join(" | ") : typeOf(members, form);
  const doc = docOf({ ...(description !== undefined && { description }) });
  return [{ name: "body", type: body, isOptional: !required, doc }];
}

/** The answers of an operation by their kind. An absent kind is never answered. */
function answerMembers(described: Described): readonly Member[] {
  const { message, value, lines, events, isContent } = answersOf(described);
  const messages = [message, value].flatMap((schema) => (schema === undefined ? [] : [typeOf(schema, ANSWERED)]));
  const member = (name: string, type: string, doc: readonly string[] = []): Member => ({
    name,
    type,
    isOptional: false,
    doc,
  });
  return [
    ...(messages.length > 0 ? [member("message", [...new Set(messages)].join(" | "))] : []),
    ...(messages.length === 0 && redirects(described) && !isContent ? [member("message", "undefined")] : []),
    ...(lines ? [member("line", typeOf(lines, ANSWERED))] : []),
    ...(events ? [member("event", typeOf(events, ANSWERED))] : []),
    ...(isContent ? [member("content", "true")] : []),
    ...(isRevised(described) ? [member("revised", "true")] : []),
    ...(isPaged(described) ? [member("cursor", "true")] : []),
  ];
}

interface Answers {
  readonly message: Schema | undefined;
  /** JSON without the envelope. */
  readonly value: Schema | undefined;
  readonly lines: Schema | undefined;
  readonly events: Schema | undefined;
  readonly isContent: boolean;
}

export function answersOf({ responses }: Described): Answers {
  const content = responses["200"]?.content ?? {};
  const { [JSON_TYPE]: json, [LINES]: lines, [EVENTS]: events, ...others } = content;
  const forms = json === undefined ? [] : (json.schema.anyOf ?? [json.schema]);
  const envelope = forms.find((schema) => schema.properties?.["message"] !== undefined);
  return {
    message: envelope?.properties?.["message"],
    value: forms.find((schema) => schema !== envelope && !("$ref" in schema)),
    lines: lines?.schema["x-item-schema"],
    events: events?.schema["x-item-schema"],
    isContent: Object.keys(others).length > 0,
  };
}

export function redirects({ responses }: Described): boolean {
  return "302" in responses;
}

/** True for a change that can be made on a revision. */
export function isRevised({ parameters = [] }: Described): boolean {
  return parameters.some(({ name }) => name === "If-Match");
}

/** True if the operation is read page by page. The members that name a page are called so in all operations. */
export function isPaged(described: Described): boolean {
  const names = memberNames(described);
  return names.includes("cursor") || names.includes("after");
}

/** Names of the members of query and body. */
export function memberNames({ parameters = [], requestBody }: Described): readonly string[] {
  const inQuery = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
  const bodies = Object.values(requestBody?.content ?? {});
  return [...inQuery, ...bodies.flatMap(({ schema }) => Object.keys(schema.properties ?? {}))];
}

/** The call of the example, as a program writes it. */
function callText(described: Described): string {
  const { message, lines, events, isContent } = answersOf(described);
  const request = requestText(exampleOf(described));
  const given = request === "" ? "" : `, ${request}`;
  const name = JSON.stringify(described.operationId);
  if (events) return `for await (const { data } of client.events(${name}${given})) console.log(data);`;
  if (lines && !message) return `for await (const line of client.lines(${name}${given})) console.log(line);`;
  if (isContent && !message) return `const { body } = await client.download(${name}${given});`;
  return `await client.call(${name}${given});`;
}

/** An object as a literal of TypeScript; empty if it has no members. */
export function requestText(request: Request): string {
  return Object.keys(request).length === 0 ? "" : literal(request, "");
}

export function literal(value: unknown, indent: string): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((item) => literal(item, inner));
    return `[${items.join(", ")}]`;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${keyOf(name)}: ${literal(member, inner)}`);
  const short = `{ ${members.join(", ")} }`;
  if (members.length === 0) return "{}";
  if (short.length <= 80 && !short.includes("\n")) return short;
  return `{\n${members.map((member) => `${inner}${member},`).join("\n")}\n${indent}}`;
}
