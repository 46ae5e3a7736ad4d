import { connect } from "node:tls";
import { describe, expect, it } from "vitest";
import { AGENT_HELLOS_PER_MINUTE } from "../../common/limits.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import { enrolRequest, helloOf, openTestHosts, pemOf } from "../../test/helpers/hosts/hosts.ts";
import { world, useAgentPort, agentOf, connected, entry } from "../../test/helpers/hosts/agent-port-world.ts";

useAgentPort();

describe("the agent port refuses", () => {
  it("an agent without a certificate of our authority", async () => {
    const identity = await world.enrol("good");
    const authorities = Buffer.from(identity.answer.authorities.map(pemOf).join(""));
    const closed = await new Promise<string>((resolve) => {
      const socket = connect({ host: "localhost", port: world.agentPort, ca: authorities, ALPNProtocols: ["h2"] });
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
    const identity = await world.enrol("modern");
    const ca = Buffer.from(identity.answer.authorities.map(pemOf).join(""));
    return new Promise((resolve) => {
      // At its usual level the client itself would not offer old and weak ciphers.
      const ciphers = "DEFAULT@SECLEVEL=0";
      const own = { key: identity.keyPem, cert: pemOf(identity.answer.certificate) };
      const to = { host: "localhost", port: world.agentPort, ca, ALPNProtocols: ["h2"] };
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
    const identity = await world.enrol("honest");
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
    const identity = await world.enrol("rude");
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

  it("the certificate of a host that was removed, and ends its session", async () => {
    const removed = await connected("removed");
    await world.hosts.remove(world.principal(), "removed");
    expect(await removed.agent.next("refused")).toMatchObject({ code: "denied" });
    const back = agentOf(removed.identity);
    back.send({ $case: "hello", value: helloOf() });
    expect(await back.next("refused")).toMatchObject({
      code: "denied",
      message: expect.stringContaining("The host removed was removed"),
    });
    await world.hosts.save(world.principal(), { host: "removed" });
    const revived = agentOf(removed.identity);
    revived.send({ $case: "hello", value: helloOf() });
    expect(await revived.next("refused")).toMatchObject({ code: "denied" });
  });

  it("the agent whose host another one takes over, only when the token is used, and with the reason", async () => {
    const old = await connected("moved");
    const warnings: string[] = [];
    const { token } = await world.hosts.tokens.create(world.principal(), { host: "moved" }, (text) =>
      warnings.push(text),
    );
    expect(warnings).toEqual([expect.stringContaining("The agent of moved is connected.")]);
    expect(await world.hosts.isOnline("matrix", "moved")).toBe(true);
    await world.hosts.agents.enrol(enrolRequest(token, createRequest(createKeyPem(), "moved")));
    const told = {
      code: "denied",
      message: expect.stringMatching(/^An agent enrolled as moved again at .* keeps its data/),
    };
    expect(await old.agent.next("refused")).toMatchObject(told);
    const back = agentOf(old.identity);
    back.send({ $case: "hello", value: helloOf() });
    expect(await back.next("refused")).toMatchObject(told);
  });

  it("the certificate of another tenant for this tenant's host", async () => {
    const own = agentOf(await world.enrol("shared-name"));
    await own.hello({ streamId: "stream-own" });
    const theirs = agentOf(await world.enrol("shared-name", "second"));
    await theirs.hello({ streamId: "stream-of-theirs" });
    // Both sessions live: the same name in two tenants means two hosts.
    expect(await world.hosts.isOnline("matrix", "shared-name")).toBe(true);
    expect(await world.hosts.isOnline("second", "shared-name")).toBe(true);
    const outcome = world.hosts.dispatch(
      world.principal(),
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
    const brief = await openTestHosts({ beside: world, agentCertificateLifetimeMs: 1 });
    const identity = await brief.enrol("brief");
    const agent = agentOf(identity, brief.agentPort);
    await expect(agent.hello()).rejects.toThrow();
    await brief[Symbol.asyncDispose]();
    // The same for resumed TLS, which does not check the validity times.
    let aheadMs = 0;
    const clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
    const later = await openTestHosts({ beside: world, runtime: { ...world.runtime, clock } });
    const outdated = agentOf(await world.enrol("outdated"), later.agentPort);
    aheadMs = 25 * 3_600_000;
    outdated.send({ $case: "hello", value: helloOf() });
    expect(await outdated.next("refused")).toMatchObject({
      code: "denied",
      message: expect.stringMatching(/enrol this host again/),
    });
    await later[Symbol.asyncDispose]();
  });

  it("a flood of hellos, and more agents than it takes", async () => {
    const identity = await world.enrol("restless");
    const beganMs = realClock.monotonicMs();
    // However slow the agents are, all hellos fall into one minute.
    const clock = { ...realClock, monotonicMs: () => (realClock.monotonicMs() - beganMs) / 100 };
    const strict = await openTestHosts({ beside: world, runtime: { ...world.runtime, clock } });
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
    const small = await openTestHosts({ beside: world, sessionsMax: 1 });
    const first = agentOf(await world.enrol("one"), small.agentPort);
    await first.hello();
    const second = agentOf(await world.enrol("two"), small.agentPort);
    expect(await second.next("refused")).toMatchObject({ code: "limited" });
    first.close();
    await small[Symbol.asyncDispose]();
  });
});
