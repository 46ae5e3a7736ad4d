import type { TSchema } from "typebox";
import { SESSION_COOKIE } from "../answer/answer.ts";
import { ALL_FAILED, SOME_FAILED } from "../answer/failed.ts";
import { SESSION_FIELD } from "../body/body.ts";
import { EVENTS_TYPE } from "../sockets/events.ts";
import type { Endpoint, StatusNote } from "./endpoint.ts";
import { membersOf, pathParameters } from "../input/input.ts";
import type { SocketEndpoint } from "../sockets/socket.ts";

export interface OpenApiOptions {
  readonly version: string;
  readonly sockets?: readonly SocketEndpoint[];
}

type Json = Readonly<Record<string, unknown>>;

const BODY_TYPES = {
  form: "application/x-www-form-urlencoded",
  json: "application/json",
  multipart: "multipart/form-data",
  text: "text/plain",
  raw: "text/plain",
} as const;

/** The whole interface as an OpenAPI 3.1 document. The same endpoints always give the same document. */
export function openApiDocument(endpoints: readonly Endpoint[], options: OpenApiOptions): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const endpoint of [...endpoints].sort(byPathAndMethod)) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{path}");
    (paths[path] ??= {})[endpoint.method.toLowerCase()] = operation(endpoint);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Operations data platform",
      description: DESCRIPTION,
      version: options.version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The controller that serves this document." }],
    security: [{ cookie: [] }, { session: [] }, { basic: [] }],
    paths,
    "x-websockets": (options.sockets ?? []).map(socketEntry),
    components: { securitySchemes: SECURITY, schemas: { Failure: FAILURE, Problem: PROBLEM } },
  };
}

const DESCRIPTION =
  "Answers are an envelope {status, message}. Clients that name application/problem+json in Accept get failures as RFC 9457 problems with precise HTTP codes. " +
  "A failure that says when to come again has Retry-After. " +
  "An answer without an envelope has its warnings, a JSON list of texts, in the header X-Odp-Warnings. " +
  "A call by cookie that changes or runs something proves its origin by Origin, Referer, Sec-Fetch-Site or the header X-Requested-With. " +
  "WebSockets, which OpenAPI does not describe, are listed in x-websockets.";

function socketEntry({ path, permission, summary, input }: SocketEndpoint): Json {
  return { path: path.replace(/:(\w+)/g, "{$1}"), summary, "x-permission": permission, input };
}

const SECURITY: Json = {
  cookie: { type: "apiKey", in: "cookie", name: SESSION_COOKIE },
  session: { type: "apiKey", in: "query", name: SESSION_FIELD },
  basic: { type: "http", scheme: "basic", description: "User name: <company>.<username>" },
};

const FILE_PART: Json = {
  type: "string",
  contentMediaType: "application/octet-stream",
  description: "Files are parts with a file name, under any name.",
};

const TEXT: Json = { type: "string" };

const DETAILS: Json = {
  type: "object",
  description:
    "Facts about the failure; absent if there are none. Line and column count from 1, a column in UTF-16 units. file: the script of the place. unknown: a name that is not known. nearest: the known name that was probably meant. fields: members of the input. limit: the name of a bound.",
  properties: {
    line: { type: "integer" },
    column: { type: "integer" },
    file: TEXT,
    unknown: TEXT,
    nearest: TEXT,
    fields: { type: "array", items: TEXT },
    limit: TEXT,
  },
};

const FAILURE: Json = {
  type: "object",
  required: ["status", "message", "error", "code"],
  properties: {
    status: { const: "error" },
    message: { type: "string" },
    error: { type: "string" },
    code: { type: "string" },
    details: DETAILS,
  },
};

const PROBLEM: Json = {
  type: "object",
  required: ["type", "title", "status", "detail", "code", "traceparent"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    code: { type: "string" },
    details: DETAILS,
    traceparent: { type: "string" },
  },
};

function byPathAndMethod(one: Endpoint, other: Endpoint): number {
  const [left, right] = [`${one.path} ${one.method}`, `${other.path} ${other.method}`];
  return left < right ? -1 : left > right ? 1 : 0;
}

function operation(endpoint: Endpoint): Json {
  const isPublic = endpoint.permission === "public";
  return {
    summary: endpoint.summary,
    tags: [isPublic ? "public" : endpoint.permission.split(":", 1)[0]],
    ...(isPublic ? { security: [] } : { "x-permission": endpoint.permission }),
    ...parametersAndBody(endpoint),
    responses: responses(endpoint),
  };
}

function parametersAndBody(endpoint: Endpoint): Json {
  const inPath = pathParameters(endpoint.path);
  const members = Object.entries(membersOf(endpoint.input));
  const required = new Set((endpoint.input as { readonly required?: readonly string[] }).required);
  const hasBody = endpoint.body !== undefined && endpoint.method !== "GET";
  const inQuery = members.filter(
    ([name]) => !inPath.includes(name) && (!hasBody || endpoint.body === "text" || endpoint.body === "raw"),
  );
  const inBody = members.filter(([name]) => !inPath.includes(name));
  const known = new Map(members);
  const parameters = [
    ...inPath.map((name) => ({
      name: name === "*" ? "path" : name,
      in: "path",
      required: true,
      schema: known.get(name) ?? { type: "string" },
    })),
    ...(endpoint.events ? [LAST_EVENT_ID] : []),
    ...inQuery.map(([name, schema]) => ({ name, in: "query", required: required.has(name), schema })),
  ];
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(hasBody && { requestBody: requestBody(endpoint, inBody, required) }),
  };
}

const LAST_EVENT_ID: Json = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  schema: { type: "string" },
  description: "The last event that the client has.",
};

function requestBody(
  endpoint: Endpoint,
  members: readonly (readonly [string, TSchema])[],
  required: ReadonlySet<string>,
): Json {
  const type = BODY_TYPES[endpoint.body ?? "form"];
  const schema = {
    type: "object",
    properties: Object.fromEntries(members),
    required: members.map(([name]) => name).filter((name) => required.has(name)),
  };
  if (endpoint.body === "raw") return { content: { [type]: { schema: TEXT }, [BODY_TYPES.json]: { schema: {} } } };
  // A text may also come as a member of a form or of JSON.
  if (endpoint.body === "text")
    return {
      content: { [type]: { schema: { type: "string" } }, [BODY_TYPES.form]: { schema }, [BODY_TYPES.json]: { schema } },
    };
  return {
    content: {
      [type]: { schema: endpoint.body === "multipart" ? { ...schema, additionalProperties: FILE_PART } : schema },
    },
  };
}

const WARNINGS: Json = {
  type: "array",
  items: { type: "string" },
  description: "What was accepted and ignored, or does not do what was meant; only when there is any.",
};

const FAILED: Json = {
  type: "object",
  required: ["count", "of"],
  properties: { count: { type: "integer" }, of: { type: "integer" } },
  description: "How many parts of the call failed, and of how many; only when any did. warnings name them.",
};

/** Statuses of clients that accept application/problem+json. */
const FAILED_STATUSES: Endpoint["statuses"] = {
  [SOME_FAILED]: { summary: "The envelope when some parts failed, for clients that accept application/problem+json" },
  [ALL_FAILED]: { summary: "The envelope when all parts failed, for clients that accept application/problem+json" },
};

function responses({ output, events, statuses: own = {}, failsInPart }: Endpoint): Json {
  const status = { enum: ["ok", "signin"] };
  const statuses = failsInPart ? { ...own, ...FAILED_STATUSES } : own;
  const failed = failsInPart && { failed: FAILED };
  const properties = { status, message: output, meta: { type: "object" }, warnings: WARNINGS, ...failed };
  const envelope = {
    ...(events && { [EVENTS_TYPE]: { schema: output } }),
    "application/json": { schema: { type: "object", required: ["status", "message"], properties } },
  };
  const { 200: plain, ...others } = statuses;
  const usual = events ? "Events, each with data as JSON" : "The envelope";
  const summary = `${plain?.summary ?? usual}; status \`signin\` when nobody is signed in.`;
  const contentOf = (code: string): Json | undefined => (hasBody(code) ? envelope : undefined);
  const declared = Object.entries(others).map(([code, note]) => [code, response(note, contentOf(code))]);
  return {
    "200": response({ ...plain, summary }, envelope),
    ...(Object.fromEntries(declared) as Json),
    "500": {
      description: "Any failure.",
      content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
    },
    default: {
      description: "A failure, for clients that accept application/problem+json.",
      content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
    },
  };
}

function response({ summary, headers }: StatusNote, content: Json | undefined): Json {
  const described = Object.entries(headers ?? {}).map(([name, description]) => [name, { description, schema: TEXT }]);
  const named = described.length > 0 && { headers: Object.fromEntries(described) as Json };
  return { description: summary, ...named, ...(content && { content }) };
}

function hasBody(status: string): boolean {
  return status !== "204" && !status.startsWith("3");
}
