import { membersOf, pathParameters } from "./input.ts";
import type { Endpoint } from "./endpoint.ts";
import type { SocketEndpoint } from "./socket.ts";

const PERMISSION = /^[a-z][a-z-]*:(read|write|run)$/;

/** Refuses, before anything listens, an interface in which an endpoint lacks a permission, cannot be told from another, or has no object as input. */
export function checkInterface(endpoints: readonly Endpoint[], sockets: readonly SocketEndpoint[]): void {
  const seen = new Set<string>();
  for (const endpoint of endpoints) {
    checkOne(`${endpoint.method} ${endpoint.path}`, endpoint, endpoint.permission === "public");
    claim(seen, `${endpoint.method} ${shapeOf(endpoint.path)}`);
  }
  for (const socket of sockets) {
    checkOne(`WEBSOCKET ${socket.path}`, socket, false);
    claim(seen, `WEBSOCKET ${shapeOf(socket.path)}`);
  }
}

function checkOne(name: string, endpoint: Pick<Endpoint, "path" | "permission" | "input">, isPublic: boolean): void {
  // Looked at as it comes: a list of routes may have been put together without the compiler's help.
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

function claim(seen: Set<string>, shape: string): void {
  if (seen.has(shape)) throw new Error(`Two endpoints answer ${shape}.`);
  seen.add(shape);
}

/** Names of parameters make no difference to who answers, nor does a slash at the end. */
function shapeOf(path: string): string {
  return path.replace(/:\w+/g, ":").replace(/(.)\/$/, "$1");
}
