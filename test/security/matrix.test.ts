import { afterAll, beforeAll, expect, test } from "vitest";
import type { Endpoint } from "../../controller/http/endpoint.ts";
import { credentialsOf, join, nameOf, neighbourOf, type Call, type Credentials } from "./people.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Who may call what: every endpoint, asked by everyone, against the table in `matrix.txt`, which is reviewed like code.
 * `npx vitest run --project unit test/security/matrix.test.ts -u` writes it anew.
 */

/** Without these the call would fail at its input, before the service is asked whether it may be done. */
const INPUTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "PUT /companys": { name: "matrix", title: "Matrix" },
  "POST /user/tokens": { name: "own", scopes: ["users:read"] },
  "POST /companys": { name: "third", ospace: "/third", fullname: "", title: "", password: "" },
  "POST /mxobject/mql": { mql: "create class if not exists /matrix/vault/below (code varchar)" },
  "POST /mxobject/schema/class": { class: "/matrix/vault/below", fields: [{ name: "code", ftype: "varchar" }] },
  "POST /admin/users/new": { username: "newcomer", otype: "usr", passwd: "a quite long password" },
};

/** Tenants are named as they are, so that a refusal is not that there is no such tenant. */
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
    ["reader", await join(world, "reader", "/viewers")],
    ["operator", await join(world, "operator", "/operators")],
    ["author", await join(world, "author", "/authors")],
    ["administrator", credentialsOf("admin")],
    ["neighbour", await neighbourOf(world)],
  ];
});
afterAll(() => world[Symbol.asyncDispose]());

test("every endpoint answers those, and only those, whom the table says", { timeout: 120_000 }, async () => {
  const lines = [
    line(
      "",
      "permission",
      people.map(([role]) => role),
    ),
  ];
  // A stream of events has no end: `at-once.test.ts` of users and groups is about those.
  const endpoints = world.assembly.endpoints.filter(({ events }) => events !== true);
  for (const endpoint of endpoints.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))) {
    const answers: string[] = [];
    for (const [, credentials] of people) answers.push(await answered(endpoint, credentials));
    lines.push(line(nameOf(endpoint), endpoint.permission, answers));
  }
  await expect(lines.join("")).toMatchFileSnapshot("matrix.txt");
});

function line(name: string, permission: string, answers: readonly string[]): string {
  return `${[name.padEnd(52), permission.padEnd(20), ...answers.map((one) => one.padEnd(13))].join(" ").trimEnd()}\n`;
}

/** `may`: the call got past the rights, whatever it came to then. */
async function answered(endpoint: Endpoint, headers: Credentials): Promise<string> {
  const response = await world.app.inject({ ...callOf(endpoint), headers });
  if (!String(response.headers["content-type"]).startsWith("application/json")) return "may";
  const { status, code } = response.json<{ readonly status?: string; readonly code?: string }>();
  if (status === "signin") return "signs in";
  return code === "denied" ? "-" : "may";
}

function callOf(endpoint: Endpoint): Call {
  const { method, path } = endpoint;
  const url = path.replaceAll(/:\w+|\*/g, NAMES[path] ?? "vault");
  const input = INPUTS[nameOf(endpoint)];
  return method === "GET" || method === "DELETE" ? { method, url } : { method, url, payload: input ?? {} };
}
