import type { TSchema } from "typebox";
import { SESSION_COOKIE } from "./answer.ts";
import { SESSION_FIELD } from "./body.ts";
import type { Endpoint } from "./endpoint.ts";
import { membersOf, pathParameters } from "./input.ts";

export interface OpenApiOptions {
  readonly version: string;
}

type Json = Readonly<Record<string, unknown>>;

const BODY_TYPES = {
  form: "application/x-www-form-urlencoded",
  json: "application/json",
  multipart: "multipart/form-data",
  text: "text/plain",
} as const;

/** The whole interface as an OpenAPI 3.1 document. Pure: the same endpoints give the same document. */
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
      version: options.version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    security: [{ cookie: [] }, { session: [] }, { basic: [] }],
    paths,
    components: { securitySchemes: SECURITY, schemas: { Failure: FAILURE, Problem: PROBLEM } },
  };
}

const SECURITY: Json = {
  cookie: { type: "apiKey", in: "cookie", name: SESSION_COOKIE },
  session: { type: "apiKey", in: "query", name: SESSION_FIELD },
  basic: { type: "http", scheme: "basic", description: "User name: <company>.<username>" },
};

const FAILURE: Json = {
  type: "object",
  required: ["status", "message", "error", "code"],
  properties: {
    status: { const: "error" },
    message: { type: "string" },
    error: { type: "string" },
    code: { type: "string" },
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
    responses: responses(endpoint.output),
  };
}

function parametersAndBody(endpoint: Endpoint): Json {
  const inPath = pathParameters(endpoint.path);
  const members = Object.entries(membersOf(endpoint.input));
  const required = new Set((endpoint.input as { readonly required?: readonly string[] }).required);
  const hasBody = endpoint.body !== undefined && endpoint.method !== "GET";
  const inQuery = members.filter(([name]) => !inPath.includes(name) && (!hasBody || endpoint.body === "text"));
  const inBody = members.filter(([name]) => !inPath.includes(name));
  const known = new Map(members);
  const parameters = [
    ...inPath.map((name) => ({
      name: name === "*" ? "path" : name,
      in: "path",
      required: true,
      schema: known.get(name) ?? { type: "string" },
    })),
    ...inQuery.map(([name, schema]) => ({ name, in: "query", required: required.has(name), schema })),
  ];
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(hasBody && { requestBody: requestBody(endpoint, inBody, required) }),
  };
}

function requestBody(
  endpoint: Endpoint,
  members: readonly (readonly [string, TSchema])[],
  required: ReadonlySet<string>,
): Json {
  const type = BODY_TYPES[endpoint.body ?? "form"];
  if (endpoint.body === "text") return { content: { [type]: { schema: { type: "string" } } } };
  const schema = {
    type: "object",
    properties: Object.fromEntries(members),
    required: members.map(([name]) => name).filter((name) => required.has(name)),
  };
  return { content: { [type]: { schema } } };
}

function responses(message: TSchema): Json {
  const envelope = {
    type: "object",
    required: ["status", "message"],
    properties: { status: { enum: ["ok", "signin"] }, message, meta: { type: "object" } },
  };
  return {
    "200": {
      description: "The envelope; status `signin` when nobody is signed in.",
      content: { "application/json": { schema: envelope } },
    },
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
