import { ALL_FAILED, SOME_FAILED } from "../../answer/failed.ts";
import { ANY_TYPE } from "../../answer/forms.ts";
import { EVENTS_TYPE } from "../../sockets/events.ts";
import type { ContentNote, Endpoint, StatusNote } from "../endpoint.ts";
import { failureResponses } from "./failures.ts";
import { isConditional } from "./requests.ts";
import { documented, TEXT, type Json } from "./schemas.ts";

const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

/** Every answer of one endpoint, by status. */
export function responsesOf(endpoint: Endpoint): Json {
  const { bare = {}, events, statuses: own = {}, failsInPart } = endpoint;
  const statuses = failsInPart ? { ...own, ...FAILED_STATUSES } : own;
  const { 200: plain, ...others } = statuses;
  const isRanged = Object.hasOwn(own, 206);
  const usual = events ? "Events" : bare.only ? "The content" : "The envelope";
  const declared = Object.entries(others).map(([status, note]) => [
    status,
    response(note, hasBody(status) ? contentOf(endpoint, []) : undefined),
  ]);
  const first = {
    summary: `${plain?.summary ?? usual}; or the sign-in envelope.`,
    headers: {
      ...plain?.headers,
      ...(endpoint.revised && { ETag: "The revision of the definition; absent if there is none any more" }),
    },
  };
  return {
    "200": response(first, contentOf(endpoint, [SIGN_IN]), bare),
    ...(Object.fromEntries(declared) as Json),
    ...(bare.redirect !== undefined && { "302": redirect(bare.redirect) }),
    ...failureResponses({ isConditional: isConditional(endpoint) || isRanged, isRanged }),
  };
}

const SIGN_IN: Json = { $ref: "#/components/schemas/SignIn" };

const WARNINGS: Json = {
  type: "array",
  items: TEXT,
  description: "What was accepted and ignored, or does not do what was meant; only when there is any.",
};

/** The bodies of a success, by media type, with other values of JSON. */
function contentOf(endpoint: Endpoint, also: readonly Json[]): Json {
  const { bare = {}, events, output } = endpoint;
  const json = [
    ...(bare.only || events ? [] : [envelopeOf(endpoint)]),
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

const FAILED: Json = {
  type: "object",
  required: ["count", "of"],
  properties: {
    count: { type: "integer", description: "Parts that failed" },
    of: { type: "integer", description: "All parts" },
  },
  description: "How many parts of the call failed, and of how many; only when any did. warnings name them.",
};

/** Statuses of clients that accept application/problem+json. */
const FAILED_STATUSES: Endpoint["statuses"] = {
  [SOME_FAILED]: { summary: "The envelope when some parts failed, for clients that accept application/problem+json" },
  [ALL_FAILED]: { summary: "The envelope when all parts failed, for clients that accept application/problem+json" },
};

function envelopeOf({ output, failsInPart }: Endpoint): Json {
  return {
    type: "object",
    required: ["status", "message"],
    properties: {
      status: { const: "ok", type: "string", description: "The call succeeded" },
      message: documented(output),
      meta: { type: "object", description: "Facts about the message, such as the next page; absent: none" },
      warnings: WARNINGS,
      ...(failsInPart && { failed: FAILED }),
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
