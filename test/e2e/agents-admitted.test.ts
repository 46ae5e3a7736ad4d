import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import type { EnrolAnswer } from "../../common/agent/enrolment.ts";
import { BareAgent, enrolRequest, type TestIdentity } from "../helpers/hosts/hosts.ts";
import { eventually, Program } from "../helpers/programs/programs.ts";
import { Installation, type Envelope } from "./installation.ts";

/** Only a host with a fresh token of its own becomes an agent, and only its own certificate gets in. */

const TWO_HOURS_MS = 7_200_000;

/** The controller's clock goes two hours ahead with every SIGUSR2. */
const CLOCK = `const real = Date.now; let ahead = 0; process.on("SIGUSR2", () => { ahead += ${TWO_HOURS_MS}; }); Date.now = () => real() + ahead;`;

let odp: Installation;

beforeAll(async () => {
  odp = await Installation.start({
    ODP_STORE: "embedded",
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CLOCK)}`,
  });
  await odp.ok("POST", "/host", JSON.stringify({ host: "h1", isagent: 1 }));
});

afterAll(async () => {
  await odp.stop();
});

test("a used token is refused to others, and tells its owner the same again", async () => {
  const token = await newToken("once");
  const first = createRequest(createKeyPem(), "once");
  const answer = await enrol(odp, token, first);
  expect(answer.status).toBe("ok");
  expect((await enrol(odp, token, first)).status).toBe("ok");
  expect(await enrol(odp, token, createRequest(createKeyPem(), "once"))).toMatchObject({
    status: "error",
    code: expect.stringMatching(/denied|conflict/),
  });
});

test("an agent with a used token says so and ends", async () => {
  const token = await newToken("late-comer");
  await enrol(odp, token, createRequest(createKeyPem(), "late-comer"));
  const environment = {
    ODP_AGENT_CONTROLLER: odp.url,
    ODP_AGENT_TOKEN: token,
    ODP_AGENT_NAME: "late-comer",
    ODP_AGENT_DIR: join(odp.folder, "late-comer"),
  };
  const agent = new Program("agent", "dist/agent.js", environment);
  await eventually("the agent has ended", 30_000, () => !agent.running || undefined);
  expect(agent.output).toMatch(/refused the enrolment.*token/);
  expect(agent.output).not.toContain(token);
});

test("a token that nobody made, or that was changed, is refused", async () => {
  const token = await newToken("guessed");
  const request = createRequest(createKeyPem(), "guessed");
  for (const forged of [flipped(token, 10), flipped(token, token.length - 5)]) {
    expect(await enrol(odp, forged, request)).toMatchObject({
      status: "error",
      code: expect.stringMatching(/denied|invalid|not_found/),
    });
  }
  for (const body of [
    "",
    "{}",
    '{"id":"x","csr":"x","proof":"x"}',
    JSON.stringify({ ...enrolRequest(token, request), csr: Buffer.from("no request").toString("base64") }),
  ]) {
    expect(await post(odp, "/agent/enrol", body)).toMatchObject({
      status: "error",
      code: expect.stringMatching(/denied|invalid/),
    });
  }
  expect((await enrol(odp, token, request)).status).toBe("ok");
});

test("a certificate names the token's host, whatever its request says", async () => {
  const answer = await enrol(odp, await newToken("asked"), createRequest(createKeyPem(), "h1"));
  if (answer.status === "ok") expect(answer.message).toMatchObject({ host: "asked" });
  else expect(answer).toMatchObject({ code: expect.stringMatching(/denied|invalid/) });
});

test("a certificate of another installation and tenant, or none that was signed, does not get in", async () => {
  const other = await Installation.start({ ODP_STORE: "embedded", ODP_TENANT: "other" });
  try {
    const own = await identityOf(odp, "web-1");
    const basic = `Basic ${Buffer.from("other.admin:correct horse battery").toString("base64")}`;
    const made = await post(other, "/agent/token", JSON.stringify({ host: "web-1" }), { authorization: basic });
    const foreign = await identityOf(other, "web-1", (made.message as { token: string }).token);
    expect(foreign.answer.tenant).toBe("other");
    for (const stranger of [
      { ...foreign, answer: { ...foreign.answer, authorities: own.answer.authorities } },
      { ...own, keyPem: createKeyPem() },
    ]) {
      await expectNoWelcome(own.answer.agentPort, stranger);
    }
    expect(await odp.ok("GET", "/host?status=true")).toEqual([]);
    const agent = new BareAgent(own.answer.agentPort, own);
    try {
      await agent.hello();
    } finally {
      agent.close();
    }
  } finally {
    await other.stop();
  }
});

test("a token that has expired is refused", async () => {
  const token = await newToken("late");
  process.kill(odp.controller.pid, "SIGUSR2");
  await eventually("the controller's clock is ahead", 10_000, async () => {
    const { expires } = (await odp.ok("POST", "/agent/token", JSON.stringify({ host: "late" }))) as {
      expires: number;
    };
    return expires > Date.now() + TWO_HOURS_MS || undefined;
  });
  expect(await enrol(odp, token, createRequest(createKeyPem(), "late"))).toMatchObject({
    status: "error",
    code: expect.stringMatching(/denied|invalid|not_found/),
    message: expect.stringMatching(/expired|token/),
  });
});

test("no fault of the controller's own was met", () => {
  expect(odp.controller.output).not.toMatch(/fault of ours|"level":(50|60)/);
});

function flipped(text: string, at: number): string {
  return `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
}

async function newToken(host: string): Promise<string> {
  await odp.ok("POST", "/host", JSON.stringify({ host, isagent: 1 }));
  return ((await odp.ok("POST", "/agent/token", JSON.stringify({ host, minutes: 5 }))) as { token: string }).token;
}

async function post(
  at: Installation,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<Envelope> {
  const response = await fetch(`${at.url}${path}`, {
    method: "POST",
    body,
    headers,
    signal: AbortSignal.timeout(30_000),
  });
  return (await response.json()) as Envelope;
}

function enrol(at: Installation, token: string, request: Uint8Array): Promise<Envelope> {
  return post(at, "/agent/enrol", JSON.stringify(enrolRequest(token, request)));
}

async function identityOf(at: Installation, host: string, token?: string): Promise<TestIdentity> {
  const keyPem = createKeyPem();
  const { message } = await enrol(at, token ?? (await newToken(host)), createRequest(keyPem, host));
  return { answer: message as EnrolAnswer, keyPem };
}

async function expectNoWelcome(port: number, identity: TestIdentity): Promise<void> {
  let agent: BareAgent;
  try {
    agent = new BareAgent(port, identity);
  } catch {
    // A key that does not belong to the certificate cannot even be used to connect.
    return;
  }
  try {
    await expect(agent.hello()).rejects.toThrow(/ended without welcome/);
  } finally {
    agent.close();
  }
}
