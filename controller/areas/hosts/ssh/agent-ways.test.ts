import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TUNNEL_FRAME_MAX_BYTES } from "../../../../common/limits.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { BareAgent, openTestHosts, testPrincipalOf, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { eventually, freePort, Program } from "../../../../test/helpers/programs/programs.ts";
import { startSshd, type Sshd, wayBehindGate } from "../../../../test/helpers/hosts/sshd.ts";
import type { CommandOutcome, DispatchOptions, ProxiedHost, TunnelPlace } from "../types.ts";

const DEADLINE_MS = 30_000;
const target = await startSshd();
if (!target && process.env.CI) throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

/** Two controllers. The agents of the jump hosts are processes connected to the first one. */
describe.skipIf(!target)("SSH through the agent of a jump host", () => {
  const far = target as Sshd;
  const agents: Program[] = [];
  let file: string;
  let folder: string;
  let here: TestHosts;
  let there: TestHosts;
  let next = 0;
  /** Answer of the groups: true if they declare the place. */
  let leads: (place: TunnelPlace) => boolean = () => true;
  beforeAll(async () => {
    file = await bundle("agent/main.ts", "agent-ways/agent.mjs");
    folder = await mkdtemp(join(tmpdir(), "odp-ways-"));
    const options = { leads: (place: TunnelPlace) => Promise.resolve(leads(place)) };
    here = await openTestHosts(options);
    there = await openTestHosts({ ...options, beside: here });
    await eventually(
      "each knows the other",
      DEADLINE_MS,
      () => (here.membership.others().length === 1 && there.membership.others().length === 1) || undefined,
    );
    await startAgent("gate", { ODP_AGENT_TUNNELS: "127.0.0.1:*,127.1:*" });
  });
  afterAll(async () => {
    for (const agent of agents) await agent.kill();
    await there[Symbol.asyncDispose]();
    await here[Symbol.asyncDispose]();
    await far[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function startAgent(host: string, settings: Record<string, string> = {}): Promise<Program> {
    const { token } = await here.hosts.tokens.create(here.principal(), { host });
    const agent = new Program(`agent ${host}`, file, {
      ODP_AGENT_CONTROLLER: here.url,
      ODP_AGENT_TOKEN: token,
      ODP_AGENT_NAME: host,
      ODP_AGENT_DIR: join(folder, host),
      ...settings,
    });
    agents.push(agent);
    await agent.printed(/"connected"/);
    await isKnown(host);
    return agent;
  }
  async function isKnown(host: string): Promise<void> {
    for (const at of [here, there])
      await eventually(`${host} is online`, DEADLINE_MS, async () => {
        return (await at.hosts.isOnline("matrix", host)) || undefined;
      });
  }
  const noted: string[] = [];
  const noteKey = (fingerprint: string) => Promise.resolve(void noted.push(fingerprint));
  const behind = (more: Partial<ProxiedHost> = {}) => wayBehindGate(far, { noteKey, ...more });
  const exec = (
    way: ProxiedHost,
    line = "true",
    {
      at = here,
      as = here.principal(),
      ...options
    }: Partial<DispatchOptions> & { at?: TestHosts; as?: ReturnType<typeof testPrincipalOf> } = {},
  ): Promise<CommandOutcome> =>
    at.hosts.dispatchBehind(
      as,
      way,
      { kind: "exec", line },
      { commandId: `way-${(next += 1)}`, timeoutMs: 60_000, ...options },
    );
  /** Starts a command that reports when it runs; also returns its end. */
  function begin(way: ProxiedHost, line: string, options: Parameters<typeof exec>[2] = {}) {
    const heard = { text: "" };
    const onOutput: DispatchOptions["onOutput"] = ({ data }) => void (heard.text += Buffer.from(data).toString());
    const end = exec(way, line, { onOutput, ...options });
    const isBegun = eventually("the command has begun", DEADLINE_MS, () => heard.text.includes("\n") || undefined);
    return { heard, end, isBegun };
  }

  it("runs a command on the host behind, whichever controller was asked", async () => {
    for (const at of [here, there]) {
      const before = at.audited.length;
      const { heard, end } = begin(behind({ sshkey: "" }), "pwd; exit 7", { at });
      expect(await end).toMatchObject({ state: "failed", code: 7, message: "The command ended with code 7." });
      expect(heard.text.trim()).toBe(far.home);
      expect(at.audited.slice(before)).toMatchObject([
        { tenant: "matrix", user: "administrator", permission: "jobs:run", object: `gate,127.0.0.1:${far.port}` },
      ]);
    }
    expect(noted).toEqual([far.fingerprint, far.fingerprint]);
  });

  it("brings an output of many pieces whole, and takes a long input", async () => {
    for (const at of [here, there]) {
      let bytes = 0;
      const long = "x".repeat(60_000);
      const line = `head -c 1048576 /dev/zero; test \${#LONG} = 60000`;
      const end = at.hosts.dispatchBehind(
        here.principal(),
        behind(),
        { kind: "exec", line, environment: { LONG: long } },
        { commandId: `way-${(next += 1)}`, timeoutMs: 60_000, onOutput: ({ data }) => void (bytes += data.length) },
      );
      expect(await end).toMatchObject({ state: "ok", code: 0 });
      expect(bytes).toBe(1_048_576);
    }
  });

  it("ends a command that is cancelled, on the host behind too", async () => {
    for (const at of [here, there]) {
      const stop = new AbortController();
      const { heard, isBegun, end } = begin(behind(), "echo $$; exec sleep 300", { at, signal: stop.signal });
      await isBegun;
      stop.abort();
      expect(await end).toMatchObject({ state: "cancelled" });
      const pid = Number(heard.text.trim());
      await eventually("the process is gone", DEADLINE_MS, () => (isAlive(pid) ? undefined : true));
    }
  });

  it("says what the agent met with", async () => {
    const closed = await freePort();
    const wrong = `SHA256:${"A".repeat(43)}`;
    const failing: Record<string, Partial<ProxiedHost>> = {
      [`The jump host gate of 127.0.0.1 failed: Its agent does not lead to 127.0.0.1:${closed}: it refused`]: {
        port: closed,
      },
      // SSH and the group see an ordinary name.
      "its name leads to 127.0.0.1, the jump host itself": { host: "127.1" },
      [`the agent's setting --tunnels does not allow 10.0.0.5:${far.port}`]: { host: "10.0.0.5" },
      [`The SSH key of 127.0.0.1 is ${far.fingerprint}, its record says ${wrong}.`]: { sshkey: wrong },
      [`SSH to ${far.username}@127.0.0.1:${far.port} through gate failed:`]: { secret: "hunter2" },
    };
    for (const at of [here, there])
      for (const [message, more] of Object.entries(failing)) {
        const outcome = await exec(behind(more), "true", { at });
        expect(outcome).toMatchObject({ state: "unreachable", message: expect.stringContaining(message) as string });
        expect(outcome.message).not.toContain("hunter2");
      }
  });

  it("leads nowhere that no group says, nobody over a host that he may not see, no neighbour over another's agent", async () => {
    leads = ({ port }) => port !== far.port;
    for (const at of [here, there])
      expect(await exec(behind(), "true", { at })).toMatchObject({
        state: "unreachable",
        message: `The jump host gate of 127.0.0.1 failed: The group dbs of type proxy does not lead from gate to 127.0.0.1:${far.port}.`,
      });
    leads = () => true;
    const reader = testPrincipalOf("matrix", "viewer");
    await expect(exec(behind(), "true", { as: reader })).rejects.toMatchObject({ code: "denied" });
    const neighbour = testPrincipalOf("second");
    await here.engine.tenant("second");
    const none = { state: "unreachable", message: "There is no host gate, the jump host of 127.0.0.1." };
    expect(await exec(behind(), "true", { as: neighbour })).toMatchObject(none);
    await here.hosts.save(neighbour, { host: "gate" });
    expect(await exec(behind(), "true", { as: neighbour })).toMatchObject({
      state: "unreachable",
      message:
        "The agent of gate, the jump host of 127.0.0.1, is not connected, and its record has no credentials for SSH.",
    });
  });

  it("ends every command once when the agent is killed, and says so", async () => {
    const mortal = await startAgent("mortal");
    const begun = [here, here, there].map((at) => begin(behind({ proxy: "mortal" }), "echo begun; sleep 300", { at }));
    await Promise.all(begun.map(({ isBegun }) => isBegun));
    await mortal.kill();
    for (const { end } of begun)
      expect(await end).toMatchObject({
        state: "failed",
        message: "The connection to the jump host mortal was lost while the command ran.",
      });
  });

  it("knows an agent that is too old at once, one that says nothing by the deadline, and takes no answer of another", async () => {
    const open: BareAgent[] = [];
    const come = async (host: string, tunnels: boolean): Promise<BareAgent> => {
      const agent = new BareAgent(here.agentPort, await here.enrol(host));
      open.push(agent);
      await agent.hello({ tunnels });
      await isKnown(host);
      return agent;
    };
    await come("old", false);
    for (const at of [here, there])
      expect(await exec(behind({ proxy: "old" }), "true", { at })).toMatchObject({
        state: "unreachable",
        message: expect.stringContaining("The agent of old is too old to lead anywhere") as string,
      });
    const mute = await come("mute", true);
    const thief = await come("thief", true);
    const stop = new AbortController();
    const waiting = exec(behind({ proxy: "mute" }), "true", { signal: stop.signal });
    const { id, address, port } = await mute.next("openTunnel");
    expect({ address, port }).toEqual({ address: "127.0.0.1", port: far.port });
    const stolen = thief.client.tunnel();
    stolen.write({ frame: { $case: "opened", value: { id, code: "", message: "" } } });
    const [error] = (await once(
      stolen.on("data", () => undefined),
      "error",
    )) as [Error];
    expect(error.message).toContain("Nobody waits for this tunnel.");
    stop.abort();
    expect(await waiting).toMatchObject({ state: "cancelled" });
    expect(await exec(behind({ proxy: "mute" }), "true", { timeoutMs: 200 })).toMatchObject({ state: "timeout" });
    await mute.next("openTunnel");
    const flooded = exec(behind({ proxy: "mute" }));
    const flood = mute.client.tunnel().on("error", () => undefined);
    const asked = await mute.next("openTunnel");
    flood.write({ frame: { $case: "opened", value: { id: asked.id, code: "", message: "" } } });
    flood.write({ frame: { $case: "data", value: Buffer.alloc(TUNNEL_FRAME_MAX_BYTES) } });
    expect(await flooded).toMatchObject({
      state: "unreachable",
      message: expect.stringContaining(`A frame of an agent has at most ${TUNNEL_FRAME_MAX_BYTES} bytes.`) as string,
    });
    for (const agent of open) agent.close();
  });

  it("reads a place no faster than it is asked to, and goes on when it is", async () => {
    const offered = 32 * 1024 * 1024;
    const sent = { bytes: 0 };
    const source = createServer((socket) => {
      socket.on("error", () => undefined);
      const piece = Buffer.alloc(256 * 1024);
      const write = (): void => {
        while (sent.bytes < offered) {
          sent.bytes += piece.length;
          if (!socket.write(piece)) return void socket.once("drain", write);
        }
        socket.end();
      };
      write();
    });
    source.listen(0, "127.0.0.1");
    await once(source, "listening");
    const { port } = source.address() as AddressInfo;
    const place = { tenant: "matrix", host: "gate", group: "dbs", address: "127.0.0.1", port };
    const stream = await here.hosts.peers.openTunnel(place, new AbortController().signal);
    // The output is not read: the sender stops once the buffers of both programs and the system are full.
    const seen: number[] = [];
    await eventually("the source is held up", DEADLINE_MS, () => {
      seen.push(sent.bytes);
      return seen.length > 4 && seen.at(-4) === seen.at(-1) ? true : undefined;
    });
    expect(sent.bytes).toBeLessThan(offered);
    // Other connections of the same agent continue.
    expect(await exec(behind())).toMatchObject({ state: "ok" });
    expect(sent.bytes).toBeLessThan(offered);
    let received = 0;
    for await (const data of stream) received += (data as Buffer).length;
    expect(received).toBe(offered);
    source.close();
  });

  it("ends what leads over a host that is removed, though its agent holds on", async () => {
    const begun = [here, there].map((at) => begin(behind(), "echo begun; sleep 300", { at }));
    await Promise.all(begun.map(({ isBegun }) => isBegun));
    await here.hosts.remove(here.principal(), "gate");
    for (const { end } of begun) expect(await end).toMatchObject({ state: "failed" });
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
