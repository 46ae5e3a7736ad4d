import { credentials, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import { PeerLinkClient } from "../../proto/gen/peer/v1/peer.ts";
import { prove } from "../../test/helpers/runs/evidence.ts";
import { BareAgent, openTestHosts, pemOf, type TestHosts, type TestIdentity } from "../../test/helpers/hosts/hosts.ts";
import { eventually } from "../../test/helpers/programs/programs.ts";
import { encodeJson } from "../store/format.ts";
import { testPrincipal } from "../../test/helpers/time/runtime.ts";

const DEADLINE_MS = 30_000;

let a: TestHosts;
let b: TestHosts;
const open: BareAgent[] = [];
beforeAll(async () => {
  a = await openTestHosts();
  b = await openTestHosts({ beside: a });
  await eventually(
    "each knows the other",
    DEADLINE_MS,
    () => (a.membership.others().length === 1 && b.membership.others().length === 1) || undefined,
  );
});
afterAll(async () => {
  for (const agent of open) agent.close();
  await b[Symbol.asyncDispose]();
  await a[Symbol.asyncDispose]();
});

async function connect(
  at: TestHosts,
  host: string,
  more: { readonly identity?: TestIdentity; readonly streamId?: string } = {},
) {
  const identity = more.identity ?? (await a.enrol(host));
  const agent = new BareAgent(at.agentPort, identity);
  open.push(agent);
  const welcome = await agent.hello({ streamId: more.streamId ?? `stream-${host}` });
  const epochOf = (controller: TestHosts) =>
    controller.hosts.isOnline("matrix", host).then((isSo) => isSo || undefined);
  for (const controller of [a, b])
    await eventually(`${host} is known to be online`, DEADLINE_MS, () => epochOf(controller));
  return { agent, identity, welcome };
}

function entry(sequence: number, body: Entry["body"]): Entry {
  return { sequence, timeMs: Date.now(), traceparent: "", body };
}

const output = (sequence: number, commandId: string, offset: number, text: string) =>
  entry(sequence, { $case: "output", value: { commandId, stderr: false, offset, data: Buffer.from(text) } });
const result = (sequence: number, commandId: string, state = "ok") =>
  entry(sequence, { $case: "result", value: { commandId, state, code: 0, message: "", startedMs: 1, endedMs: 2 } });

function dispatch(
  at: TestHosts,
  host: string,
  commandId: string,
  more: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
) {
  const heard = { text: "" };
  const onOutput = ({ data }: { readonly data: Uint8Array }) => void (heard.text += Buffer.from(data).toString());
  const options = { commandId, timeoutMs: 30_000, onOutput, ...more };
  return { heard, outcome: at.hosts.dispatch(at.principal(), host, { kind: "exec", line: "true" }, options) };
}

describe("a command called at one controller for an agent of another", () => {
  it("is sent in the session there, and its output and result come back", async () => {
    const { agent } = await connect(a, "far-1");
    const { heard, outcome } = dispatch(b, "far-1", "far-command-1");
    const command = await agent.next("command");
    expect(command).toMatchObject({ id: "far-command-1", body: { $case: "exec", value: { line: "true" } } });
    agent.send({
      $case: "batch",
      value: {
        streamId: "stream-far-1",
        entries: [output(1, command.id, 0, "hel"), output(2, command.id, 0, "hello"), result(3, command.id)],
      },
    });
    expect(await outcome).toMatchObject({ state: "ok", code: 0, host: "far-1" });
    expect(heard.text).toBe("hello");
  });

  it("goes where the session goes, and every byte of its output is heard once", async () => {
    const streamId = "stream-far-2";
    const { agent, identity } = await connect(a, "far-2", { streamId });
    const { heard, outcome } = dispatch(b, "far-2", "far-command-2");
    const { id } = await agent.next("command");
    agent.send({ $case: "batch", value: { streamId, entries: [output(1, id, 0, "one ")] } });
    await agent.next("acknowledge");
    agent.close();
    const here = await connect(b, "far-2", { identity, streamId });
    expect(await here.agent.next("command")).toMatchObject({ id });
    here.agent.send({ $case: "batch", value: { streamId, entries: [output(2, id, 4, "two ")] } });
    await here.agent.next("acknowledge");
    here.agent.close();
    const back = await connect(a, "far-2", { identity, streamId });
    expect(await back.agent.next("command")).toMatchObject({ id });
    back.agent.send({ $case: "batch", value: { streamId, entries: [output(3, id, 8, "three"), result(4, id)] } });
    expect(await outcome).toMatchObject({ state: "ok" });
    expect(heard.text).toBe("one two three");
  });

  it("is cancelled there", async () => {
    const { agent } = await connect(a, "far-3");
    const stop = new AbortController();
    const { outcome } = dispatch(b, "far-3", "far-command-3", { signal: stop.signal });
    await agent.next("command");
    stop.abort();
    expect(await agent.next("cancel")).toMatchObject({ commandId: "far-command-3" });
    agent.send({
      $case: "batch",
      value: { streamId: "stream-far-3", entries: [result(1, "far-command-3", "cancelled")] },
    });
    expect(await outcome).toMatchObject({ state: "cancelled" });
  });

  it("ends with the reason of an agent that refuses it", async () => {
    const { agent } = await connect(a, "far-4");
    const { outcome } = dispatch(b, "far-4", "far-command-4");
    await agent.next("command");
    agent.send({
      $case: "command",
      value: { commandId: "far-command-4", state: "refused", message: "limited: no room" },
    });
    expect(await outcome).toMatchObject({ state: "failed", message: "limited: no room" });
  });

  it("may have content that its deployment refers to, from the controller that holds the session", async () => {
    const { blobs } = await a.engine.tenant("matrix");
    const stored = await blobs.put([Buffer.from("echo far\n")], "test");
    const { agent } = await connect(a, "far-5");
    const files = [{ path: "run.sh", digest: stored.digest, size: stored.size, executable: true }];
    await expect(agent.fetch(stored.digest)).rejects.toThrow(/PERMISSION_DENIED/);
    const outcome = b.hosts.dispatch(
      b.principal(),
      "far-5",
      { kind: "deploy", name: "d", version: "1.0.0", files },
      { commandId: "far-command-5", timeoutMs: 30_000 },
    );
    await agent.next("command");
    expect((await agent.fetch(stored.digest)).toString()).toBe("echo far\n");
    agent.send({ $case: "batch", value: { streamId: "stream-far-5", entries: [result(1, "far-command-5")] } });
    expect(await outcome).toMatchObject({ state: "ok" });
  });

  it("is unreachable when the controller that is said to hold the session is not there", async () => {
    const { kv } = await a.engine.system();
    await a.hosts.save(a.principal(), { host: "orphan" });
    await kv.put(
      "sessions/matrix/orphan",
      encodeJson({ controller: "gone", nonce: "n", agentVersion: "", sinceMs: 0 }),
    );
    await eventually(
      "the session is known",
      DEADLINE_MS,
      async () => (await b.hosts.isOnline("matrix", "orphan")) || undefined,
    );
    const { outcome } = dispatch(b, "orphan", "orphan-1", { timeoutMs: 300 });
    expect(await outcome).toMatchObject({ state: "unreachable", message: expect.stringMatching(/nothing was sent/) });
  });
});

describe("a command repeated under its id", () => {
  it("ends at once by what is stored, wherever it is called", async () => {
    const { agent } = await connect(a, "again");
    const first = dispatch(a, "again", "again-command");
    await agent.next("command");
    agent.send({
      $case: "batch",
      value: {
        streamId: "stream-again",
        entries: [output(1, "again-command", 0, "whole"), result(2, "again-command")],
      },
    });
    await first.outcome;
    for (const controller of [a, b]) {
      const { heard, outcome } = dispatch(controller, "again", "again-command");
      expect(await outcome).toMatchObject({ state: "ok", startedMs: 1, endedMs: 2 });
      expect(heard.text).toBe("whole");
    }
  });
});

describe("controllers", () => {
  it("are named to agents, their own first, and agents hear of changes", async () => {
    const { agent, welcome } = await connect(b, "informed");
    expect(welcome.controllers).toEqual([`localhost:${b.agentPort}`, `localhost:${a.agentPort}`]);
    const third = await openTestHosts({ beside: a });
    const three = [`localhost:${b.agentPort}`, `localhost:${a.agentPort}`, `localhost:${third.agentPort}`];
    let told: readonly string[] = [];
    while (told.length < 3) told = (await agent.next("controllers")).addresses;
    expect(told).toEqual(three);
    await third[Symbol.asyncDispose]();
    while (told.length > 2) told = (await agent.next("controllers")).addresses;
    expect(told).toEqual(welcome.controllers);
  });

  it("tell agents of each other that their desired state changed", async () => {
    const { agent } = await connect(a, "desired");
    await agent.next("desired");
    a.desired.set("matrix/desired", { revision: 9, policies: [] });
    b.hosts.refresh("matrix", ["desired"]);
    expect(await agent.next("desired")).toMatchObject({ revision: 9 });
  });

  it("bring what is published on one to receivers on all, once, and to nobody else", async () => {
    const heard: string[] = [];
    const stop = b.notifications.subscribe(testPrincipal(), { subject: "s" }, ({ msg }) => heard.push(`b ${msg}`));
    a.notifications.subscribe(testPrincipal(), { subject: "s" }, ({ msg }) => heard.push(`a ${msg}`));
    b.notifications.subscribe(testPrincipal("administrator", "second"), { subject: "s" }, ({ msg }) =>
      heard.push(`second ${msg}`),
    );
    await eventually("a knows what b wants", DEADLINE_MS, () => a.notifications.wanted("second", "s") || undefined);
    const publish = (at: TestHosts, msg: string) =>
      at.notifications.publish("matrix", {
        keyspace: "/matrix",
        source: "",
        subject: "s",
        title: "",
        reply: "",
        msg,
        about: undefined,
      });
    publish(a, "1");
    publish(b, "2");
    await eventually("both are heard", DEADLINE_MS, () => heard.length >= 4 || undefined);
    stop();
    // A duplicate event would arrive before the one that is published later.
    publish(b, "fence");
    await eventually("what is published later is heard", DEADLINE_MS, () => heard.includes("a fence") || undefined);
    expect(heard.filter((one) => !one.includes("fence")).sort()).toEqual(["a 1", "a 2", "b 1", "b 2"]);
  });

  it("bring along what decides who is told, so that receivers are looked at where they are", async () => {
    const about = {
      permission: "objects:read",
      class: "/matrix/box",
      id: "box:1",
      values: { owner: "bob" },
      vtimeMs: 1,
      ctimeMs: 1,
      told: [],
    } as const;
    const heard: unknown[] = [];
    b.notifications.subscribe(testPrincipal(), { subject: "objects" }, (notification) =>
      heard.push(notification.about),
    );
    await eventually(
      "a knows what b wants",
      DEADLINE_MS,
      () => a.notifications.wanted("matrix", "objects") || undefined,
    );
    const frame = { keyspace: "/matrix", source: "", subject: "objects", title: "", reply: "", msg: "" };
    a.notifications.publish("matrix", { ...frame, about });
    a.notifications.publish("matrix", { ...frame, about: undefined });
    await eventually("both are heard", DEADLINE_MS, () => heard.length === 2 || undefined);
    expect(heard).toEqual([about, undefined]);
  });

  it("take a certificate of a controller for peers alone, and one of an agent for agents alone", async () => {
    const identity = await a.enrol("curious");
    const agentAtPeers = await linkError(a.agentPort, identity);
    expect(agentAtPeers).toMatchObject({ code: 7, details: "The certificate is not one of a controller." });
    const { certificate, key } = await b.hosts.peers.certificate();
    const der = certificate.replace(/-----[A-Z ]+-----|\s/g, "");
    const stranger = new BareAgent(a.agentPort, { keyPem: key, answer: { ...identity.answer, certificate: der } });
    open.push(stranger);
    expect(await stranger.next("refused")).toMatchObject({
      code: "denied",
      message: "The certificate is not one of an agent.",
    });
    prove("peer-certificates", { refused: ["an agent at the peer service", "a controller at the agent service"] });
  });
});

/** Returns the error that ends a peer stream opened with an agent's certificate. */
function linkError(port: number, { answer, keyPem }: TestIdentity): Promise<ServiceError> {
  const authorities = Buffer.from(answer.authorities.map(pemOf).join(""));
  const client = new PeerLinkClient(
    `localhost:${port}`,
    credentials.createSsl(authorities, Buffer.from(keyPem), Buffer.from(pemOf(answer.certificate))),
  );
  const call = client.link();
  call.write({ request: { $case: "hello", value: { protocol: 1 } } });
  call.resume();
  return new Promise((resolve) => {
    call.on("error", (error) => {
      client.close();
      resolve(error as ServiceError);
    });
  });
}
