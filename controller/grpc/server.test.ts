import { randomBytes } from "node:crypto";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import { AGENT_HELLOS_PER_MINUTE, SESSION_WINDOW_ENTRIES, SHUTDOWN_STREAMS_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import type { TestEngine } from "../../test/helpers/engines/engine.ts";
import type { Stores } from "../store/engine.ts";
import type { KvStore } from "../store/kv.ts";
import {
  BareAgent,
  helloOf,
  openTestHosts,
  pemOf,
  sha256,
  type TestHosts,
  type TestIdentity,
} from "../../test/helpers/hosts/hosts.ts";
import { testRuntime } from "../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../test/helpers/engines/wrapped-kv.ts";

let test: TestHosts;
const open: BareAgent[] = [];
beforeAll(async () => {
  test = await openTestHosts();
});
afterAll(async () => {
  for (const agent of open) agent.close();
  await test[Symbol.asyncDispose]();
});

function agentOf(identity: TestIdentity, port = test.agentPort): BareAgent {
  const agent = new BareAgent(port, identity);
  open.push(agent);
  return agent;
}

async function connected(host: string): Promise<{ agent: BareAgent; identity: TestIdentity; epoch: number }> {
  const identity = await test.enrol(host);
  const agent = agentOf(identity);
  const { epoch } = await agent.hello();
  return { agent, identity, epoch };
}

function entry(sequence: number, body: Entry["body"]): Entry {
  return { sequence, timeMs: Date.now(), traceparent: "", body };
}

const gap = (sequence: number) =>
  entry(sequence, {
    $case: "gap",
    value: { policy: "p", source: "", reason: "vanished", count: 1, unit: "runs", fromMs: 0, toMs: 0 },
  });

/** Resolves when the record has that status; the write follows the event. */
function presence(host: string, online: boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = test.hosts.onPresence((event) => {
      if (event.host !== host || event.online !== online) return;
      stop();
      resolve();
    });
  });
}

describe("agent sessions", () => {
  it("welcome an agent, send it what it is to do, and show its host online", async () => {
    test.desired.set("matrix/web-1", { revision: 7, policies: [{ name: "p", revision: 3, spec: "{}", conf: "" }] });
    const identity = await test.enrol("web-1");
    const agent = agentOf(identity);
    const facts = {
      host: "web-1",
      os: "Linux 6",
      arch: "x64",
      addresses: ["10.1.1.1"],
      pid: 42,
      values: { cpu_usedpercent: "3", port: "1" },
    };
    const came = presence("web-1", true);
    const welcome = await agent.hello({ facts });
    expect(welcome).toMatchObject({ acknowledged: 0, controllers: [`localhost:${test.agentPort}`] });
    expect(await agent.next("desired")).toMatchObject({ revision: 7, policies: [{ name: "p" }] });
    await came;
    const view = await test.hosts.get(test.principal(), "web-1");
    expect(view).toMatchObject({ status: "online" });
    test.desired.set("matrix/web-1", { revision: 8, policies: [] });
    test.hosts.refresh("matrix", ["web-1", "somebody-else"]);
    expect(await agent.next("desired")).toMatchObject({ revision: 8, policies: [] });
    agent.send({ $case: "heartbeat", value: { timeMs: 1, values: {} } });
    await agent.next("heartbeat");
    const later = await test.hosts.get(test.principal(), "web-1");
    expect(later).toMatchObject({ iplist: ["10.1.1.1"], config: { os: "Linux 6", pid: "42", cpu_usedpercent: "3" } });
    // An agent must not change where SSH connects to.
    expect(later.config).not.toHaveProperty("port");
    const went = presence("web-1", false);
    agent.close();
    await went;
    expect((await test.hosts.get(test.principal(), "web-1")).status).toBe("offline");
  });

  it("hand entries over in order and acknowledge what is safe, repeated ones once", async () => {
    const { agent } = await connected("entries");
    const streamId = "stream-entries-1";
    const again = agentOf(await test.enrol("entries-2"));
    await again.hello({ streamId });
    again.send({ $case: "batch", value: { streamId, entries: [gap(1), gap(2)] } });
    again.send({ $case: "batch", value: { streamId, entries: [gap(1), gap(2)] } });
    again.send({ $case: "batch", value: { streamId, entries: [gap(3)] } });
    let through = 0;
    while (through < 3) through = (await again.next("acknowledge")).throughSequence;
    const kept = test.sink.entries.filter(({ source }) => source.streamId === streamId);
    expect(kept.map((one) => one.entry.sequence)).toEqual([1, 2, 3]);
    expect(kept[0]?.source).toMatchObject({ tenant: "matrix", host: "entries-2" });
    again.send({ $case: "batch", value: { streamId: "another-stream", entries: [gap(4)] } });
    expect(await again.next("refused")).toMatchObject({ code: "invalid" });
    agent.close();
  });

  it("refuse an agent that sends far beyond its window", async () => {
    const agent = agentOf(await test.enrol("flood"));
    const streamId = "stream-flood-1";
    await agent.hello({ streamId });
    let release: () => void = () => undefined;
    test.sink.gate = new Promise((resolve) => (release = resolve));
    for (let from = 1; from <= 4 * SESSION_WINDOW_ENTRIES; from += SESSION_WINDOW_ENTRIES) {
      const entries = Array.from({ length: SESSION_WINDOW_ENTRIES }, (_, at) => gap(from + at));
      agent.send({ $case: "batch", value: { streamId, entries } });
    }
    expect(await agent.next("refused")).toMatchObject({ code: "limited" });
    release();
    test.sink.gate = Promise.resolve();
  });

  it("give a newer session of a host a greater epoch and end the older one", async () => {
    const first = await connected("twice");
    const second = agentOf(first.identity);
    const { epoch } = await second.hello();
    expect(epoch).toBeGreaterThan(first.epoch);
    expect(await first.agent.next("refused")).toMatchObject({
      code: "conflict",
      message: "A newer session of this host took over.",
    });
    expect(await test.hosts.isOnline("matrix", "twice")).toBe(true);
  });

  it("leave one of several that come at once for one host: the one with the greatest epoch", async () => {
    const identity = await test.enrol("crowd");
    const agents = Array.from({ length: 6 }, () => agentOf(identity));
    const epochs = await Promise.all(
      agents.map((agent) =>
        agent.hello().then(
          ({ epoch }) => epoch,
          () => 0,
        ),
      ),
    );
    const greatest = Math.max(...epochs);
    expect(greatest).toBeGreaterThan(0);
    await Promise.all(agents.filter((_, at) => epochs[at] !== greatest).map((agent) => agent.end()));
    const last = agents[epochs.indexOf(greatest)];
    expect(last?.ended).toBe(false);
    const { kv } = await test.engine.system();
    expect((await kv.get("sessions/matrix/crowd"))?.revision).toBe(greatest);
  });

  it("end when their entry in the store does", async () => {
    const { agent } = await connected("erased");
    const { kv } = await test.engine.system();
    await kv.delete(`sessionsof/${test.controllerId}/matrix/erased`);
    expect(await agent.next("refused")).toMatchObject({ code: "conflict" });
    await expect.poll(() => test.hosts.isOnline("matrix", "erased"), { timeout: 30_000 }).toBe(false);
  });

  it("renew a certificate in flight; the new one opens the next session", async () => {
    const { agent } = await connected("renewing");
    const keyPem = createKeyPem();
    agent.send({ $case: "renew", value: { csr: createRequest(keyPem, "some-other-name") } });
    const renewed = await agent.next("renewed");
    const next = agentOf({
      keyPem,
      answer: { ...(await test.enrol("unused")).answer, certificate: renewed.certificate.toString("base64") },
    });
    const { epoch } = await next.hello({
      facts: { host: "renewing", os: "", arch: "", addresses: [], pid: 1, values: {} },
    });
    expect(epoch).toBeGreaterThan(0);
  });

  it("serve content that something of the host refers to, and nothing else", async () => {
    const { blobs } = await test.engine.tenant("matrix");
    const mine = await blobs.put([Buffer.from("echo mine\n")], "test");
    const other = await blobs.put([Buffer.from("another host's secret\n")], "test");
    const file = { path: "run.sh", digest: mine.digest, size: mine.size, executable: true };
    test.desired.set("matrix/fetching", {
      revision: 1,
      policies: [
        { name: "p", revision: 1, spec: "{}", conf: "", depot: { name: "d", version: "1.0.0", files: [file] } },
      ],
    });
    const { agent } = await connected("fetching");
    await agent.next("desired");
    expect((await agent.fetch(mine.digest)).toString()).toBe("echo mine\n");
    await expect(agent.fetch(other.digest)).rejects.toThrow(/Nothing of fetching refers to this content/);
    await expect(agent.fetch(sha256("never stored"))).rejects.toThrow(/PERMISSION_DENIED/);
  });

  it("carry a command and its output; the result is kept before it is told", async () => {
    const { agent, epoch } = await connected("commands");
    const streamId = "stream-commands-1";
    const again = agentOf(await test.enrol("commands-2"));
    await again.hello({ streamId });
    const pieces: string[] = [];
    const outcome = test.hosts.dispatch(
      test.principal(),
      "commands-2",
      { kind: "exec", line: "echo hi", environment: { A: "b" } },
      {
        commandId: "01JC0000000000000000000001",
        timeoutMs: 10_000,
        onOutput: ({ data, stderr }) => pieces.push(`${stderr ? "!" : ""}${Buffer.from(data).toString()}`),
      },
    );
    const command = await again.next("command");
    expect(command).toMatchObject({
      id: "01JC0000000000000000000001",
      body: { $case: "exec", value: { line: "echo hi", environment: { A: "b" } } },
    });
    expect(command.epoch).toBeGreaterThan(epoch);
    const output = (sequence: number, offset: number, text: string, stderr = false) =>
      entry(sequence, { $case: "output", value: { commandId: command.id, stderr, offset, data: Buffer.from(text) } });
    again.send({
      $case: "batch",
      value: { streamId, entries: [output(1, 0, "hel"), output(2, 0, "hello"), output(3, 5, "oops", true)] },
    });
    const result = { commandId: command.id, state: "failed", code: 3, message: "", startedMs: 1, endedMs: 2 };
    again.send({ $case: "batch", value: { streamId, entries: [entry(4, { $case: "result", value: result })] } });
    const ended = await outcome;
    expect(ended).toMatchObject({ host: "commands-2", state: "failed", code: 3 });
    // The result of an agent that does not report the process id.
    expect(ended).not.toHaveProperty("pid");
    expect(pieces).toEqual(["hel", "lo", "!oops"]);
    const states: unknown[] = [];
    const request = { class: "/matrix/system/command", subtree: false, newestFirst: true };
    for await (const rows of test.objects.read(test.principal(), request))
      states.push(...rows.map((row) => row.values.state));
    expect(states).toEqual(["failed"]);
    agent.close();
  });

  it("send a command again under its id when the session was lost, and take its deadline for final", async () => {
    const first = await connected("flapping");
    const run = (commandId: string, timeoutMs: number) =>
      test.hosts.dispatch(test.principal(), "flapping", { kind: "exec", line: "true" }, { commandId, timeoutMs });
    const outcome = run("again-1", 20_000);
    await first.agent.next("command");
    const went = presence("flapping", false);
    first.agent.close();
    await went;
    const streamId = "stream-flapping-2";
    const second = agentOf(first.identity);
    await second.hello({ streamId });
    expect(await second.next("command")).toMatchObject({ id: "again-1" });
    second.send({
      $case: "batch",
      value: {
        streamId,
        entries: [
          entry(1, {
            $case: "result",
            value: { commandId: "again-1", state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 },
          }),
        ],
      },
    });
    expect(await outcome).toMatchObject({ state: "ok", code: 0 });
    const late = run("late-1", 50);
    await second.next("command");
    expect(await late).toMatchObject({ state: "timeout" });
    expect(await second.next("cancel")).toMatchObject({ commandId: "late-1" });
  });

  it("know at once that nobody is there", async () => {
    await test.hosts.save(test.principal(), { host: "silent" });
    const outcome = test.hosts.dispatch(
      test.principal(),
      "silent",
      { kind: "exec", line: "true" },
      { commandId: "x", timeoutMs: 1_000 },
    );
    expect(await outcome).toMatchObject({
      state: "unreachable",
      message: "The agent of silent is not connected, and its record has no credentials for SSH.",
    });
    const unknown = test.hosts.dispatch(
      test.principal("second"),
      "silent",
      { kind: "exec", line: "true" },
      { commandId: "x", timeoutMs: 1_000 },
    );
    await expect(unknown).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("the agent port refuses", () => {
  it("whoever has no certificate of our authority", async () => {
    const identity = await test.enrol("good");
    const authorities = Buffer.from(identity.answer.authorities.map(pemOf).join(""));
    const closed = await new Promise<string>((resolve) => {
      const socket = connect({ host: "localhost", port: test.agentPort, ca: authorities, ALPNProtocols: ["h2"] });
      socket.on("error", (error) => resolve(String(error)));
      socket.on("close", () => resolve("closed"));
      socket.resume();
    });
    expect(closed).toMatch(/certificate required|closed|ECONNRESET/i);
    const elsewhere = await openTestHosts();
    const stranger = await elsewhere.enrol("good");
    const agent = agentOf({ ...stranger, answer: { ...stranger.answer, authorities: identity.answer.authorities } });
    await expect(agent.hello()).rejects.toThrow();
    await elsewhere[Symbol.asyncDispose]();
  });

  /** Returns the negotiated TLS version, or the reason of the failure. */
  async function spoken(offered: object): Promise<string> {
    const identity = await test.enrol("modern");
    const ca = Buffer.from(identity.answer.authorities.map(pemOf).join(""));
    return new Promise((resolve) => {
      // At its usual level the client itself would not offer old and weak ciphers.
      const ciphers = "DEFAULT@SECLEVEL=0";
      const own = { key: identity.keyPem, cert: pemOf(identity.answer.certificate) };
      const to = { host: "localhost", port: test.agentPort, ca, ALPNProtocols: ["h2"] };
      const socket = connect({ ...to, ...own, ciphers, ...offered }, () => {
        resolve(String(socket.getProtocol()));
        socket.destroy();
      });
      socket.on("error", (error) => resolve(String(error)));
    });
  }

  it("TLS older than 1.2, and takes 1.3 where it is offered", async () => {
    expect(await spoken({ minVersion: "TLSv1", maxVersion: "TLSv1.1" })).toMatch(/alert protocol version/);
    expect(await spoken({ minVersion: "TLSv1", maxVersion: "TLSv1.3" })).toBe("TLSv1.3");
  });

  it("cipher suites without encryption, without proof of who answers and without forward secrecy", async () => {
    const offer = (ciphers: string) => spoken({ maxVersion: "TLSv1.2", ciphers: `${ciphers}@SECLEVEL=0` });
    expect(await offer("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384")).toBe("TLSv1.2");
    for (const weak of [
      "ECDHE-ECDSA-NULL-SHA:ECDHE-RSA-NULL-SHA:NULL-SHA256",
      "AECDH-AES256-SHA:ADH-AES256-GCM-SHA384",
      "AES256-GCM-SHA384:AES128-SHA",
    ])
      expect(await offer(weak), weak).toMatch(/handshake failure/);
  });

  it("a hello that names another host, another protocol or no stream", async () => {
    const identity = await test.enrol("honest");
    const facts = { host: "someone-else", os: "", arch: "", addresses: [], pid: 1, values: {} };
    for (const [hello, code] of [
      [{ facts }, "denied"],
      [{ protocol: 2 }, "unsupported"],
      [{ streamId: "" }, "invalid"],
    ] as const) {
      const agent = agentOf(identity);
      agent.send({ $case: "hello", value: helloOf(hello) });
      expect(await agent.next("refused")).toMatchObject({ code });
      await agent.end();
    }
  });

  it("anything before the hello, and a second one", async () => {
    const identity = await test.enrol("rude");
    const early = agentOf(identity);
    early.send({ $case: "heartbeat", value: { timeMs: 1, values: {} } });
    expect(await early.next("refused")).toMatchObject({
      code: "invalid",
      message: "The first frame of a session is a hello.",
    });
    const double = agentOf(identity);
    await double.hello();
    double.send({ $case: "hello", value: helloOf() });
    expect(await double.next("refused")).toMatchObject({ code: "invalid", message: "A session has one hello." });
  });

  it("the certificate of a host that was removed or enrolled again, and ends its session", async () => {
    const removed = await connected("removed");
    await test.hosts.remove(test.principal(), "removed");
    expect(await removed.agent.next("refused")).toMatchObject({ code: "denied" });
    const back = agentOf(removed.identity);
    back.send({ $case: "hello", value: helloOf() });
    expect(await back.next("refused")).toMatchObject({
      code: "denied",
      message: expect.stringMatching(/no longer good/),
    });
    await test.hosts.save(test.principal(), { host: "removed" });
    const revived = agentOf(removed.identity);
    revived.send({ $case: "hello", value: helloOf() });
    expect(await revived.next("refused")).toMatchObject({ code: "denied" });

    const old = await connected("moved");
    await test.enrol("moved");
    expect(await old.agent.next("refused")).toMatchObject({ code: "denied" });
  });

  it("the certificate of another tenant for this tenant's host", async () => {
    const own = agentOf(await test.enrol("shared-name"));
    await own.hello({ streamId: "stream-own" });
    const theirs = agentOf(await test.enrol("shared-name", "second"));
    await theirs.hello({ streamId: "stream-of-theirs" });
    // Both sessions live: the same name in two tenants means two hosts.
    expect(await test.hosts.isOnline("matrix", "shared-name")).toBe(true);
    expect(await test.hosts.isOnline("second", "shared-name")).toBe(true);
    const outcome = test.hosts.dispatch(
      test.principal(),
      "shared-name",
      { kind: "exec", line: "true" },
      { commandId: "tenant-1", timeoutMs: 60_000 },
    );
    expect(await own.next("command")).toMatchObject({ id: "tenant-1" });
    const ended = { commandId: "tenant-1", startedMs: 1, endedMs: 2 };
    const forged = entry(1, { $case: "result", value: { ...ended, state: "ok", code: 0, message: "forged" } });
    theirs.send({ $case: "batch", value: { streamId: "stream-of-theirs", entries: [forged] } });
    expect(await theirs.next("acknowledge")).toMatchObject({ throughSequence: 1 });
    const told = entry(1, { $case: "result", value: { ...ended, state: "failed", code: 3, message: "" } });
    own.send({ $case: "batch", value: { streamId: "stream-own", entries: [told] } });
    expect(await outcome).toMatchObject({ state: "failed", code: 3 });
  });

  it("a certificate that has expired", async () => {
    const brief = await openTestHosts({ beside: test, agentCertificateLifetimeMs: 1 });
    const identity = await brief.enrol("brief");
    const agent = agentOf(identity, brief.agentPort);
    await expect(agent.hello()).rejects.toThrow();
    await brief[Symbol.asyncDispose]();
    // The same for resumed TLS, which does not check the validity times.
    let aheadMs = 0;
    const clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
    const later = await openTestHosts({ beside: test, runtime: { ...test.runtime, clock } });
    const outdated = agentOf(await test.enrol("outdated"), later.agentPort);
    aheadMs = 25 * 3_600_000;
    outdated.send({ $case: "hello", value: helloOf() });
    expect(await outdated.next("refused")).toMatchObject({
      code: "denied",
      message: expect.stringMatching(/enrol this host again/),
    });
    await later[Symbol.asyncDispose]();
  });

  it("a flood of hellos, and more agents than it takes", async () => {
    const identity = await test.enrol("restless");
    const beganMs = realClock.monotonicMs();
    // However slow the agents are, all hellos fall into one minute.
    const clock = { ...realClock, monotonicMs: () => (realClock.monotonicMs() - beganMs) / 100 };
    const strict = await openTestHosts({ beside: test, runtime: { ...test.runtime, clock } });
    let refused: { code: string } | undefined;
    for (let count = 0; count <= AGENT_HELLOS_PER_MINUTE && !refused; count += 1) {
      const agent = agentOf(identity, strict.agentPort);
      refused = await agent.hello().then(
        () => undefined,
        () => agent.next("refused"),
      );
      agent.close();
    }
    expect(refused).toMatchObject({ code: "limited" });
    await strict[Symbol.asyncDispose]();
    const small = await openTestHosts({ beside: test, sessionsMax: 1 });
    const first = agentOf(await test.enrol("one"), small.agentPort);
    await first.hello();
    const second = agentOf(await test.enrol("two"), small.agentPort);
    expect(await second.next("refused")).toMatchObject({ code: "limited" });
    first.close();
    await small[Symbol.asyncDispose]();
  });
});

describe("two controllers on one store", () => {
  it("agree on the authority; a session taken over elsewhere ends here", async () => {
    const other = await openTestHosts({ beside: test });
    const { agent, identity, epoch } = await connected("wandering");
    const moved = agentOf(identity, other.agentPort);
    const welcome = await moved.hello();
    expect(welcome.epoch).toBeGreaterThan(epoch);
    expect(await agent.next("refused")).toMatchObject({ code: "conflict" });
    expect(await other.hosts.isOnline("matrix", "wandering")).toBe(true);
    moved.close();
    await other[Symbol.asyncDispose]();
  });

  it("tell their agents when they end, whatever is closed first", async () => {
    // The forced end of remaining streams never comes.
    const after: Clock["after"] = (delayMs, callback) =>
      delayMs === SHUTDOWN_STREAMS_MS ? () => undefined : realClock.after(delayMs, callback);
    const runtime = { ...testRuntime({ ...realClock, after }), random: { next: Math.random, bytes: randomBytes } };
    const brief = await openTestHosts({ beside: test, runtime });
    const agent = agentOf(await test.enrol("left-behind"), brief.agentPort);
    await agent.hello();
    await brief.server.close();
    expect(await agent.next("refused")).toMatchObject({ code: "unavailable" });
    await expect.poll(() => test.hosts.isOnline("matrix", "left-behind"), { timeout: 30_000 }).toBe(false);
    await brief[Symbol.asyncDispose]();
  });

  it("send their agents away when the lease of the sessions is lost, and take them again", async () => {
    const lost: AbortController[] = [];
    let woken = false;
    const stores = (engine: TestEngine): Stores => ({
      tenant: (name) => engine.tenant(name),
      system: async () => {
        const system = await engine.system();
        const lease: KvStore["lease"] = async (ttlMs) => {
          const stop = new AbortController();
          lost.push(stop);
          const granted = await system.kv.lease(ttlMs);
          return {
            id: granted.id,
            lost: stop.signal,
            held: () => !stop.signal.aborted && !woken,
            revoke: () => granted.revoke(),
          };
        };
        return { ...system, kv: wrappedKv(system.kv, { lease }) };
      },
    });
    const lonely = await openTestHosts({ beside: test, stores });
    const identity = await test.enrol("lonely");
    const agent = agentOf(identity, lonely.agentPort);
    const { epoch } = await agent.hello();
    // As after a resume of the controller's machine: the lease has expired by the clock, but no timer has fired yet.
    woken = true;
    const late = lonely.hosts.dispatch(
      lonely.principal(),
      "lonely",
      { kind: "exec", line: "true" },
      { commandId: "late", timeoutMs: 100 },
    );
    expect(await late).toMatchObject({ state: "unreachable" });
    expect(agent.frames.map(({ $case }) => $case)).not.toContain("command");
    woken = false;
    // The first lease belongs to the controller itself.
    lost[1]?.abort();
    expect(await agent.next("refused")).toMatchObject({ code: "unavailable" });
    const again = agentOf(identity, lonely.agentPort);
    expect((await again.hello()).epoch).toBeGreaterThan(epoch);
    expect(lost).toHaveLength(3);
    again.close();
    await lonely[Symbol.asyncDispose]();
  });
});
