import { SESSION_COOKIE } from "../answer/answer.ts";
import { SESSION_FIELD } from "../body/body.ts";
import { FAILURE_COMPONENTS, FAILURE_SCHEMAS } from "./document/failures.ts";
import { documentedPath, operationId } from "./document/names.ts";
import { PROBES } from "./document/probes.ts";
import { requestOf } from "./document/requests.ts";
import { responsesOf } from "./document/responses.ts";
import type { Json } from "./document/schemas.ts";
import { socketEntry } from "./document/sockets.ts";
import { tagOf, tagsOf } from "./document/tags.ts";
import type { Endpoint } from "./endpoint.ts";
import type { SocketEndpoint } from "../sockets/socket.ts";

export interface OpenApiOptions {
  readonly version: string;
  readonly sockets?: readonly SocketEndpoint[];
}

/** The whole interface as an OpenAPI 3.1 document. The same endpoints always give the same document. */
export function openApiDocument(endpoints: readonly Endpoint[], { version, sockets = [] }: OpenApiOptions): Json {
  const paths: Record<string, Record<string, Json>> = {};
  const add = (path: string, name: string, entry: Json): void => void ((paths[path] ??= {})[name] = entry);
  for (const endpoint of [...endpoints].sort(byPathAndMethod))
    add(documentedPath(endpoint.path), endpoint.method.toLowerCase(), operation(endpoint));
  for (const [path, probe] of Object.entries(PROBES)) add(path, "get", probe);
  for (const socket of sockets) add(documentedPath(socket.path), "x-websocket", socketEntry(socket));
  return {
    openapi: "3.1.0",
    info: {
      title: "Operations data platform",
      description: DESCRIPTION,
      version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The controller that serves this document." }],
    security: SIGNED_IN,
    tags: tagsOf(endpoints),
    paths,
    "x-websockets": sockets.map(listedSocket),
    components: { securitySchemes: SECURITY, responses: FAILURE_COMPONENTS, schemas: FAILURE_SCHEMAS },
  };
}

const DESCRIPTION =
  "Answers are an envelope {status, message}; operations that answer files, pages, lines or events say so. " +
  "Failures have the status 500 and a code. Clients that name application/problem+json in Accept get them as RFC 9457 problems with precise HTTP codes. " +
  "A failure that says when to come again has Retry-After. " +
  "A request that is no HTTP is answered by 400, 408 or 431 before any operation sees it. " +
  "An answer without an envelope has its warnings, a JSON list of texts, in the header X-Odp-Warnings. " +
  "A call by cookie that changes or runs something proves its origin by Origin, Referer, Sec-Fetch-Site or the header X-Requested-With. " +
  "x-name-space of a pattern is the part of it in place of which the name space of the tenant stands, such as matrix. " +
  "Members of a body may also be sent in the query; a body in any form is accepted. " +
  "WebSockets, which OpenAPI does not describe, are x-websocket of their path. The list x-websockets is for older clients.";

const SECURITY: Json = {
  cookie: { type: "apiKey", in: "cookie", name: SESSION_COOKIE },
  session: { type: "apiKey", in: "query", name: SESSION_FIELD },
  basic: { type: "http", scheme: "basic", description: "User name: <company>.<username>" },
  token: { type: "http", scheme: "bearer", description: "A token of POST /user/tokens" },
};

const SIGNED_IN: readonly Json[] = Object.keys(SECURITY).map((name) => ({ [name]: [] }));

/** As older clients read it. */
function listedSocket({ path, permission, summary, input }: SocketEndpoint): Json {
  return { path: documentedPath(path), summary, "x-permission": permission, input };
}

function byPathAndMethod(one: Endpoint, other: Endpoint): number {
  const [left, right] = [`${one.path} ${one.method}`, `${other.path} ${other.method}`];
  return left < right ? -1 : left > right ? 1 : 0;
}

function operation(endpoint: Endpoint): Json {
  const isPublic = endpoint.permission === "public";
  return {
    operationId: operationId(endpoint.method, endpoint.path),
    summary: endpoint.summary,
    tags: [tagOf(endpoint)],
    ...(isPublic && !endpoint.signedIn && { security: [] }),
    ...(!isPublic && { "x-permission": endpoint.permission }),
    ...requestOf(endpoint),
    responses: responsesOf(endpoint),
  };
}
