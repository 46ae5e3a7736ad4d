import { describe, expect, it } from "vitest";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import { SESSION_WINDOW_ENTRIES } from "../../common/limits.ts";
import { sha256 } from "../../test/helpers/hosts/hosts.ts";
import { world, useAgentPort, agentOf, connected, entry, presence } from "../../test/helpers/hosts/agent-port-world.ts";

useAgentPort();

const gap = (sequence: number) =>
  entry(sequence, {
    $case: "gap",
    value: { policy: "p", source: "", reason: "vanished", count: 1, unit: "runs", fromMs: 0, toMs: 0 },
  });

describe("agent sessions", () => {
  it("welcome an agent, send it what it is to do, and show its host online", async () => {
    world.desired.set("matrix/web-1", { revision: 7, policies: [{ name: "p", revision: 3, spec: "{}" }] });
    const identity = await world.enrol("web-1");
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
    expect(welcome).toMatchObject({ acknowledged: 0, controllers: [`localhost:${world.agentPort}`] });
    expect(await agent.next("desired")).toMatchObject({ revision: 7, policies: [{ name: "p" }] });
    await came;
    const view = await world.hosts.get(world.principal(), "web-1");
    expect(view).toMatchObject({ status: "online" });
    world.desired.set("matrix/web-1", { revision: 8, policies: [] });
    world.hosts.refresh("matrix", ["web-1", "somebody-else"]);
    expect(await agent.next("desired")).toMatchObject({ revision: 8, policies: [] });
    agent.send({ $case: "heartbeat", value: { timeMs: 1, values: {} } });
    await agent.next("heartbeat");
    const later = await world.hosts.get(world.principal(), "web-1");
    expect(later).toMatchObject({ iplist: ["10.1.1.1"], config: { os: "Linux 6", pid: "42", cpu_usedpercent: "3" } });
    // An agent must not change where SSH connects to.
    expect(later.config).not.toHaveProperty("port");
    const went = presence("web-1", false);
    agent.close();
    await went;
    expect((await world.hosts.get(world.principal(), "web-1")).status).toBe("offline");
  });

  it("hand entries over in order and acknowledge what is safe, repeated ones once", async () => {
    const { agent } = await connected("entries");
    const streamId = "stream-entries-1";
    const again = agentOf(await world.enrol("entries-2"));
    await again.hello({ streamId });
    again.send({ $case: "batch", value: { streamId, entries: [gap(1), gap(2)] } });
    again.send({ $case: "batch", value: { streamId, entries: [gap(1), gap(2)] } });
    again.send({ $case: "batch", value: { streamId, entries: [gap(3)] } });
    let through = 0;
    while (through < 3) through = (await again.next("acknowledge")).throughSequence;
    const kept = world.sink.entries.filter(({ source }) => source.streamId === streamId);
    expect(kept.map((one) => one.entry.sequence)).toEqual([1, 2, 3]);
    expect(kept[0]?.source).toMatchObject({ tenant: "matrix", host: "entries-2" });
    again.send({ $case: "batch", value: { streamId: "another-stream", entries: [gap(4)] } });
    expect(await again.next("refused")).toMatchObject({ code: "invalid" });
    agent.close();
  });

  it("refuse an agent that sends far beyond its window", async () => {
    const agent = agentOf(await world.enrol("flood"));
    const streamId = "stream-flood-1";
    await agent.hello({ streamId });
    let release: () => void = () => undefined;
    world.sink.gate = new Promise((resolve) => (release = resolve));
    for (let from = 1; from <= 4 * SESSION_WINDOW_ENTRIES; from += SESSION_WINDOW_ENTRIES) {
      const entries = Array.from({ length: SESSION_WINDOW_ENTRIES }, (_, at) => gap(from + at));
      agent.send({ $case: "batch", value: { streamId, entries } });
    }
    expect(await agent.next("refused")).toMatchObject({ code: "limited" });
    release();
    world.sink.gate = Promise.resolve();
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
    expect(await world.hosts.isOnline("matrix", "twice")).toBe(true);
  });

  it("leave one of several that come at once for one host: the one with the greatest epoch", async () => {
    const identity = await world.enrol("crowd");
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
    const { kv } = await world.engine.system();
    expect((await kv.get("sessions/matrix/crowd"))?.revision).toBe(greatest);
  });

  it("end when their entry in the store does", async () => {
    const { agent } = await connected("erased");
    const { kv } = await world.engine.system();
    await kv.delete(`sessionsof/${world.controllerId}/matrix/erased`);
    expect(await agent.next("refused")).toMatchObject({ code: "conflict" });
    await expect.poll(() => world.hosts.isOnline("matrix", "erased"), { timeout: 30_000 }).toBe(false);
  });

  it("renew a certificate in flight; the new one opens the next session", async () => {
    const { agent } = await connected("renewing");
    const keyPem = createKeyPem();
    agent.send({ $case: "renew", value: { csr: createRequest(keyPem, "some-other-name") } });
    const renewed = await agent.next("renewed");
    const next = agentOf({
      keyPem,
      answer: { ...(await world.enrol("unused")).answer, certificate: renewed.certificate.toString("base64") },
    });
    const { epoch } = await next.hello({
      facts: { host: "renewing", os: "", arch: "", addresses: [], pid: 1, values: {} },
    });
    expect(epoch).toBeGreaterThan(0);
  });

  it("serve content that something of the host refers to, and nothing else", async () => {
    const { blobs } = await world.engine.tenant("matrix");
    const mine = await blobs.put([Buffer.from("echo mine\n")], "test");
    const other = await blobs.put([Buffer.from("another host's secret\n")], "test");
    const file = { path: "run.sh", digest: mine.digest, size: mine.size, executable: true };
    world.desired.set("matrix/fetching", {
      revision: 1,
      policies: [{ name: "p", revision: 1, spec: "{}", depot: { name: "d", version: "1.0.0", files: [file] } }],
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
    const again = agentOf(await world.enrol("commands-2"));
    await again.hello({ streamId });
    const pieces: string[] = [];
    const outcome = world.hosts.dispatch(
      world.principal(),
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
    for await (const rows of world.objects.unrestricted.read(world.principal(), request))
      states.push(...rows.map((row) => row.values.state));
    expect(states).toEqual(["failed"]);
    agent.close();
  });

  it("send a command again under its id when the session was lost, and take its deadline for final", async () => {
    const first = await connected("flapping");
    const run = (commandId: string, timeoutMs: number) =>
      world.hosts.dispatch(world.principal(), "flapping", { kind: "exec", line: "true" }, { commandId, timeoutMs });
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
    await world.hosts.save(world.principal(), { host: "silent" });
    const outcome = world.hosts.dispatch(
      world.principal(),
      "silent",
      { kind: "exec", line: "true" },
      { commandId: "x", timeoutMs: 1_000 },
    );
    expect(await outcome).toMatchObject({
      state: "unreachable",
      message: "The agent of silent is not connected, and its record has no credentials for SSH.",
    });
    const unknown = world.hosts.dispatch(
      world.principal("second"),
      "silent",
      { kind: "exec", line: "true" },
      { commandId: "x", timeoutMs: 1_000 },
    );
    await expect(unknown).rejects.toMatchObject({ code: "not_found" });
  });
});
