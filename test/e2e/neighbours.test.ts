import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import type { EnrolAnswer } from "../../common/agent/enrolment.ts";
import { mapLimited } from "../../common/concurrency.ts";
import {
  ENTRIES_WAITING_MAX_BYTES,
  SESSION_KEEPALIVE_MS,
  SESSION_MESSAGE_MAX_BYTES,
  TENANT_CALLS_IN_FLIGHT_MAX,
  TENANT_CALLS_WAITING_MAX,
} from "../../common/limits.ts";
import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { BareAgent, enrolRequest, helloOf, pemOf, type TestIdentity } from "../helpers/hosts/hosts.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { Installation, type Envelope } from "./installation.ts";
import { CALL_EVERY_MS, highest, level } from "./levels.ts";
import { everyRunOnce } from "./scheduled-runs.ts";

/**
 * A client that behaves badly is refused or cut off. Meanwhile all calls of others succeed, and a well-behaved agent
 * loses neither its session nor a run. `npm run bench -- neighbours` measures how much slower they get.
 */

const TICK_CLASS = "/matrix/neighbours/tick";
const RULE = "/matrix/rules/neighbours/tick";
const MIB = 1024 * 1024;
const FLOOD_AGENTS = 200;
const GREEDY_AGENTS = 12;
const GREEDY_ENTRIES = 12;
const IDLE_SOCKETS = 200;
/** First bytes of a connection. TLS answers the first with nothing, the others with an alert. */
const BEGINNINGS = [
  [5, 9],
  [0x16, 3, 1, 0xff],
  [0x81, 0, 1],
];
/** A connection without valid frames is closed after two keepalives. */
const CLOSE_MAX_MS = 3 * SESSION_KEEPALIVE_MS;
/** Allowed memory growth of a controller besides waiting data: garbage not collected yet, pages of the store. */
const GROWTH_MAX_BYTES = 768 * MIB;

let odp: Installation;
let agentPort: number;
let halfRequests: readonly Socket[];
let callsAnswered = 0;

beforeAll(async () => {
  odp = await Installation.start({ ODP_STORE: "embedded" });
  await odp.controller.kill("SIGTERM");
  await odp.startController({ ODP_TENANT: "other" });
  await odp.mql(`create class ${TICK_CLASS} (text varchar, n int, index(n)) with kind='record'`);
  await odp.ok(
    "PUT",
    "/mxobject/rule",
    new URLSearchParams({ key: RULE, value: `--class=${TICK_CLASS}\n--parser=csv\n--fields=n,text\n` }),
  );
  await odp.enrol("good");
  await odp.ok(
    "POST",
    "/monitoring/policy",
    JSON.stringify({
      name: "tick",
      rule: RULE,
      command: "echo 1,tick",
      ctype: 1,
      interval: 1,
      unit: "second",
      hosts: ["good"],
    }),
  );
  await eventually(
    "the good agent's policy runs",
    60_000,
    async () => (await odp.mql(`select n from ${TICK_CLASS} limit 1`)).length > 0 || undefined,
  );
  agentPort = (await identityOf("bad")).answer.agentPort;
  halfRequests = await Promise.all(Array.from({ length: IDLE_SOCKETS }, halfRequest));
});

afterAll(async () => {
  for (const socket of halfRequests) socket.destroy();
  await odp.stop();
});

/** Makes calls of others all the while; each of them must succeed. */
async function besideOthers<T>(misbehave: () => Promise<T>): Promise<T> {
  let over = false;
  const others = (async () => {
    while (!over) {
      await odp.mql(`select n, text from ${TICK_CLASS} where n = 1 limit 20`);
      callsAnswered += 1;
      await setTimeout(CALL_EVERY_MS);
    }
  })();
  others.catch(() => undefined);
  try {
    return await misbehave();
  } finally {
    over = true;
    await others;
  }
}

async function identityOf(host: string): Promise<TestIdentity> {
  await odp.ok("POST", "/host", JSON.stringify({ host, isagent: 1 }));
  const { token } = (await odp.ok("POST", "/agent/token", JSON.stringify({ host }))) as { token: string };
  const keyPem = createKeyPem();
  const answer = await odp.ok("POST", "/agent/enrol", JSON.stringify(enrolRequest(token, createRequest(keyPem, host))));
  return { answer: answer as EnrolAnswer, keyPem };
}

async function halfRequest(): Promise<Socket> {
  const socket = connectTcp(odp.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.resume();
  socket.write("POST /mxobject/mql HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  return socket;
}

/** Waits until the socket closes in any way. It reads all data, because a socket with unread bytes never closes. */
async function closed(socket: Socket): Promise<void> {
  socket.resume();
  await eventually("the controller closes a connection", CLOSE_MAX_MS, () => socket.closed || undefined);
}

function rubbish(round: number): Buffer {
  const bytes = randomBytes(4_096);
  bytes.set(BEGINNINGS[round % BEGINNINGS.length] ?? []);
  return bytes;
}

function outputs(count: number): Entry[] {
  const data = randomBytes(MIB);
  return Array.from({ length: count }, (_, index) => ({
    sequence: index + 1,
    timeMs: Date.now(),
    traceparent: "",
    body: { $case: "output" as const, value: { commandId: "nobody-asked", stderr: false, offset: index * MIB, data } },
  }));
}

test("rubbish on the agent port, without a certificate and with one", async () => {
  const identity = await identityOf("bad");
  const certified = {
    key: identity.keyPem,
    cert: pemOf(identity.answer.certificate),
    ca: identity.answer.authorities.map(pemOf),
    servername: "localhost",
  };
  await besideOthers(async () => {
    for (let round = 0; round < 20; round += 1) {
      const bare = connectTcp(agentPort, "127.0.0.1");
      bare.on("error", () => undefined);
      bare.end(rubbish(round));
      const unknown = connectTls({
        port: agentPort,
        host: "127.0.0.1",
        rejectUnauthorized: false,
        ALPNProtocols: ["h2"],
      });
      unknown.on("error", () => undefined);
      const known = connectTls({
        port: agentPort,
        host: "127.0.0.1",
        ...certified,
        rejectUnauthorized: false,
        ALPNProtocols: ["h2"],
      });
      known.on("error", () => undefined);
      known.once("secureConnect", () =>
        known.write(
          round % 2 === 0
            ? randomBytes(65_536)
            : `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${randomBytes(4_096).toString("latin1")}`,
        ),
      );
      await Promise.all([bare, unknown, known].map(closed));
    }
  });
});

test("frames that no agent sends", async () => {
  const identity = await identityOf("bad");
  const tiny = (sequence: number): Entry => ({
    sequence,
    timeMs: 0,
    traceparent: "",
    body: { $case: "gap", value: { policy: "", source: "", reason: "", count: 0, unit: "", fromMs: 0, toMs: 0 } },
  });
  const hello = helloOf();
  const bad: readonly (readonly [what: string, frames: Parameters<BareAgent["send"]>[0][]])[] = [
    ["a batch before the hello", [{ $case: "batch", value: { streamId: "x", entries: [] } }]],
    [
      "two hellos",
      [
        { $case: "hello", value: hello },
        { $case: "hello", value: hello },
      ],
    ],
    [
      "a batch of another stream",
      [
        { $case: "hello", value: hello },
        { $case: "batch", value: { streamId: "another-stream", entries: [tiny(1)] } },
      ],
    ],
    [
      "entries far beyond the window",
      [
        { $case: "hello", value: hello },
        {
          $case: "batch",
          value: { streamId: hello.streamId, entries: Array.from({ length: 100_000 }, (_, index) => tiny(index + 1)) },
        },
      ],
    ],
    [
      "a message beyond the bound",
      [
        { $case: "hello", value: hello },
        { $case: "heartbeat", value: { timeMs: 0, values: { x: "x".repeat(SESSION_MESSAGE_MAX_BYTES) } } },
      ],
    ],
    [
      "a request that is none",
      [
        { $case: "hello", value: hello },
        { $case: "renew", value: { csr: randomBytes(100_000) } },
      ],
    ],
  ];
  await besideOthers(async () => {
    for (const [what, frames] of bad) {
      const agent = new BareAgent(agentPort, identity);
      for (const frame of frames) agent.send(frame);
      await agent.end();
      const refused = agent.frames.find((frame) => frame.$case === "refused");
      expect(refused?.value ?? agent.error?.message, what).toBeTruthy();
      agent.close();
    }
  });
});

test("an agent that never reads is cut off", async () => {
  const agent = new BareAgent(agentPort, await identityOf("deaf"), { reads: false });
  agent.send({ $case: "hello", value: helloOf() });
  const online = async (): Promise<boolean> =>
    ((await odp.ok("GET", "/host?status=true")) as { host: string }[]).some(({ host }) => host === "deaf");
  await eventually("it is there", 20_000, async () => (await online()) || undefined);
  await besideOthers(async () => {
    for (let beat = 0; beat < 50_000; beat += 1)
      agent.send({ $case: "heartbeat", value: { timeMs: beat, values: {} } });
    await eventually("it is cut off", 180_000, async () => !(await online()) || undefined);
  });
  agent.close();
});

test("agents that send without measure: what waits stays within its bound, and all of it arrives", async () => {
  const identities = await mapLimited(
    Array.from({ length: GREEDY_AGENTS }, (_, index) => `greedy-${index}`),
    4,
    identityOf,
  );
  const before = await level(odp, "process_resident_memory_bytes");
  let over = false;
  const [waiting = 0, resident = 0] = await besideOthers(async () => {
    const waits = highest(odp, "odp_agent_entries_waiting_bytes", () => over);
    const resides = highest(odp, "process_resident_memory_bytes", () => over);
    await Promise.all(identities.map(sendGreedily)).finally(() => (over = true));
    return [await waits, await resides];
  });
  expect(waiting).toBeGreaterThan(0);
  expect(waiting).toBeLessThanOrEqual(ENTRIES_WAITING_MAX_BYTES);
  expect(resident - before).toBeLessThan(GROWTH_MAX_BYTES);
});

async function sendGreedily(identity: TestIdentity): Promise<void> {
  const agent = new BareAgent(agentPort, identity);
  const hello = helloOf();
  agent.send({ $case: "hello", value: hello });
  await agent.next("welcome");
  for (const entry of outputs(GREEDY_ENTRIES))
    agent.send({ $case: "batch", value: { streamId: hello.streamId, entries: [entry] } });
  let through = 0;
  while (through < GREEDY_ENTRIES) through = (await agent.next("acknowledge")).throughSequence;
  agent.close();
}

test(`${FLOOD_AGENTS} agents that connect in one moment are all taken`, async () => {
  const identities = await mapLimited(
    Array.from({ length: FLOOD_AGENTS }, (_, index) => `flood-${index}`),
    8,
    identityOf,
  );
  const agents = await besideOthers(() => Promise.all(identities.map(connected)));
  expect(agents.every((agent) => !agent.ended)).toBe(true);
  for (const agent of agents) agent.close();
  await eventually(
    "they are gone again",
    30_000,
    async () => (await level(odp, "odp_agent_sessions")) === 1 || undefined,
  );
});

/** Tries again, as an agent does, when it is refused because too many connect at once. */
async function connected(identity: TestIdentity): Promise<BareAgent> {
  for (;;) {
    const agent = new BareAgent(agentPort, identity);
    try {
      await agent.hello();
      return agent;
    } catch (error) {
      agent.close();
      if (!String(error).includes("limited")) throw error;
    }
  }
}

test("a tenant that calls without measure is told so, and keeps no other from working", async () => {
  const session = await odp.signIn("other");
  const calls = TENANT_CALLS_IN_FLIGHT_MAX + TENANT_CALLS_WAITING_MAX + 400;
  const answers = await besideOthers(() => Promise.all(Array.from({ length: calls }, () => callAs(session))));
  const count = (code: string): number => answers.filter((answer) => (answer.code ?? answer.status) === code).length;
  expect(answers.find((answer) => answer.status !== "ok" && answer.code !== "limited")).toBeUndefined();
  expect(count("ok")).toBeGreaterThanOrEqual(TENANT_CALLS_IN_FLIGHT_MAX);
});

async function callAs(session: string): Promise<Envelope> {
  const body = new URLSearchParams({ mql: "select host from /other/system/hostinfo" });
  const response = await fetch(`${odp.url}/mxobject/mql?sessionid=${session}`, {
    method: "POST",
    body,
    signal: AbortSignal.timeout(60_000),
  });
  return (await response.json()) as Envelope;
}

test("clients that never read their answers hold nothing up", async () => {
  await odp.mql("create class /matrix/neighbours/large (text varchar)");
  const text = "x".repeat(4_000);
  for (let round = 0; round < 20; round += 1) {
    await odp.mql(
      `begin ${Array.from({ length: 100 }, () => `insert into /matrix/neighbours/large text='${text}';`).join(" ")} end`,
    );
  }
  const session = await odp.session();
  const before = await level(odp, "process_resident_memory_bytes");
  const deaf = await Promise.all(Array.from({ length: 50 }, () => deafCall(session)));
  await besideOthers(async () => {
    for (let round = 0; round < 50; round += 1) await odp.ok("GET", "/host?status=true");
  });
  expect((await level(odp, "process_resident_memory_bytes")) - before).toBeLessThan(GROWTH_MAX_BYTES);
  for (const socket of deaf) socket.destroy();
});

/** Requests eight megabytes and does not read them. */
async function deafCall(session: string): Promise<Socket> {
  const socket = connectTcp(odp.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.pause();
  const body = `mql=${encodeURIComponent("select text from /matrix/neighbours/large limit -1")}`;
  socket.write(
    `POST /mxobject/mql?sessionid=${session} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

test("requests that never end are ended by the controller", async () => {
  await eventually(
    "all of them are closed",
    90_000,
    () => halfRequests.every((socket) => socket.destroyed || socket.readableEnded) || undefined,
  );
});

test("every run of the good agent's policy is on record", async () => {
  const { runs, skipped } = await everyRunOnce(odp, "tick");
  expect(odp.controller.output).not.toMatch(/fault of ours|"level":(50|60)/);
  prove("bad-neighbours", {
    agents: FLOOD_AGENTS,
    "calls of others, all answered well": callsAnswered,
    "runs of the good agent": runs,
    "skipped and counted": skipped,
  });
});
