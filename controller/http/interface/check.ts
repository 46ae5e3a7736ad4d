import { membersOf, pathParameters } from "../input/input.ts";
import type { Endpoint } from "./endpoint.ts";
import type { SocketEndpoint } from "../sockets/socket.ts";

const PERMISSION = /^[a-z][a-z-]*:(read|write|run)$/;

/**
 * Call it before anything listens. Throws if an endpoint breaks a rule of the interface: for example, it lacks a
 * permission, has the method and path of another one, or has an input that is no object.
 */
export function checkInterface(endpoints: readonly Endpoint[], sockets: readonly SocketEndpoint[]): void {
  const seen = new Set<string>();
  for (const endpoint of endpoints) {
    checkOne(`${endpoint.method} ${endpoint.path}`, endpoint, endpoint.permission === "public");
    if (endpoint.events && (endpoint.method !== "GET" || endpoint.permission === "public")) {
      throw new Error(`${endpoint.method} ${endpoint.path} answers events, but is no GET for those who are signed in.`);
    }
    checkStatuses(`${endpoint.method} ${endpoint.path}`, endpoint.statuses ?? {});
    claim(seen, `${endpoint.method} ${shapeOf(endpoint.path)}`);
  }
  for (const socket of sockets) {
    checkOne(`WEBSOCKET ${socket.path}`, socket, false);
    claim(seen, `WEBSOCKET ${shapeOf(socket.path)}`);
  }
}

function checkOne(name: string, endpoint: Pick<Endpoint, "path" | "permission" | "input">, isPublic: boolean): void {
  // Checked at run time, because a list of routes may contain values that the compiler has not checked.
  const { path, permission, input } = endpoint as {
    readonly path: string;
    readonly permission?: string;
    readonly input?: { readonly type?: string };
  };
  if (!isPublic && !PERMISSION.test(permission ?? ""))
    throw new Error(`${name} declares no permission of the form area:verb.`);
  if (input?.type !== "object") throw new Error(`${name} has an input schema that is no object.`);
  const members = membersOf(endpoint.input);
  const missing = pathParameters(path).filter((parameter) => !Object.hasOwn(members, parameter));
  if (missing.length > 0) throw new Error(`${name} does not name ${missing.join(", ")} in its input schema.`);
}

/** Headers that `http/` sets itself, or that could make one answer look like two. */
const OWN_HEADERS = new Set([
  "connection",
  "content-disposition",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "date",
  "keep-alive",
  "set-cookie",
  "te",
  "traceparent",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "vary",
]);
const HEADER_NAME = /^[A-Za-z0-9-]+$/;

function checkStatuses(name: string, statuses: NonNullable<Endpoint["statuses"]>): void {
  for (const [status, { headers = {} }] of Object.entries(statuses)) {
    if (!/^(2|3)\d\d$/.test(status)) throw new Error(`${name} declares the status ${status}; failures are thrown.`);
    for (const header of Object.keys(headers)) {
      const isItsOwn = HEADER_NAME.test(header) && !OWN_HEADERS.has(header.toLowerCase());
      if (!isItsOwn) throw new Error(`${name} declares the header ${header}, which is not its own.`);
    }
  }
}

function claim(seen: Set<string>, shape: string): void {
  if (seen.has(shape)) throw new Error(`Two endpoints answer ${shape}.`);
  seen.add(shape);
}

/**
 * The path without the names of its parameters and without a slash at its end. These do not decide which endpoint
 * answers.
 */
function shapeOf(path: string): string {
  return path.replace(/:\w+/g, ":").replace(/(.)\/$/, "$1");
}
