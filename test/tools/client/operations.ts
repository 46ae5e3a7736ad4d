import {
  answersOf,
  isPaged,
  isRevised,
  operationsIn,
  redirects,
  type Described,
  type Document,
  type Operation,
  type Parameter,
  type Socket,
} from "./document.ts";
import { exampleOf, literal, type Request } from "./examples.ts";
import { comment, deeper, docOf, memberOf, objectText, typeOf, type Form, type Member } from "./schemas.ts";

/** The operations and sockets of the OpenAPI document as the typed client has them. */

const JSON_TYPE = "application/json";
const TEXT = "text/plain";
const MULTIPART = "multipart/form-data";

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
