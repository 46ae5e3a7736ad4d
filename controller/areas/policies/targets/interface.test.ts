import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorld, type World } from "../../../../test/security/world.ts";

/** Targets of policies through the HTTP interface of a whole controller, without agents. */

let world: World;
let session: string;
beforeAll(async () => {
  world = await openWorld();
  session = await world.signIn();
  await call("PUT", "/mxobject/rule", {
    key: "/matrix/rules/r",
    value: "--class=/matrix/consolelog/rule\n--parser=text\n--fields=msg",
  });
});
afterAll(() => world[Symbol.asyncDispose]());

async function call(method: "GET" | "POST" | "PUT" | "PATCH", url: string, payload?: object) {
  const headers = { cookie: `matrixSession=${session}` };
  const answer = await world.app.inject({ method, url, headers, ...(payload && { payload }) });
  await world.assembly.policies.targets.changed.settled();
  return answer.json() as { readonly message: unknown; readonly warnings?: readonly string[] };
}

const NAMES = ["web-1", "web-2", "web-3", "web-4", "web-5", "web-6"];
const POLICY = { name: "load", rule: "/matrix/rules/r", command: "uptime", ctype: 1, interval: 5, unit: "minute" };
const ready = async () => (await world.app.inject({ url: "/readyz" })).json() as unknown;

test("a policy follows its targets; a large removal is shown, held and confirmed", async () => {
  expect(await call("POST", "/monitoring/policy", { ...POLICY, hosts: ["tag:web"] })).toMatchObject({
    message: { hosts: ["tag:web"], matched: [], status: "deployed" },
    warnings: ["tag:web matches no host now."],
  });
  for (const host of NAMES) await call("POST", "/host", { host, tags: ["web"] });
  expect(await call("GET", "/monitoring/policy/load")).toMatchObject({ message: { matched: NAMES } });
  expect(await ready()).toEqual({ status: "ok" });
  for (const host of NAMES) await call("POST", "/host", { host, tags: [] });
  expect(await call("GET", "/monitoring/policy/load")).toMatchObject({ message: { matched: ["web-5", "web-6"] } });
  expect(await ready()).toEqual({
    status: "ok",
    warnings: ["1 change of targets held: see GET /monitoring/targets."],
  });
  const held = await call("GET", "/monitoring/targets");
  const change = { policy: "load", username: "admin", matched: 2, hosts: ["web-5", "web-6"] };
  expect(held).toMatchObject({ message: [change] });
  const [{ id }] = held.message as readonly [{ readonly id: string }];
  expect(await call("POST", `/monitoring/targets/confirm?id=${id}`)).toMatchObject({ message: change });
  expect(await call("POST", `/monitoring/targets/confirm?id=${id}`)).toMatchObject({ code: "not_found" });
  expect(await call("GET", "/monitoring/policy/load")).toMatchObject({ message: { matched: [] } });
  expect(await ready()).toEqual({ status: "ok" });
});

test("another list of hosts replaces the targets, and a deployment adds to them", async () => {
  await call("POST", "/host", { host: "web-1", tags: ["web"] });
  await call("POST", "/host", { host: "db-1" });
  expect(await call("POST", "/monitoring/policy/deploy/load", { hosts: ["db-*", "none-*"] })).toMatchObject({
    message: { hosts: ["tag:web", "db-*", "none-*"], matched: ["web-1", "db-1"] },
    warnings: ["none-* matches no host now."],
  });
  const named = await call("PATCH", "/monitoring/policy/load", { hosts: ["db-1"] });
  expect(named.message).not.toHaveProperty("matched");
  await call("POST", "/host", { host: "web-9", tags: ["web"] });
  expect(await call("GET", "/monitoring/policy/load")).toMatchObject({ message: { hosts: ["db-1"] } });
  expect(await call("PATCH", "/monitoring/policy/load", { hosts: ["where:seen > 3"] })).toMatchObject({
    code: "invalid",
  });
});
