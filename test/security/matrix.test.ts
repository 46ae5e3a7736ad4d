import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import type { SocketEndpoint } from "../../controller/http/sockets/socket.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { credentialsOf, join, nameOf, neighbourOf, type Call, type Credentials } from "./people.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Users that may call each endpoint, event stream and WebSocket (`WS`). The results are compared with the table in
 * `matrix.txt`, which is reviewed like code. `npx vitest run --project whole test/security/matrix.test.ts -u` updates
 * it.
 */

/** Required input. Without it the call would fail before the service checks the rights. */
const INPUTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "PUT /companys": { name: "matrix", title: "Matrix" },
  "POST /user/tokens": { name: "own", scopes: ["users:read"] },
  "POST /companys": { name: "third", ospace: "/third", fullname: "", title: "", password: "" },
  "POST /mxobject/mql": { mql: "create class if not exists /matrix/vault/below (code varchar)" },
  "POST /mxobject/schema/class": { class: "/matrix/vault/below", fields: [{ name: "code", ftype: "varchar" }] },
  "POST /admin/users/new": { parent: "/", username: "newcomer", otype: "usr", passwd: "a quite long password" },
};

/** Names of existing tenants, so that a refusal does not come from an unknown tenant. */
const NAMES: Readonly<Record<string, string>> = {
  "/companys/:name": "matrix",
  "/companys/:name/restore": "matrix",
  "/license/info/:name": "matrix",
};

let world: World;
let people: readonly (readonly [role: string, credentials: Credentials])[];

beforeAll(async () => {
  world = await openWorld();
  people = [
    ["nobody", {}],
    // Only a member of the group that contains every user.
    ["newcomer", await join(world, "newcomer")],
    ["reader", await join(world, "reader", "/viewers")],
    ["operator", await join(world, "operator", "/operators")],
    ["author", await join(world, "author", "/authors")],
    ["administrator", credentialsOf("admin")],
    ["token", await tokenOf(world)],
    ["neighbour", await neighbourOf(world)],
  ];
});
afterAll(() => world[Symbol.asyncDispose]());

test("every endpoint answers those, and only those, whom the table says", { timeout: 240_000 }, async () => {
  const lines = [
    line(
      "",
      "permission",
      people.map(([role]) => role),
    ),
  ];
  const { endpoints, sockets } = world.assembly;
  for (const endpoint of [...endpoints].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))) {
    const answers: string[] = [];
    for (const [, credentials] of people) answers.push(await answered(endpoint, credentials));
    lines.push(line(nameOf(endpoint), endpoint.permission, answers));
  }
  const address = (await world.app.listen({ host: "127.0.0.1", port: 0 })).replace("http:", "ws:");
  for (const socket of [...sockets].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const answers: string[] = [];
    for (const [, credentials] of people) answers.push(await opened(address + urlOf(socket), credentials));
    lines.push(line(`WS ${socket.path}`, socket.permission, answers));
  }
  await expect(lines.join("")).toMatchFileSnapshot("matrix.txt");
});

function line(name: string, permission: string, answers: readonly string[]): string {
  return `${[name.padEnd(52), permission.padEnd(20), ...answers.map((one) => one.padEnd(13))].join(" ").trimEnd()}\n`;
}

/** `may`: the call passed the checks of rights, with any result. For a stream only the head is awaited. */
async function answered(endpoint: Endpoint, headers: Credentials): Promise<string> {
  const gone = new AbortController();
  const response = await world.app.inject({ ...callOf(endpoint), headers, payloadAsStream: true, signal: gone.signal });
  const body = response.stream();
  // An aborted stream fails, and its error has no reader.
  body.on("error", () => {});
  const isJson = String(response.headers["content-type"]).startsWith("application/json");
  const answer = isJson ? meaningOf(await textOf(body)) : "may";
  gone.abort();
  return answer;
}

async function opened(url: string, headers: Credentials): Promise<string> {
  const socket = new WebSocket(url, { headers });
  socket.on("error", () => {});
  const opens = once(socket, "open").then(() => "may");
  const refused = once(socket, "unexpected-response").then(([, response]) => textOf(response as IncomingMessage));
  const answer = await Promise.race([opens, refused.then(meaningOf)]);
  socket.terminate();
  return answer;
}

function meaningOf(json: string): string {
  const { status, code } = JSON.parse(json) as { readonly status?: string; readonly code?: string };
  if (status === "signin") return "signs in";
  return code === "denied" ? "-" : "may";
}

/** The path with its required input. */
function urlOf({ path, input }: SocketEndpoint): string {
  const { required = [] } = input as { readonly required?: readonly string[] };
  const missing = required.filter((member) => !path.includes(`:${member}`));
  return `${path.replaceAll(/:\w+/g, "vault")}?${missing.map((member) => `${member}=vault`).join("&")}`;
}

/** A token of the administrator for reading objects and running jobs. */
async function tokenOf({ assembly: { users } }: World): Promise<Credentials> {
  const scopes = ["objects:read", "jobs:run"];
  const token = await users.signIns.makeToken(
    { ...testPrincipal(), user: "admin" },
    { name: "matrix", scopes, days: 1, remote: "test" },
  );
  return { authorization: `Bearer ${token}` };
}

function callOf(endpoint: Endpoint): Call {
  const { method, path } = endpoint;
  const url = path.replaceAll(/:\w+|\*/g, NAMES[path] ?? "vault");
  const input = INPUTS[nameOf(endpoint)];
  return method === "GET" || method === "DELETE" ? { method, url } : { method, url, payload: input ?? {} };
}
