import { stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EXTERNAL_AGENT_KEY_MAX_CHARS } from "../../../common/limits.ts";
import { openExtAgents, probeProgram, type ExtAgentWorld } from "../../../test/helpers/areas/extagent-world.ts";
import { startRealAgent, type RealAgent } from "../../../test/helpers/hosts/real-agent.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { multipart } from "../../../test/helpers/jobs/monitoring.ts";
import { callExamples, type CallExample } from "../../../test/helpers/runs/call-examples.ts";
import { zipOf } from "../../../test/helpers/runs/archives.ts";

/** The examples of `deploy/docs/external-agents.md`, run in the order of the page on a real agent, and other calls. */

let world: ExtAgentWorld;
let http: TestHttp;
let agent: RealAgent;
let session: string;
let zip: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  world = await openExtAgents();
  http = await openTestHttp({ engine: world.hosts.engine, endpoints: world.endpoints });
  session = await http.signIn("admin");
  agent = await startRealAgent(world.hosts, "web-1", world.folder);
  const files = Object.entries(probeProgram("one")).map(([name, content]) => ({ name, content, mode: 0o100755 }));
  zip = new Uint8Array(await zipOf(files));
});
afterAll(async () => {
  await agent.stop();
  await world[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const SHOWN_FOLDER = "/opt/probe";
const folder = () => join(world.folder, "opt probe");

const examples = () => callExamples("deploy/docs/external-agents.md");

async function answerOf({ url, more }: CallExample): Promise<unknown> {
  const [, json] = /^ -d '(.*)'$/.exec(more) ?? [];
  if (json !== undefined) {
    const payload = json.replace(SHOWN_FOLDER, folder());
    return http.call(session, { method: "POST", url, payload, headers: { "content-type": "application/json" } });
  }
  const fields = [...more.matchAll(/ -F (?:'([^']*)'|(\S+))/g)].map(([, quoted, plain = ""]) => quoted ?? plain);
  const parts = fields.map((field): readonly [string, string | { name: string; content: Uint8Array<ArrayBuffer> }] => {
    const [, name = "", value = ""] = /^(\w+)=(.*)$/s.exec(field) ?? [];
    return [name, value.startsWith("@") ? { name: value.slice(1), content: zip } : value];
  });
  return http.call(session, { method: "POST", url, ...(await multipart(parts)) });
}

/** The numbers of processes differ from run to run. */
function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll(/process \d+( \d+)*/g, "process"));
}

test("every example answers what the page shows, and the audit trail does not tell the key", async () => {
  const all = await examples();
  expect(all.length).toBe(9);
  for (const example of all)
    expect(comparable(await answerOf(example)), example.line).toMatchObject(
      comparable(JSON.parse(example.answer)) as object,
    );
  const trail = JSON.stringify(http.trail);
  expect(trail).toContain("/monitoring/extagent/deploy");
  expect(trail).not.toContain("secret-of-the-probe");
});

test("the command of a deployment may hand the key to the user of the agent", async () => {
  const [, , deploy] = await examples();
  expect(await answerOf(deploy as CallExample)).toMatchObject({ message: [{ state: "ok" }] });
  expect((await stat(join(folder(), "agent.key"))).mode & 0o777).toBe(0o640);
});

test("the members may come in any body, and under both names", async () => {
  const hosts = { hosts: ["web-1"] };
  const json = { payload: JSON.stringify(hosts), headers: { "content-type": "application/json" } };
  const form = { payload: "hosts=web-1", headers: { "content-type": "application/x-www-form-urlencoded" } };
  const ok = { status: "ok", message: [{ host: "web-1", state: "ok" }] };
  expect(await http.call(session, { method: "POST", url: "/monitoring/zabbix/stop", ...json })).toMatchObject(ok);
  expect(await http.call(session, { method: "POST", url: "/monitoring/zabbix/start", ...form })).toMatchObject(ok);
  expect(await http.call(session, { method: "POST", url: "/monitoring/extagent/stop", ...form })).toMatchObject(ok);
});

test("a call that says too little or too much is refused, and its error does not tell the key", async () => {
  const key = "long-key-of-the-probe".padEnd(EXTERNAL_AGENT_KEY_MAX_CHARS + 1, "x");
  const send = async (fields: readonly (readonly [string, string])[]) =>
    http.call(session, { method: "POST", url: "/monitoring/extagent/deploy", ...(await multipart(fields)) });
  const target = [
    ["hosts", "web-1"],
    ["name", "probe"],
  ] as const;
  const refused = [
    await send([...target, ["version", "1.0.0"], ["key", key]]),
    await send([...target, ["version", "newest"], ["key", "long-key-of-the-probe"]]),
    await send([...target, ["key", "long-key-of-the-probe"]]),
    await send([
      ["name", "probe"],
      ["version", "1.0.0"],
    ]),
  ];
  for (const answer of refused) expect(answer).toMatchObject({ status: "error", code: "invalid" });
  expect(JSON.stringify([refused, http.trail])).not.toContain("long-key-of-the-probe");
});

test("failed hosts decide the status for a client that asks for one", async () => {
  const { payload, headers } = await multipart([
    ["hosts", "web-1"],
    ["hosts", "nowhere"],
  ]);
  const answer = await http.app.inject({
    method: "POST",
    url: `/monitoring/extagent/stop?sessionid=${session}`,
    payload,
    headers: { ...headers, accept: "application/problem+json" },
  });
  expect([answer.statusCode, answer.json()]).toMatchObject([207, { failed: { count: 1, of: 2 } }]);
});
