import { ANY_TYPE } from "../../answer/forms.ts";
import { EVENTS_TYPE } from "../../sockets/events.ts";
import type { ContentNote, Endpoint, StatusNote } from "../endpoint.ts";
import { FAILURE_RESPONSES } from "./failures.ts";
import { documented, TEXT, type Json } from "./schemas.ts";

const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

/** Every answer of one endpoint, by status. */
export function responsesOf(endpoint: Endpoint): Json {
  const { bare = {}, events, statuses = {} } = endpoint;
  const { 200: plain, ...others } = statuses;
  const usual = events ? "Events" : bare.only ? "The content" : "The envelope";
  const declared = Object.entries(others).map(([status, note]) => [
    status,
    response(note, hasBody(status) ? contentOf(endpoint, []) : undefined),
  ]);
  const first = { ...plain, summary: `${plain?.summary ?? usual}; or the sign-in envelope.` };
  return {
    "200": response(first, contentOf(endpoint, [SIGN_IN]), bare),
    ...(Object.fromEntries(declared) as Json),
    ...(bare.redirect !== undefined && { "302": redirect(bare.redirect) }),
    ...FAILURE_RESPONSES,
  };
}

const SIGN_IN: Json = { $ref: "#/components/schemas/SignIn" };

const WARNINGS: Json = {
  type: "array",
  items: TEXT,
  description: "What was accepted and ignored, or does not do what was meant; only when there is any.",
};

/** The bodies of a success, by media type, with other values of JSON. */
function contentOf({ bare = {}, events, output }: Endpoint, also: readonly Json[]): Json {
  const json = [
    ...(bare.only || events ? [] : [envelopeOf(output)]),
    ...also,
    ...(bare.json ? [documented(bare.json)] : []),
  ];
  const described: Record<string, Json> = {};
  for (const [type, note] of Object.entries(bare.content ?? {})) {
    if (type === JSON_TYPE) json.push(note.schema ? documented(note.schema) : {});
    else described[type] = { schema: schemaOf(type, note) };
  }
  if (bare.page !== undefined) described["text/html"] = { schema: { ...TEXT, description: bare.page } };
  if (events) described[EVENTS_TYPE] = { schema: itemsOf("Events, each with data as JSON.", output) };
  const inJson = json.length > 0 ? { [JSON_TYPE]: { schema: anyOf(json) } } : {};
  // Generated clients read an answer as the first of its types.
  return bare.only || bare.usual || events ? { ...described, ...inJson } : { ...inJson, ...described };
}

function anyOf(schemas: readonly Json[]): Json {
  const [only, other] = schemas;
  return only !== undefined && other === undefined ? only : { anyOf: schemas };
}

function envelopeOf(output: Endpoint["output"]): Json {
  return {
    type: "object",
    required: ["status", "message"],
    properties: {
      status: { const: "ok", type: "string" },
      message: documented(output),
      meta: { type: "object" },
      warnings: WARNINGS,
    },
  };
}

function schemaOf(type: string, { summary, schema }: ContentNote): Json {
  if (type === LINES_TYPE && schema) return itemsOf(`${summary}, as lines of JSON.`, schema);
  if (type === ANY_TYPE || !/^text\//.test(type)) return { type: "string", format: "binary", description: summary };
  return { ...TEXT, description: summary };
}

/** A stream of texts; `x-item-schema` is the schema of each, or of the data of each event. */
function itemsOf(description: string, item: Endpoint["output"]): Json {
  return { ...TEXT, description, "x-item-schema": documented(item) };
}

function redirect(summary: string): Json {
  return { description: summary, headers: { Location: { description: "The address", schema: TEXT } } };
}

const WARNINGS_HEADER: Json = {
  "X-Odp-Warnings": { description: "Warnings of an answer without envelope: a JSON list of texts.", schema: TEXT },
};

function response({ summary, headers }: StatusNote, content: Json | undefined, bare?: Endpoint["bare"]): Json {
  const named = Object.entries(headers ?? {}).map(([name, description]) => [name, { description, schema: TEXT }]);
  const hasBare = bare?.content !== undefined || bare?.json !== undefined;
  const all = { ...(Object.fromEntries(named) as Json), ...(hasBare && WARNINGS_HEADER) };
  return { description: summary, ...(Object.keys(all).length > 0 && { headers: all }), ...(content && { content }) };
}

function hasBody(status: string): boolean {
  return status !== "204" && !status.startsWith("3");
}
